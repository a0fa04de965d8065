//! The statistics: a pure island that names only [`num`](crate::num).
//!
//! Nothing here knows an event, a file, a clock or a log line; randomness enters as a seed and leaves as
//! numbers. Inputs are checked once, as types of [`sample`] that cannot hold NaN, nothing, or misaligned
//! columns. Data too thin for a statistic is a named outcome ([`Thin`](sample::Thin)), never a number.
//! Sources: the CJE paper and its public implementation `cje-eval` 0.9.3 ("peer-1"), CLOVER v1.1
//! ("centroid-1"), and what each function names.

pub mod boundary;
pub mod calibrator;
mod crv1;
pub mod direct;
pub mod distribution;
pub mod folds;
pub mod inference;
pub mod isotonic;
pub mod multiplicity;
mod quantile;
mod ridge;
pub mod sample;
pub mod spline;
pub mod student;
pub mod transport;
pub mod blocks;
pub mod distance;
pub mod kolmogorov;
pub mod monitor;
pub mod ppi;
pub mod prevalence;
pub mod rank;
pub mod reliability;

mod draws;
