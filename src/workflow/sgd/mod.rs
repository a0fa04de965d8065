//! Runs that lower the loss of a judge's prompt, step by step: what follows from the record, as pure functions of it.

pub mod agents;
pub mod ask;
pub mod asked;
pub mod course;
pub mod forward;
pub mod leak;
pub mod numbers;
pub mod replay;
pub mod rows;
pub mod rule;
pub mod sample;
pub mod verdict;
