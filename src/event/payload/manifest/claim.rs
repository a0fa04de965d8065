//! What a manifest claims and about what: hypothesis, estimand, arms, metric and data.

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::id::ArmId;
use crate::id::FieldId;
use crate::id::MetricId;
use crate::id::Root;
use crate::id::Text;

/// What a test may conclude.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum HypothesisKind {
    /// Other than a margin, on either side of it.
    Different,
    /// Neither better nor worse by more than a margin.
    Equivalent,
    /// Worse than the baseline.
    Kill,
    /// Nothing: a quantity is measured.
    Measure,
    /// Not worse by more than a margin.
    Noninferior,
    /// Better than the baseline by a margin.
    Promote,
}

/// The claim that is put at risk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hypothesis {
    /// In words, for people.
    pub claim: Text,
    /// What may be concluded.
    pub kind: HypothesisKind,
}

/// What an estimate is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Population {
    /// Exactly the units under the confirm root.
    Finite,
    /// What the units were drawn from.
    Superpopulation,
}

/// How units make one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Aggregation {
    /// Their mean.
    Mean,
}

/// What stands for a failed or missing score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MissingRule {
    /// The lowest score for a candidate, the highest for a baseline.
    Conservative,
    /// Nothing: an exclusion on fields known before the outcome names the unit.
    Excluded,
}

/// How repeated draws make one value of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RepRule {
    /// Their mean.
    Mean,
    /// There is one draw.
    Single,
}

/// How a field is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Comparison {
    /// Equal to the value.
    Eq,
    /// At least the value.
    Ge,
    /// More than the value.
    Gt,
    /// At most the value.
    Le,
    /// Less than the value.
    Lt,
    /// It is missing.
    Missing,
    /// Other than the value.
    Ne,
}

/// A unit is left out when a field, known before its outcome, compares so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exclusion {
    /// The field.
    pub field: FieldId,
    /// The comparison.
    pub op: Comparison,
    /// The value, for texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Text>,
    /// The value in millionths, for numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_micro: Option<Micro>,
}

/// What is estimated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimand {
    /// How units make one number.
    pub aggregation: Aggregation,
    /// Units that are left out; a unit is, when any of them holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclusions: Option<Vec<Exclusion>>,
    /// What stands for a failed or missing score.
    pub missing_rule: MissingRule,
    /// What it is about.
    pub population: Population,
    /// How repeated draws make one value of a unit.
    pub rep_rule: RepRule,
    /// What the units were drawn from, for a superpopulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_frame_digest: Option<Digest>,
    /// The field that tells one independent unit from another.
    pub unit_key: FieldId,
}

/// What an arm is compared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ArmRole {
    /// What there is.
    Baseline,
    /// What might replace it.
    Candidate,
}

/// One of the things compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Arm {
    /// SHA-256 of the thing itself.
    pub artifact_digest: Digest,
    /// Its name.
    pub id: ArmId,
    /// What it is compared as.
    pub role: ArmRole,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Direction"))]
pub enum MetricDirection {
    /// Lower.
    Decrease,
    /// Higher.
    Increase,
}

/// A metric that must not get worse.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Guardrail {
    /// By how much it may, in millionths of its scale.
    pub margin_micro: Micro,
    /// The metric.
    pub metric: MetricId,
}

/// How much a score of one unit varies when it is scored again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Noise {
    /// Not at all.
    None,
}

/// What is measured, and on which scale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Metric {
    /// Largest possible difference of two scores; the scale's width when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference_max_micro: Option<Micro>,
    /// Which way is better.
    pub direction: MetricDirection,
    /// Metrics that must not get worse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guardrails: Option<Vec<Guardrail>>,
    /// SHA-256 of the judge: prompt, model snapshot, decoding and parser.
    pub judge_digest: Digest,
    /// Its name.
    pub metric: MetricId,
    /// That scores are without noise, where they are: scoring a unit again gives the same score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// Draws of the judge for each unit and arm.
    pub repeats: Count,
    /// Highest score.
    pub scale_hi_micro: Micro,
    /// Lowest score.
    pub scale_lo_micro: Micro,
}

/// How rows are chosen for labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabelPolicy {
    /// Smallest probability that a row is labelled.
    pub pi_min_micro: Micro,
    /// In words.
    pub rule: Text,
}

/// The confirm set that the manifest binds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataBinding {
    /// Merkle root of its units.
    pub confirm_root: Root,
    /// Most times that units may be exposed.
    pub exposure_cap: Count,
    /// How rows are chosen for labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_policy: Option<LabelPolicy>,
    /// How many units it holds.
    pub n_units: Count,
    /// Fields, known before the outcome, by which it is divided; what of them counts says `test.control_variate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strata: Option<Vec<FieldId>>,
}
