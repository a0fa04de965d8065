//! Rows for whose labels a planned order waits: those of its policies that its judge scored before they were labelled.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::payload::label::LabelPurpose;
use clover_event::payload::label::row_of_draw;
use clover_event::payload::manifest::Manifest;
use clover_ground::digest::blake2b_64;
use serde::Deserialize;
use serde::Serialize;

/// Rows of one policy by one judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderRows {
    /// Rows that have a score and no label since, each in 53 bits of its digest: 8 bytes a row.
    scored: BTreeSet<u64>,
    /// The entry by which each of the others got its first label for calibration after its score.
    labelled: Vec<u64>,
}

/// Of each experiment in which a plan names an order: the rows of its judges and policies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AwaitedRows {
    by_experiment: BTreeMap<ExperimentId, BTreeMap<JudgeId, BTreeMap<PolicyId, OrderRows>>>,
}

/// A row in as many bits as an integer of a snapshot may have.
fn row_word(row: &str) -> u64 {
    blake2b_64(row.as_bytes()) >> 11
}

impl AwaitedRows {
    /// Takes one entry in. A plan names its order before the first score, so that no score of it came earlier.
    pub(super) fn take(&mut self, seq: u64, experiment: &ExperimentId, payload: &Payload) {
        match payload {
            Payload::ManifestRegistered(of) => self.named(experiment, &of.manifest),
            Payload::ManifestAmended(of) => self.named(experiment, &of.manifest),
            Payload::ScoreRecorded(of) => {
                let judges = self.by_experiment.get_mut(experiment);
                let policies = judges.and_then(|judges| judges.get_mut(&of.judge));
                if let Some(rows) = policies.and_then(|policies| policies.get_mut(&of.policy)) {
                    let row = row_of_draw(&of.policy, &of.item, of.draw);
                    rows.scored.insert(row_word(&row));
                }
            }
            Payload::LabelRecorded(of) if of.purpose == LabelPurpose::Calibrate => {
                let judges = self.by_experiment.get_mut(experiment);
                let policies = judges.into_iter().flat_map(BTreeMap::values_mut);
                let row = row_word(&row_of_draw(&of.policy, &of.item, of.draw));
                for rows in policies.filter_map(|policies| policies.get_mut(&of.policy)) {
                    if rows.scored.remove(&row) {
                        rows.labelled.push(seq);
                    }
                }
            }
            _ => {}
        }
    }

    fn named(&mut self, experiment: &ExperimentId, manifest: &Manifest) {
        let estimates = manifest.estimates.as_ref();
        let Some(order) = estimates.and_then(|estimates| estimates.order.as_ref()) else {
            return;
        };
        let judges = self.by_experiment.entry(experiment.clone()).or_default();
        let policies = judges.entry(order.judge.clone()).or_default();
        for policy in &order.policies {
            policies.entry(policy.clone()).or_default();
        }
    }

    /// The entries by which rows of these policies that this judge scored got their labels, in order.
    pub(super) fn labelled_at(
        &self,
        (experiment, judge): (&ExperimentId, &JudgeId),
        policies: &[PolicyId],
    ) -> Vec<u64> {
        let of = self.by_experiment.get(experiment);
        let of = of.and_then(|judges| judges.get(judge));
        let policies: BTreeSet<&PolicyId> = policies.iter().collect();
        let rows = policies.iter().filter_map(|policy| of?.get(*policy));
        let mut rows: Vec<u64> = rows.flat_map(|of| of.labelled.iter().copied()).collect();
        rows.sort_unstable();
        rows
    }
}
