//! Runs that repair a workflow where nobody knows what is right: what follows from the record, as pure functions of it.

pub mod cells;
pub mod course;
pub mod execution;
pub mod lesson;
pub mod measure;
pub mod measures;
pub mod outer;
pub mod pairs;
pub mod plan;
pub mod rule;
pub mod truth;
pub mod verifier;
pub mod words;
