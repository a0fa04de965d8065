//! Runs of generators under a frozen judge: what each may ask, what it asked, and how it ended.

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::PolicyId;
use clover_event::id::RunId;
use clover_event::payload::Verdict;
use clover_event::payload::generator::GeneratorRunOpened;
use clover_ground::digest::Digest;
use clover_ledger::Fold;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use serde::Deserialize;
use serde::Serialize;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::GeneratorObjectiveQueried,
    Kind::GeneratorRolledBack,
    Kind::GeneratorRunOpened,
    Kind::GeneratorValidated,
];

/// A validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validation {
    /// Its event.
    pub id: EventId,
    /// Position of its event.
    pub seq: u64,
    /// What it came to.
    pub verdict: Verdict,
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It may ask, and be validated.
    Open,
    /// Its new policy was shown to be better.
    Validated,
    /// It was not, and has to be rolled back.
    Due,
    /// The old policy answers again.
    RolledBack,
}

impl RunState {
    /// The word that people read.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Validated => "validated",
            Self::Due => "rollback due",
            Self::RolledBack => "rolled back",
        }
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratorRun {
    /// The deployment that was frozen for it.
    pub deployment: EventId,
    /// Digest of f.
    pub frozen: Digest,
    /// Its event.
    pub id: EventId,
    /// The policy that is tuned.
    pub new: PolicyId,
    /// The policy that it is to be better than.
    pub old: PolicyId,
    /// Where it was rolled back.
    pub rolled_back: Option<u64>,
    /// Its name.
    pub run: RunId,
    /// Position of its event.
    pub seq: u64,
    /// What is at stake, in millionths.
    pub stakes: i64,
    /// Questions that it may ask.
    pub steps: u64,
    /// Questions that it asked.
    pub used: u64,
    /// What came of it.
    pub validated: Option<Validation>,
}

impl GeneratorRun {
    /// How it stands.
    pub fn state(&self) -> RunState {
        match (self.rolled_back, self.validated) {
            (Some(_), _) => RunState::RolledBack,
            (None, None) => RunState::Open,
            (None, Some(of)) if of.verdict == Verdict::Pass => RunState::Validated,
            (None, Some(_)) => RunState::Due,
        }
    }
}

/// Every run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generators {
    /// By experiment, oldest first.
    pub by_experiment: BTreeMap<ExperimentId, Vec<GeneratorRun>>,
}

impl Generators {
    /// Runs of an experiment, oldest first.
    pub fn of(&self, experiment: &ExperimentId) -> &[GeneratorRun] {
        self.by_experiment
            .get(experiment)
            .map_or(&[], Vec::as_slice)
    }

    /// A run by its name.
    pub fn run(&self, experiment: &ExperimentId, run: &RunId) -> Option<&GeneratorRun> {
        self.of(experiment).iter().find(|of| of.run == *run)
    }

    fn run_mut(&mut self, experiment: &ExperimentId, run: &RunId) -> Option<&mut GeneratorRun> {
        let mut all = self.by_experiment.get_mut(experiment)?.iter_mut();
        all.find(|of| of.run == *run)
    }
}

fn opened((id, seq): (EventId, u64), said: &GeneratorRunOpened) -> GeneratorRun {
    GeneratorRun {
        deployment: said.deployment,
        frozen: said.frozen,
        id,
        new: said.new.clone(),
        old: said.old.clone(),
        rolled_back: None,
        run: said.run.clone(),
        seq,
        stakes: said.stakes_micro.value(),
        steps: said.steps.value(),
        used: 0,
        validated: None,
    }
}

impl Fold for Generators {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        let Some(experiment) = &event.header.experiment else {
            return;
        };
        match &event.payload {
            Payload::GeneratorRunOpened(said) => {
                let of = self.by_experiment.entry(experiment.clone()).or_default();
                of.push(opened((event.id, seq), said));
            }
            Payload::GeneratorObjectiveQueried(said) => {
                if let Some(run) = self.run_mut(experiment, &said.run) {
                    run.used += 1;
                }
            }
            Payload::GeneratorValidated(said) => {
                if let Some(run) = self.run_mut(experiment, &said.run) {
                    run.validated.get_or_insert(Validation {
                        id: event.id,
                        seq,
                        verdict: said.verdict,
                    });
                }
            }
            Payload::GeneratorRolledBack(said) => {
                if let Some(run) = self.run_mut(experiment, &said.run) {
                    run.rolled_back.get_or_insert(seq);
                }
            }
            _ => {}
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}
