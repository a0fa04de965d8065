//! Runs that repair a workflow where nobody knows what is right: what a run is held to, its candidates, calls, executions and
//! how it ends. `schema/REPAIR.md` says how one follows from the other; [`crate::payload::repair_feedback`] has what a
//! verifier says, [`crate::payload::meta`] what is learnt from runs whose truth is known.

use std::fmt;

use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error as _;

use crate::id::ItemId;
use crate::id::RunId;
use crate::id::Text;
use crate::id::UpdateId;
use crate::payload::BlobRef;
use crate::payload::endpoint::words;

/// Longest document of a run, in bytes of UTF-8: a workflow, a context, an edit, a verifier.
pub const WF_DOCUMENT_MAX: usize = 65_536;
/// Longest trace of an execution, in bytes of UTF-8.
pub const WF_TRACE_MAX: usize = 262_144;
/// Most items of the batch that a run adapts to.
pub const WF_ITEMS_MAX: usize = 50;
/// Most templates that a run begins from, besides its first program.
pub const WF_TEMPLATES_MAX: usize = 2;

words! {
    /// What an edit may change.
    WfEdits {
        /// What llm steps are told.
        Prompt "prompt",
        /// Steps and what they read too.
        Structure "structure",
    }
}

words! {
    /// How capable a simulated model, or an optimizer, is.
    WfStrength {
        /// Capable.
        Strong "strong",
        /// Less so.
        Weak "weak",
    }
}

words! {
    /// Who answers the asks of llm steps.
    WfExecutor {
        /// A model behind HTTP.
        Endpoint "endpoint",
        /// The simulator of this program.
        Simulator "simulator",
        /// Answers that were recorded.
        Table "table",
    }
}

words! {
    /// Who proposes edits.
    WfOptimizer {
        /// A model behind HTTP.
        Endpoint "endpoint",
        /// The fixed templates `templates/1` of this program.
        Templates "templates",
    }
}

words! {
    /// What a run is for.
    WfPart {
        /// A workflow is adapted where it is used.
        Deploy "deploy",
        /// The outer loop learns from it.
        Train "train",
        /// An update of the outer loop is tried on it.
        Validate "validate",
    }
}

words! {
    /// A kind of edit.
    WfOperator {
        /// Takes a step away.
        DeleteStep "delete_step",
        /// Changes what an llm step is told.
        EditPrompt "edit_prompt",
        /// Puts a check after a step.
        InsertCheck "insert_check",
        /// Puts a guard after an llm step.
        InsertRetryGuard "insert_retry_guard",
        /// Asks another model.
        ReplaceModel "replace_model",
        /// Gives an llm step more to read.
        RewireIo "rewire_io",
        /// Asks for some members in one step and for the rest in another.
        SplitStep "split_step",
    }
}

words! {
    /// Why an edit makes no candidate.
    WfRejection {
        /// The result is no workflow.
        Invalid "invalid",
        /// The run has this candidate already.
        Known "known",
        /// The members to split by are not some of those that the step asks for.
        NoSplit "no_split",
        /// There is no such step, or it is of another kind.
        NoStep "no_step",
        /// The meta prompt does not allow the operator.
        NotAllowed "not_allowed",
        /// It touches more than it may.
        OverBudget "over_budget",
        /// The text that is to be replaced does not stand there once.
        TextNotOnce "text_not_once",
        /// Nothing changes.
        Unchanged "unchanged",
    }
}

words! {
    /// Why a model gave no answer.
    WfCallError {
        /// Its endpoint answered with an error.
        Failed "failed",
        /// It gave none in time.
        Timeout "timeout",
    }
}

words! {
    /// Why an execution ended before it returned anything.
    WfCrash {
        /// More steps, calls, bytes or work than it may have.
        Bound "bound",
        /// A model's endpoint answered with an error.
        Endpoint "endpoint",
        /// A text is no JSON, or holds no match.
        Parse "parse",
        /// A model gave no answer in time.
        Timeout "timeout",
        /// A value is not there, or not of the kind that a step needs.
        Type "type",
    }
}

words! {
    /// Why a run ended.
    WfEnd {
        /// Turns, calls, tokens or dollars are spent.
        Budget "budget",
        /// No candidate has a score.
        CrashOut "crash_out",
        /// A candidate passes.
        Pass "pass",
        /// A person ended it.
        Person "person",
        /// The best score no longer rises, or nothing new was proposed.
        Stagnation "stagnation",
    }
}

/// A document of a run, as canonical JSON: at most 65,536 bytes of UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("maxLength" = 65536)))]
pub struct WfDocument(String);

