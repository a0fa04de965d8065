//! Runs that lower the loss of a judge's prompt: rows, scores, losses, steps, and what is due. The rule `sgd` reads it.

pub mod asked_scores;
pub mod called;
pub mod draws;
pub mod due;
pub mod gate;
pub mod rules;

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::RunId;
use clover_event::payload::label::LabelPurpose;
use clover_event::payload::sgd::SgdLoss;
use clover_event::payload::sgd::SgdOpened;
use clover_event::payload::sgd::SgdPart;
use clover_event::payload::sgd::SgdRow;
use clover_event::payload::sgd::SgdScored;
use clover_event::payload::sgd::SgdSplit;
use clover_event::payload::sgd::SgdTestRead;
use clover_event::payload::sgd_steps::SgdBatchDrawn;
use clover_event::payload::sgd_steps::SgdCheckpointSelected;
use clover_event::payload::sgd_steps::SgdEnd;
use clover_event::payload::sgd_steps::SgdGradientRequested;
use clover_event::payload::sgd_steps::SgdGradientReturned;
use clover_event::payload::sgd_steps::SgdPatchApproved;
use clover_event::payload::sgd_steps::SgdPatchProposed;
use clover_event::payload::sgd_steps::SgdPatchRejected;
use clover_event::payload::sgd_steps::SgdReverted;
use clover_event::payload::sgd_steps::SgdStepCommitted;
use clover_event::payload::sgd_steps::SgdStopTriggered;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ledger::Fold;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::ExperimentRegistered,
    Kind::LabelRecorded,
    Kind::LabelSealed,
    Kind::ScoreRecorded,
    Kind::SgdBatchDrawn,
    Kind::SgdCheckpointSelected,
    Kind::SgdGradientRequested,
    Kind::SgdGradientReturned,
    Kind::SgdLossComputed,
    Kind::SgdOpened,
    Kind::SgdPatchApproved,
    Kind::SgdPatchProposed,
    Kind::SgdPatchRejected,
    Kind::SgdReverted,
    Kind::SgdRowsListed,
    Kind::SgdScored,
    Kind::SgdStepCommitted,
    Kind::SgdStopTriggered,
    Kind::SgdStopped,
    Kind::SgdTestRead,
];

/// Scores of rows in their order: of each row its repeats.
pub type RowScores = Vec<Vec<Micro>>;

/// A step as far as it went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SgdStep {
    /// What people said of its proposals.
    pub approvals: Vec<SgdPatchApproved>,
    /// Its rows.
    pub batch: Option<SgdBatchDrawn>,
    /// How it ended.
    pub committed: Option<SgdStepCommitted>,
    /// What came of its request.
    pub gradient: Option<SgdGradientReturned>,
    /// Its proposals.
    pub proposed: Vec<SgdPatchProposed>,
    /// Those that were rejected.
    pub rejected: Vec<SgdPatchRejected>,
    /// What was asked.
    pub request: Option<SgdGradientRequested>,
    /// Whether the prompt went back after it.
    pub reverted: Option<SgdReverted>,
    /// Scores of its batch.
    pub scores: RowScores,
    /// Loss of its batch.
    pub train: Option<SgdLoss>,
    /// Loss of val under what was proposed.
    pub val: Option<SgdLoss>,
    /// Scores of val under what was proposed.
    pub val_scores: RowScores,
}

impl SgdStep {
    /// The proposal that was not rejected.
    pub fn standing(&self) -> Option<&SgdPatchProposed> {
        self.proposed.get(self.rejected.len())
    }

