//! Analytic inference: cluster-robust sampling variance plus the calibrator's jackknife, t intervals.

use crate::calibrator::Calibrator;
use crate::calibrator::Frame;
use crate::crv1;
use crate::crv1::SplitVariance;
use crate::direct::LabelDesign;
use crate::direct::Options;
use crate::direct::PolicyPoint;
use crate::direct::Route;
use crate::direct::Table;
use crate::direct::WeightReason;
use crate::direct::point;
use crate::direct::point::Predictions;
use crate::direct::strata::Drawn;
use crate::inference;
use crate::inference::Interval;
use crate::sample::Clusters;
use crate::sample::SampleError;

/// Where the degrees of freedom come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DfMethod {
    /// Clusters less one.
    Cluster,
    /// Sampling and calibration components by Welch and Satterthwaite.
    WelchSatterthwaite,
    /// Labelled clusters less fitted parameters, never more than the other two.
    LabelledClusters,
    /// Those of each stratum by Welch and Satterthwaite, then with the calibration component.
    Strata,
}

impl DfMethod {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::WelchSatterthwaite => "welch_satterthwaite",
            Self::LabelledClusters => "labelled_clusters",
            Self::Strata => "strata",
        }
    }
}

/// Why a policy has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// All rows are of one prompt.
    OneCluster,
    /// The correction fits as many parameters as there are labelled clusters.
    TooFewLabelledClusters,
}

impl Unavailable {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneCluster => "one_cluster",
            Self::TooFewLabelledClusters => "too_few_labelled_clusters",
        }
    }
}

/// Standard error and interval of one policy, on the unit scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Sampling variance, the labelled part inflated where a correction was fitted.
    pub sampling: f64,
    /// Calibration variance.
    pub calibration: f64,
    /// Standard error of both.
    pub se: f64,
    /// Degrees of freedom.
    pub df: f64,
    /// Where they come from.
    pub df_method: DfMethod,
    /// The t interval, not clipped to the scale.
    pub interval: Interval,
}

/// One policy's estimate, on the unit scale.
#[derive(Clone, Debug)]
pub struct PolicyEstimate {
    /// Point estimate.
    pub point: PolicyPoint,
    /// Standard error and interval, or why there is none.
    pub spread: Result<Spread, Unavailable>,
    /// Estimates without each calibration fold; empty without a jackknife.
    pub jackknife: Vec<f64>,
    /// Jackknife variance; `None` without a jackknife.
    pub calibration_variance: Option<f64>,
    /// Sampling variance by labelled and other clusters; `None` for one cluster.
    pub split: Option<SplitVariance>,
    /// Row contributions less the estimate, in row order.
    pub influence: Vec<f64>,
    /// What labels that were drawn by stratum add to them; `None` where labels were drawn otherwise.
    pub(crate) drawn: Option<Drawn>,
    /// Rows.
    pub rows: usize,
    /// Prompt clusters.
    pub clusters: usize,
    /// Rows with a label.
    pub labelled_rows: usize,
}

impl PolicyEstimate {
    /// Whether degrees of freedom come from labelled clusters, and how many parameters were fitted on them.
    pub(crate) fn labelled_rule(&self, options: &Options) -> Option<usize> {
        let augmented =
            self.point.route == Route::Augmented && options.design == LabelDesign::Representative;
        let reason = self.point.weight.map(|(_, reason)| reason);
        augmented.then(|| reason.map_or(1, WeightReason::fitted_parameters))
    }
}

/// Estimates every policy of a table. Without a calibrator (too few labels for one), raw scores are averaged and the
/// route says so.
///
/// # Errors
/// [`SampleError`] if the table names points outside the frame.
pub fn estimate(
    table: &Table,
    frame: &Frame,
    calibrator: Option<&Calibrator>,
    options: &Options,
) -> Result<Vec<PolicyEstimate>, SampleError> {
    if table
        .points
        .iter()
        .any(|&point| point as usize >= frame.len())
    {
        return Err(SampleError::Parameter {
            name: "points",
            expected: "points of the frame",
        });
    }
    let at_point: Vec<f64> = (0..frame.len())
        .map(|point| predict(frame, calibrator, point))
        .collect();
    let predictions = Predictions {
        at_point: &at_point,
        out_of_fold: calibrator.map(|calibrator| calibrator.out_of_fold.as_slice()),
        raw: calibrator.is_none(),
    };
    let jackknife = jackknife(table, frame, calibrator, options);
    (0..table.policies())
        .map(|policy| policy_estimate(table, policy, predictions, &jackknife, options))
        .collect()
}

