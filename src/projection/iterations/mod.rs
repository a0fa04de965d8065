//! Iterations: which is open, what was proposed in it, whether its confirm labels were seen.

pub mod campaign;
pub mod record;
pub mod rows;
mod rules;
pub mod step;
pub mod story;
mod synth_record;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

pub use rules::IterationRule;
pub use rules::PEEKS_MAX;

use clover_event::Event;
use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::AnchorSetId;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::PatchFamilyId;
use clover_event::id::PatchId;
use clover_event::payload::iteration::IterationOutcome;
use clover_event::payload::record::ReviewOutcome;
use clover_event::payload::record::ReviewRecorded;
use clover_event::payload::rubric::PatchProposed;
use clover_event::payload::rubric::RejectStage;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ledger::Fold;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::AnchorSetRegistered,
    Kind::IterationClosed,
    Kind::IterationOpened,
    Kind::LabelRevealed,
    Kind::PatchProposed,
    Kind::PatchRejected,
    Kind::PatchWithdrawn,
    Kind::ReviewRecorded,
];

/// How far an iteration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Nothing was proposed yet.
    Open,
    /// Patches are proposed.
    Synthesis,
    /// A confirm label was seen: nothing may be proposed or changed.
    Unsealed,
    /// It ended.
    Closed,
}

impl Stage {
    /// The word that people read.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Synthesis => "synthesis",
            Self::Unsealed => "unsealed",
            Self::Closed => "closed",
        }
    }
}

/// What became of a proposed patch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CandidateState {
    /// It stands.
    Proposed,
    /// It was rejected.
    Rejected {
        /// The check or gate.
        code: String,
        /// Where.
        stage: RejectStage,
    },
    /// Its author took it back.
    Withdrawn,
}

impl CandidateState {
    /// The word that people read.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Rejected { .. } => "rejected",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// The newest word of a reviewer about a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Review {
    /// What was concluded.
    pub outcome: ReviewOutcome,
    /// Position of its event.
    pub seq: u64,
}

/// A proposed patch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchRecord {
    /// Who proposed it.
    pub author: KeyId,
    /// Its family.
    pub family: PatchFamilyId,
    /// Its code length.
    pub kappa: u64,
    /// Hash of its diff.
    pub patch_hash: Digest,
    /// Hash of the rubric that results.
    pub result_hash: Digest,
    /// The newest review of each key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reviews: BTreeMap<KeyId, Review>,
    /// Its entry.
    pub seq: u64,
    /// What became of it.
    pub state: CandidateState,
}

impl PatchRecord {
    /// How many keys concluded this of it last.
    pub fn reviewed(&self, outcome: ReviewOutcome) -> usize {
        let same = |review: &&Review| review.outcome == outcome;
        self.reviews.values().filter(same).count()
    }
}

/// One iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Iteration {
    /// Patches by id.
    pub candidates: BTreeMap<PatchId, PatchRecord>,
    /// How and where it ended.
    pub closed: Option<(IterationOutcome, u64)>,
    /// Digest of its manifest's version.
    pub digest: Digest,
    /// Its experiment.
    pub experiment: ExperimentId,
    /// The entry that opened it.
    pub opened_seq: u64,
    /// Digest of its parameters.
    pub params_hash: Digest,
    /// The quarter whose peeks it may spend.
    pub quarter: String,
    /// Hash of the rubric that it starts from.
    pub rubric_hash: Digest,
    /// The first entry that showed a sealed label of its experiment.
    pub unsealed_seq: Option<u64>,
}

impl Iteration {
    /// How far it is.
    pub fn stage(&self) -> Stage {
        if self.closed.is_some() {
            Stage::Closed
        } else if self.unsealed_seq.is_some() {
            Stage::Unsealed
        } else if self.candidates.is_empty() {
            Stage::Open
        } else {
            Stage::Synthesis
        }
    }
}

/// Every iteration and anchor set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Iterations {
    /// Entries of anchor sets, by experiment.
    pub anchors: BTreeMap<ExperimentId, BTreeMap<AnchorSetId, u64>>,
    /// Iterations by name.
    pub by_id: BTreeMap<IterationId, Iteration>,
}

