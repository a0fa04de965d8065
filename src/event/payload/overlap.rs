//! How far logged responses can answer for another policy: words and figures of overlap.

use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::id::Text;

/// What a figure means for a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OverlapGrade {
    /// The gate is met.
    Good,
    /// Not measured: never read as met.
    Unknown,
    /// Missed; estimates carry a warning.
    Warn,
    /// Missed by far.
    Critical,
}

/// Whether an estimate may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Admissibility {
    /// As it stands.
    Admissible,
    /// With its warnings.
    Warned,
    /// Not at all.
    Refused,
    /// It cannot be computed from what there is.
    Unavailable,
}

impl Admissibility {
    /// The word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admissible => "admissible",
            Self::Warned => "warned",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
        }
    }
}

/// Where gates of overlap change their verdict (CJE paper, table 9), in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverlapThresholds {
    /// Affinity of judge scores from which overlap is good.
    pub affinity_good_micro: Micro,
    /// Below which it is a severe mismatch.
    pub affinity_warn_micro: Micro,
    /// Coefficient of variation that goes with `top_mass_max_micro`.
    pub cv_max_micro: Micro,
    /// Effective sample size over rows from which overlap is good.
    pub ess_good_micro: Micro,
    /// From which it is warned of.
    pub ess_warn_micro: Micro,
    /// Share of folds whose caps bind above which the cap is warned of.
    pub guarded_max_micro: Micro,
    /// Hill index from which a tail has a finite variance.
    pub hill_good_micro: Micro,
    /// From which it has a finite mean.
    pub hill_warn_micro: Micro,
    /// Share of ratios below 1e-10 above which overlap is refused.
    pub near_zero_max_micro: Micro,
    /// Share of weight on the heaviest 5 % above which overlap is refused.
    pub top_mass_max_micro: Micro,
    /// Target-typicality coverage from which logged data may answer.
    pub ttc_good_micro: Micro,
    /// Below which no doubt is left that they cannot.
    pub ttc_warn_micro: Micro,
}

impl Default for OverlapThresholds {
    /// Table 9 of the CJE paper, with the warnings of its implementation: what is used where no manifest says otherwise.
    fn default() -> Self {
        let micro = |value| Micro::new(value).unwrap_or_default();
        Self {
            affinity_good_micro: micro(850_000),
            affinity_warn_micro: micro(500_000),
            cv_max_micro: micro(2_000_000),
            ess_good_micro: micro(300_000),
            ess_warn_micro: micro(100_000),
            guarded_max_micro: micro(500_000),
            hill_good_micro: micro(2_000_000),
            hill_warn_micro: micro(1_000_000),
            near_zero_max_micro: micro(850_000),
            top_mass_max_micro: micro(300_000),
            ttc_good_micro: micro(700_000),
            ttc_warn_micro: micro(300_000),
        }
    }
}

/// How unevenly weights lie on rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WeightFigures {
    /// Squared coefficient of variation.
    pub cv_squared: Finite,
    /// Effective sample size over rows.
    pub ess_fraction: Finite,
    /// Hill index, the median over tails of 1, 2, 5 and 10 %; absent for a level tail, and where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hill: Option<Finite>,
    /// Quartiles and median of the index over every tail from 1 to 5 % of the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hill_band: Option<HillFigures>,
    /// Largest over median weight; absent where more than half of the rows weigh nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_over_median: Option<Finite>,
    /// Share of all weight on the heaviest row.
    pub max_share: Finite,
    /// 99.5th percentile of the mean-one weights.
    pub percentile_99_5: Finite,
    /// Share of all weight on the heaviest 5 % of rows.
    pub top_5_percent: Finite,
}

/// A plateau of Hill indices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HillFigures {
    /// Upper quartile.
    pub high: Finite,
    /// Lower quartile.
    pub low: Finite,
    /// Median.
    pub median: Finite,
}

/// The self-normalised estimate under one cap of the weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapFigure {
    /// The cap, in multiples of the mean weight.
    pub cap: Finite,
    /// Rows that it cut.
    pub cut: Count,
    /// The estimate, in label units.
    pub estimate: Finite,
    /// Its standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub se: Option<Finite>,
}

/// Overlap within one group of rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupFigure {
    /// Effective sample size over its rows; absent where all weigh nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ess_fraction: Option<Finite>,
    /// Which rows.
    pub group: Text,
    /// Its share of the weight over its share of the rows.
    pub lift: Finite,
    /// Its rows.
    pub rows: Count,
}

/// The test that weighted residuals have mean 0, and the parts of the doubly robust estimate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResidualFigures {
    /// Correlation of the two parts over rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation: Option<Finite>,
    /// Mean of the outcome model over the target's draws, from 0 to 1.
    pub direct: Finite,
    /// Upper end of the interval of the mean.
    pub high: Finite,
    /// Lower end.
    pub low: Finite,
    /// Mean of the weighted residuals.
    pub mean: Finite,
    /// Two-sided p of mean 0.
    pub p: Finite,
    /// Its standard error.
    pub se: Finite,
}
