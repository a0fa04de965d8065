//! What an iteration decided, computed again from the gates and the rows before: on which parameters it opened, what was
//! rejected, sealed and unsealed, who was accepted, what the dev objective answered, and how the iteration ended.

use std::collections::BTreeSet;

use clover_event::Event;
use clover_event::Payload;
use clover_event::payload::iteration::IterationClosed;
use clover_event::payload::iteration::IterationOpened;
use clover_event::payload::predicate::CandidatesSealed;
use clover_event::payload::predicate::ConfirmUnsealed;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::PatchAccepted;
use clover_event::payload::rubric::PatchProposed;
use clover_event::payload::rubric::PatchRejected;
use clover_event::payload::rubric::RejectStage;
use clover_event::payload::synthesis::DevObjectiveQueried;
use clover_ground::time::Timestamp;
use clover_ledger::State;
use clover_projection::decisions;
use clover_projection::iterations::record::IterationRecord;
use clover_projection::manifests::Manifests;

use crate::iterate::outcome;
use crate::patches;
use crate::patches::Authorship;
use crate::patches::Bench;
use crate::recompute::Context;
use crate::recompute::RecomputeError;
use crate::recompute::iterations::gone;
use crate::recompute::said_in;

impl Context<'_> {
    /// State before an entry, and when the ledger took it in.
    fn state_before(&self, seq: u64) -> Result<(State, Timestamp), RecomputeError> {
        let ledger = self.ledger()?;
        let read = ledger.entry(seq)?.ok_or_else(|| gone("no such entry"))?;
        Ok((ledger.state_at(seq)?, read.stored.recorded_at))
    }
}

/// What everything before confirm read.
fn through(record: &IterationRecord) -> Result<u64, RecomputeError> {
    let through = record.through();
    through.ok_or_else(|| gone("nothing was computed before it"))
}

/// The best patch of each family that passed on dev, and the composite of the two best if it did.
pub(super) fn sealed(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &CandidatesSealed = said_in(event)?;
    let record = context.record(&said.iteration, seq)?;
    let (state, at) = context.state_before(seq)?;
    let stopped = |hash| {
        let of = (&said.iteration, hash);
        decisions::stopped(&state, &record.experiment, at, of, CriterionSplit::Dev).is_some()
    };
    let standing = record.standing();
    let passed: Vec<&PatchProposed> = standing
        .into_iter()
        .filter(|patch| !stopped(patch.patch_hash))
        .collect();
    let through = through(&record)?;
    let history = context.history;
    let course = &context.kept(&record, through)?.course;
    let chosen = course.of_families(history, &record, &passed)?;
    let mut hypotheses = Vec::new();
    for (patch, _) in &chosen {
        hypotheses.push(course.hypothesis(history, &record, &[*patch])?);
    }
    if let [(first, _), (second, _), ..] = chosen[..] {
        let both = course.hypothesis(history, &record, &[first, second])?;
        if !stopped(both.hash) {
            hypotheses.push(both);
        }
    }
    let hypotheses: Vec<_> = hypotheses.iter().collect();
    Ok(course.sealing(&hypotheses).into())
}

/// The confirm root of the split and the sealing before it; the charge is named, not computed.
pub(super) fn unsealed(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &ConfirmUnsealed = said_in(event)?;
    let record = context.record(&said.iteration, seq)?;
    let sealed = record.sealed.as_ref().map(|of| of.id);
    let sealed = sealed.ok_or_else(|| gone("nothing was sealed before it"))?;
    let through = through(&record)?;
    let course = &context.kept(&record, through)?.course;
    Ok(Payload::from(ConfirmUnsealed {
        charge: said.charge,
        confirm_root: course.loaded.confirm_root,
        iteration: said.iteration.clone(),
        sealed,
    }))
}

/// The patch in its place among those to accept, with every gate behind it.
pub(super) fn accepted(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &PatchAccepted = said_in(event)?;
    let record = context.record(&said.iteration, seq)?;
    let (state, at) = context.state_before(seq)?;
    let order = decisions::acceptable(&state, &record.experiment, at, &said.iteration);
    let place = order.iter().position(|hash| *hash == said.candidate);
    let found = place.and_then(|at| outcome::acceptance(&record, at, said.candidate));
    let none = "its gates let no such patch through";
    let found = found.ok_or_else(|| RecomputeError::Uncalled(none.to_owned()))?;
    // Who pays is no number: the rule `acceptance` holds the charge.
    let charge = said.charge;
    Ok(PatchAccepted { charge, ..found }.into())
}

/// Answers of the dev objective: only the hash of what was asked is on record, so it needs the patch to be proposed.
pub(super) fn asked(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &DevObjectiveQueried = said_in(event)?;
    let patch = patch_of(context, said, seq)?;
    let record = context.record(&said.iteration, seq)?;
    let through = through(&record)?;
    let history = context.history;
    let course = &context.kept(&record, through)?.course;
    let of = course.hypothesis(history, &record, &[&patch])?;
    let receipt = course.receipt(&record, &of, (said.requester, None))?;
    let mut receipt = receipt.map_err(|missing| RecomputeError::Missing(missing.to_string()))?;
    if record.battery_of(of.hash).is_none() {
        // Nobody recorded the battery that ran for the answer: what it found is taken as it was said.
        let told = said.answers.iter().find(|of| of.gate == Criterion::P7);
        let mine = receipt
            .answers
            .iter_mut()
            .find(|of| of.gate == Criterion::P7);
        if let (Some(mine), Some(told)) = (mine, told) {
            *mine = *told;
        }
    }
    Ok(receipt.into())
}

