//! Cross-fitted calibrators: judge scores, with or without covariates, to expected labels on [0, 1].
//!
//! *Monotone*: isotonic regression of the label on the score. *Two-stage*: a smooth index g of score and covariates
//! (spline and ridge), its mid-rank among the training rows, and isotonic regression on that rank. Each of K folds
//! gets a model fitted without it, for predictions of labelled rows that did not see their own label; the full
//! model predicts everything else. Two algorithms differ in how they read isotonic blocks: [`Algorithm::Peer1`] and
//! [`Algorithm::Centroid1`]. Sources: `cje-eval` 0.9.3 `JudgeCalibrator`; CLOVER v1.1, section 2.

mod frame;
mod model;
mod problem;

pub use frame::Frame;
pub use frame::LabelledRows;
pub use model::Ecdf;
pub use model::Index;
pub use model::IndexParts;
pub use model::Model;
pub use problem::Fit;
pub use problem::Problem;

use crate::sample::Clusters;
use crate::sample::Unfit;
use crate::sample::Values;
use crate::sample::Weights;

/// Training rows below which the smooth index is not fitted.
pub const INDEX_ROWS_MIN: usize = 20;

/// How isotonic blocks become a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// `calibrator/peer-0`: as `cje-eval` 0.3.0, whose ranks put a tie at its top. Only to repeat its off-policy estimates.
    Peer0,
    /// `calibrator/peer-1`: knots at block ends, as `cje-eval` 0.9.3.
    Peer1,
    /// `calibrator/centroid-1`: knots at block centroids, then a shift to the mean label (CLOVER v1.1, section 2).
    Centroid1,
}

impl Algorithm {
    /// Its name with its version, as events record it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Peer0 => "calibrator/peer-0",
            Self::Peer1 => "calibrator/peer-1",
            Self::Centroid1 => "calibrator/centroid-1",
        }
    }
}

/// Which calibrator is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Isotonic on the score.
    Monotone,
    /// Index, rank, isotonic.
    TwoStage,
    /// Both are fitted and the out-of-fold errors choose (`cje-eval` 0.9.3 mode `auto`); with covariates always two-stage.
    Auto,
}

/// Which calibrator was fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalibratorChoice {
    /// Isotonic on the score.
    Monotone,
    /// Index, rank, isotonic.
    TwoStage,
}

impl CalibratorChoice {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Monotone => "monotone",
            Self::TwoStage => "two_stage",
        }
    }
}

/// What to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalibratorSettings {
    /// How isotonic blocks are read.
    pub algorithm: Algorithm,
    /// Which calibrator.
    pub mode: Mode,
}

impl CalibratorSettings {
    /// What one-off estimates use: `peer-1`, chosen automatically.
    pub const ESTIMATE: Self = Self {
        algorithm: Algorithm::Peer1,
        mode: Mode::Auto,
    };
}

/// How well a calibrator fits its own labels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Root mean squared error of the full model on its training rows, in label units.
    pub rmse: f64,
    /// Root mean squared error of the out-of-fold predictions.
    pub oof_rmse: f64,
    /// Share of labelled rows whose full-model prediction is within 0.1 of the label.
    pub within_tenth: f64,
    /// The same for out-of-fold predictions.
    pub oof_within_tenth: f64,
    /// Least and largest labelled score.
    pub score_range: (f64, f64),
    /// Least and largest full-model prediction on labelled rows.
    pub reward_range: (f64, f64),
}

/// A calibrator fitted on labelled rows.
#[derive(Clone, Debug)]
pub struct Calibrator {
    /// What was asked.
    pub settings: CalibratorSettings,
    /// What was fitted.
    pub selected: CalibratorChoice,
    /// The model of all labels.
    pub full: Model,
    /// The model without each fold.
    pub without_fold: Vec<Model>,
    /// Out-of-fold prediction of each labelled row.
    pub out_of_fold: Vec<f64>,
    /// Fold of each labelled row.
    pub folds: Vec<usize>,
    /// Whether the full model uses the covariates.
    pub uses_covariates: bool,
    /// Fold models that had to do without them.
    pub folds_without_covariates: usize,
    /// Fit on its own labels.
    pub quality: Quality,
}

impl Calibrator {
    /// The calibrated reward of a score and its covariates, in [0, 1].
    ///
    /// # Panics
    /// If there are fewer covariates than the calibrator uses.
    pub fn predict(&self, score: f64, covariates: &[f64]) -> f64 {
        self.full.predict(score, covariates)
    }
}

/// Fits a calibrator: `scores` and `labels` in [0, 1], one entry per labelled row; `covariates`, one column each;
/// `folds` from [`folds::balanced`](crate::folds::balanced), 0 to `fold_count - 1`, whole clusters in one fold.
///
/// # Errors
/// [`Unfit::Invalid`] for columns that are not a sample, labels outside [0, 1], covariates with
/// [`Mode::Monotone`], or a fold that holds no row or all rows.
pub fn fit(
    scores: &[f64],
    labels: &[f64],
    covariates: &[&[f64]],
    folds: &[usize],
    fold_count: usize,
    weights: Option<&[f64]>,
    settings: CalibratorSettings,
) -> Result<Calibrator, Unfit> {
    let rows = Values::new("scores", scores)?.len();
    if let Some(weights) = weights {
        Weights::new("weights", weights, rows)?;
    }
    let mut columns = vec![scores];
    columns.extend_from_slice(covariates);
    let frame = Frame::new(&columns)?;
    let labelled = LabelledRows::new(
        frame.of_row().to_vec(),
        labels.to_vec(),
        folds.to_vec(),
        fold_count,
    )?;
    let problem = Problem::new(&frame, labelled, settings)?;
    Ok(problem.calibrator(weights))
}

/// Distinct clusters among rows, for the checks of cross-fitting.
///
/// # Errors
/// [`Unfit::Invalid`] without rows.
pub fn cluster_count<K: Ord>(keys: impl IntoIterator<Item = K>) -> Result<usize, Unfit> {
    Ok(Clusters::of(keys)?.count())
}
