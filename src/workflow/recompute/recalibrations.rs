//! A recalibration, computed again from the fresh labels that were read.

use clover_event::Event;
use clover_event::Payload;
use clover_event::payload::deployment::RecalibrationCompleted;
use clover_event::payload::deployment::RecalibrationMode;
use clover_ledger::History;
use clover_projection::deployments::rollouts::Rollouts;

use crate::live::recalibration;
use crate::live::recalibration::RecalibrationQuery;
use crate::recompute::Context;
use crate::recompute::RecomputeError;
use crate::recompute::said_in;

fn gone(what: &str) -> RecomputeError {
    RecomputeError::Missing(what.to_owned())
}

/// The payload again.
fn again(history: &dyn History, seq: u64, event: &Event) -> Result<Payload, RecomputeError> {
    let said: &RecalibrationCompleted = said_in(event)?;
    let Some(computed) = &said.computed else {
        return Err(gone(
            "it rests on a transport.tested, which is replayed itself",
        ));
    };
    let experiment = event.experiment();
    let ask = RecalibrationQuery {
        design: &said.design,
        experiment: experiment.ok_or_else(|| gone("it names no experiment"))?,
        judge: &said.judge,
        refit: computed.mode == RecalibrationMode::Refitted,
        through: computed.inputs.through_seq.value(),
    };
    let rollouts = Rollouts::below(history, ask.experiment, seq)?;
    let of = (said.commit, seq);
    let found = recalibration::recalibrate(history, &rollouts, of, &ask, &computed.thresholds)?;
    let mut again = said.clone();
    again.anchors = found.anchors;
    again.calibrator = found.calibrator;
    again.computed = Some(found.computed);
    again.labels = found.labels;
    Ok(again.into())
}

/// A recalibration.
pub(super) fn completed(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    again(context.history, seq, event)
}
