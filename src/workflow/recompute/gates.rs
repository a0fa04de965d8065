//! Estimates beside a gate, computed again from the labels before them.

use crate::event::Event;
use crate::event::Payload;
use crate::workflow::gates::estimate;
use crate::workflow::gates::estimate::EstimateError;
use crate::workflow::recompute::Context;
use crate::workflow::recompute::Gone;
use crate::workflow::recompute::estimates;

pub(super) fn estimated(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, Gone> {
    let Payload::GateEstimated(said) = &event.payload else {
        return Err(Gone::Missing("it is of another kind".to_owned()));
    };
    let experiment = estimates::experiment(event)?;
    let found = estimate::estimate(context.history, seq, experiment, said);
    Ok(found
        .map_err(|error| match error {
            EstimateError::Ledger(error) => Gone::Ledger(error),
            other => Gone::Missing(other.to_string()),
        })?
        .into())
}
