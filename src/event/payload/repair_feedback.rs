//! What is said of candidates of a run that repairs a workflow: feedback without ground truth, scores, what a turn keeps; and,
//! after the end, edits in pairs and what candidates are worth. [`crate::payload::repair`] has the run.

use std::fmt;

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error as _;

use crate::id::RunId;
use crate::id::Text;
use crate::payload::BlobRef;
use crate::payload::endpoint::words;
use crate::payload::repair::WF_ITEMS_MAX;
use crate::payload::repair::WfBudget;
use crate::payload::repair::WfDocument;
use crate::payload::repair::WfLocality;
use crate::payload::repair::WfOperator;

/// Most observations of one feedback.
pub const OBSERVATIONS_MAX: usize = 4_096;

words! {
    /// What is at fault.
    WfBlameKind {
        /// What the step reads.
        Io "io",
        /// What the step is told.
        Prompt "prompt",
        /// What stands around the step.
        Structure "structure",
    }
}

words! {
    /// What a verifier saw.
    WfObservationCode {
        /// An execution returned nothing.
        Crash "crash",
        /// What a guard guards against is still true.
        Guard "guard",
        /// A rule is broken.
        Rule "rule",
    }
}

/// Something that a verifier saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfObservation {
    /// What kind of thing.
    pub code: WfObservationCode,
    /// Digest of what it was, with the item.
    pub detail: Digest,
    /// The step; empty where none is known.
    pub step: Text,
}

/// A rule over all items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfFlag {
    /// Whether an output is of no use where it is broken.
    pub hard: bool,
    /// The rule.
    pub id: Text,
    /// Of each item in order: `1` where its output keeps the rule, else `0`.
    pub kept: Text,
    /// Whether enough items keep it.
    pub ok: bool,
    /// Its weight.
    pub weight_micro: Micro,
}

/// A step that is likely at fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfBlame {
    /// Share of items that break the rule.
    pub confidence_micro: Micro,
    /// What is at fault.
    pub kind: WfBlameKind,
    /// The operator that would change it.
    pub operator: WfOperator,
    /// The rule.
    pub rule: Text,
    /// The step.
    pub step: Text,
}

/// What to try next; it is no part of the score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfSuggestion {
    /// The operator.
    pub operator: WfOperator,
    /// Why, in at most 280 characters.
    pub rationale: Text,
    /// The rule that it is for.
    pub rule: Text,
    /// The step.
    pub step: Text,
}

/// What a score is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfParts {
    /// Mean over items of tokens against the reference, at most 1 each.
    pub cost_micro: Micro,
    /// Mean of what a critic says; 0 without one.
    pub critic_micro: Micro,
    /// Mean over items of the weighted share of rules that are kept.
    pub satisfied_micro: Micro,
    /// Share of reruns that return what the first execution did; 1 without reruns.
    pub stability_micro: Micro,
}

/// A verifier says what it makes of a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfFeedbackGiven {
    /// Steps at fault, the surest first.
    pub blame: Vec<WfBlame>,
    /// The candidate.
    pub candidate: Digest,
    /// Items whose first execution returned nothing.
    pub crashed: Count,
    /// What a critic says of each item; empty without one.
    #[serde(deserialize_with = "per_item")]
    pub critic: Vec<Micro>,
    /// Digest over the traces that it rests on, in order of item and rerun.
    pub evidence: Digest,
    /// Digest of what it says, its score included.
    pub feedback_digest: Digest,
    /// The rules, in their order.
    pub flags: Vec<WfFlag>,
    /// What was seen.
    #[serde(deserialize_with = "observations")]
    pub observations: Vec<WfObservation>,
    /// What the score is made of.
    pub parts: WfParts,
    /// The run.
    pub run: RunId,
    /// What to try next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<WfSuggestion>,
    /// The verifier.
    pub verifier_digest: Digest,
}

/// Reads at most as many numbers as a batch has items.
fn per_item<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Micro>, D::Error> {
    let all = Vec::<Micro>::deserialize(deserializer)?;
    if all.len() <= WF_ITEMS_MAX {
        return Ok(all);
    }
    let expected = format!("expected at most {WF_ITEMS_MAX} numbers");
    Err(D::Error::custom(expected))
}

/// Reads at most as many observations as feedback may have.
fn observations<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<WfObservation>, D::Error> {
    let all = Vec::<WfObservation>::deserialize(deserializer)?;
    if all.len() <= OBSERVATIONS_MAX {
        return Ok(all);
    }
    let expected = format!("expected at most {OBSERVATIONS_MAX} observations");
    Err(D::Error::custom(expected))
}

/// A candidate has its score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfScored {
    /// The candidate.
    pub candidate: Digest,
    /// The feedback that it rests on.
    pub feedback_digest: Digest,
    /// Whether all hard rules are kept, nothing crashed, and the score reaches theta.
    pub passes: bool,
    /// The run.
    pub run: RunId,
    /// The score; absent where the verifier's filter leaves none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_micro: Option<Micro>,
}

/// A turn keeps the best.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfPruned {
    /// Dropped, the best first.
    pub dropped: Vec<Digest>,
    /// The turn, from 1.
    pub iteration: Count,
    /// Kept, the best first.
    pub kept: Vec<Digest>,
    /// The run.
    pub run: RunId,
}

/// A turn ended: what was kept is expanded, and the next turn may begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfIterationClosed {
    /// Candidates that were added in it.
    pub added: Count,
    /// The best score so far; absent where none has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_micro: Option<Micro>,
    /// The turn, from 1.
    pub iteration: Count,
    /// What is left of the budget.
    pub left: WfBudget,
    /// What its added edits touch together.
    pub locality: WfLocality,
    /// Edits that were rejected in it.
    pub rejected: Count,
    /// The run.
    pub run: RunId,
}

/// One edit of a pair, with what it makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WfPairArm {
    /// Digest of its workflow.
    pub candidate: Digest,
    /// The edit: the operator and its arguments.
    pub edit: WfDocument,
    /// Its workflow.
    pub ir: WfDocument,
    /// How much the edit touches.
    pub locality: WfLocality,
    /// The JSON Patch that makes it of the parent.
    pub patch: WfDocument,
    /// The step that it changes.
    pub step: Text,
}

/// Of a candidate that does not pass: an edit of the step that is blamed, and one of a step that was drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EditPairRecorded {
    /// The edit of a step that was drawn.
    pub control: WfPairArm,
    /// Place of the drawn step among the eligible.
    pub draw: Count,
    /// Other steps of the kind, in the order of the workflow: the control is drawn among them.
    pub eligible: Vec<Text>,
    /// Which pair of the run it is, from 0.
    pub number: Count,
    /// The operator of both.
    pub operator: WfOperator,
    /// The candidate that both change.
    pub parent: Digest,
    /// Probability of the control, 1 over the eligible, rounded down.
    pub propensity_micro: Micro,
    /// The run.
    pub run: RunId,
    /// The edit of the step that is blamed.
    pub targeted: WfPairArm,
}

/// What a candidate is worth on each item, by what is right: after the run has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UtilityRecorded {
    /// The candidate.
    pub candidate: Digest,
    /// The run.
    pub run: RunId,
    /// What the commitment to the truth was salted with.
    pub salt: Digest,
    /// What turns an output and a truth into a number, in words.
    pub scorer: Text,
    /// The lines of what is right, in the order of the items.
    pub truth: BlobRef,
    /// Of each item, from 0 to 1.
    #[serde(deserialize_with = "per_item")]
    pub utilities_micro: Vec<Micro>,
}