/// The patch that the dev objective was asked about: as it was proposed, by then or later, or as an optimizer returned it.
fn patch_of(
    context: &mut Context<'_>,
    said: &DevObjectiveQueried,
    seq: u64,
) -> Result<PatchProposed, RecomputeError> {
    let size = context.ledger()?.size();
    let history = context.history;
    let whole = &mut context.shared.whole;
    let whole = whole.of(history, &said.iteration, size)?.cloned();
    let whole = whole.ok_or_else(|| gone("its iteration was not opened"))?;
    let mut all = whole.proposed.iter();
    if let Some(patch) = all.find(|patch| patch.said.patch_hash == said.candidate) {
        return Ok(PatchProposed {
            inputs: Vec::new(),
            ..patch.said.clone()
        });
    }
    let unknown = || gone("its patch was never proposed: its text is not here");
    let mut returned = whole.synths.iter().flat_map(|run| &run.returned);
    let yaml = returned.find_map(|of| {
        let mut all = of.said.candidates.iter();
        let found = all.find(|of| of.patch_hash == Some(said.candidate))?;
        found.yaml.clone()
    });
    let yaml = yaml.ok_or_else(unknown)?;
    let state = context.state_at(seq)?;
    let bench = Bench::of(state, &whole.experiment, &said.iteration).ok_or_else(unknown)?;
    let loose = Bench {
        ids: BTreeSet::new(),
        hashes: BTreeSet::new(),
        ..bench
    };
    let found = loose.check(yaml.as_str().as_bytes(), None);
    let (patch, checked) = found.map_err(|fault| RecomputeError::Missing(fault.to_string()))?;
    let by = Authorship::person();
    let of = (&patch, &checked);
    Ok(patches::propose(yaml.as_str(), &said.iteration, of, by))
}

/// The end that the decisions call for; another one a person chose.
pub(super) fn closed(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &IterationClosed = said_in(event)?;
    let record = context.record(&said.iteration, seq)?;
    let (outcome, reason) = outcome::ending(&record);
    if outcome != said.outcome || reason != said.reason {
        let told = "a person ended it, for the reason that it gives";
        return Err(RecomputeError::Told(told.to_owned()));
    }
    Ok(Payload::from(IterationClosed {
        iteration: said.iteration.clone(),
        outcome,
        reason,
    }))
}

/// The parameters and the rubric of the manifest in force, and the quarter of its day.
pub(super) fn opened(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &IterationOpened = said_in(event)?;
    let (state, at) = context.state_before(seq)?;
    let of = state.fold::<Manifests>().of_digest(said.digest);
    let version = of.and_then(|(_, record)| record.in_force());
    let plan = version.and_then(|version| {
        let plan = version.manifest.iteration.as_ref()?;
        Some((version.digest, plan, plan.design.as_ref()?))
    });
    let (digest, plan, design) = plan.ok_or_else(|| gone("no plan of its digest before it"))?;
    Ok(Payload::from(IterationOpened {
        digest,
        iteration: said.iteration.clone(),
        params: Box::new(plan.clone()),
        params_hash: plan.params_hash(),
        quarter: at.quarter().to_string(),
        rubric_hash: design.rubric_hash,
    }))
}

/// The stage at which a patch is stopped, for what, and every gate that did not let it pass.
pub(super) fn rejected(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &PatchRejected = said_in(event)?;
    let Some(name) = &said.patch else {
        let what = "it never became a patch: of its document the hash alone is on record";
        return Err(RecomputeError::Unrecorded(what.to_owned()));
    };
    let record = context.record(&said.iteration, seq)?;
    let standing = record.standing();
    let patch = standing.iter().copied().find(|patch| patch.patch == *name);
    let patch = patch.ok_or_else(|| gone("no such patch stood before it"))?;
    let (state, at) = context.state_before(seq)?;
    let stopped = |of: &PatchProposed, split| {
        let of = (&said.iteration, of.patch_hash);
        let found = decisions::stopped(&state, &record.experiment, at, of, split);
        found.map(|(gate, _)| gate)
    };
    if record.unsealed.is_some() {
        let hash = patch.patch_hash;
        let early = outcome::stopped_early(&record, hash).map(|(gate, _)| gate);
        let gate = early.or_else(|| stopped(patch, CriterionSplit::Confirm));
        let next = decisions::acceptable(&state, &record.experiment, at, &said.iteration);
        let why = match gate {
            Some(gate) => (RejectStage::Confirm, gate.as_str()),
            None if next.contains(&hash) => {
                return Err(RecomputeError::Uncalled(
                    "its gates let it pass: it is to be accepted".to_owned(),
                ));
            }
            None => (RejectStage::Selection, outcome::AFTER_OTHERS),
        };
        return Ok(outcome::rejection(&record, patch, why).into());
    }
    let history = context.history;
    let course = &context.kept(&record, through(&record)?)?.course;
    let of = course.hypothesis(history, &record, &[patch])?;
    let why = match stopped(patch, CriterionSplit::Dev) {
        Some(_) if course.patched(&of)?.is_err() => (RejectStage::Dev, outcome::UNSCORED),
        Some(gate) => (RejectStage::Dev, gate.as_str()),
        None => {
            let passed: Vec<&PatchProposed> = standing
                .iter()
                .copied()
                .filter(|of| stopped(of, CriterionSplit::Dev).is_none())
                .collect();
            let chosen = course.of_families(history, &record, &passed)?;
            if chosen.iter().any(|(of, _)| of.patch == *name) {
                return Err(RecomputeError::Uncalled(
                    "its gates let it pass, and it is the best of its family".to_owned(),
                ));
            }
            (RejectStage::Selection, outcome::OF_FAMILY)
        }
    };
    Ok(outcome::rejection(&record, patch, why).into())
}
