//! Estimates from logged rows: what a target policy is worth by reweighting what another policy wrote.
//!
//! Everything is cross-fitted on one fold map, a hash of the prompt that never moves
//! ([`folds::hash_mod`](crate::folds::hash_mod)): calibration, weights and outcome models share it, so that no row
//! helps to judge itself. Standard errors are clustered by prompt and carry the calibrator's jackknife; the clustering
//! on folds that `cje-eval` 0.3.0 reports is kept as [`Legacy`] for comparison. Which of these estimates may be read at
//! all is decided by [`guide`]. Sources: the CJE paper, algorithms 3 to 6, tables 7 and 9; `cje-eval` 0.3.0.

mod conformance;
mod estimate;
mod gates;
mod outcome;
mod rewards;
mod robust;
mod stack;

pub use conformance::Aspect;
pub use conformance::ClauseFinding;
pub use conformance::Conformance;
pub use conformance::Contract;
pub use conformance::FilterCounts;
pub use conformance::TeacherForced;
pub use conformance::conforms;
pub use estimate::Estimator;
pub use estimate::Legacy;
pub use estimate::OffPolicy;
pub use estimate::legacy_honest;
pub use estimate::weighted_mean;
pub use gates::GateName;
pub use gates::Grade;
pub use gates::GuideRow;
pub use gates::OverlapEvidence;
pub use gates::OverlapGate;
pub use gates::OverlapVerdict;
pub use gates::Reason;
pub use gates::Thresholds;
pub use gates::WeightEvidence;
pub use gates::guide;
pub use gates::logged_answer;
pub use gates::overlap_gates;
pub use outcome::Outcome;
pub use rewards::Draws;
pub use rewards::LoggedRows;
pub use rewards::Ranks;
pub use rewards::Rewards;
pub use robust::RobustColumns;
pub use robust::doubly_robust;
pub use robust::more_robust;
pub use robust::targeted;
pub use stack::EstimatorStack;
pub use stack::stack;
