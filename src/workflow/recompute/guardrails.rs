//! Guardrails of what runs, computed again from the live rows that were read. What was given by hand is taken as it was said.

use crate::event::Event;
use crate::event::Payload;
use crate::event::payload::deployment::GuardrailChecked;
use crate::ledger::History;
use crate::projection::deployments::rollouts::Rollouts;
use crate::workflow::live::guardrails;
use crate::workflow::live::guardrails::Watched;
use crate::workflow::recompute::Context;
use crate::workflow::recompute::Gone;
use crate::workflow::recompute::said_in;

fn gone(what: &str) -> Gone {
    Gone::Missing(what.to_owned())
}

/// The payload again: its evidence from the rows of its window.
fn again(history: &dyn History, seq: u64, event: &Event) -> Result<Payload, Gone> {
    let said: &GuardrailChecked = said_in(event)?;
    if said.inputs.is_none() {
        return Err(Gone::Told("its evidence was given by hand".to_owned()));
    }
    let experiment = event.experiment();
    let experiment = experiment.ok_or_else(|| gone("it names no experiment"))?;
    let rollouts = Rollouts::below(history, experiment, seq)?;
    let watched = Watched::of(history, &rollouts, said.deployment, seq)?;
    let found = guardrails::shown(history, &watched, experiment, &said.thresholds, said.window)?;
    let mut again = said.clone();
    again.evidence = found.0;
    again.inputs = Some(found.1);
    Ok(again.into())
}

/// A check.
pub(super) fn checked(context: &mut Context<'_>, seq: u64, event: &Event) -> Result<Payload, Gone> {
    again(context.history, seq, event)
}
