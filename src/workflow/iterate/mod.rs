//! The governed iteration, from its opening to its close.
//!
//! [`compute`] turns rows into numbers and knows no ledger; the gates that judge those numbers are
//! [`predicate`](crate::predicate).

pub mod compute;
pub mod course;
mod cuts;
pub mod draft;
pub mod fitted;
pub mod hypothesis;
mod looks;
pub mod outcome;
pub mod reach;
pub mod rows;
mod said;
mod scores;
pub mod selection;
pub mod steps;
mod verdict;
pub mod wider;

pub use said::as_recorded;
pub use said::calibrator;
pub use verdict::VerdictRecomputation;
