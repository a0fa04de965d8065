//! Gates, first half: which units, in which order nobody chose, and what was observed of each.

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::id::DesignId;
use crate::id::ItemId;
use crate::id::JudgeId;
use crate::id::ManifestId;
use crate::id::MetricId;
use crate::id::Root;
use crate::id::StratumId;
use crate::payload::manifest::Test;

/// Units of a confirm set are listed by name, in ascending order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnitsListed {
    /// Merkle root of all of them, with their strata where they have some.
    pub confirm_root: Root,
    /// Place of the first of these, from 0.
    pub first: Count,
    /// The stratum of each of these units, in the same order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strata: Option<Vec<StratumId>>,
    /// The units.
    pub units: Vec<ItemId>,
}

/// Units of a confirm set are listed in the order drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OrderListed {
    /// Digest of the manifest version that bound the confirm set.
    pub digest: Digest,
    /// Place of the first of these, from 0.
    pub first: Count,
    /// The units.
    pub units: Vec<ItemId>,
}

/// A checkpoint that nobody could choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DrawnFrom {
    /// Its root.
    pub root: Root,
    /// Entries under it.
    pub size: Count,
}

/// The order in which units are observed is drawn and complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OrderDrawn {
    /// The first checkpoint after the manifest version came into force.
    pub beacon: DrawnFrom,
    /// Merkle root of the units in ascending order.
    pub confirm_root: Root,
    /// Digest of the manifest version that bound the confirm set.
    pub digest: Digest,
    /// How many units.
    pub n_units: Count,
    /// Merkle root of the units in the order drawn.
    pub permutation_root: Root,
    /// What units are hashed with.
    pub seed: Digest,
}

/// Where the values of a metric are recorded: scores of a judge, or revealed labels of a design.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateSource {
    /// The design, for labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub design: Option<DesignId>,
    /// The judge, for scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeId>,
    /// The metric.
    pub metric: MetricId,
}

/// A gate is opened on a manifest, before any of its units is exposed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateOpened {
    /// Digest of the manifest version in force.
    pub digest: Digest,
    /// The gate: its manifest's name.
    pub gate: ManifestId,
    /// Where values come from: the metric first, then its guardrails in the manifest's order.
    pub sources: Vec<GateSource>,
    /// The test, as registered.
    pub test: Test,
}

/// One metric of one unit in both arms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reading {
    /// Values of the baseline by draw, in millionths.
    pub baseline: Vec<Micro>,
    /// Draws of the baseline that are missing: the end of the scale that favours it stands for each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline_missing: Option<Vec<Count>>,
    /// Values of the candidate by draw, in millionths.
    pub candidate: Vec<Micro>,
    /// Draws of the candidate that are missing: the end of the scale that is against it stands for each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate_missing: Option<Vec<Count>>,
    /// Sum of the candidate's values less that of the baseline's: the mean difference times the draws.
    pub delta_micro: Micro,
}

/// One unit is observed: the next in the order drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateObserved {
    /// Digest of the manifest version in force.
    pub digest: Digest,
    /// The gate.
    pub gate: ManifestId,
    /// Its metrics, in the order of the gate's sources.
    pub readings: Vec<Reading>,
    /// Its stratum, where the test has a control variate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stratum: Option<StratumId>,
    /// Which observation, from 1.
    pub t: Count,
    /// The unit.
    pub unit: ItemId,
}
