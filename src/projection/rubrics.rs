//! Rubrics: which one each experiment starts from.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::event::payload::rubric::RubricLeaf;
use crate::ground::digest::Digest;
use crate::ledger::Fold;
use crate::ledger::VerifiedEvent;
use crate::ledger::fold;

/// Kinds that move it.
pub const READS: &[Kind] = &[Kind::RubricRegistered];

/// One rubric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registered {
    /// Hash of its leaves.
    pub hash: Digest,
    /// Its leaves by path.
    pub leaves: Vec<RubricLeaf>,
    /// Its entry.
    pub seq: u64,
    /// Its version.
    pub version: String,
}

/// Rubrics by experiment, oldest first; the last one is in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rubrics {
    /// By experiment.
    pub by_experiment: BTreeMap<ExperimentId, Vec<Registered>>,
}

impl Rubrics {
    /// The rubric in force.
    pub fn in_force(&self, experiment: &ExperimentId) -> Option<&Registered> {
        self.by_experiment.get(experiment)?.last()
    }

    /// A rubric of an experiment by its hash.
    pub fn of_hash(&self, experiment: &ExperimentId, hash: Digest) -> Option<&Registered> {
        let mut all = self.by_experiment.get(experiment)?.iter();
        all.find(|rubric| rubric.hash == hash)
    }
}

impl Fold for Rubrics {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        if let Payload::RubricRegistered(said) = &event.payload
            && let Some(experiment) = &event.header.experiment
            && self.of_hash(experiment, said.rubric_hash).is_none()
        {
            let of = self.by_experiment.entry(experiment.clone()).or_default();
            of.push(Registered {
                hash: said.rubric_hash,
                leaves: said.leaves.clone(),
                seq,
                version: said.version.clone(),
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
