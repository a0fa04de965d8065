//! Gates: the terms of a registered test, the events of a gate's life, what observations are worth, the rule that computes
//! it again, and estimates beside a verdict.

pub mod design;
pub mod estimate;
pub mod evidence;
pub mod family;
pub mod hold;
pub mod observe;
pub mod outcomes;
pub mod replay;
mod rule;
pub mod simulate;
pub mod steps;

pub use rule::GateRecomputation;
