//! Importance weights of logged rows: from log-probabilities to mean-one weights, stabilised, capped or restricted.
//!
//! A logged row was written by the logger `pi_0` and is asked about under a target `pi'`. Its log-ratio is
//! `ln pi'(a|x) - ln pi_0(a|x)`; ratios span hundreds of decades, so nothing here exponentiates before subtracting the
//! largest. Sources: the CJE paper, algorithm 2 and appendices A.4, D.1, D.7; `cje-eval` 0.3.0; Li, Morgan and
//! Zaslavsky 2018 (overlap weights); Crump, Hotz, Imbens and Mitnik 2009 (restriction).

mod ratio;
mod restrict;
pub(crate) mod simplex;
mod stabilise;

pub use ratio::CapPoint;
pub use ratio::CappedWeights;
pub use ratio::LogRatios;
pub use ratio::cap;
pub use ratio::cap_curve;
pub use restrict::Cohort;
pub use restrict::CohortRestriction;
pub use restrict::Restriction;
pub use restrict::overlap;
pub use restrict::to_band;
pub use restrict::to_cohorts;
pub use stabilise::CrossFitted;
pub use stabilise::FoldFit;
pub use stabilise::Objective;
pub use stabilise::Shape;
pub use stabilise::Stabiliser;
pub use stabilise::StabiliserSettings;
pub use stabilise::cross_fit;
pub use stabilise::project;