impl WfDocument {
    /// `None` when too long.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (text.len() <= WF_DOCUMENT_MAX).then_some(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for WfDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?)
            .ok_or_else(|| D::Error::custom("expected a document of at most 65536 bytes"))
    }
}

/// The trace of an execution, as canonical JSON: at most 262,144 bytes of UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("maxLength" = 262_144)))]
pub struct WfTraceText(String);

impl WfTraceText {
    /// `None` when too long.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (text.len() <= WF_TRACE_MAX).then_some(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for WfTraceText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?)
            .ok_or_else(|| D::Error::custom("expected a trace of at most 262144 bytes"))
    }
}

/// What a run may spend. Nothing is begun once any of it is spent; a call that is under way is paid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfBudget {
    /// Calls of models.
    pub calls: Count,
    /// Tokens, in and out.
    pub tokens: Count,
    /// Millionths of a US dollar.
    pub usd_micro: Count,
}

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfUsage {
    /// Calls of models.
    pub calls: Count,
    /// Milliseconds of models.
    pub ms: Count,
    /// Tokens that were sent.
    pub tokens_in: Count,
    /// Tokens that came back.
    pub tokens_out: Count,
    /// Millionths of a US dollar.
    pub usd_micro: Count,
}

impl WfUsage {
    /// Tokens that were sent and that came back.
    pub fn tokens(&self) -> u64 {
        self.tokens_in
            .value()
            .saturating_add(self.tokens_out.value())
    }
}

/// How much of a workflow a change touches, or may touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfLocality {
    /// JSON values that are added, removed or replaced.
    pub ast_nodes: Count,
    /// Steps that ask a model and were not there.
    pub new_llm_calls: Count,
    /// Characters of prompts and notes that are added or removed.
    pub prompt_chars: Count,
    /// Steps that are added, removed or changed.
    pub steps_touched: Count,
}

/// The cell of an experiment that a run belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfCell {
    /// What an edit may change.
    pub edits: WfEdits,
    /// How capable the executor is.
    pub executor: WfStrength,
    /// How capable the optimizer is.
    pub optimizer: WfStrength,
    /// Whether the outer loop has updated what the run begins from.
    pub outer: bool,
}

/// How a search goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfTerms {
    /// Candidates that are kept (K).
    pub beam: Count,
    /// What may be spent.
    pub budget: WfBudget,
    /// Most that one edit may touch.
    pub edits: WfLocality,
    /// Turns (T).
    pub iterations: Count,
    /// Least gain of the best score that is progress.
    pub least_gain_micro: Micro,
    /// Proposals for each candidate that is kept (m).
    pub proposals: Count,
    /// Further executions of each item, for stability.
    pub reruns: Count,
    /// Turns without progress after which a run ends.
    pub stagnation: Count,
    /// Least score of a candidate that passes.
    pub theta_micro: Micro,
}

/// An item of the batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfItem {
    /// Its id.
    pub id: ItemId,
    /// SHA-256 of `clover/wf-input/v1`, a zero byte and the canonical JSON of what a workflow is given.
    pub input: Digest,
}

/// A run is opened: everything that it is held to, before its first execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfRunStarted {
    /// The program that runs it.
    pub build: Text,
    /// Its cell.
    pub cell: WfCell,
    /// The first line of the task set: family, rules of the context, weights.
    pub context: WfDocument,
    /// Its digest.
    pub context_digest: Digest,
    /// Who answers.
    pub executor: WfExecutor,
    /// The model that answers, in words.
    pub executor_model: Text,
    /// The lines of its items, with what a workflow is given and nothing else.
    pub inputs: BlobRef,
    /// Its items, in order.
    #[serde(deserialize_with = "items")]
    pub items: Vec<WfItem>,
    /// The meta prompt M: operators that are allowed, and what a proposer is told.
    pub meta: WfDocument,
    /// Its digest.
    pub meta_digest: Digest,
    /// Who proposes edits.
    pub optimizer: WfOptimizer,
    /// The key that proposes.
    pub optimizer_key: KeyId,
    /// The model that proposes, in words.
    pub optimizer_model: Text,
    /// What it is for.
    pub part: WfPart,
    /// The first program, a workflow.
    pub program: WfDocument,
    /// Its digest.
    pub program_digest: Digest,
    /// Its name.
    pub run: RunId,
    /// Seed of everything that is drawn.
    pub seed: Digest,
    /// Templates of the library that it begins from too.
    #[serde(deserialize_with = "templates")]
    pub templates: Vec<Digest>,
    /// How it goes.
    pub terms: WfTerms,
    /// Commitment to what is right: SHA-256 of `clover/wf-truth/v1`, a zero byte, a salt of 32 bytes and the BLAKE3 digest of
    /// its lines. Nobody reads them before the run has ended.
    pub truth: Digest,
    /// The update of the outer loop that it tries; absent where it tries none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<UpdateId>,
    /// The verifier ε: how it scores, and rules of its own.
    pub verifier: WfDocument,
    /// Its digest.
    pub verifier_digest: Digest,
    /// The key that gives feedback.
    pub verifier_key: KeyId,
}

