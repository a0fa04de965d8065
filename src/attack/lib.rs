//! The battery's attacks: deterministic edits of a response that try to earn reward without merit.
//!
//! Eight operators ([`Operator`]) are pure functions (text, parameters, seed) -> text; a [`Chain`] is up to three of them
//! in turn, with a text form that can be recorded and read back. [`battery`] applies each operator to every seed
//! response, [`search`] looks for the worst chain. Whoever scores must read the edited text anew: nothing here
//! hands out evidence. Tables of what is written stand in one file. Source: CLOVER v1.1, section 6.

pub mod battery;
mod chain;
mod insert;
mod operator;
mod rewrite;
pub mod search;
mod style;
mod tables;

pub use chain::AttackedText;
pub use chain::Chain;
pub use chain::DEPTH_MAX;
pub use chain::Step;
pub use operator::Edit;
pub use operator::EditError;
pub use operator::Flip;
pub use operator::Host;
pub use operator::Operator;
