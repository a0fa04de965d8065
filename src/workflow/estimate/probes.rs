//! Probes: labels for audits of a policy, and which of them count.

use std::collections::BTreeMap;

use clover_event::id::DesignId;
use clover_event::id::EventId;
use clover_event::id::Root;
use clover_ground::merkle;
use clover_ground::merkle::Frontier;

use crate::analyze::dataset::Policy;
use crate::estimate::rows::Gathered;
use crate::estimate::rows::mean;

/// Labels for audits of one policy.
#[derive(Clone, Debug, Default)]
pub struct Probes {
    /// Rows of the policy with their labels in millionths.
    pub labels: BTreeMap<usize, Vec<i64>>,
    /// The first label of each row.
    pub first: BTreeMap<usize, u64>,
    /// The entry of the newest label.
    pub newest: u64,
    /// The charge that opened them.
    pub charge: Option<EventId>,
}

impl Gathered {
    /// The Merkle root of a policy's probes.
    pub fn probes_root(&self, policy: usize, probes: &Probes) -> Root {
        let mut tree = Frontier::new();
        for (&row, labels) in &probes.labels {
            tree.push(merkle::leaf_hash(&self.line(policy, row, labels)));
        }
        Root(tree.root())
    }

    /// The probes of a design whose score stands before their label could be read, by policy, each with how many others there
    /// are. A policy without one that does is not among them.
    pub fn timely_probes(&self, design: &DesignId) -> BTreeMap<usize, (Probes, u64)> {
        let none = BTreeMap::new();
        let unscored = self.unscored_probes.get(design);
        let held = self.probes.get(design).unwrap_or(&none);
        let each = held.iter().map(|(&policy, probes)| {
            let mut timely = probes.clone();
            let is_timely = |row: &usize| {
                let (_, source, at) = self.row(policy, *row);
                probes.first.get(row) > source.scored.get(at)
            };
            timely.labels.retain(|row, _| is_timely(row));
            let name = self.dataset.policies[policy].name.as_str();
            let named = unscored.and_then(|of| of.iter().find(|(of, _)| of.as_str() == name));
            let unscored = named.map_or(0, |(_, rows)| rows.len());
            let late = unscored + probes.labels.len() - timely.labels.len();
            (policy, (timely, late as u64))
        });
        each.filter(|(_, (timely, _))| !timely.labels.is_empty())
            .collect()
    }

    /// A policy's probes as responses.
    pub fn probe(&self, policy: usize, probes: &Probes) -> Policy {
        let of = &self.dataset.policies[policy];
        let mut found = Policy {
            name: of.name.clone(),
            covariates: vec![Vec::new(); of.covariates.len()],
            ..Policy::default()
        };
        for (&row, labels) in &probes.labels {
            let (of, _, row) = self.row(policy, row);
            found.prompts.push(of.prompts[row]);
            found.scores.push(of.scores[row]);
            found.labels.push(Some(mean(labels)));
            for (column, values) in found.covariates.iter_mut().zip(&of.covariates) {
                column.push(values[row]);
            }
        }
        found
    }
}
