//! What answers the asks of llm steps: a port, and two that need no network.
//!
//! A model behind HTTP is a third: it takes the same [`StepAsk`] whose request is an OpenAI-compatible body.

pub mod simulator;
pub mod table;

use clover_ground::digest::Digest;
use serde::Serialize;

use crate::value::Data;
use crate::workflow::LlmStep;

/// What an llm step asks.
#[derive(Clone, Debug)]
pub struct StepAsk<'a> {
    /// The step.
    pub step: &'a str,
    /// How often the step asked before in this run.
    pub attempt: usize,
    /// Which run of the same item it is, from 0: reruns measure stability.
    pub rerun: usize,
    /// The body of the request, as an OpenAI-compatible endpoint takes it.
    pub request: &'a Data,
    /// SHA-256 of the canonical form of the request.
    pub digest: Digest,
    /// The step as its workflow has it.
    pub of: &'a LlmStep,
}

/// What an ask came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepAnswer {
    /// A text.
    Text(String, Usage),
    /// None in time.
    Timeout(Usage),
    /// An error of whatever answers, in a word or a few.
    Failed(String, Usage),
}

/// What an ask cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Usage {
    /// Calls.
    pub calls: u64,
    /// Milliseconds.
    pub ms: u64,
    /// Tokens of requests.
    pub tokens_in: u64,
    /// Tokens of answers.
    pub tokens_out: u64,
    /// Millionths of a US dollar.
    pub usd_micro: u64,
}

impl Usage {
    /// What two cost together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            ms: self.ms.saturating_add(other.ms),
            tokens_in: self.tokens_in.saturating_add(other.tokens_in),
            tokens_out: self.tokens_out.saturating_add(other.tokens_out),
            usd_micro: self.usd_micro.saturating_add(other.usd_micro),
        }
    }
}

/// Why an executor cannot answer at all: the run stops, and is no crash of its workflow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecutorFault {
    /// A recorded table has no answer to this request.
    #[error("step {step} asks what is not recorded: request {digest}, time {nth}")]
    NotRecorded {
        /// The step that asks.
        step: String,
        /// The digest of its request.
        digest: Digest,
        /// How often the same was asked before.
        nth: usize,
    },
    /// The simulator is told nothing about this item.
    #[error("the item {0:?} has no member sim, which says what the simulated model does")]
    NotSimulated(String),
    /// Whoever runs it wants no more.
    #[error("the calls that were allowed are spent")]
    Spent,
}

/// Answers asks.
pub trait Executor {
    /// Answers one.
    ///
    /// # Errors
    /// [`ExecutorFault`] where it cannot answer at all.
    fn ask(&mut self, ask: &StepAsk<'_>) -> Result<StepAnswer, ExecutorFault>;
}

/// The digest by which an ask is known: SHA-256 of its canonical request.
pub fn request_digest(request: &Data) -> Digest {
    Digest::sha256(request.canonical().as_bytes())
}
