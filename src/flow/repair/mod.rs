//! Repairing a workflow without knowing what is right: feedback, edits, and the search among them.
//!
//! All of it is pure. [`feedback`] judges a candidate by what can be checked where it runs; [`edit`] changes a workflow by
//! one operator and measures how local the change is; [`propose`] writes edits from feedback by fixed templates;
//! [`charter`] is the meta prompt and the verifier as documents; [`beam`] is the search as a state machine, which asks for runs, feedback and proposals and is told them.

pub mod beam;
pub mod charter;
pub mod edit;
pub mod edit_text;
pub mod feedback;
pub mod propose;
