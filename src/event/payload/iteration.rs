//! Iterations of a rubric: what is frozen when one opens, and how it ends.

use clover_ground::digest::Digest;
use clover_num::Count;
use serde::Deserialize;
use serde::Serialize;

use crate::id::AnchorSetId;
use crate::id::IterationId;
use crate::id::PolicyId;
use crate::id::Root;
use crate::id::Text;
use crate::payload::manifest::IterationPlan;

/// Stored rows of one anchor policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnchorRows {
    /// How many.
    pub count: Count,
    /// The policy.
    pub policy: PolicyId,
    /// Merkle root of the rows.
    pub rows_root: Root,
}

/// Two policies whose stored rows hold the scale in place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnchorSetRegistered {
    /// Its name.
    pub anchors: AnchorSetId,
    /// The good policy.
    pub high: AnchorRows,
    /// The bad policy.
    pub low: AnchorRows,
}

/// An iteration opens: from here on its numbers stand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IterationOpened {
    /// Digest of the manifest version in force.
    pub digest: Digest,
    /// Its name.
    pub iteration: IterationId,
    /// What the manifest says of iterations.
    pub params: Box<IterationPlan>,
    /// Digest of that.
    pub params_hash: Digest,
    /// The quarter whose peeks it may spend, such as 2026Q4.
    pub quarter: String,
    /// Hash of the rubric that it starts from.
    pub rubric_hash: Digest,
}

/// How an iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum IterationOutcome {
    /// At least one patch was accepted.
    Accepted,
    /// No patch passed on dev; no peek was spent.
    NoCandidate,
    /// No sealed patch passed.
    NoneAccepted,
    /// Labels are what is missing.
    PausedForLabels,
    /// The labelling protocol changed.
    SdpChanged,
    /// It was given up.
    Stopped,
    /// The optimizer saw what it may not.
    Tainted,
    /// The rubric itself fails in an environment.
    TransportFailed,
}

/// An iteration ends; nothing more belongs to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IterationClosed {
    /// The iteration.
    pub iteration: IterationId,
    /// How.
    pub outcome: IterationOutcome,
    /// Why.
    pub reason: Text,
}
