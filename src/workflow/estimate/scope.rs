//! The rows and labels of one environment, by what imports kept of rows before their labels could be read.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::FieldId;
use clover_event::id::ItemId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::payload::environment::EnvironmentScope;
use clover_event::payload::estimate::EstimateTerms;
use clover_ledger::History;
use clover_projection::audits::AuditSubject;
use clover_projection::iterations::rows::IngestedRows;
use clover_projection::iterations::rows::Key;
use clover_stats::environment::LOCAL_LABELS_MIN;

use crate::analyze::AnalyzeError;
use crate::environments;
use crate::estimate::labels::Label;
use crate::estimate::labels::LabelList;
use crate::estimate::rows::Gathered;
use crate::estimate::rows::POLICY;
use crate::estimate::rows::Rows;
use crate::estimate::rows::RowsError;
use crate::estimate::rows::Which;
use crate::import::kept;
use crate::import::kept::FieldWords;

/// Rows with a label for audits that do not count, by design, then policy.
pub(super) type UncountedProbes = BTreeMap<DesignId, BTreeMap<PolicyId, BTreeSet<(ItemId, u64)>>>;

/// Which row is in which environment.
#[derive(Debug, Default)]
pub(super) struct RowPlaces {
    words: FieldWords,
    /// Rows of which a field was said once their label could be read.
    late: BTreeSet<Key>,
}

fn key(label: &Label) -> Key {
    (label.policy.clone(), label.item.clone(), label.draw)
}

impl RowPlaces {
    /// Reads the fields that place rows, each as far as it was said before the row's label could be read.
    pub(super) fn read(
        history: &dyn History,
        ingested: &[IngestedRows],
        which: &Which<'_>,
        labels: &LabelList,
    ) -> Result<Self, RowsError> {
        let scoped = which.environment.and_then(environments::field);
        let wanted: Vec<&FieldId> = which.places.iter().chain(&scoped).collect();
        if wanted.iter().all(|field| field.as_str() == POLICY) {
            return Ok(Self::default());
        }
        let mut first: BTreeMap<Key, u64> = BTreeMap::new();
        for label in &labels.all {
            first.entry(key(label)).or_insert(label.seq);
        }
        let readable = |key: &Key| first.get(key).copied();
        let (words, late) = kept::fields_before(history, ingested, &wanted, &readable)?;
        Ok(Self { words, late })
    }

    /// Whether a row is in an environment.
    pub(super) fn holds(&self, key: &Key, scope: &EnvironmentScope) -> bool {
        environments::holds(scope, |field| {
            if field == POLICY {
                return Some(key.0.as_str());
            }
            let mut words = self.words.get(key)?.iter();
            words.find_map(|(name, word)| (name.as_str() == field).then_some(word.as_str()))
        })
    }

    /// Whether a field of a row was said once its label could be read: whoever said it could choose where the row is.
    pub(super) fn is_late(&self, key: &Key) -> bool {
        self.late.contains(key)
    }

    /// Leaves the rows and labels of one environment. Probes that do not count are given back wherever they are: where one
    /// of them belongs may have been chosen.
    pub(super) fn narrow(
        &self,
        scope: &EnvironmentScope,
        all: &mut BTreeMap<PolicyId, Rows>,
        labels: &mut LabelList,
    ) -> Result<UncountedProbes, RowsError> {
        self.check_calibration(scope, labels)?;
        let mut scored: BTreeMap<Key, u64> = BTreeMap::new();
        for (policy, rows) in all.iter_mut() {
            let key = |row: usize| (policy.clone(), rows.items[row].clone(), rows.draws[row]);
            let keys: Vec<Key> = (0..rows.items.len()).map(key).collect();
            let inside: Vec<bool> = keys.iter().map(|key| self.holds(key, scope)).collect();
            scored.extend(keys.into_iter().zip(rows.scored.iter().copied()));
            retain(&mut rows.items, &inside);
            retain(&mut rows.draws, &inside);
            retain(&mut rows.scores, &inside);
            retain(&mut rows.scored, &inside);
            for column in rows.covariates.iter_mut().filter(|of| !of.is_empty()) {
                retain(column, &inside);
            }
        }
        all.retain(|_, rows| !rows.items.is_empty());
        let mut first: BTreeMap<(DesignId, Key), u64> = BTreeMap::new();
        for label in labels.all.iter().filter(|label| label.is_probe) {
            first
                .entry((label.design.clone(), key(label)))
                .or_insert(label.seq);
        }
        let mut uncounted = UncountedProbes::new();
        for ((design, key), readable) in first {
            let is_timely = scored.get(&key).is_some_and(|seq| *seq < readable);
            if !is_timely || self.is_late(&key) {
                let (policy, item, draw) = key;
                let of = uncounted.entry(design).or_default();
                of.entry(policy).or_default().insert((item, draw));
            }
        }
        labels.all.retain(|label| {
            let key = key(label);
            let named = uncounted.get(&label.design);
            let named = named.and_then(|of| of.get(&label.policy));
            let is_uncounted = named.is_some_and(|of| of.contains(&(key.1.clone(), key.2)));
            self.holds(&key, scope) && !(label.is_probe && is_uncounted)
        });
        Ok(uncounted)
    }

    /// No label for calibration is of a row that was placed once it could be read.
    fn check_calibration(
        &self,
        scope: &EnvironmentScope,
        labels: &LabelList,
    ) -> Result<(), RowsError> {
        let fits = labels.all.iter().filter(|label| !label.is_probe);
        let late: BTreeSet<Key> = fits.map(key).filter(|key| self.is_late(key)).collect();
        let (Some((policy, item, draw)), Some(field)) = (late.first(), environments::field(scope))
        else {
            return Ok(());
        };
        Err(RowsError::PlacedLate {
            scope: scope.to_string(),
            field,
            rows: late.len(),
            first: format!("{policy}/{item}/{draw}"),
        })
    }
}