    /// What a person said of a proposal.
    pub fn word(&self, attempt: u64) -> Option<&SgdPatchApproved> {
        let mut all = self.approvals.iter();
        all.find(|of| of.attempt.value() == attempt)
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SgdRun {
    /// Scores of train under prompt 0.
    pub base: RowScores,
    /// Loss of train under prompt 0.
    pub base_loss: Option<SgdLoss>,
    /// Scores of val under the best prompt so far.
    pub best_scores: RowScores,
    /// The checkpoint.
    pub checkpoint: Option<SgdCheckpointSelected>,
    /// Scores of confirm, by prompt.
    pub confirm: BTreeMap<Digest, RowScores>,
    /// How it ended.
    pub end: Option<SgdEnd>,
    /// The experiment.
    pub experiment: ExperimentId,
    /// Its rows, by part.
    pub rows: BTreeMap<SgdSplit, Vec<SgdRow>>,
    /// As it was opened.
    pub said: SgdOpened,
    /// Where.
    pub seq: u64,
    /// Its steps, in order.
    pub steps: Vec<SgdStep>,
    /// Why it looks for its end.
    pub stop: Option<SgdStopTriggered>,
    /// Scores of test, by prompt.
    pub test: BTreeMap<Digest, RowScores>,
    /// What test said.
    pub test_read: Option<SgdTestRead>,
    /// The newest scores of train.
    pub train: RowScores,
    /// Loss of val under prompt 0.
    pub val_loss: Option<SgdLoss>,
}

/// Every run, and who scored or labelled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SgdRuns {
    /// By name.
    pub by_id: BTreeMap<RunId, SgdRun>,
    /// What registered each experiment.
    pub experiments: BTreeMap<ExperimentId, EventId>,
    /// Keys that signed a score or a label.
    pub judged: BTreeSet<KeyId>,
    /// The newest label for calibration, by experiment.
    pub labels: BTreeMap<ExperimentId, u64>,
}

impl SgdRuns {
    /// The oldest run of an experiment.
    pub fn first_of(&self, experiment: &ExperimentId) -> Option<&SgdRun> {
        let all = self.by_id.values();
        let own = all.filter(|run| run.experiment == *experiment);
        own.min_by_key(|run| run.seq)
    }

    /// Whether a key is that of a run's agents.
    pub fn is_agent(&self, key: &KeyId) -> bool {
        self.by_id.values().any(|run| run.said.key == *key)
    }

    /// The run whose rows of test were scored, in an experiment.
    pub fn tested_in(&self, experiment: &ExperimentId) -> Option<&SgdRun> {
        let mut all = self.by_id.values();
        all.find(|run| run.experiment == *experiment && !run.test.is_empty())
    }

    fn judged(&mut self, author: &KeyId) {
        if !self.judged.contains(author) {
            self.judged.insert(*author);
        }
    }

    fn opened(&mut self, (experiment, seq): (&ExperimentId, u64), said: &SgdOpened) {
        let known = self.by_id.entry(said.run.clone());
        known.or_insert_with(|| SgdRun::opened(experiment.clone(), seq, said));
    }
}

impl SgdRun {
    /// A run as it was opened by an entry.
    pub fn opened(experiment: ExperimentId, seq: u64, said: &SgdOpened) -> Self {
        Self {
            base: Vec::new(),
            base_loss: None,
            best_scores: Vec::new(),
            checkpoint: None,
            confirm: BTreeMap::new(),
            end: None,
            experiment,
            rows: BTreeMap::new(),
            said: said.clone(),
            seq,
            steps: Vec::new(),
            stop: None,
            test: BTreeMap::new(),
            test_read: None,
            train: Vec::new(),
            val_loss: None,
        }
    }

    /// Rows of a part.
    pub fn rows(&self, split: SgdSplit) -> &[SgdRow] {
        self.rows.get(&split).map_or(&[], Vec::as_slice)
    }

    /// Steps that were taken.
    pub fn taken(&self) -> u64 {
        let all = self.steps.iter();
        all.filter(|step| step.committed.is_some()).count() as u64
    }

    /// The step that goes on, where one does.
    pub fn going(&self) -> Option<&SgdStep> {
        self.steps.last().filter(|step| step.committed.is_none())
    }