impl Iterations {
    /// The iteration of an experiment that is open.
    pub fn open_in(&self, experiment: &ExperimentId) -> Option<(&IterationId, &Iteration)> {
        let open = |it: &Iteration| it.experiment == *experiment && it.closed.is_none();
        self.by_id.iter().find(|(_, it)| open(it))
    }

    /// A patch by its id, with its iteration.
    pub fn patch(&self, id: &PatchId) -> Option<(&IterationId, &PatchRecord)> {
        let mut all = self.by_id.iter();
        all.find_map(|(name, it)| it.candidates.get(id).map(|patch| (name, patch)))
    }

    /// A patch that was proposed in an experiment, by its id.
    pub fn patch_in(&self, experiment: &ExperimentId, id: &PatchId) -> Option<&PatchRecord> {
        let mut of = self
            .by_id
            .values()
            .filter(|it| it.experiment == *experiment);
        of.find_map(|it| it.candidates.get(id))
    }

    fn proposed(&mut self, seq: u64, event: &Event, said: &PatchProposed) {
        if let Some(it) = self.by_id.get_mut(&said.iteration) {
            let candidate = PatchRecord {
                author: event.header.author,
                family: said.family.clone(),
                kappa: said.length.kappa.value(),
                patch_hash: said.patch_hash,
                result_hash: said.result_hash,
                reviews: BTreeMap::new(),
                seq,
                state: CandidateState::Proposed,
            };
            it.candidates.entry(said.patch.clone()).or_insert(candidate);
        }
    }

    fn reviewed(&mut self, seq: u64, event: &Event, said: &ReviewRecorded) {
        let (Some(patch), Some(experiment)) = (&said.patch, &event.header.experiment) else {
            return;
        };
        let mut of = self.by_id.values_mut();
        let found = of.find_map(|it| {
            if it.experiment == *experiment {
                it.candidates.get_mut(patch)
            } else {
                None
            }
        });
        if let Some(candidate) = found {
            let outcome = said.outcome;
            let review = Review { outcome, seq };
            candidate.reviews.insert(event.header.author, review);
        }
    }

    fn ended(&mut self, iteration: &IterationId, patch: &PatchId, state: CandidateState) {
        let it = self.by_id.get_mut(iteration);
        if let Some(candidate) = it.and_then(|it| it.candidates.get_mut(patch))
            && candidate.state == CandidateState::Proposed
        {
            candidate.state = state;
        }
    }
}

impl Fold for Iterations {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        let Some(experiment) = &event.header.experiment else {
            return;
        };
        match &event.payload {
            Payload::AnchorSetRegistered(said) => {
                let of = self.anchors.entry(experiment.clone()).or_default();
                of.entry(said.anchors.clone()).or_insert(seq);
            }
            Payload::IterationOpened(said) => {
                let iteration = Iteration {
                    candidates: BTreeMap::new(),
                    closed: None,
                    digest: said.digest,
                    experiment: experiment.clone(),
                    opened_seq: seq,
                    params_hash: said.params_hash,
                    quarter: said.quarter.clone(),
                    rubric_hash: said.rubric_hash,
                    unsealed_seq: None,
                };
                self.by_id
                    .entry(said.iteration.clone())
                    .or_insert(iteration);
            }
            Payload::IterationClosed(said) => {
                if let Some(it) = self.by_id.get_mut(&said.iteration) {
                    it.closed.get_or_insert((said.outcome, seq));
                }
            }
            Payload::LabelRevealed(_) => {
                let open =
                    |it: &&mut Iteration| it.experiment == *experiment && it.closed.is_none();
                for it in self.by_id.values_mut().filter(open) {
                    it.unsealed_seq.get_or_insert(seq);
                }
            }
            Payload::PatchProposed(said) => self.proposed(seq, event, said),
            Payload::PatchRejected(said) => {
                if let Some(patch) = &said.patch {
                    let state = CandidateState::Rejected {
                        code: said.code.as_str().to_owned(),
                        stage: said.stage,
                    };
                    self.ended(&said.iteration, patch, state);
                }
            }
            Payload::PatchWithdrawn(said) => {
                self.ended(&said.iteration, &said.patch, CandidateState::Withdrawn);
            }
            Payload::ReviewRecorded(said) => self.reviewed(seq, event, said),
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
