//! Who writes gradients and patches: the deterministic pair `aggregate/1`, or anybody who reads JSON.

use std::collections::BTreeSet;

use clover_num::Micro;
use clover_prompt::Gradient;
use clover_prompt::GradientRequest;
use clover_prompt::JudgePrompt;
use clover_prompt::Lexicon;
use clover_prompt::PatchTerms;
use clover_prompt::Proposal;
use clover_prompt::StepContext;
use clover_prompt::Violation;
use clover_prompt::aggregate;
use serde::Deserialize;
use serde::Serialize;

/// The name of the built-in pair.
pub const AGGREGATE: &str = aggregate::NAME;

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
    /// What bounds a step.
    #[serde(skip)]
    pub terms: PatchTerms,
    /// Every proposal of the run before, whatever became of it.
    #[serde(skip)]
    pub tried: Vec<Proposal>,
    /// Prompt 0.
    #[serde(skip)]
    pub prompt0: JudgePrompt,
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

/// What of an ask a line of JSON has: a program is told no more.
#[derive(Deserialize)]
struct ShownAsk {
    attempt: u64,
    gradient: Gradient,
    lr_micro: Micro,
    prompt: JudgePrompt,
    step: u32,
}

/// What the pair `aggregate/1` answers to a request for a gradient or to an ask for a patch, as far as these say enough; `None`
/// of any other text. A double of an endpoint plays it.
pub fn answered(shown: &str) -> Option<String> {
    if serde_json::from_str::<GradientRequest>(shown).is_ok() {
        return Aggregate.gradient(shown).ok();
    }
    let of: ShownAsk = serde_json::from_str(shown).ok()?;
    let mut terms = PatchTerms::default();
    // The rate that it says, at whatever step.
    (terms.schedule.lr_max, terms.schedule.lr_min) = (of.lr_micro, of.lr_micro);
    terms.schedule.warmup = 0;
    let lines = of.prompt.sections().iter();
    let lines = lines.flat_map(|section| section.text.lines().map(str::to_owned));
    let context = StepContext {
        approvals: &BTreeSet::new(),
        current: &of.prompt,
        gradient_items: of.gradient.items.len(),
        lexicon: Lexicon::built_in(),
        prompt0: &of.prompt,
        step: of.step,
        terms: &terms,
    };
    let proposal = aggregate::propose(&context, &of.gradient, &lines.collect());
    let none = || Some("null".to_owned());
    match proposal.filter(|_| of.attempt == 0) {
        Some(proposal) => String::from_utf8(proposal.to_json()).ok(),
        None => none(),
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

impl Agents for Aggregate {
    fn gradient(&mut self, request: &str) -> Result<String, String> {
        let request: GradientRequest =
            serde_json::from_str(request).map_err(|error| error.to_string())?;
        let bytes = aggregate::gradient(&request).to_json();
        String::from_utf8(bytes).map_err(|error| error.to_string())
    }

    fn propose(&mut self, ask: &PatchAsk) -> Result<Option<String>, String> {
        let tried: BTreeSet<String> = ask
            .tried
            .iter()
            .flat_map(|of| aggregate::said(&of.patch))
            .collect();
        let context = StepContext {
            approvals: &BTreeSet::new(),
            current: &ask.prompt,
            gradient_items: ask.gradient.items.len(),
            lexicon: Lexicon::built_in(),
            prompt0: &ask.prompt0,
            step: ask.step,
            terms: &ask.terms,
        };
        let Some(proposal) = aggregate::propose(&context, &ask.gradient, &tried) else {
            return Ok(None);
        };
        let json = String::from_utf8(proposal.to_json());
        json.map(Some).map_err(|error| error.to_string())
    }
}
