//! Steps of a run that lowers the loss of a judge's prompt: a batch, a gradient from aggregates, a bounded patch, and what
//! came of it. [`crate::payload::sgd`] has the run.

use std::fmt;

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error as _;

use crate::id::EventId;
use crate::id::Root;
use crate::id::RunId;
use crate::id::Text;
use crate::payload::endpoint::words;
use crate::payload::sgd::SgdDocument;
use crate::payload::sgd::SgdLoss;
use crate::payload::synth_runs::LeakTest;

/// Most proposals of a step.
pub const ATTEMPTS_MAX: u64 = 3;
/// Most rows of a batch.
pub const BATCH_MAX: usize = 300;
/// Most violations that a rejection names.
pub const VIOLATIONS_MAX: usize = 64;

words! {
    /// Why a run looks for its end.
    SgdTrigger {
        /// The penalty for contraction is above 0.25.
        Contraction "contraction",
        /// Entropy fell to 0.8 of its best.
        Entropy "entropy",
        /// Train falls while val swings.
        Oscillation "oscillation",
        /// Train falls while val stays above its best.
        Overfit "overfit",
        /// The rank correlation fell by 0.05.
        Rank "rank",
        /// The variance of repeated scores doubled twice.
        Selfvar "selfvar",
    }
}

words! {
    /// Why a run ended.
    SgdEnd {
        /// Its checkpoint was chosen and its test read.
        Completed "completed",
        /// A person ended it.
        Person "person",
    }
}

words! {
    /// What a person says to a patch.
    SgdWord {
        /// It may be applied.
        Approve "approve",
        /// It may not.
        Refuse "refuse",
    }
}

/// The rows of a step were drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdBatchDrawn {
    /// Rows from the confusable stratum.
    pub confusable: Count,
    /// Rows from the high stratum.
    pub high: Count,
    /// Rows from the low stratum.
    pub low: Count,
    /// Root over the rows, by name.
    pub root: Root,
    /// Places of the rows in train, ascending.
    #[serde(deserialize_with = "places")]
    pub rows: Vec<Count>,
    /// The run.
    pub run: RunId,
    /// The step, from 0.
    pub step: Count,
}

/// Reads at most as many rows as a batch may have.
fn places<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Count>, D::Error> {
    let all = Vec::<Count>::deserialize(deserializer)?;
    if all.len() <= BATCH_MAX {
        return Ok(all);
    }
    Err(D::Error::custom(format!(
        "expected at most {BATCH_MAX} rows"
    )))
}

/// A gradient was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdGradientRequested {
    /// What was looked through: none of it stands in the request.
    pub leak_test: LeakTest,
    /// The request, as canonical JSON: aggregates and the prompt.
    pub request: SgdDocument,
    /// SHA-256 of its bytes.
    pub request_digest: Digest,
    /// The run.
    pub run: RunId,
    /// The step, from 0.
    pub step: Count,
}

/// A gradient was returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdGradientReturned {
    /// The call that gave it; absent where no model behind HTTP was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<EventId>,
    /// The gradient, as JSON. Of a call its text byte for byte, or a gradient without items where that is none.
    pub gradient: SgdDocument,
    /// The run.
    pub run: RunId,
    /// The step, from 0.
    pub step: Count,
}

/// A patch was proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdPatchProposed {
    /// Which proposal of the step, from 0.
    pub attempt: Count,
    /// The call that gave it; absent where no model behind HTTP was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<EventId>,
    /// The prompt that it changes.
    pub parent_digest: Digest,
    /// The proposal, as JSON: a diff of one section, why, and the part of the gradient that it answers. Of a call its text
    /// byte for byte.
    pub patch: SgdDocument,
    /// The run.
    pub run: RunId,
    /// The step, from 0.
    pub step: Count,
}

/// A rule that a patch breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdViolation {
    /// What it allows, in words.
    pub bound: Text,
    /// What the patch has.
    pub found: Text,
    /// The rule's name.
    pub rule: Text,
}

/// A patch was rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdPatchRejected {
    /// Which proposal of the step, from 0.
    pub attempt: Count,
    /// The run.
    pub run: RunId,
    /// The step, from 0.
    pub step: Count,
    /// What it breaks.
    #[serde(deserialize_with = "violations")]
    pub violations: Vec<SgdViolation>,
}

/// Reads at least one and at most as many violations as a rejection may name.
fn violations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SgdViolation>, D::Error> {
    let all = Vec::<SgdViolation>::deserialize(deserializer)?;
    if (1..=VIOLATIONS_MAX).contains(&all.len()) {
        return Ok(all);
    }
    Err(D::Error::custom(format!(
        "expected 1 to {VIOLATIONS_MAX} violations"
    )))
}

/// A person spoke about a patch that says always or never.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdPatchApproved {
    /// Which proposal of the step, from 0.
    pub attempt: Count,
    /// What was said.
    pub decision: SgdWord,
    /// SHA-256 of the proposal.
    pub patch_digest: Digest,
    /// The run.
    pub run: RunId,
    /// The step, from 0.
    pub step: Count,
}

/// What a patch changes, as it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdMeasured {
    /// Characters that it inserts and deletes.
    pub chars: Count,
    /// Its effective step, in millionths.
    pub effective_micro: Micro,
    /// Sum of changes of modal levels, both ways.
    pub modal_delta: Count,
    /// Preferences that became rules.
    pub soft_to_hard: Count,
}

/// A step was taken: a patch was applied, or none was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdStepCommitted {
    /// The proposal that was applied; absent where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Count>,
    /// The step whose val loss is the lowest so far, by the earliest; 0 is prompt 0, and step t is told as t + 1.
    pub best: Count,
    /// Standard error of the loss of val less the lowest before it, paired by item; 0 for a step without a patch.
    pub error: Finite,
    /// The learning rate.
    pub lr_micro: Micro,
    /// What the patch changes; absent where none was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<SgdMeasured>,
    /// The prompt after it.
    pub new_digest: Digest,
    /// The prompt before it.
    pub parent_digest: Digest,
    /// The run.
    pub run: RunId,
    /// The step, from 0.
    pub step: Count,
    /// Of the gradient, in a few words.
    pub summary: Text,
    /// Loss of the batch before it.
    pub train: SgdLoss,
    /// Loss of val after it.
    pub val: SgdLoss,
}

/// The prompt went back to the best one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdReverted {
    /// Val loss of the best.
    pub best_loss: Finite,
    /// The step to which it went back, told as in `sgd.step_committed`.
    pub best: Count,
    /// Standard error of the difference, paired by item.
    pub se: Finite,
    /// The step after which it did.
    pub step: Count,
    /// The run.
    pub run: RunId,
    /// The prompt to which it went back.
    pub to_digest: Digest,
    /// Val loss after the step.
    pub val_loss: Finite,
}

/// A run looks for its end: so many more steps, then a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdStopTriggered {
    /// Steps that still follow.
    pub extra: Count,
    /// The run.
    pub run: RunId,
    /// The step after which it did.
    pub step: Count,
    /// Why.
    pub triggers: Vec<SgdTrigger>,
}

/// The prompt with the lowest val loss was chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdCheckpointSelected {
    /// The step, told as in `sgd.step_committed`.
    pub best: Count,
    /// The prompt.
    pub prompt_digest: Digest,
    /// The run.
    pub run: RunId,
    /// Its val loss.
    pub val_loss: Finite,
}

/// A run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdStopped {
    /// Steps that it took.
    pub steps: Count,
    /// Why.
    pub reason: SgdEnd,
    /// The run.
    pub run: RunId,
}
