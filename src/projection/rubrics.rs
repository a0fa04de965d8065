//! Rubrics: which one each experiment starts from, and those that were committed since.

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::payload::rubric::RubricLeaf;
use clover_ground::digest::Digest;
use clover_ledger::Fold;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use serde::Deserialize;
use serde::Serialize;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::DeploymentRolledBack,
    Kind::PromptCommitted,
    Kind::RubricRegistered,
];

/// One rubric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RubricRegistration {
    /// Hash of its leaves.
    pub hash: Digest,
    /// The event that brought it.
    pub id: EventId,
    /// Its leaves by path.
    pub leaves: Vec<RubricLeaf>,
    /// Its entry.
    pub seq: u64,
    /// Its version.
    pub version: String,
}

/// Rubrics by experiment; the last one is in force, until a rollback restores another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rubrics {
    /// By experiment, oldest first.
    pub by_experiment: BTreeMap<ExperimentId, Vec<RubricRegistration>>,
    /// Hashes of those that a rollback restored.
    pub restored: BTreeMap<ExperimentId, Digest>,
}

impl Rubrics {
    /// The rubric in force.
    pub fn in_force(&self, experiment: &ExperimentId) -> Option<&RubricRegistration> {
        match self.restored.get(experiment) {
            Some(hash) => self.of_hash(experiment, *hash),
            None => self.by_experiment.get(experiment)?.last(),
        }
    }

    /// A rubric of an experiment by its version, the newest of several; the one in force without a version.
    pub fn named(
        &self,
        experiment: &ExperimentId,
        version: Option<&str>,
    ) -> Option<&RubricRegistration> {
        let Some(version) = version else {
            return self.in_force(experiment);
        };
        let mut all = self.by_experiment.get(experiment)?.iter().rev();
        all.find(|rubric| rubric.version == version)
    }

    /// A rubric of an experiment by the event that brought it.
    pub fn of_id(&self, experiment: &ExperimentId, id: EventId) -> Option<&RubricRegistration> {
        let mut all = self.by_experiment.get(experiment)?.iter();
        all.find(|rubric| rubric.id == id)
    }

    /// A rubric of an experiment by its hash.
    pub fn of_hash(&self, experiment: &ExperimentId, hash: Digest) -> Option<&RubricRegistration> {
        let mut all = self.by_experiment.get(experiment)?.iter();
        all.find(|rubric| rubric.hash == hash)
    }
}

impl Fold for Rubrics {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        let Some(experiment) = &event.header.experiment else {
            return;
        };
        let (hash, leaves, version) = match &event.payload {
            Payload::DeploymentRolledBack(said) => {
                if let Some(hash) = said.rubric_hash
                    && self.of_hash(experiment, hash).is_some()
                {
                    self.restored.insert(experiment.clone(), hash);
                }
                return;
            }
            Payload::PromptCommitted(said) => (said.rubric_hash, &said.leaves, &said.version),
            Payload::RubricRegistered(said) => (said.rubric_hash, &said.leaves, &said.version),
            _ => return,
        };
        if self.of_hash(experiment, hash).is_none() {
            self.restored.remove(experiment);
            let of = self.by_experiment.entry(experiment.clone()).or_default();
            of.push(RubricRegistration {
                hash,
                id: event.id,
                leaves: leaves.clone(),
                seq,
                version: version.clone(),
            });
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}
