//! Rows of one policy as a dataset has them: those that count, and beside them those that do not.

use std::collections::BTreeMap;

use clover_event::id::FieldId;
use clover_event::id::PolicyId;
use clover_event::payload::label::row_of_draw;
use clover_num::Count;
use clover_projection::timely::LateRow;

use crate::analyze::dataset::Policy;
use crate::analyze::dataset::Prompts;
use crate::estimate::compute::Found;
use crate::estimate::rows::Gathered;
use crate::estimate::rows::Rows;
use crate::estimate::rows::RowsError;
use crate::estimate::rows::Source;
use crate::estimate::rows::mean;
use crate::estimate::terms::count;

impl Rows {
    /// The rows that count, and those that do not.
    pub(super) fn parted(
        self,
        policy: &PolicyId,
        late: &BTreeMap<String, LateRow>,
    ) -> (Self, Self) {
        let width = self.covariates.len();
        let empty = || Self {
            covariates: vec![Vec::new(); width],
            ..Self::default()
        };
        let (mut counted, mut aside) = (empty(), empty());
        for (row, item) in self.items.into_iter().enumerate() {
            let draw = Count::new(self.draws[row]).unwrap_or_default();
            let is_late = late.contains_key(&row_of_draw(policy, &item, draw));
            let of = if is_late { &mut aside } else { &mut counted };
            of.items.push(item);
            of.draws.push(self.draws[row]);
            of.scores.push(self.scores[row]);
            of.scored.push(self.scored[row]);
            for (to, from) in of.covariates.iter_mut().zip(&self.covariates) {
                // Those that imports kept are filled in later.
                to.extend(from.get(row));
            }
        }
        (counted, aside)
    }

    /// As a dataset has them, and beside it.
    pub(super) fn of_policy(self, name: &PolicyId, prompts: &mut Prompts) -> (Policy, Source) {
        let items = self.items.iter();
        let policy = Policy {
            name: name.as_str().to_owned(),
            covariates: self.covariates,
            labels: vec![None; self.scores.len()],
            prompts: items.map(|item| prompts.number(item.as_str())).collect(),
            scores: self.scores.iter().map(|score| mean(&[*score])).collect(),
            ..Policy::default()
        };
        let source = Source {
            draws: self.draws,
            scores: self.scores,
            scored: self.scored,
            ..Source::default()
        };
        (policy, source)
    }
}

impl Found {
    /// How many rows of a policy do not count, where it is said.
    pub(super) fn late(&self, policy: usize) -> Option<Count> {
        let late = self.gathered.late.get(&self.name(policy));
        let late = count(late.copied().unwrap_or(0));
        self.terms.rows.map(|_| late)
    }
}

impl Gathered {
    /// A row that counts, or after those one that does not: where it stands, and its place there.
    pub(super) fn row(&self, policy: usize, row: usize) -> (&Policy, &Source, usize) {
        let (of, source) = (&self.dataset.policies[policy], &self.sources[policy]);
        match (row.checked_sub(of.len()), self.aside.get(&policy)) {
            (Some(row), Some((of, source))) => (of, source, row),
            _ => (of, source, row),
        }
    }

    /// A covariate that imports kept, of rows that do not count: of these only probes are read.
    pub(super) fn late_column(
        &self,
        policy: usize,
        field: &FieldId,
    ) -> Result<Vec<f64>, RowsError> {
        let first = self.sources[policy].draws.len();
        let aside = self.aside.get(&policy).map_or(0, |(of, _)| of.len());
        let column = (first..first + aside).map(|row| {
            let mut designs = self.probes.values();
            let is_probe = designs.any(|of| {
                let of = of.get(&policy);
                of.is_some_and(|of| of.labels.contains_key(&row))
            });
            if is_probe {
                self.number(policy, row, field)
            } else {
                Ok(0.0)
            }
        });
        column.collect()
    }
}
