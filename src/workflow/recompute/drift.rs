//! Checks of a judge's drift, computed again from recorded scores and those of the check itself.

use clover_event::Event;
use clover_event::Payload;
use clover_event::payload::drift::JudgeDriftChecked;

use crate::drift;
use crate::drift::DriftError;
use crate::drift::Heard;
use crate::drift::Which;
use crate::recompute::Context;
use crate::recompute::Gone;
use crate::recompute::estimates;
use crate::recompute::said_in;

pub(super) fn checked(context: &mut Context<'_>, seq: u64, event: &Event) -> Result<Payload, Gone> {
    let said: &JudgeDriftChecked = said_in(event)?;
    let through = said.through_seq.value();
    if through >= seq {
        let what = format!("it read through seq {through}, which was not there");
        return Err(Gone::Missing(what));
    }
    let which = Which {
        anchors: &said.anchors,
        experiment: estimates::experiment(event)?,
        judge: &said.judge,
        through,
    };
    let found = drift::recorded(context.history, &which).map_err(|error| match error {
        DriftError::Ledger(error) => Gone::Ledger(error),
        other => Gone::Drift(other),
    })?;
    let heard = Heard {
        asked: said.asked.clone(),
        scores: said.scores_micro.clone(),
    };
    Ok(drift::check(&found, heard, said.terms)?.into())
}
