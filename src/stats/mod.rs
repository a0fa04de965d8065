//! The statistics: a pure island that names only [`num`](crate::num).
//!
//! Nothing here knows an event, a file, a clock or a log line; randomness enters as a seed and leaves as
//! numbers. Inputs are checked once, as types of [`sample`] that cannot hold NaN, nothing, or misaligned
//! columns. Data too thin for a statistic is a named outcome ([`Thin`](sample::Thin)), never a number.

pub mod blocks;
pub mod boundary;
pub mod calibrator;
pub mod crossed;
pub mod crv1;
pub mod direct;
pub mod distance;
pub mod distribution;
mod draws;
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
pub mod quantile;
pub mod rank;
pub mod reliability;
pub mod residuals;
mod ridge;
pub mod sample;
mod spd;
pub mod spline;
pub mod student;
pub mod transport;
