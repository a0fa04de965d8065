//! What judges, and back: activations, guardrails on live rows, rollbacks, and the recalibration that some changes need.
//! `schema/DEPLOYMENT.md` says what each event must hold to.

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Probability;
use serde::Deserialize;
use serde::Serialize;

use crate::id::AnchorSetId;
use crate::id::DesignId;
use crate::id::EventId;
use crate::id::FamilyId;
use crate::id::JudgeId;
use crate::id::ProtocolId;
use crate::id::SliceId;
use crate::id::Text;
use crate::payload::Verdict;
use crate::payload::predicate::Anchors;
use crate::payload::predicate::Blast;
use crate::payload::predicate::EnvironmentTests;
use crate::payload::predicate::RowsRead;
use crate::payload::predicate::Thresholds;

/// What runs together: no part of it changes without a new deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Versions {
    /// The anchor set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchors: Option<AnchorSetId>,
    /// Digest of the calibrator's curves.
    pub calibrator: Digest,
    /// The judge whose raw answers are used.
    pub judge: JudgeId,
    /// The model that it asks.
    pub model: Text,
    /// Hash of what it is told.
    pub prompt_hash: Digest,
    /// Version of the rubric.
    pub rubric_version: String,
    /// The protocol by which people label.
    pub sdp_version: ProtocolId,
}

/// A committed prompt runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeploymentActivated {
    /// The `prompt.committed`, or the `rubric.registered` of the first deployment.
    pub commit: EventId,
    /// The deployment that ran before; absent when none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<EventId>,
    /// The recalibration that it stands on, where one is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recalibration: Option<EventId>,
    /// Hash of the rubric.
    pub rubric_hash: Digest,
    /// What runs together.
    pub versions: Versions,
}

/// Why a calibrator is fitted or verified anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RecalibrationTrigger {
    /// A guard, abstention or a `required` changes.
    HardRule,
    /// The judge's model changes.
    Model,
    /// The protocol changed.
    Sdp,
}

/// How a calibrator was held against fresh labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RecalibrationMode {
    /// It was fitted anew on them; residuals are out of fold.
    Refitted,
    /// The one that was evaluated at acceptance was verified on them.
    Verified,
}

/// What a recalibration was computed from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Recalibrated"))]
pub struct RecalibrationInputs {
    /// The program that computed it.
    pub build: Text,
    /// What was read.
    pub inputs: RowsRead,
    /// How.
    pub mode: RecalibrationMode,
    /// What transport and anchors were held to: as guardrails are.
    pub thresholds: Thresholds,
    /// Residuals on the fresh labels: of all of them, and by environment.
    pub transport: EnvironmentTests,
}

/// A calibrator holds on fresh labels for what is to be deployed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecalibrationCompleted {
    /// How far the anchors moved.
    pub anchors: Anchors,
    /// Digest of the calibrator's curves.
    pub calibrator: Digest,
    /// What is to be deployed.
    pub commit: EventId,
    /// What it was computed from; absent where it rests on a `transport.tested`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computed: Option<RecalibrationInputs>,
    /// The label design of the fresh labels.
    pub design: DesignId,
    /// The judge.
    pub judge: JudgeId,
    /// Fresh labels.
    pub labels: Count,
    /// The `transport.tested` of this calibrator, where it rests on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<EventId>,
    /// Why.
    pub trigger: RecalibrationTrigger,
}

/// Shares of rows on which the judge abstains.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AbstentionShares {
    /// At acceptance.
    pub accepted: Probability,
    /// Live.
    pub live: Probability,
}

/// The least that a green slice lost, against the deployment before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GreenBound {
    /// Its family.
    pub family: FamilyId,
    /// One-sided 95 % lower bound of the change of the mean squared error.
    pub lower: Finite,
    /// Whether it may not lose at all.
    pub must_not_regress: bool,
    /// The slice.
    pub slice: SliceId,
}

/// Scores outside of the labelled ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutOfRange {
    /// Rows outside.
    pub outside: Count,
    /// Rows.
    pub rows: Count,
}

/// What live rows show; what is absent was not looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveEvidence {
    /// Abstention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abstention: Option<AbstentionShares>,
    /// Anchors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchors: Option<Anchors>,
    /// Environments, on fresh labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environments: Option<EnvironmentTests>,
    /// Green slices, on fresh labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub greens: Option<Vec<GreenBound>>,
    /// Fresh labels.
    pub labels: Count,
    /// Scores outside of the labelled ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_range: Option<OutOfRange>,
    /// Closed exploits that pay again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reopened: Option<Count>,
    /// Live rows, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Count>,
    /// Live rewards against those at acceptance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<Blast>,
    /// Green slices with fewer than 40 fresh labels of their own, which are not among `greens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thin: Option<Count>,
}

/// What each guardrail says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuardrailVerdicts {
    /// Abstention rose by at most 0.05.
    pub abstention: Verdict,
    /// Anchors stay.
    pub anchors: Verdict,
    /// Environments that must pass do.
    pub environments: Verdict,
    /// No green slice surely lost more than it may.
    pub greens: Verdict,
    /// Fewer than 5 % of scores lie outside.
    pub out_of_range: Verdict,
    /// No closed exploit pays again.
    pub reopened: Verdict,
    /// Live rewards are distributed as at acceptance.
    pub shift: Verdict,
}

impl GuardrailVerdicts {
    /// The verdicts by name, alphabetical.
    pub fn each(self) -> [(&'static str, Verdict); 7] {
        [
            ("abstention", self.abstention),
            ("anchors", self.anchors),
            ("environments", self.environments),
            ("greens", self.greens),
            ("out_of_range", self.out_of_range),
            ("reopened", self.reopened),
            ("shift", self.shift),
        ]
    }

    /// Whether one failed.
    pub fn is_breach(self) -> bool {
        self.each().iter().any(|(_, said)| *said == Verdict::Fail)
    }
}

/// Which entries a check read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Window {
    /// From this entry on.
    pub from_seq: Count,
    /// Up to this one.
    pub through_seq: Count,
}

/// The guardrails of the running deployment were checked; a failure is a breach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuardrailChecked {
    /// Why the evidence was given by hand; absent where it was computed from live rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_hand: Option<Text>,
    /// The `deployment.activated`.
    pub deployment: EventId,
    /// What live rows show.
    pub evidence: LiveEvidence,
    /// The live rows that were read, where the evidence was computed from them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<RowsRead>,
    /// What they were held to.
    pub thresholds: Thresholds,
    /// What each guardrail says.
    pub verdicts: GuardrailVerdicts,
    /// What was read.
    pub window: Window,
}

/// The deployment before runs again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeploymentRolledBack {
    /// The `guardrail.checked` with the breach; absent when a person rolled back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breach: Option<EventId>,
    /// The deployment that ends.
    pub deployment: EventId,
    /// Why.
    pub reason: Text,
    /// The deployment that runs again; absent when none ran before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored: Option<EventId>,
    /// Hash of the rubric that is in force again; absent when none ran before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rubric_hash: Option<Digest>,
}
