//! What a run of a generator was told, and what came of it, computed again from the rows that were read.
//!
//! Attacked texts are private: what the battery earned is taken as it was said.

use clover_event::Event;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::RunId;
use clover_event::payload::generator::GeneratorRunOpened;
use clover_ledger::History;
use clover_projection::reader::LogReader;

use crate::generator;
use crate::generator::FrozenJudge;
use crate::recompute::Context;
use crate::recompute::RecomputeError;

/// The judge that a run froze, for events that come from the same.
#[derive(Debug)]
pub(super) struct CachedJudge {
    deployment: EventId,
    judge: FrozenJudge,
}

fn gone(what: &str) -> RecomputeError {
    RecomputeError::Missing(what.to_owned())
}

/// The opening of a run below a position.
fn opening(
    history: &dyn History,
    experiment: &ExperimentId,
    run: &RunId,
    below: u64,
) -> Result<(GeneratorRunOpened, u64), RecomputeError> {
    let entries = LogReader::below(history, below).of(experiment);
    let found = entries.first::<GeneratorRunOpened>(|said| said.run == *run)?;
    let found = found.ok_or_else(|| gone("its run was not opened before it"))?;
    Ok((found.said, found.seq))
}

fn judge<'k>(
    history: &dyn History,
    place: &'k mut Option<CachedJudge>,
    (experiment, deployment): (&ExperimentId, EventId),
    below: u64,
) -> Result<&'k FrozenJudge, RecomputeError> {
    if place.as_ref().is_none_or(|of| of.deployment != deployment) {
        let judge = FrozenJudge::of(history, experiment, deployment, below)?;
        *place = Some(CachedJudge { deployment, judge });
    }
    Ok(&place.as_ref().expect("BUG: it was computed").judge)
}

/// The payload again.
fn again(
    history: &dyn History,
    place: &mut Option<CachedJudge>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let experiment = event.experiment();
    let experiment = experiment.ok_or_else(|| gone("it names no experiment"))?;
    Ok(match &event.payload {
        Payload::GeneratorRunOpened(said) => {
            let judge = judge(history, place, (experiment, said.deployment), seq)?;
            let mut again = (**said).clone();
            again.frozen = judge.frozen.digest;
            again.into()
        }
        Payload::GeneratorObjectiveQueried(said) => {
            let (run, opened) = opening(history, experiment, &said.run, seq)?;
            let judge = judge(history, place, (experiment, run.deployment), opened)?;
            let through = said.inputs.through_seq.value();
            let asked = (&said.policy, said.step);
            generator::objective(history, judge, (&run, opened), asked, through)?
                .0
                .into()
        }
        Payload::GeneratorValidated(said) => {
            let (run, opened) = opening(history, experiment, &said.run, seq)?;
            let judge = judge(history, place, (experiment, run.deployment), opened)?;
            let through = said.inputs.through_seq.value();
            let found = generator::validate(history, judge, (&run, opened), &said.design, through)?;
            let mut again = (**said).clone();
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

/// A run's event.
pub(super) fn run(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    again(context.history, &mut context.shared.generator, seq, event)
}
