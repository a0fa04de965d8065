//! What a run of a generator was told, and what came of it, computed again from the rows that were read.
//!
//! Attacked texts are private: what the battery earned is taken as it was said.

use crate::event::Event;
use crate::event::Payload;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::id::RunId;
use crate::event::payload::generator::GeneratorRunOpened;
use crate::ledger::Breach;
use crate::ledger::Candidate;
use crate::ledger::LedgerError;
use crate::ledger::Memo;
use crate::ledger::Recount;
use crate::ledger::past::Past;
use crate::workflow::generator;
use crate::workflow::generator::Judge;
use crate::workflow::recompute::Context;
use crate::workflow::recompute::Gone;
use crate::workflow::recompute::differs;

/// The judge that a run froze, for events that come from the same.
#[derive(Debug)]
pub(super) struct Kept {
    deployment: EventId,
    judge: Judge,
}

fn gone(what: &str) -> Gone {
    Gone::Missing(what.to_owned())
}

/// The opening of a run below a position.
fn opening(
    past: &Past<'_>,
    experiment: &ExperimentId,
    run: &RunId,
    below: u64,
) -> Result<(GeneratorRunOpened, u64), Gone> {
    let mut found = None;
    past.entries_with::<LedgerError>(0, below, "generator.run_opened", |read| {
        if read.event.header.experiment.as_ref() == Some(experiment)
            && let Payload::GeneratorRunOpened(said) = read.event.payload
            && said.run == *run
        {
            found = Some((said, read.stored.seq));
        }
        Ok(())
    })?;
    found.ok_or_else(|| gone("its run was not opened before it"))
}

fn judge<'k>(
    past: &Past<'_>,
    place: &'k mut Option<Kept>,
    (experiment, deployment): (&ExperimentId, EventId),
    below: u64,
) -> Result<&'k Judge, Gone> {
    if place.as_ref().is_none_or(|of| of.deployment != deployment) {
        let judge = Judge::of(past, experiment, deployment, below)?;
        *place = Some(Kept { deployment, judge });
    }
    Ok(&place.as_ref().expect("BUG: it was computed").judge)
}

/// The payload again.
fn again(
    past: &Past<'_>,
    place: &mut Option<Kept>,
    seq: u64,
    event: &Event,
) -> Result<Payload, Gone> {
    let experiment = event.header.experiment.as_ref();
    let experiment = experiment.ok_or_else(|| gone("it names no experiment"))?;
    Ok(match &event.payload {
        Payload::GeneratorRunOpened(said) => {
            let judge = judge(past, place, (experiment, said.deployment), seq)?;
            let mut again = said.clone();
            again.frozen = judge.frozen.digest;
            again.into()
        }
        Payload::GeneratorObjectiveQueried(said) => {
            let (run, opened) = opening(past, experiment, &said.run, seq)?;
            let judge = judge(past, place, (experiment, run.deployment), opened)?;
            let through = said.inputs.through_seq.value();
            let asked = (&said.policy, said.step);
            generator::objective(past, judge, (&run, opened), asked, through)?
                .0
                .into()
        }
        Payload::GeneratorValidated(said) => {
            let (run, opened) = opening(past, experiment, &said.run, seq)?;
            let judge = judge(past, place, (experiment, run.deployment), opened)?;
            let through = said.inputs.through_seq.value();
            let found = generator::validate(past, judge, (&run, opened), &said.design, through)?;
            let mut again = said.clone();
            again.compared = found.compared;
            again.frozen = judge.frozen.digest;
            again.inputs = found.inputs;
            again.lcb_gain = found.lcb_gain;
            again.transport = found.transport;
            again.into()
        }
        _ => return Err(gone("another kind")),
    })
}

/// A run's event, for replay.
pub(super) fn run(context: &mut Context<'_>, seq: u64, event: &Event) -> Result<Payload, Gone> {
    let past = context.ledger()?.past();
    again(&past, &mut context.shared.generator, seq, event)
}

/// What a run was told and came to is what its rows give, through everything that its author had seen.
#[derive(Clone, Copy, Debug)]
pub struct Generators;

impl Recount for Generators {
    fn judge(
        &self,
        past: &Past<'_>,
        event: &Candidate<'_>,
        _: &mut Memo,
    ) -> Result<Option<Breach>, LedgerError> {
        let through = match &event.event.payload {
            Payload::GeneratorRunOpened(_) => None,
            Payload::GeneratorObjectiveQueried(said) => Some(said.inputs.through_seq.value()),
            Payload::GeneratorValidated(said) => Some(said.inputs.through_seq.value()),
            _ => return Ok(None),
        };
        differs(event, "generator", through, || {
            again(past, &mut None, event.seq, event.event)
        })
    }
}
