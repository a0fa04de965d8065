//! Checks of a judge's drift, computed again from recorded scores and those of the check itself.

use clover_event::Event;
use clover_event::Payload;
use clover_event::payload::drift::JudgeDriftChecked;

use crate::drift;
use crate::drift::AnchorQuery;
use crate::drift::DriftError;
use crate::drift::Heard;
use crate::recompute::Context;
use crate::recompute::RecomputeError;
use crate::recompute::estimates;
use crate::recompute::said_in;

pub(super) fn checked(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &JudgeDriftChecked = said_in(event)?;
    let through = said.through_seq.value();
    if through >= seq {
        let what = format!("it read through seq {through}, which was not there");
        return Err(RecomputeError::Missing(what));
    }
    let which = AnchorQuery {
        anchors: &said.anchors,
        experiment: estimates::experiment(event)?,
        judge: &said.judge,
        through,
    };
    let found = drift::recorded(context.history, &which).map_err(|error| match error {
        DriftError::Ledger(error) => RecomputeError::Ledger(error),
        other => RecomputeError::Drift(other),
    })?;
    let heard = Heard {
        asked: said.asked.clone(),
        scores: said.scores_micro.clone(),
    };
    Ok(drift::check(&found, heard, said.terms)?.into())
}