    /// The prompt that stands: what the last step or its reversion left, else prompt 0.
    pub fn digest(&self) -> Digest {
        let mut newest = self.steps.iter().rev();
        let newest = newest.find_map(|step| {
            let reverted = step.reverted.as_ref().map(|of| of.to_digest);
            reverted.or(step.committed.as_ref().map(|of| of.new_digest))
        });
        newest.unwrap_or(self.said.prompt_digest)
    }

    /// The prompt of a place: 0 is prompt 0, and step t stands at t + 1.
    pub fn digest_at(&self, place: u64) -> Option<Digest> {
        let Some(step) = place.checked_sub(1) else {
            return Some(self.said.prompt_digest);
        };
        let step = self.steps.get(usize::try_from(step).ok()?)?;
        step.committed.as_ref().map(|of| of.new_digest)
    }

    /// Loss of val at a place, as it was said.
    pub fn val_at(&self, place: u64) -> Option<SgdLoss> {
        let Some(step) = place.checked_sub(1) else {
            return self.val_loss;
        };
        let step = self.steps.get(usize::try_from(step).ok()?)?;
        step.committed.as_ref().map(|of| of.val)
    }

    /// The place of the best prompt so far.
    pub fn best(&self) -> u64 {
        let mut newest = self.steps.iter().rev();
        let newest = newest.find_map(|step| step.committed.as_ref());
        newest.map_or(0, |of| of.best.value())
    }

    fn step_mut(&mut self, step: u64) -> Option<&mut SgdStep> {
        self.steps.get_mut(usize::try_from(step).ok()?)
    }

    fn scored(&mut self, said: &SgdScored) {
        let step = said.step.value();
        match said.part {
            SgdPart::Base => {
                self.base.extend_from_slice(&said.scores);
                self.train.extend_from_slice(&said.scores);
            }
            SgdPart::Batch => {
                let Some(of) = self.step_mut(step) else {
                    return;
                };
                let from = of.scores.len();
                of.scores.extend_from_slice(&said.scores);
                let places = of.batch.iter().flat_map(|batch| &batch.rows).skip(from);
                let places: Vec<_> = places.map(|place| place.value()).collect();
                for (place, scores) in places.into_iter().zip(&said.scores) {
                    let place = usize::try_from(place).unwrap_or(usize::MAX);
                    if let Some(row) = self.train.get_mut(place) {
                        row.clone_from(scores);
                    }
                }
            }
            SgdPart::Confirm => {
                let of = self.confirm.entry(said.prompt_digest).or_default();
                of.extend_from_slice(&said.scores);
            }
            SgdPart::Test => {
                let of = self.test.entry(said.prompt_digest).or_default();
                of.extend_from_slice(&said.scores);
            }
            SgdPart::Val => match self.steps.last_mut() {
                Some(of) => of.val_scores.extend_from_slice(&said.scores),
                None => self.best_scores.extend_from_slice(&said.scores),
            },
        }
    }

    fn committed(&mut self, said: &SgdStepCommitted) {
        let Some(of) = self.step_mut(said.step.value()) else {
            return;
        };
        of.committed = Some(said.clone());
        of.scores = Vec::new();
        let is_best = said.best.value() == said.step.value() + 1;
        if is_best && !of.val_scores.is_empty() {
            self.best_scores = self
                .step_mut(said.step.value())
                .map_or_else(Vec::new, |of| of.val_scores.clone());
        }
        // Of the newest two alone anything is asked.
        let newest = self.steps.len().saturating_sub(2);
        for old in &mut self.steps[..newest] {
            old.val_scores = Vec::new();
        }
    }

