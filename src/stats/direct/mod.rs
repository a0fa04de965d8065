//! Direct estimation: the value of policies from judge scores of their own responses, calibrated on few labels.
//!
//! theta = mean f(S) + mean over labelled rows of (Y - f without the row's fold), with cluster-robust variance by
//! prompt, a delete-one-fold jackknife for the calibrator, and t intervals; or a cluster bootstrap that refits the
//! calibrator. Everything here is on the unit scale; [`Scale`] carries results back. Sources: the CJE paper, appendix
//! A.7; `cje-eval` 0.9.3 Direct mode.

mod analytic;
mod bootstrap;
mod contrast;
mod point;
mod rare;
mod scale;
pub mod strata;
mod table;

pub use analytic::DfMethod;
pub use analytic::PolicyEstimate;
pub use analytic::Spread;
pub use analytic::Unavailable;
pub use analytic::estimate;
pub use bootstrap::Bootstrap;
pub use bootstrap::ClusterWeights;
pub use bootstrap::Exponential;
pub use bootstrap::REPLICATES_MAX;
pub use bootstrap::bootstrap;
pub use contrast::Basis;
pub use contrast::Contrast;
pub use contrast::contrasts;
pub use point::LabelledPrediction;
pub use point::PolicyPoint;
pub use point::Route;
pub use point::WeightReason;
pub use point::tuned_weight;
pub use rare::Rare;
pub use rare::off_mode;
pub use rare::rare;
pub use scale::Scale;
pub use table::LabelDesign;
pub use table::Row;
pub use table::Table;

/// Weight on the prediction inside the residual correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correction {
    /// One: plug-in plus mean residual.
    One,
    /// Power-tuned (PPI++).
    Tuned,
}

/// How to estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How evaluation labels came about.
    pub design: LabelDesign,
    /// Weight on the prediction.
    pub correction: Correction,
    /// Whether residuals of labelled rows correct the mean prediction.
    pub augment: bool,
    /// Whether the calibrator's own uncertainty enters, by the delete-one-fold jackknife.
    pub jackknife: bool,
    /// Whether contrasts pair policies by prompt.
    pub paired: bool,
    /// One less the level of intervals.
    pub alpha: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            design: LabelDesign::Representative,
            correction: Correction::One,
            augment: true,
            jackknife: true,
            paired: true,
            alpha: 0.05,
        }
    }
}
