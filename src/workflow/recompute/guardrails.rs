//! Guardrails of what runs, computed again from the live rows that were read. What was given by hand is taken as it was said.

use clover_event::Event;
use clover_event::Payload;
use clover_event::payload::deployment::GuardrailChecked;
use clover_ledger::History;
use clover_projection::deployments::rollouts::Rollouts;

use crate::live::guardrails;
use crate::live::guardrails::DeploymentPair;
use crate::recompute::Context;
use crate::recompute::RecomputeError;
use crate::recompute::said_in;

fn gone(what: &str) -> RecomputeError {
    RecomputeError::Missing(what.to_owned())
}

/// The payload again: its evidence from the rows of its window.
fn again(history: &dyn History, seq: u64, event: &Event) -> Result<Payload, RecomputeError> {
    let said: &GuardrailChecked = said_in(event)?;
    if said.inputs.is_none() {
        return Err(RecomputeError::Told(
            "its evidence was given by hand".to_owned(),
        ));
    }
    let experiment = event.experiment();
    let experiment = experiment.ok_or_else(|| gone("it names no experiment"))?;
    let rollouts = Rollouts::below(history, experiment, seq)?;
    let watched = DeploymentPair::of(history, &rollouts, said.deployment, seq)?;
    let found = guardrails::shown(history, &watched, experiment, &said.thresholds, said.window)?;
    let mut again = said.clone();
    again.evidence = found.0;
    again.inputs = Some(found.1);
    Ok(again.into())
}

/// A check.
pub(super) fn checked(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    again(context.history, seq, event)
}
