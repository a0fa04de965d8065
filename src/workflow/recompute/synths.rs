//! What runs of optimizers say, computed again from the log: the view that was handed over, what an answer was read as, the
//! answer of `cards/1` itself, and how a run ended.

use std::collections::BTreeSet;

use clover_event::Event;
use clover_event::Payload;
use clover_event::id::IterationId;
use clover_event::id::PatchId;
use clover_event::id::RunId;
use clover_event::payload::rubric::PatchProposed;
use clover_event::payload::synth_runs::OptimizerKind;
use clover_event::payload::synth_runs::SynthAsked;
use clover_event::payload::synth_runs::SynthEnd;
use clover_event::payload::synth_runs::SynthReturned;
use clover_event::payload::synth_runs::SynthStopped;
use clover_ground::digest::Digest;
use clover_num::Count;
use clover_projection::decisions;
use clover_projection::iterations::record::IterationRecord;
use clover_projection::iterations::record::SynthRecord;
use clover_projection::reader::LogReader;

use crate::patches::Bench;
use crate::recompute::Context;
use crate::recompute::RecomputeError;
use crate::recompute::iterations::gone;
use crate::recompute::said_in;
use crate::synth::answer;
use crate::synth::answer::Terms;
use crate::synth::cards;
use crate::synth::progress::Progress;
use crate::synth::view;
use crate::synth::view::OptimizerView;

/// A run before an entry, with what its patches are checked against.
struct Before {
    record: IterationRecord,
    bench: Bench,
    place: usize,
}

impl Before {
    fn read(
        context: &mut Context<'_>,
        (iteration, run): (&IterationId, &RunId),
        seq: u64,
    ) -> Result<Self, RecomputeError> {
        let mut record = context.record(iteration, seq)?;
        record.dev_calls_elsewhere = match (context.state, context.ledger) {
            (Some(state), _) => decisions::dev_calls_elsewhere(state, iteration),
            (None, Some(_)) => decisions::dev_calls_elsewhere(context.state_at(seq)?, iteration),
            // A history that is told without a state has no iteration beside.
            (None, None) => 0,
        };
        let place = record
            .synths
            .iter()
            .position(|of| of.opened.said.run == *run);
        let place = place.ok_or_else(|| gone("its run was not opened before it"))?;
        let bench = Bench::recorded(&record, BTreeSet::new());
        let bench = bench.ok_or_else(|| gone("no rubric or plan of its iteration"))?;
        Ok(Self {
            record,
            bench,
            place,
        })
    }

    fn run(&self) -> &SynthRecord {
        &self.record.synths[self.place]
    }

    fn view(&self, through: u64) -> Result<OptimizerView, RecomputeError> {
        let view = view::of(&self.record, &self.bench, self.run(), through);
        view.map_err(|fault| RecomputeError::Uncalled(fault.to_string()))
    }
}

/// The view, from what the log says through the position that it names.
pub(super) fn asked(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &SynthAsked = said_in(event)?;
    let before = Before::read(context, (&said.iteration, &said.run), seq)?;
    let view = before.view(said.through_seq.value())?;
    let bytes = view.bytes();
    Ok(SynthAsked {
        inputs: view.inputs(),
        view: answer::reference(&bytes),
        view_digest: Digest::sha256(&bytes),
        ..said.clone()
    }
    .into())
}

/// What the answer is read as; that of `cards/1` from the view alone, a program's from its bytes.
pub(super) fn returned(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &SynthReturned = said_in(event)?;
    let before = Before::read(context, (&said.iteration, &said.run), seq)?;
    let run = before.run();
    let round = usize::try_from(said.round.value()).unwrap_or(usize::MAX);
    let asked = run.asked.get(round);
    let asked = asked.ok_or_else(|| gone("its round was not asked before it"))?;
    let bytes = match (run.opened.said.optimizer, &said.answer) {
        (OptimizerKind::Cards, _) => {
            let view = before.view(asked.said.through_seq.value())?;
            cards::answer(&view)
        }
        (OptimizerKind::Command | OptimizerKind::Endpoint, None) => {
            return Ok(said.clone().into());
        }
        (OptimizerKind::Command | OptimizerKind::Endpoint, Some(answer)) => {
            let found = context.history.blob(&answer.blake3)?;
            found.ok_or_else(|| RecomputeError::Absent(format!("the answer {}", answer.blake3)))?
        }
    };
    let earlier = run.returned.iter().flat_map(|of| &of.said.candidates);
    let valid: BTreeSet<Digest> = earlier.filter_map(|of| of.patch_hash).collect();
    // Ids are taken once in a ledger, whatever iteration used them.
    let proposed = LogReader::below(context.history, seq).all(|_: &PatchProposed| true)?;
    let bench = Bench {
        ids: proposed
            .iter()
            .map(|of| of.said.patch.to_string())
            .collect(),
        ..before.bench.clone()
    };
    let read = answer::read(
        &bytes,
        Terms {
            bench: answer::bench_of(bench, &valid),
            k: run.opened.said.k.value(),
            inputs: &asked.said.inputs,
        },
    );
    Ok(answer::returned(&bytes, read, said).into())
}

/// The end that its rounds and receipts call for, with the best patch of each family; another one a person chose.
pub(super) fn stopped(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &SynthStopped = said_in(event)?;
    let before = Before::read(context, (&said.iteration, &said.run), seq)?;
    let progress = Progress::of(&before.record, before.run(), seq);
    let mut winners = progress.winners(&before.bench);
    winners.sort_by(|a, b| a.family.cmp(&b.family));
    let ids = winners
        .iter()
        .filter_map(|of| of.id.parse::<PatchId>().ok());
    let mut proposed: Vec<PatchId> = ids.collect();
    let reason = match said.reason {
        SynthEnd::Person => {
            proposed.retain(|id| said.proposed.contains(id));
            SynthEnd::Person
        }
        _ => progress
            .due()
            .ok_or_else(|| RecomputeError::Uncalled("a run that goes on".to_owned()))?,
    };
    Ok(SynthStopped {
        dev_calls: Count::new(progress.dev_calls()).unwrap_or_default(),
        proposed,
        reason,
        rounds: Count::new(before.run().returned.len() as u64).unwrap_or_default(),
        ..said.clone()
    }
    .into())
}