/// The judge that an event says something of that may stand for or against its estimates.
pub(crate) fn audited(payload: &Payload) -> Option<&JudgeId> {
    match payload {
        Payload::EnvironmentsTested(said) => Some(&said.terms.judge),
        Payload::RegimeSelected(said) => Some(&said.judge),
        Payload::TransportTested(said) => Some(&said.terms.judge),
        _ => None,
    }
}

/// What an audit of a policy is about under these terms.
pub(super) fn subject<'a>(
    terms: &'a EstimateTerms,
    experiment: &'a ExperimentId,
    policy: &'a PolicyId,
) -> AuditSubject<'a> {
    AuditSubject {
        experiment,
        judge: &terms.judge,
        environment: terms.environment.as_ref(),
        policy,
    }
}

/// Leaves what is inside.
fn retain<T>(values: &mut Vec<T>, inside: &[bool]) {
    let mut inside = inside.iter();
    values.retain(|_| inside.next() == Some(&true));
}

/// A local calibrator rests on enough labels of its environment.
pub(super) fn check_local(gathered: &Gathered, of: &EstimateTerms) -> Result<(), AnalyzeError> {
    let Some(environment) = &of.environment else {
        return Ok(());
    };
    let labels = gathered.sources.iter().map(|of| of.labels.len());
    let labels = labels.sum::<usize>();
    if labels >= LOCAL_LABELS_MIN {
        return Ok(());
    }
    let environment = environment.to_string();
    Err(AnalyzeError::FewLocalLabels {
        environment,
        labels,
    })
}

#[cfg(test)]
mod tests {
    use clover_event::payload::label::LabelPurpose;
    use clover_event::payload::label::LabelRecorded;

    use super::*;

    fn row(item: &str) -> Key {
        ("base".parse().unwrap(), item.parse().unwrap(), 0)
    }

    fn law() -> EnvironmentScope {
        EnvironmentScope {
            environment: "law".parse().unwrap(),
            family: "domain".parse().unwrap(),
            window: None,
        }
    }

    /// Rows by item, with the domain of each and the entry of its score.
    fn rows(of: &[(&str, u64)]) -> BTreeMap<PolicyId, Rows> {
        let rows = Rows {
            items: of.iter().map(|(item, _)| item.parse().unwrap()).collect(),
            draws: vec![0; of.len()],
            scores: vec![500_000; of.len()],
            scored: of.iter().map(|(_, seq)| *seq).collect(),
            covariates: Vec::new(),
        };
        BTreeMap::from([("base".parse().unwrap(), rows)])
    }

    fn labels(of: &[(&str, u64, LabelPurpose)]) -> LabelList {
        let mut labels = LabelList::default();
        for (item, seq, purpose) in of {
            let label = LabelRecorded {
                design: "design-1".parse().unwrap(),
                draw: clover_num::Count::default(),
                item: item.parse().unwrap(),
                policy: "base".parse().unwrap(),
                purpose: *purpose,
                rater: "Lena".parse().unwrap(),
                value_micro: clover_num::Micro::default(),
            };
            labels.recorded(*seq, &label);
        }
        labels
    }

    fn places(of: &[(&str, &str)], late: &[&str]) -> RowPlaces {
        let word = |(item, domain): &(&str, &str)| {
            let words = BTreeMap::from([("domain".parse().unwrap(), (*domain).to_owned())]);
            (row(item), words)
        };
        RowPlaces {
            words: of.iter().map(word).collect(),
            late: late.iter().map(|item| row(item)).collect(),
        }
    }

    /// Given probes of an environment and of another, when the rows of one are read, then probes that were scored or placed once
    /// their label could be read are given back wherever they are, and the others count where they are.
    #[test]
    fn late_probes_are_given_back_wherever_they_are() {
        use LabelPurpose::Audit;
        let places = places(
            &[
                ("timely", "law"),
                ("other", "medicine"),
                ("after", "medicine"),
            ],
            &["moved"],
        );
        let scored = [("timely", 1), ("other", 1), ("after", 9), ("moved", 1)];
        let mut rows = rows(&scored);
        let each = ["timely", "other", "after", "moved", "never"];
        let mut labels = labels(&each.map(|item| (item, 5, Audit)));
        let uncounted = places.narrow(&law(), &mut rows, &mut labels).unwrap();
        let found: Vec<&str> = uncounted
            .values()
            .flat_map(BTreeMap::values)
            .flatten()
            .map(|(item, _)| item.as_str())
            .collect();
        assert_eq!(found, ["after", "moved", "never"]);
        let left: Vec<&str> = labels.all.iter().map(|label| label.item.as_str()).collect();
        assert_eq!(left, ["timely"]);
        assert_eq!(rows.values().map(|of| of.items.len()).sum::<usize>(), 1);
    }

    /// Given a labelled row whose field was said once its label could be read, when the rows of an environment are read, then
    /// nothing is: whoever said it chose whether the row is in it.
    #[test]
    fn a_row_that_was_placed_after_its_label_lets_nothing_be_fitted() {
        let labelled = [("moved", 5, LabelPurpose::Calibrate)];
        let scored = [("moved", 1), ("timely", 1)];
        let words = [("timely", "law")];
        let read = |late: &[&str]| {
            let places = places(&words, late);
            places.narrow(&law(), &mut rows(&scored), &mut labels(&labelled))
        };
        assert!(read(&[]).is_ok());
        let refused = read(&["moved"]).unwrap_err().to_string();
        assert!(refused.contains("the first base/moved/0"), "{refused}");
    }
}
