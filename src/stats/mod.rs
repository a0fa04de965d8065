//! The statistics: a pure island that names only [`num`](crate::num).
//!
//! Nothing here knows an event, a file, a clock or a log line; randomness enters as a seed and leaves as
//! numbers. Inputs are checked once, as types of [`sample`] that cannot hold NaN, nothing, or misaligned
//! columns. Data too thin for a statistic is a named outcome ([`Thin`](sample::Thin)), never a number.
//! Sources: the CJE paper and its public implementation `cje-eval` 0.9.3 ("peer-1"), CLOVER v1.1
//! ("centroid-1"), and what each function names.

pub mod blocks;
pub mod boundary;
pub mod calibrator;
pub mod crossed;
pub mod direct;
pub mod distance;
pub mod distribution;
pub mod environment;
pub mod folds;
pub mod inference;
pub mod isotonic;
pub mod kolmogorov;
pub mod monitor;
pub mod multiplicity;
pub mod oua;
pub mod peer_draws;
pub mod planner;
pub mod pooling;
pub mod ppi;
pub mod predicate;
pub mod prentice;
pub mod prevalence;
pub mod rank;
pub mod reliability;
pub mod residuals;
pub mod sample;
pub mod spline;
pub mod student;
pub mod transport;

mod adjust;
mod crv1;
mod draws;
mod quantile;
mod ridge;
mod spd;

pub use adjust::Adjustment;