    /// Takes in what an event says of the run.
    pub fn take(&mut self, payload: &Payload) {
        match payload {
            Payload::SgdRowsListed(said) => {
                let of = self.rows.entry(said.split).or_default();
                of.extend_from_slice(&said.rows);
            }
            Payload::SgdScored(said) => self.scored(said),
            Payload::SgdLossComputed(said) => match (said.part, self.steps.last_mut()) {
                (SgdPart::Base, _) => self.base_loss = Some(said.loss),
                (SgdPart::Batch, Some(step)) => step.train = Some(said.loss),
                (SgdPart::Val, Some(step)) => step.val = Some(said.loss),
                (SgdPart::Val, None) => self.val_loss = Some(said.loss),
                (SgdPart::Batch, None) | (SgdPart::Confirm | SgdPart::Test, _) => {}
            },
            Payload::SgdBatchDrawn(said) => self.steps.push(SgdStep {
                batch: Some(*said.clone()),
                ..SgdStep::default()
            }),
            Payload::SgdStepCommitted(said) => self.committed(said),
            Payload::SgdStopTriggered(said) => {
                self.stop.get_or_insert_with(|| *said.clone());
            }
            Payload::SgdCheckpointSelected(said) => {
                self.checkpoint.get_or_insert_with(|| *said.clone());
            }
            Payload::SgdTestRead(said) => {
                self.test_read.get_or_insert_with(|| *said.clone());
            }
            Payload::SgdStopped(said) => {
                self.end.get_or_insert(said.reason);
            }
            _ => self.step_took(payload),
        }
    }

    fn step_took(&mut self, payload: &Payload) {
        let Some(step) = self.steps.last_mut() else {
            return;
        };
        match payload {
            Payload::SgdGradientRequested(said) => step.request = Some(*said.clone()),
            Payload::SgdGradientReturned(said) => step.gradient = Some(*said.clone()),
            Payload::SgdPatchProposed(said) => step.proposed.push(*said.clone()),
            Payload::SgdPatchRejected(said) => step.rejected.push(*said.clone()),
            Payload::SgdPatchApproved(said) => step.approvals.push(*said.clone()),
            Payload::SgdReverted(said) => step.reverted = Some(*said.clone()),
            _ => {}
        }
    }
}

/// The run that an event names.
pub fn run_of(payload: &Payload) -> Option<&RunId> {
    Some(match payload {
        Payload::SgdBatchDrawn(said) => &said.run,
        Payload::SgdCheckpointSelected(said) => &said.run,
        Payload::SgdGradientRequested(said) => &said.run,
        Payload::SgdGradientReturned(said) => &said.run,
        Payload::SgdLossComputed(said) => &said.run,
        Payload::SgdOpened(said) => &said.run,
        Payload::SgdPatchApproved(said) => &said.run,
        Payload::SgdPatchProposed(said) => &said.run,
        Payload::SgdPatchRejected(said) => &said.run,
        Payload::SgdReverted(said) => &said.run,
        Payload::SgdRowsListed(said) => &said.run,
        Payload::SgdScored(said) => &said.run,
        Payload::SgdStepCommitted(said) => &said.run,
        Payload::SgdStopTriggered(said) => &said.run,
        Payload::SgdStopped(said) => &said.run,
        Payload::SgdTestRead(said) => &said.run,
        _ => return None,
    })
}

impl Fold for SgdRuns {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        let experiment = event.header.experiment.as_ref();
        match &event.payload {
            Payload::ExperimentRegistered(_) => {
                if let Some(experiment) = experiment {
                    let known = self.experiments.entry(experiment.clone());
                    known.or_insert(event.id);
                }
            }
            Payload::LabelRecorded(said) => {
                self.judged(&event.header.author);
                if let Some(experiment) = experiment
                    && said.purpose == LabelPurpose::Calibrate
                {
                    self.labels.insert(experiment.clone(), seq);
                }
            }
            Payload::ScoreRecorded(_) | Payload::LabelSealed(_) => {
                self.judged(&event.header.author);
            }
            Payload::SgdOpened(said) => {
                if let Some(experiment) = experiment {
                    self.opened((experiment, seq), said);
                }
            }
            payload => {
                if matches!(payload, Payload::SgdScored(_)) {
                    self.judged(&event.header.author);
                }
                let run = run_of(payload).and_then(|run| self.by_id.get_mut(run));
                if let Some(run) = run {
                    run.take(payload);
                }
            }
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}
