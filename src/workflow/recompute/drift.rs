//! Checks of a judge's drift, computed again from recorded scores and those of the check itself.

use crate::event::Event;
use crate::event::Payload;
use crate::event::payload::drift::JudgeDriftChecked;
use crate::workflow::drift;
use crate::workflow::drift::DriftError;
use crate::workflow::drift::Heard;
use crate::workflow::drift::Which;
use crate::workflow::recompute::Context;
use crate::workflow::recompute::Gone;
use crate::workflow::recompute::estimates;
use crate::workflow::recompute::said_in;

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
