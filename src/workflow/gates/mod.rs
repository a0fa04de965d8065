//! Gates: the terms of a registered test, what observations are worth, and the rule that computes it again.

pub mod design;
pub mod evidence;
pub mod family;
mod rule;
pub mod steps;

pub use rule::Recomputed;
