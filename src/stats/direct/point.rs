//! The point estimate of a policy's value: one functional for estimate, jackknife and bootstrap.

use std::collections::BTreeSet;

use crate::direct::Correction;
use crate::direct::LabelDesign;
use crate::direct::Options;
use crate::direct::Table;
use crate::direct::rare;
use crate::direct::strata;
use crate::direct::strata::Drawn;

/// Labelled clusters below which a tuned weight is not trusted.
const TUNED_CLUSTERS_MIN: usize = 20;
/// Labelled clusters off the most common label below which it is not.
const TUNED_MINORITY_MIN: usize = 5;
/// Variance of predictions at or below which there is no slope.
const TUNED_VARIANCE_MIN: f64 = 1e-12;

/// How a policy's value was estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Every row is labelled: the mean label.
    DirectOracle,
    /// Mean prediction plus a correction by the residuals of labelled rows.
    Augmented,
    /// Mean prediction.
    PlugIn,
    /// Mean prediction, since labels were targeted in an unknown way.
    PlugInTargetedUnknown,
    /// Mean raw score: no calibrator could be fitted.
    Naive,
}

impl Route {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::DirectOracle => "direct_oracle",
            Self::Augmented => "augmented",
            Self::PlugIn => "plug_in",
            Self::PlugInTargetedUnknown => "plug_in_targeted_unknown",
            Self::Naive => "naive",
        }
    }

    /// Whether the policy's own labels bear on its estimate.
    pub fn uses_own_labels(self) -> bool {
        matches!(self, Self::DirectOracle | Self::Augmented)
    }
}

/// Why the weight on the prediction is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightReason {
    /// The rule says one.
    RuleOne,
    /// The clipped least-squares slope.
    Tuned,
    /// Fewer than 20 labelled clusters.
    TooFewLabelledClusters,
    /// Fewer than 5 labelled clusters off the most common label.
    RareOutcome,
    /// The predictions do not vary.
    ConstantPredictions,
    /// Known propensities keep weight one.
    KnownPropensity,
}

impl WeightReason {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::RuleOne => "rule_one",
            Self::Tuned => "tuned",
            Self::TooFewLabelledClusters => "too_few_labelled_clusters",
            Self::RareOutcome => "rare_outcome",
            Self::ConstantPredictions => "constant_predictions",
            Self::KnownPropensity => "known_propensity_fixed_one",
        }
    }

    /// Parameters that the correction fits on the labelled clusters: its mean, and the slope if tuned.
    pub fn fitted_parameters(self) -> usize {
        if self == Self::Tuned { 2 } else { 1 }
    }
}

/// One policy's point estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyPoint {
    /// The estimate, on [0, 1] unless residuals carry it outside.
    pub estimate: f64,
    /// How.
    pub route: Route,
    /// The mean prediction.
    pub plug_in: f64,
    /// Estimate less mean prediction.
    pub correction: f64,
    /// Weighted share of labelled rows.
    pub labelled_share: f64,
    /// Weight on the prediction inside the correction, and why; `None` without a correction by residuals.
    pub weight: Option<(f64, WeightReason)>,
}

/// What predicts: values by frame point, and out-of-fold values of the calibrator's labelled rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Predictions<'a> {
    /// Prediction at each point of the frame.
    pub(crate) at_point: &'a [f64],
    /// Out-of-fold predictions; without them, residuals use `at_point` too.
    pub(crate) out_of_fold: Option<&'a [f64]>,
    /// Whether these are raw scores for want of a calibrator.
    pub(crate) raw: bool,
}

impl Predictions<'_> {
    pub(crate) fn at_row(&self, table: &Table, row: usize) -> f64 {
        self.at_point[table.points[row] as usize]
    }

    fn residual_at(&self, table: &Table, row: usize) -> f64 {
        match (self.out_of_fold, table.fit_rows[row]) {
            (Some(out_of_fold), Some(fit_row)) => out_of_fold[fit_row as usize],
            _ => self.at_row(table, row),
        }
    }
}

/// A labelled row of a policy.
struct Seen {
    row: usize,
    label: f64,
    predicted: f64,
    weight: f64,
}