/// Reads at least one and at most as many items as a batch may have.
fn items<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<WfItem>, D::Error> {
    let all = Vec::<WfItem>::deserialize(deserializer)?;
    if (1..=WF_ITEMS_MAX).contains(&all.len()) {
        return Ok(all);
    }
    let expected = format!("expected 1 to {WF_ITEMS_MAX} items");
    Err(D::Error::custom(expected))
}

/// Reads at most as many templates as a run may begin from.
fn templates<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Digest>, D::Error> {
    let all = Vec::<Digest>::deserialize(deserializer)?;
    if all.len() <= WF_TEMPLATES_MAX {
        return Ok(all);
    }
    let expected = format!("expected at most {WF_TEMPLATES_MAX} templates");
    Err(D::Error::custom(expected))
}

/// An edit made a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfCandidateAdded {
    /// Digest of its workflow: its id.
    pub candidate: Digest,
    /// The edit: the operator and its arguments.
    pub edit: WfDocument,
    /// Its workflow.
    pub ir: WfDocument,
    /// The turn in which it was proposed, from 1.
    pub iteration: Count,
    /// How much the edit touches.
    pub locality: WfLocality,
    /// Which proposal of the run it is, from 0; rejected ones count.
    pub number: Count,
    /// The operator.
    pub operator: WfOperator,
    /// The candidate that it is made of.
    pub parent: Digest,
    /// The JSON Patch that makes it of its parent.
    pub patch: WfDocument,
    /// The run.
    pub run: RunId,
}

/// An edit made no candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfEditRejected {
    /// What it would have touched, or where it fails, in words.
    pub detail: Text,
    /// The edit: the operator and its arguments.
    pub edit: WfDocument,
    /// The turn in which it was proposed, from 1.
    pub iteration: Count,
    /// Which proposal of the run it is, from 0.
    pub number: Count,
    /// The operator.
    pub operator: WfOperator,
    /// The candidate that it would change.
    pub parent: Digest,
    /// Why.
    pub reason: WfRejection,
    /// The run.
    pub run: RunId,
}

/// A model was called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfCalled {
    /// SHA-256 of the text that came back; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Digest>,
    /// The ask of its `call.recorded`, where a model behind HTTP was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Digest>,
    /// How often the step was executed before in this execution.
    pub attempt: Count,
    /// The candidate.
    pub candidate: Digest,
    /// Why no text came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<WfCallError>,
    /// Place of the item in the batch, from 0.
    pub item: Count,
    /// Milliseconds.
    pub ms: Count,
    /// Which call of the run it is, from 0.
    pub number: Count,
    /// SHA-256 of the canonical request.
    pub request: Digest,
    /// Which execution of the item it is, from 0.
    pub rerun: Count,
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: Text,
    /// Tokens that were sent.
    pub tokens_in: Count,
    /// Tokens that came back.
    pub tokens_out: Count,
    /// Millionths of a US dollar.
    pub usd_micro: Count,
}

/// A candidate was executed on an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfExecuted {
    /// What models answered, one a line; absent where none was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<BlobRef>,
    /// The candidate.
    pub candidate: Digest,
    /// The sum of its calls.
    pub cost: WfUsage,
    /// Why it returned nothing; absent where it returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash: Option<WfCrash>,
    /// Place of the item in the batch, from 0.
    pub item: Count,
    /// Digest of what it returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Digest>,
    /// Which execution of the item it is, from 0.
    pub rerun: Count,
    /// The run.
    pub run: RunId,
    /// What it did.
    pub trace: WfTraceText,
    /// Its digest.
    pub trace_digest: Digest,
}

/// A run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfStopped {
    /// Candidates that it knows, those that it began from included.
    pub candidates: Count,
    /// Turns that it ended.
    pub iterations: Count,
    /// Whether its winner passes.
    pub passed: bool,
    /// Why.
    pub reason: WfEnd,
    /// The run.
    pub run: RunId,
    /// What it spent.
    pub spent: WfUsage,
    /// The best candidate that passes, else the best; absent where none was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner: Option<Digest>,
}
