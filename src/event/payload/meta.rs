//! The outer loop of workflow repair: what runs whose truth is known call for, the updates that answer, and what holds an
//! update back until it is validated on other tasks.

use std::fmt;

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error as _;

use crate::id::RunId;
use crate::id::Text;
use crate::id::TriggerId;
use crate::id::UpdateId;
use crate::payload::endpoint::words;
use crate::payload::repair::WfDocument;

/// Most cases of a trigger, and most pairs of runs of a validation.
pub const CASES_MAX: usize = 1_000;

words! {
    /// What a run shows once its truth is known.
    MetaClass {
        /// A useful workflow was scored low.
        FalseNegative "false_negative",
        /// A workflow passed, or scored high, and is of no use.
        FalsePositive "false_positive",
        /// It succeeded with more turns or cost than most.
        Slow "slow",
        /// It stopped rising.
        Stagnation "stagnation",
    }
}

words! {
    /// What an update changes.
    MetaTarget {
        /// Templates that runs begin from.
        Library "library",
        /// The meta prompt of the optimizer.
        Meta "meta",
        /// The first program.
        Program "program",
        /// The verifier.
        Verifier "verifier",
    }
}

words! {
    /// How a validation ended.
    MetaVerdict {
        /// It does not take effect.
        Fail "fail",
        /// It takes effect.
        Pass "pass",
    }
}

/// A run that shows it, or a candidate of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetaCase {
    /// The candidate.
    pub candidate: Digest,
    /// Its run.
    pub run: RunId,
}

/// Runs call for an update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetaTriggered {
    /// The runs that show it, at least five.
    #[serde(deserialize_with = "cases")]
    pub cases: Vec<MetaCase>,
    /// What they show.
    pub class: MetaClass,
    /// Runs that were looked at.
    pub looked: Count,
    /// Its name.
    pub trigger: TriggerId,
    /// Least utility of a workflow that is of use.
    pub useful_micro: Micro,
}

/// Reads at most as many cases as a trigger may have.
fn cases<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<MetaCase>, D::Error> {
    let all = Vec::<MetaCase>::deserialize(deserializer)?;
    if all.len() <= CASES_MAX {
        return Ok(all);
    }
    Err(D::Error::custom(format!(
        "expected at most {CASES_MAX} cases"
    )))
}

/// Two runs of the same tasks, before and after an update.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetaPair {
    /// The run with the update.
    pub new: RunId,
    /// The run without it.
    pub old: RunId,
}

/// An update is proposed; it takes effect once it is validated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetaUpdated {
    /// Level of its gate.
    pub alpha_micro: Micro,
    /// What takes the place of its parent.
    pub document: WfDocument,
    /// Most that gamma may fall, and kappa, for the update to be no worse.
    pub margin_micro: Micro,
    /// Digest of the document.
    pub new_digest: Digest,
    /// Runs that will validate it, in the order in which the gate reads them.
    #[serde(deserialize_with = "pairs")]
    pub pairs: Vec<MetaPair>,
    /// Digest of what it changes.
    pub parent_digest: Digest,
    /// What it changes.
    pub target: MetaTarget,
    /// What calls for it.
    pub triggers: Vec<TriggerId>,
    /// Its name.
    pub update: UpdateId,
    /// Least utility of a workflow that is of use.
    pub useful_micro: Micro,
    /// Why, in a few words.
    pub why: Text,
}

/// Reads at most as many pairs as a validation may have.
fn pairs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<MetaPair>, D::Error> {
    let all = Vec::<MetaPair>::deserialize(deserializer)?;
    if (1..=CASES_MAX).contains(&all.len()) {
        return Ok(all);
    }
    let expected = format!("expected 1 to {CASES_MAX} pairs");
    Err(D::Error::custom(expected))
}

/// What a gate of a validation came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetaGate {
    /// Logarithm of its wealth after the last pair.
    pub log_wealth: Finite,
    /// Pairs that it read: those where both runs say something of it.
    pub pairs: Count,
    /// Whether its wealth ever reached 1 over the level.
    pub reached: bool,
}

/// An update was tried on tasks that it was not made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetaValidated {
    /// That gamma is no worse.
    pub gamma: MetaGate,
    /// That kappa is no worse.
    pub kappa: MetaGate,
    /// That success under budget is higher.
    pub success: MetaGate,
    /// The update.
    pub update: UpdateId,
    /// Whether it takes effect.
    pub verdict: MetaVerdict,
}

/// A workflow joins the library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LibTemplateAdded {
    /// The context that it is for: the family of task sets.
    pub applies_to: Text,
    /// What it was distilled from.
    #[serde(deserialize_with = "cases")]
    pub distilled_from: Vec<MetaCase>,
    /// The workflow.
    pub ir: WfDocument,
    /// Its digest.
    pub template_digest: Digest,
    /// The update that brought it.
    pub update: UpdateId,
}
