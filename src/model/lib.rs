//! Models behind HTTP: the desk that sends asks, the dialects of endpoints, and a double of an endpoint to try all of it with.
//!
//! What is sent, when, and what an answer is worth are decided in [`clover_workflow::ask`], without a clock and without a
//! socket. Nothing here retries, follows a redirect, or keeps an answer.

pub mod client;
pub mod desk;
pub mod dialect;
pub mod redact;
pub mod simulate;