/// Estimates one policy; `weights` by row of the table.
pub(crate) fn estimate(
    table: &Table,
    policy: usize,
    predictions: Predictions<'_>,
    weights: Option<&[f64]>,
    options: &Options,
) -> PolicyPoint {
    let rows = table.policies[policy].clone();
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let (mut mass, mut predicted, mut seen) = (0.0, 0.0, Vec::new());
    for row in rows.clone() {
        mass += weight(row);
        predicted += weight(row) * predictions.at_row(table, row);
        if let Some(label) = table.labels[row] {
            seen.push(Seen {
                row,
                label,
                predicted: predictions.residual_at(table, row),
                weight: weight(row),
            });
        }
    }
    let plug_in = predicted / mass;
    let labelled_mass: f64 = seen.iter().map(|seen| seen.weight).sum();
    let point = |estimate: f64, route, weight| PolicyPoint {
        estimate,
        route,
        plug_in,
        correction: estimate - plug_in,
        labelled_share: labelled_mass / mass,
        weight,
    };
    if seen.len() == rows.len() {
        let labels: f64 = seen.iter().map(|seen| seen.weight * seen.label).sum();
        return point(labels / mass, Route::DirectOracle, None);
    }
    if predictions.raw {
        return point(plug_in, Route::Naive, None);
    }
    if !options.augment || seen.is_empty() {
        return point(plug_in, Route::PlugIn, None);
    }
    match options.design {
        LabelDesign::TargetedUnknown => point(plug_in, Route::PlugInTargetedUnknown, None),
        LabelDesign::Stratified => {
            let residual = |row: usize, label: f64| label - predictions.residual_at(table, row);
            match strata::correction(table, policy, weights, &residual) {
                Some(found) => {
                    let weight = (1.0, fixed_weight(options));
                    point(plug_in + found, Route::Augmented, Some(weight))
                }
                None => point(plug_in, Route::PlugInTargetedUnknown, None),
            }
        }
        LabelDesign::Representative => {
            let (tuned, reason) = correction_weight(options.correction, table, &seen);
            let residual: f64 = seen
                .iter()
                .map(|seen| seen.weight * (seen.label - tuned * seen.predicted))
                .sum();
            let estimate = tuned * plug_in + residual / labelled_mass;
            point(estimate, Route::Augmented, Some((tuned, reason)))
        }
        LabelDesign::KnownPropensity => {
            let residual: f64 = seen
                .iter()
                .map(|seen| seen.weight * (seen.label - seen.predicted) / propensity(table, seen))
                .sum();
            let estimate = plug_in + residual / mass;
            point(
                estimate,
                Route::Augmented,
                Some((1.0, fixed_weight(options))),
            )
        }
    }
}

/// Why the weight on the prediction is one where probabilities are known.
fn fixed_weight(options: &Options) -> WeightReason {
    match options.correction {
        Correction::One => WeightReason::RuleOne,
        Correction::Tuned => WeightReason::KnownPropensity,
    }
}

/// What labels add to the contributions of a policy that strata correct.
pub(crate) fn drawn(
    table: &Table,
    policy: usize,
    predictions: Predictions<'_>,
    point: &PolicyPoint,
    options: &Options,
) -> Option<Drawn> {
    let is_corrected = point.route == Route::Augmented;
    let asked = is_corrected && options.design == LabelDesign::Stratified;
    let residual = |row: usize, label: f64| label - predictions.residual_at(table, row);
    asked.then(|| Drawn::new(table, policy, &residual))?
}

/// A row's probability of being labelled; 1 where none was given.
fn propensity(table: &Table, seen: &Seen) -> f64 {
    table
        .propensities
        .as_ref()
        .map_or(1.0, |propensities| propensities[seen.row])
}

