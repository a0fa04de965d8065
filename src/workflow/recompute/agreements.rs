//! Comparisons of judges, computed again from their scores, the labels, and the plans that were in force.

use clover_event::Event;
use clover_event::Payload;
use clover_event::payload::scoring::JudgeCompared;

use crate::judge::agreement;
use crate::recompute::Context;
use crate::recompute::RecomputeError;
use crate::recompute::estimates;
use crate::recompute::said_in;

pub(super) fn compared(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &JudgeCompared = said_in(event)?;
    let through = said.through_seq.value();
    if through >= seq {
        let what = format!("it read through seq {through}, which was not there");
        return Err(RecomputeError::Missing(what));
    }
    let (experiment, pair) = (estimates::experiment(event)?, [&said.first, &said.second]);
    let below = through.saturating_add(1);
    let history = context.history;
    let state = match context.state {
        Some(state) => state,
        None => context.state_at(below)?,
    };
    let found = agreement::compared((history, below), state, experiment, pair);
    let found = found.map_err(|error| RecomputeError::Missing(error.to_string()))?;
    let plan = agreement::plan((history, below), state, experiment, pair)?;
    Ok(found.said(pair, plan, through).into())
}
