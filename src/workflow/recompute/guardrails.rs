//! Guardrails of what runs, computed again from the live rows that were read. What was given by hand is taken as it was said.

use crate::event::Event;
use crate::event::Payload;
use crate::ledger::Breach;
use crate::ledger::Candidate;
use crate::ledger::LedgerError;
use crate::ledger::Memo;
use crate::ledger::Recount;
use crate::ledger::past::Past;
use crate::workflow::live;
use crate::workflow::live::guardrails;
use crate::workflow::live::guardrails::Watched;
use crate::workflow::recompute::Context;
use crate::workflow::recompute::Gone;
use crate::workflow::recompute::differs;

fn gone(what: &str) -> Gone {
    Gone::Missing(what.to_owned())
}

/// The payload again: its evidence from the rows of its window.
fn again(past: &Past<'_>, seq: u64, event: &Event) -> Result<Payload, Gone> {
    let Payload::GuardrailChecked(said) = &event.payload else {
        return Err(gone("another kind"));
    };
    if said.inputs.is_none() {
        return Err(gone("its evidence was given by hand"));
    }
    let experiment = event.header.experiment.as_ref();
    let experiment = experiment.ok_or_else(|| gone("it names no experiment"))?;
    let releases = live::releases(past, experiment, seq)?;
    let watched = Watched::of(past, &releases, said.deployment, seq)?;
    let found = guardrails::evidence(past, &watched, experiment, &said.thresholds, said.window)?;
    let mut again = said.clone();
    again.evidence = found.0;
    again.inputs = Some(found.1);
    Ok(again.into())
}

/// A check, for replay.
pub(super) fn checked(context: &mut Context<'_>, seq: u64, event: &Event) -> Result<Payload, Gone> {
    let past = context.ledger()?.past();
    again(&past, seq, event)
}

/// What live rows show is what they give, through everything that its author had seen.
#[derive(Clone, Copy, Debug)]
pub struct Guardrails;

impl Recount for Guardrails {
    fn judge(
        &self,
        past: &Past<'_>,
        event: &Candidate<'_>,
        _: &mut Memo,
    ) -> Result<Option<Breach>, LedgerError> {
        let Payload::GuardrailChecked(said) = &event.event.payload else {
            return Ok(None);
        };
        if said.inputs.is_none() {
            return Ok(None);
        }
        let through = said.window.through_seq.value();
        differs(event, "guardrail", Some(through), || {
            again(past, event.seq, event.event)
        })
    }
}
