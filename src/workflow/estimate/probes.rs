//! Probes: labels for audits of a policy, and which of them count.

use std::collections::BTreeMap;

use clover_event::id::DesignId;
use clover_event::id::EventId;
use clover_event::id::ItemId;
use clover_event::id::Root;
use clover_event::payload::estimated::EnvironmentRows;
use clover_ground::merkle;
use clover_ground::merkle::Frontier;

use crate::analyze::dataset::Policy;
use crate::estimate::rows::Gathered;
use crate::estimate::rows::mean;
use crate::estimate::terms::size;

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

    /// Rows of a policy in an environment that the probes of a design were drawn from, as they stood when the first of them could
    /// be read.
    pub(super) fn to_draw(
        &self,
        (policy, design): (usize, &DesignId),
        is_in: impl Fn(usize) -> bool,
    ) -> EnvironmentRows {
        let probes = self.probes.get(design).and_then(|of| of.get(&policy));
        let Some(first) = probes.and_then(|of| of.first.values().min()) else {
            return EnvironmentRows::default();
        };
        let counted = self.dataset.policies[policy].len();
        let late = self.aside.get(&policy).map_or(0, |(of, _)| of.len());
        let (mut rows, mut left) = (0, 0);
        for row in (0..counted + late).filter(|row| is_in(*row)) {
            let (of, source, at) = self.row(policy, row);
            if source.scored[at] >= *first {
                continue;
            }
            rows += 1;
            let item = &self.prompts.ids()[of.prompts[at] as usize];
            let kept = item
                .parse()
                .ok()
                .and_then(|item: ItemId| self.confirm.get(&item));
            let labelled = self.sources[policy].first_label.get(&row);
            let is_taken = |since: Option<&u64>| since.is_some_and(|since| since < first);
            if !is_taken(kept) && !is_taken(labelled) {
                left += 1;
            }
        }
        EnvironmentRows {
            left: size(left),
            rows: size(rows),
        }
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
