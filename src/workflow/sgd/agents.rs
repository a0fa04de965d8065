//! Who writes gradients and patches: the deterministic pair `aggregate/1`, or anybody who reads JSON.

use clover_prompt::Gradient;
use clover_prompt::GradientRequest;
use clover_prompt::JudgePrompt;
use clover_prompt::Proposal;
use clover_prompt::Violation;
use clover_num::Micro;
use serde::Serialize;

/// The name of the built-in pair.
pub const AGGREGATE: &str = "aggregate/1";

/// What an optimizer is asked: the prompt, the gradient, and what it may not do again.
#[derive(Clone, Debug, Serialize)]
pub struct PatchAsk {
    /// Which proposal of the step, from 0.
    pub attempt: u64,
    /// The gradient.
    pub gradient: Gradient,
    /// The learning rate, in millionths.
    pub lr_micro: Micro,
    /// The prompt that stands.
    pub prompt: JudgePrompt,
    /// Its digest: the parent of the patch.
    pub prompt_digest: String,
    /// What the proposals of the step before this one break.
    pub rejected: Vec<Vec<Violation>>,
    /// The step, from 0.
    pub step: u32,
    /// Learning rate from which sections may be added, removed and moved.
    pub tau_micro: Micro,
    /// Every proposal of the run before, whatever became of it.
    #[serde(skip)]
    pub tried: Vec<Proposal>,
}

impl PatchAsk {
    /// As one line of JSON.
    ///
    /// # Panics
    /// Never: texts and integers are JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("BUG: texts and integers are JSON")
    }
}

/// Writes gradients and patches.
pub trait Agents {
    /// The gradient for a request, both as JSON.
    ///
    /// # Errors
    /// Why there is none, in words.
    fn gradient(&mut self, request: &str) -> Result<String, String>;

    /// A proposal as JSON; none where it has no more.
    ///
    /// # Errors
    /// Why there is none, in words.
    fn propose(&mut self, ask: &PatchAsk) -> Result<Option<String>, String>;
}

/// The pair `aggregate/1`: what it answers follows from what it is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aggregate;
