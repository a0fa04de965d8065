//! Plans from the ledger's own numbers: how many scores and labels, and what they would show.

use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::id::PolicyId;
use crate::id::Text;
use crate::payload::estimate::EstimateTerms;
use crate::payload::estimated::PlanPurpose;

/// Variance of one policy's value: `evaluation / n + calibration / m`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VarianceSplit {
    /// Variance of one label, in squared label units from 0 to 1.
    pub calibration: Finite,
    /// Upper end of its 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration_high: Option<Finite>,
    /// Lower end of its 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration_low: Option<Finite>,
    /// Variance of one score.
    pub evaluation: Finite,
    /// Fold seeds over which the variance of a label was averaged, the calibrator's own first; that alone when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fold_seeds: Option<Count>,
    /// Labels that it was learnt on.
    pub labels: Count,
    /// Whose.
    pub policies: Vec<PolicyId>,
    /// Rows that it was learnt on.
    pub rows: Count,
}

/// Prices, in millionths of one unit of money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prices {
    /// Of a label.
    pub label_micro: Micro,
    /// Of a judge score.
    pub score_micro: Micro,
}

/// Scores and labels, and what they would show.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EvaluationPlan {
    /// Price of all of it.
    pub cost: Finite,
    /// Rows to label, of all policies together.
    pub labels: Count,
    /// Rows to label of each policy, whose own labels correct it; absent in plans of older programs, which counted labels of one
    /// policy as labels of every other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels_each: Option<Count>,
    /// The same as `labels` at the upper end of the interval of the calibration variance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels_high: Option<Count>,
    /// The same at its lower end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels_low: Option<Count>,
    /// Smallest difference of two policies that would be detected.
    pub mde: Finite,
    /// The same, of the planned sizes, at the upper end of that interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mde_high: Option<Finite>,
    /// Rows to score, of each policy.
    pub scores: Count,
    /// Standard error of one policy's value.
    pub se: Finite,
}

/// Labels of one policy's audit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditPlan {
    /// Standard deviation of the mean residual of a calibrator with which nothing is wrong, from its few labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration_sd: Option<Finite>,
    /// Prompts to label, of each policy.
    pub clusters: Count,
    /// Probability that one audit passes when nothing is wrong.
    pub pass_probability: Finite,
    /// Residual standard deviation that it is planned for.
    pub residual_sd: Finite,
    /// Standard error that the calibrator adds to the interval of the audit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width_se: Option<Finite>,
}

/// Rows of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IterationRows {
    /// Rows of the confirm block under a test by betting; absent beyond ten million.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub betting_rows: Option<Count>,
    /// Rows of the confirm block under Student's t.
    pub confirm_rows: Count,
    /// Standard deviation of the paired loss difference that it is planned for.
    pub difference_sd: Finite,
    /// Improvement that would be confirmed.
    pub effect: Finite,
    /// Rows of the smallest green slice.
    pub green_rows: Count,
}

/// What was planned, from which numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanRecorded {
    /// For transport audits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditPlan>,
    /// What was asked for: money, an effect, or a margin.
    pub asked_micro: Micro,
    /// The program that computed it.
    pub build: Text,
    /// For an estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<EvaluationPlan>,
    /// For an iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<IterationRows>,
    /// Policies that share the labels, or that are audited.
    pub policies: Count,
    /// Power.
    pub power_micro: Micro,
    /// What it costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// What it is for.
    pub purpose: PlanPurpose,
    /// The ledger's own variance.
    pub split: VarianceSplit,
    /// On which terms the variance was estimated.
    pub terms: EstimateTerms,
    /// The last entry that was read.
    pub through_seq: Count,
}