fn predict(frame: &Frame, calibrator: Option<&Calibrator>, point: usize) -> f64 {
    let row = frame.point(point);
    calibrator.map_or(row[0], |calibrator| {
        calibrator.full.predict(row[0], &row[1..])
    })
}

/// Estimates of each policy under each fold's model, used for predictions and residuals alike.
fn jackknife(
    table: &Table,
    frame: &Frame,
    calibrator: Option<&Calibrator>,
    options: &Options,
) -> Vec<Vec<f64>> {
    let mut by_policy = vec![Vec::new(); table.policies()];
    let models = calibrator
        .filter(|_| options.jackknife)
        .map_or(&[][..], |calibrator| &calibrator.without_fold);
    for model in models {
        let at_point: Vec<f64> = (0..frame.len())
            .map(|point| {
                let row = frame.point(point);
                model.predict(row[0], &row[1..])
            })
            .collect();
        let predictions = Predictions {
            at_point: &at_point,
            out_of_fold: None,
            raw: false,
        };
        for (policy, estimates) in by_policy.iter_mut().enumerate() {
            let point = point::estimate(table, policy, predictions, None, options);
            estimates.push(point.estimate);
        }
    }
    by_policy
}

fn policy_estimate(
    table: &Table,
    policy: usize,
    predictions: Predictions<'_>,
    jackknife: &[Vec<f64>],
    options: &Options,
) -> Result<PolicyEstimate, SampleError> {
    let point = point::estimate(table, policy, predictions, None, options);
    let drawn = point::drawn(table, policy, predictions, &point, options);
    let mut influence = point::pseudo_outcomes(table, policy, predictions, &point, options);
    if let Some(drawn) = &drawn {
        for (row, value) in influence.iter_mut().enumerate() {
            *value += drawn.contribution(row);
        }
    }
    for value in &mut influence {
        *value -= point.estimate;
    }
    let rows = table.policies[policy].clone();
    let labelled: Vec<bool> = rows.map(|row| table.labels[row].is_some()).collect();
    let clusters = Clusters::numbered(table.prompts_of(policy).to_vec(), table.prompts())?;
    let split = crv1::variance(&influence, &clusters, &labelled).ok();
    let calibration_variance = (!jackknife[policy].is_empty()).then(|| {
        if point.route == Route::DirectOracle {
            0.0
        } else {
            inference::jackknife_variance(&jackknife[policy]).unwrap_or(0.0)
        }
    });
    let mut estimate = PolicyEstimate {
        point,
        spread: Err(Unavailable::OneCluster),
        jackknife: jackknife[policy].clone(),
        calibration_variance,
        rows: labelled.len(),
        clusters: split.map_or(1, |split| split.clusters),
        labelled_rows: labelled.iter().filter(|labelled| **labelled).count(),
        split,
        influence,
        drawn,
    };
    if let Some(split) = split {
        estimate.spread = spread(table.prompts_of(policy), &estimate, split, options);
    }
    Ok(estimate)
}

fn spread(
    prompts: &[u32],
    estimate: &PolicyEstimate,
    split: SplitVariance,
    options: &Options,
) -> Result<Spread, Unavailable> {
    let calibration = estimate.calibration_variance.unwrap_or(0.0);
    let fold_df = estimate.jackknife.len() as f64 - 1.0;
    let clusters = split.clusters as f64 - 1.0;
    let (sampling, df, df_method) = if let Some(fitted) = estimate.labelled_rule(options) {
        let (sampling, df) = split
            .corrected(fitted)
            .ok_or(Unavailable::TooFewLabelledClusters)?;
        let df = df
            .min(inference::welch(sampling, df, calibration, fold_df))
            .min(inference::welch(
                split.total(),
                clusters,
                calibration,
                fold_df,
            ));
        (sampling, df, DfMethod::LabelledClusters)
    } else if let Some(by_stratum) = estimate.by_stratum(prompts) {
        let df = by_stratum.df();
        let df = df.min(inference::welch(split.total(), df, calibration, fold_df));
        (split.total(), df, DfMethod::Strata)
    } else {
        let df = inference::welch(split.total(), clusters, calibration, fold_df);
        let method = if calibration > 0.0 {
            DfMethod::WelchSatterthwaite
        } else {
            DfMethod::Cluster
        };
        (split.total(), df, method)
    };
    let se = (sampling + calibration).sqrt();
    Ok(Spread {
        sampling,
        calibration,
        se,
        df,
        df_method,
        interval: Interval::student(estimate.point.estimate, se, df, options.alpha),
    })
}
