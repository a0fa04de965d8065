//! Statistics of what a candidate moves besides losses: the patch itself, rewards, anchors, environments, attacks.

use clover_num::Count;
use clover_num::Finite;
use clover_num::Probability;
use serde::Deserialize;
use serde::Serialize;

use crate::id::AttackId;
use crate::id::EnvironmentId;
use crate::id::FamilyId;
use crate::id::PolicyId;
use crate::payload::Verdict;

/// The patch and the iteration it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Admissible {
    /// Whether its inputs are those that were declared.
    pub inputs_declared: bool,
    /// Code length.
    pub kappa: Count,
    /// Largest code length.
    pub kappa_max: Count,
    /// Whether the iteration is open and not paused.
    pub open: bool,
    /// Whether scoring again gave the same scores.
    pub replay: Verdict,
    /// Whether grammar, family and re-score class hold.
    pub valid: bool,
}

/// How far a candidate moves the rewards of the same rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Blast {
    /// Largest difference of the two counts of rewards up to a value.
    pub ks_count: Count,
    /// Rows.
    pub rows: Count,
    /// Wasserstein distance.
    pub w1: Finite,
}

/// One anchor set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnchorDrift {
    /// Magnitude of the mean change of the reward.
    pub drift: Finite,
    /// The policy that it stands for.
    pub policy: PolicyId,
    /// Rows.
    pub rows: Count,
}

/// The anchor sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Anchors {
    /// In order of registration.
    pub anchors: Vec<AnchorDrift>,
}

/// One environment under the candidate's calibrator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestedEnvironment {
    /// Whether the baseline fails there too: then the failure is not the patch's.
    pub baseline_fails: bool,
    /// 2.8 standard errors; absent for one cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detectable_bias: Option<Finite>,
    /// The environment.
    pub environment: EnvironmentId,
    /// Its family.
    pub family: FamilyId,
    /// Mean residual; absent without labelled rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Finite>,
    /// Two-sided p, not adjusted; absent for one cluster or without spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<Probability>,
    /// Whether it must pass.
    pub required: bool,
    /// Labelled rows.
    pub rows: Count,
    /// Standard error with the calibration variance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<Finite>,
}

/// All environments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Transported"))]
pub struct EnvironmentTests {
    /// In order of registration.
    pub environments: Vec<TestedEnvironment>,
}

/// One attack of the battery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AttackUplift {
    /// The attack.
    pub attack: AttackId,
    /// Mean uplift.
    pub mean: Finite,
    /// Mean absolute uplift.
    pub mean_absolute: Finite,
    /// Seeds.
    pub seeds: Count,
    /// Largest uplift that the patch itself promised, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tighter_max: Option<Finite>,
}

/// The battery; without attacks nobody looked, as with imported scores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gaming {
    /// Attacks by name.
    pub attacks: Vec<AttackUplift>,
    /// Closed exploits above the cap, and open ones that rose by more than 0.005.
    pub regressions: Count,
    /// Largest mean uplift that the search found; absent if it did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub searched: Option<Finite>,
}

impl Gaming {
    /// Nobody looked.
    pub fn unchecked() -> Self {
        Self {
            attacks: Vec::new(),
            regressions: Count::default(),
            searched: None,
        }
    }

    /// Whether anybody looked.
    pub fn is_checked(&self) -> bool {
        !self.attacks.is_empty() || self.searched.is_some()
    }
}
