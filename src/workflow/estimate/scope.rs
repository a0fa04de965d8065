//! The rows and labels of one environment, by what imports kept of rows.

use std::collections::BTreeMap;

use clover_event::Payload;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::payload::environment::EnvironmentScope;
use clover_event::payload::estimate::EstimateTerms;
use clover_projection::iterations::rows::Key;
use clover_stats::environment::LOCAL_LABELS_MIN;

use crate::analyze::AnalyzeError;
use crate::environments;
use crate::estimate::rows::Gathered;
use crate::estimate::rows::Label;
use crate::estimate::rows::POLICY;
use crate::estimate::rows::Rows;
use crate::import::kept::FieldWords;

/// Whether a row is in an environment, by what imports kept of it.
pub(super) fn holds(kept: &FieldWords, key: &Key, scope: &EnvironmentScope) -> bool {
    environments::holds(scope, |field| {
        if field == POLICY {
            return Some(key.0.as_str());
        }
        let words = kept.get(key)?;
        let mut words = words.iter();
        words.find_map(|(name, word)| (name.as_str() == field).then_some(word.as_str()))
    })
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

/// Leaves the rows and labels of one environment.
pub(super) fn narrow(
    all: &mut BTreeMap<PolicyId, Rows>,
    labels: &mut Vec<Label>,
    (scope, kept): (&EnvironmentScope, &FieldWords),
) {
    for (policy, rows) in all.iter_mut() {
        let key = |row: usize| (policy.clone(), rows.items[row].clone(), rows.draws[row]);
        let inside: Vec<bool> = (0..rows.items.len())
            .map(|row| holds(kept, &key(row), scope))
            .collect();
        retain(&mut rows.items, &inside);
        retain(&mut rows.draws, &inside);
        retain(&mut rows.scores, &inside);
        for column in rows.covariates.iter_mut().filter(|of| !of.is_empty()) {
            retain(column, &inside);
        }
    }
    all.retain(|_, rows| !rows.items.is_empty());
    labels.retain(|label| {
        let key = (label.policy.clone(), label.item.clone(), label.draw);
        holds(kept, &key, scope)
    });
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
