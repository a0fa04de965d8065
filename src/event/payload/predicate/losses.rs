//! Statistics of paired losses: `d = (Y - R')^2 - (Y - R)^2`, negative when better.

use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use clover_num::Probability;
use serde::Deserialize;
use serde::Serialize;

use crate::id::FamilyId;
use crate::id::SliceId;

/// A mean of paired loss differences.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossMean {
    /// Clusters.
    pub clusters: Count,
    /// Mean difference, negative when better.
    pub mean: Finite,
    /// Labelled rows.
    pub rows: Count,
    /// Cluster-robust standard error; absent for one cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<Finite>,
}

/// Calibration errors of both rewards on the baseline's bins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CalibrationChange {
    /// Of the baseline.
    pub baseline: Finite,
    /// Bins with a row.
    pub bins: Count,
    /// Of the candidate, on the same edges.
    pub patched: Finite,
}

/// A protected slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GreenSlice {
    /// By how much the share of abstentions among its logs rises.
    pub abstention_rise: Finite,
    /// Its family.
    pub family: FamilyId,
    /// Its labelled rows; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<LossMean>,
    /// Whether it is registered as one that must not regress.
    pub must_not_regress: bool,
    /// p of H0: the mean difference is at least the tolerance; absent without spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<Probability>,
    /// p of the same with a tolerance of 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_zero: Option<Probability>,
    /// The slice; `other` is what lies in no cell.
    pub slice: SliceId,
    /// Whether no loss in it changed.
    pub untouched: bool,
    /// One-sided 90 % upper bound of the mean difference; absent for one cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper: Option<Finite>,
    /// The five largest differences: the test sees little of harm to few rows.
    pub worst: Vec<Finite>,
}

/// All protected slices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Greens {
    /// In the order of the classification.
    pub slices: Vec<GreenSlice>,
    /// Tolerance that `p` was computed for.
    pub tau_micro: Micro,
}

/// A confirm block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfirmLoss {
    /// Largest difference that any labels could give.
    pub bound: Finite,
    /// Logarithm of the wealth of the betting test.
    pub ln_wealth: Finite,
    /// Mean difference.
    pub loss: LossMean,
    /// Clusters with a reward that moved by at least 0.005.
    pub moved_clusters: Count,
    /// p of the centred paired cluster bootstrap; absent for one cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_bootstrap: Option<Probability>,
    /// Exact p by betting.
    pub p_exact: Probability,
    /// p by t; absent for one cluster or without spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_t: Option<Probability>,
    /// Change of the squared error over Risk slices, by exposure and stakes: it orders candidates and decides nothing.
    pub risk_improve: Finite,
    /// How the sequential test ended; only where it is registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequential: Option<SequentialLook>,
}

/// What ended the sequential test of a hypothesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SequentialStop {
    /// Nothing yet.
    Continue,
    /// The evidence reached the hypotheses divided by alpha.
    Crossed,
    /// The improvement that was planned for is not there.
    Futile,
    /// The candidate is worse.
    Harmful,
}

impl SequentialStop {
    /// The word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Crossed => "crossed",
            Self::Futile => "futile",
            Self::Harmful => "harmful",
        }
    }
}

/// The sequential test of a hypothesis as far as labels are shown; what came after its stop counts for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SequentialLook {
    /// Largest difference that any labels of the block could give: known before the first.
    pub bound: Finite,
    /// Largest logarithm of the wealth at any cluster, at least 0.
    pub ln_peak: Finite,
    /// Logarithm of the wealth.
    pub ln_wealth: Finite,
    /// Always-valid p: 1 / max(1, largest wealth).
    pub p: Probability,
    /// What ended it.
    pub stop: SequentialStop,
    /// Clusters that were bet on.
    pub units: Count,
}

/// Whether a gain could be calibration noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CalibrationShare {
    /// Change of the squared error on confirm.
    pub confirm_change: Finite,
    /// Share of the variance of the mean reward that the calibrator causes.
    pub share: Probability,
}