/// Row contributions whose mean is the unweighted estimate (`cje-eval` 0.9.3 influence functions); where strata correct it,
/// without what [`drawn`] adds.
pub(crate) fn pseudo_outcomes(
    table: &Table,
    policy: usize,
    predictions: Predictions<'_>,
    point: &PolicyPoint,
    options: &Options,
) -> Vec<f64> {
    let rows = table.policies[policy].clone();
    let at = |row: usize| predictions.at_row(table, row);
    let count = rows.len() as f64;
    let labelled = rows
        .clone()
        .filter(|&row| table.labels[row].is_some())
        .count() as f64;
    match (point.route, point.weight) {
        (Route::DirectOracle, _) => rows
            .map(|row| table.labels[row].unwrap_or(point.estimate))
            .collect(),
        (Route::Augmented, Some((tuned, _))) if options.design == LabelDesign::Representative => {
            let correction = point.estimate - tuned * point.plug_in;
            let share = labelled / count;
            rows.map(|row| {
                let value = tuned * at(row) + correction;
                table.labels[row].map_or(value, |label| {
                    let residual = label - tuned * predictions.residual_at(table, row);
                    value + (residual - correction) / share
                })
            })
            .collect()
        }
        (Route::Augmented, _) if options.design == LabelDesign::KnownPropensity => rows
            .map(|row| {
                table.labels[row].map_or(at(row), |label| {
                    let predicted = predictions.residual_at(table, row);
                    let seen = Seen {
                        row,
                        label,
                        predicted,
                        weight: 1.0,
                    };
                    at(row) + (label - predicted) / propensity(table, &seen)
                })
            })
            .collect(),
        _ => rows.map(at).collect(),
    }
}

/// The weight on the prediction: one, or the power-tuned slope clipped to [0, 1] (PPI++), which falls back to one
/// on too few labelled clusters, rare outcomes, or constant predictions.
fn correction_weight(rule: Correction, table: &Table, seen: &[Seen]) -> (f64, WeightReason) {
    if rule == Correction::One {
        return (1.0, WeightReason::RuleOne);
    }
    let labelled: Vec<LabelledPrediction> = seen
        .iter()
        .map(|seen| LabelledPrediction {
            label: seen.label,
            predicted: seen.predicted,
            weight: seen.weight,
            cluster: table.prompts.of_row()[seen.row],
        })
        .collect();
    tuned_weight(&labelled)
}

/// A labelled row for [`tuned_weight`].
#[derive(Clone, Copy, Debug)]
pub struct LabelledPrediction {
    /// Its label.
    pub label: f64,
    /// Its out-of-fold prediction.
    pub predicted: f64,
    /// Its weight.
    pub weight: f64,
    /// Its prompt.
    pub cluster: u32,
}

/// The PPI++ weight: cov(label, prediction) / var(prediction), clipped to [0, 1], or one with the reason why not
/// (Angelopoulos, Duchi and Zrnic 2023; fallbacks of `cje-eval` 0.9.3).
pub fn tuned_weight(seen: &[LabelledPrediction]) -> (f64, WeightReason) {
    let clusters: BTreeSet<u32> = seen.iter().map(|seen| seen.cluster).collect();
    if clusters.len() < TUNED_CLUSTERS_MIN {
        return (1.0, WeightReason::TooFewLabelledClusters);
    }
    if minority_clusters(seen) < TUNED_MINORITY_MIN {
        return (1.0, WeightReason::RareOutcome);
    }
    let mass: f64 = seen.iter().map(|seen| seen.weight).sum();
    let mean = |value: &dyn Fn(&LabelledPrediction) -> f64| {
        seen.iter()
            .map(|seen| seen.weight * value(seen))
            .sum::<f64>()
            / mass
    };
    let (label, predicted) = (mean(&|seen| seen.label), mean(&|seen| seen.predicted));
    let variance = mean(&|seen| (seen.predicted - predicted) * (seen.predicted - predicted));
    if variance.is_nan() || variance <= TUNED_VARIANCE_MIN {
        return (1.0, WeightReason::ConstantPredictions);
    }
    let covariance = mean(&|seen| (seen.predicted - predicted) * (seen.label - label));
    ((covariance / variance).clamp(0.0, 1.0), WeightReason::Tuned)
}

/// Clusters that hold a label other than the one most clusters hold; labels compared to six decimals.
fn minority_clusters(seen: &[LabelledPrediction]) -> usize {
    let labels: Vec<(f64, u32)> = seen.iter().map(|seen| (seen.label, seen.cluster)).collect();
    rare::off_mode(&labels)
}
