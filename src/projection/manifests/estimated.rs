//! How policies are estimated and compared by plan: which plan binds, and that what is recorded follows it.

use clover_event::id::ExperimentId;
use clover_event::id::ManifestId;
use clover_event::payload::estimate::ContrastRecorded;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimated::PlannedCorrection;
use clover_event::payload::estimated::PredictionWeight;
use clover_event::payload::manifest::EstimatePlan;
use clover_event::payload::manifest::OrderPlan;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;

use crate::manifests::ManifestRecord;
use crate::manifests::ManifestVersion;
use crate::manifests::Manifests;

/// What a plan in force says of estimates, and the manifest that says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedEstimate<'a, T> {
    /// The manifest.
    pub manifest: &'a ManifestId,
    /// What it says.
    pub said: T,
    /// The entry since which it stands.
    pub since: u64,
}

/// What the plan that binds says of estimates: of several the one that was in force first.
///
/// Until the first score or label of the experiment a plan may be amended or superseded; from then on what stood there binds,
/// whatever is registered later. A plan that comes after outcomes binds from then on, and nothing later changes it.
pub fn planned<'a, T: Copy>(
    manifests: &'a Manifests,
    experiment: &ExperimentId,
    of: impl Fn(&'a EstimatePlan) -> Option<T>,
) -> Option<PlannedEstimate<'a, T>> {
    let outcome = manifests.first_outcome.get(experiment).copied();
    let records = manifests.by_id.iter();
    let plans = records.filter_map(|(manifest, record)| {
        let is_of = record.experiment.as_ref() == Some(experiment);
        if !is_of || was_replaced(manifests, record, outcome) {
            return None;
        }
        let said = |version: &'a ManifestVersion| {
            Some(PlannedEstimate {
                manifest,
                said: of(version.manifest.estimates.as_ref()?)?,
                since: version.since()?,
            })
        };
        let Some(outcome) = outcome else {
            return said(record.in_force()?);
        };
        let later = || {
            let after = |found: &PlannedEstimate<'_, T>| found.since >= outcome;
            let versions = record.versions.iter().filter_map(said);
            versions.filter(after).min_by_key(|found| found.since)
        };
        record.before(outcome).and_then(said).or_else(later)
    });
    plans.min_by_key(|found| found.since)
}

/// Whether another manifest took its place while no outcome was there.
fn was_replaced(manifests: &Manifests, record: &ManifestRecord, outcome: Option<u64>) -> bool {
    let by = manifests.replaced_seq(record);
    by.is_some_and(|by| outcome.is_none_or(|outcome| by < outcome))
}

/// The correction that the plan that binds names.
pub fn correction<'a>(
    manifests: &'a Manifests,
    experiment: &ExperimentId,
) -> Option<PlannedEstimate<'a, PlannedCorrection>> {
    planned(manifests, experiment, |plan| plan.correction)
}

/// The weight on predictions that the plan that binds names.
pub fn weight<'a>(
    manifests: &'a Manifests,
    experiment: &ExperimentId,
) -> Option<PlannedEstimate<'a, PredictionWeight>> {
    planned(manifests, experiment, |plan| plan.weight)
}

/// What the plan says that binds and names an order, where it stood before the first score or label.
pub fn order<'a>(
    manifests: &'a Manifests,
    experiment: &ExperimentId,
) -> Option<PlannedEstimate<'a, (&'a OrderPlan, &'a EstimatePlan)>> {
    let named = |plan: &'a EstimatePlan| Some((plan.order.as_ref()?, plan));
    let first = manifests.first_outcome.get(experiment);
    let plan = planned(manifests, experiment, named)?;
    first
        .is_none_or(|first| plan.since < *first)
        .then_some(plan)
}

/// Estimates and comparisons have the weight of the plan that binds.
///
/// # Errors
/// The weight that the plan says, and the one found.
pub fn check_weight(state: &State, experiment: &ExperimentId, terms: &EstimateTerms) -> RuleAnswer {
    if !state.asks(Question::PlannedEstimates) {
        return Ok(());
    }
    let Some(plan) = weight(state.fold::<Manifests>(), experiment) else {
        return Ok(());
    };
    let found = terms.weight.unwrap_or(PredictionWeight::One);
    ensure!(
        found == plan.said,
        format!("weight {}, as {} says", plan.said, plan.manifest),
        format!("weight {found}")
    );
    Ok(())
}

/// A comparison has the correction and the weight of the plan that binds.
///
/// # Errors
/// The correction or the weight that the plan says, and the one found.
pub fn check_contrast(
    state: &State,
    experiment: &ExperimentId,
    said: &ContrastRecorded,
) -> RuleAnswer {
    if !state.asks(Question::PlannedEstimates) {
        return Ok(());
    }
    if let Some(plan) = correction(state.fold::<Manifests>(), experiment) {
        let found = PlannedCorrection::from(said.correction);
        ensure!(
            found == plan.said,
            format!("correction {}, as {} says", plan.said, plan.manifest),
            format!("correction {found}")
        );
    }
    check_weight(state, experiment, &said.terms)
}
