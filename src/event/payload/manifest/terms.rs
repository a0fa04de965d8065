//! Analysis, keys and deadlines of a manifest.

use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ground::time::Timestamp;
use clover_num::Count;
use serde::Deserialize;
use serde::Serialize;

use crate::id::JudgeId;
use crate::id::PolicyId;
use crate::id::Text;
use crate::payload::drift::DriftPlan;
use crate::payload::estimated::PlannedCorrection;
use crate::payload::estimated::PredictionWeight;
use crate::payload::overlap::OverlapThresholds;

/// What will be run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Analysis {
    /// SHA-256 of the analysis code.
    pub code_digest: Digest,
    /// SHA-256 of its environment, such as a lock file.
    pub env_digest: Digest,
    /// Whether other analyses may be reported, as exploratory.
    pub exploratory_allowed: bool,
    /// Salted commitment to a plan that is revealed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_commitment: Option<Digest>,
    /// Secondary analyses, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secondary: Option<Vec<Text>>,
}

/// When the work may start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expiry {
    /// No unit is exposed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embargo_until: Option<Timestamp>,
    /// The first unit is exposed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub must_start_before: Option<Timestamp>,
    /// The first unit is exposed below this position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub must_start_before_seq: Option<Count>,
}

/// Keys that alone may act under the manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoleBinding {
    /// Looks and decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arbiter: Option<KeyId>,
    /// Countersigns and exposes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custodian: Option<KeyId>,
    /// Registers and amends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registrar: Option<KeyId>,
    /// Promotes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub releaser: Option<KeyId>,
    /// Scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scorer: Option<KeyId>,
}

/// Where diagnostics change their verdict, for the whole experiment; what is absent is judged by the usual numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiagnosticsPlan {
    /// Checks of a judge's drift.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftPlan>,
    /// Gates of overlap (CJE paper, table 9).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<OverlapThresholds>,
}

/// Which order of policies is asked for, and with how many labels: whoever signs this before a score or a label cannot choose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OrderPlan {
    /// Whose scores.
    pub judge: JudgeId,
    /// Labels for calibration of the experiment, from which on it is compared.
    pub labels: Count,
    /// The policies whose pairs are one family.
    pub policies: Vec<PolicyId>,
}

/// How policies are estimated and compared, for the whole experiment; what is absent is free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EstimatePlan {
    /// How the p-values of a family of differences are corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<PlannedCorrection>,
    /// The order that is asked for; then every other one is exploratory, from rulebook 27 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderPlan>,
    /// How far a prediction is trusted where own labels correct it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<PredictionWeight>,
}
