//! Releases: what was accepted, who approved it, and which prompts were committed from it.

mod rules;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

pub use rules::ApprovalRule;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::PatchId;
use clover_event::payload::predicate::PatchAccepted;
use clover_event::payload::release::Meaning;
use clover_event::payload::rubric::LeafChange;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ledger::Fold;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::ApprovalGranted,
    Kind::ApprovalRefused,
    Kind::IterationClosed,
    Kind::PatchAccepted,
    Kind::PatchProposed,
    Kind::PromptCommitted,
];

/// Stakes from which a slice is high, in millionths: its rubric needs reviews and two approvals. Source: CLOVER v1.1,
/// sections 9.3 and 10.4.
pub const STAKES_MICRO: i64 = 700_000;
/// Approvals that an edit of a safety rule, or of a rubric with slices of high stakes, needs.
pub const APPROVALS_MIN: usize = 2;

/// The newest word of a key about an acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Word {
    /// Its event.
    pub id: EventId,
    /// Whether it is a grant.
    pub is_granted: bool,
    /// What the signature means.
    pub meaning: Meaning,
    /// Position of the event.
    pub seq: u64,
}

/// A patch that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    /// What it changes.
    pub diff: Vec<LeafChange>,
    /// Its gate events.
    pub gates: Vec<EventId>,
    /// Its event.
    pub id: EventId,
    /// Its iteration.
    pub iteration: IterationId,
    /// Its code length.
    pub kappa: u64,
    /// The patch.
    pub patch: PatchId,
    /// Hash of the patch.
    pub patch_hash: Digest,
    /// Position of its event.
    pub seq: u64,
    /// The newest word of each key.
    pub words: BTreeMap<KeyId, Word>,
}

impl Acceptance {
    /// Approvals that stand, in their order.
    pub fn approvals(&self) -> Vec<EventId> {
        let counts = |word: &&Word| word.is_granted && word.meaning == Meaning::Approve;
        let mut words: Vec<_> = self.words.values().filter(counts).collect();
        words.sort_by_key(|word| word.seq);
        words.into_iter().map(|word| word.id).collect()
    }

    /// Where a refusal stands.
    pub fn refused(&self) -> Option<u64> {
        let words = self.words.values().filter(|word| !word.is_granted);
        words.map(|word| word.seq).min()
    }
}

/// A prompt that was committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// The acceptance.
    pub acceptance: EventId,
    /// Its event.
    pub id: EventId,
    /// The iteration of the acceptance.
    pub iteration: IterationId,
    /// The entry that it follows.
    pub parent: EventId,
    /// The patch.
    pub patch: PatchId,
    /// BLAKE3 of what the judge is told.
    pub prompt: Digest,
    /// Hash of that under its template.
    pub prompt_hash: Digest,
    /// Hash of the rubric.
    pub rubric_hash: Digest,
    /// Position of its event.
    pub seq: u64,
    /// Version of the rubric.
    pub version: String,
}

/// Releases of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentReleases {
    /// Acceptances by their event.
    pub acceptances: BTreeMap<EventId, Acceptance>,
    /// Commits, oldest first.
    pub commits: Vec<Commit>,
}

impl ExperimentReleases {
    /// A commit by its event.
    pub fn commit(&self, id: EventId) -> Option<&Commit> {
        self.commits.iter().find(|commit| commit.id == id)
    }
}

/// An edit that was proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// What it changes.
    pub diff: Vec<LeafChange>,
    /// Its iteration.
    pub iteration: IterationId,
}

/// Every release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Releases {
    /// By experiment.
    pub by_experiment: BTreeMap<ExperimentId, ExperimentReleases>,
    /// Edits of open iterations, by patch.
    pub proposals: BTreeMap<PatchId, Proposal>,
}

impl Releases {
    /// Those of an experiment.
    pub fn of(&self, experiment: &ExperimentId) -> Option<&ExperimentReleases> {
        self.by_experiment.get(experiment)
    }

    /// An acceptance of an experiment by its event.
    pub fn acceptance(&self, experiment: &ExperimentId, id: EventId) -> Option<&Acceptance> {
        self.of(experiment)?.acceptances.get(&id)
    }

    /// The commit of an acceptance.
    pub fn committed(&self, experiment: &ExperimentId, acceptance: EventId) -> Option<&Commit> {
        let mut all = self.of(experiment)?.commits.iter();
        all.find(|commit| commit.acceptance == acceptance)
    }

    fn accepted(
        &mut self,
        experiment: &ExperimentId,
        (id, seq): (EventId, u64),
        said: &PatchAccepted,
    ) {
        let proposal = self.proposals.get(&said.patch);
        let accepted = Acceptance {
            diff: proposal.map(|of| of.diff.clone()).unwrap_or_default(),
            gates: said.gates.clone(),
            id,
            iteration: said.iteration.clone(),
            kappa: said.kappa.value(),
            patch: said.patch.clone(),
            patch_hash: said.candidate,
            seq,
            words: BTreeMap::new(),
        };
        let of = self.by_experiment.entry(experiment.clone()).or_default();
        of.acceptances.entry(id).or_insert(accepted);
    }

    fn word(&mut self, experiment: &ExperimentId, subject: EventId, author: KeyId, word: Word) {
        let of = self.by_experiment.get_mut(experiment);
        if let Some(accepted) = of.and_then(|of| of.acceptances.get_mut(&subject)) {
            accepted.words.insert(author, word);
        }
    }
}

impl Fold for Releases {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        let Some(experiment) = &event.header.experiment else {
            return;
        };
        let word = |is_granted, meaning| Word {
            id: event.id,
            is_granted,
            meaning,
            seq,
        };
        match &event.payload {
            Payload::PatchProposed(said) => {
                let proposal = Proposal {
                    diff: said.diff.clone(),
                    iteration: said.iteration.clone(),
                };
                self.proposals.entry(said.patch.clone()).or_insert(proposal);
            }
            Payload::IterationClosed(said) => {
                self.proposals
                    .retain(|_, of| of.iteration != said.iteration);
            }
            Payload::PatchAccepted(said) => self.accepted(experiment, (event.id, seq), said),
            Payload::ApprovalGranted(said) => {
                let word = word(true, said.meaning);
                self.word(experiment, said.subject, event.header.author, word);
            }
            Payload::ApprovalRefused(said) => {
                let word = word(false, said.meaning);
                self.word(experiment, said.subject, event.header.author, word);
            }
            Payload::PromptCommitted(said) => {
                let of = self.by_experiment.entry(experiment.clone()).or_default();
                let accepted = of.acceptances.get(&said.acceptance);
                if let Some(iteration) = accepted.map(|of| of.iteration.clone()) {
                    of.commits.push(Commit {
                        acceptance: said.acceptance,
                        id: event.id,
                        iteration,
                        parent: said.parent,
                        patch: said.patch.clone(),
                        prompt: said.prompt.blake3,
                        prompt_hash: said.prompt_hash,
                        rubric_hash: said.rubric_hash,
                        seq,
                        version: said.version.clone(),
                    });
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
