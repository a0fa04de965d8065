//! Runs that lower the loss of a judge's prompt, step by step: what follows from the record, as pure functions of it.

pub mod forward;
pub mod rows;
