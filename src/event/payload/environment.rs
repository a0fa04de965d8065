//! Environments in which a calibrator has to hold: which rows belong to one, what a test of a family of them found, and how
//! rewards may be used in one that failed. CLOVER v1.1, section 8.

use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::time::Timestamp;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use clover_num::Probability;
use serde::Deserialize;
use serde::Serialize;

use crate::id::DesignId;
use crate::id::EnvironmentId;
use crate::id::EventId;
use crate::id::FamilyId;
use crate::id::JudgeId;
use crate::id::Root;
use crate::id::Text;
use crate::payload::Verdict;
use crate::payload::estimate::EstimateTerms;
use crate::payload::estimate::FamilyCorrection;
use crate::payload::estimated::AuditObstacle;
use crate::payload::estimated::EnvironmentRows;
use crate::payload::estimated::IntervalEnds;

/// A span of time in which rows were sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeWindow {
    /// Its first moment.
    pub from: Timestamp,
    /// The first moment after it.
    pub to: Timestamp,
}

/// Which rows are one environment: those whose field has a value, or that were sampled in a span of time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnvironmentScope {
    /// Its name: the value of the field, or any name for a window.
    pub environment: EnvironmentId,
    /// What kind it is: the field, `policy` for the policy itself, or any name for windows.
    pub family: FamilyId,
    /// The span of time in which its rows were sampled; absent where the field decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<TimeWindow>,
}

impl EnvironmentScope {
    /// Its canonical text, which no other scope has.
    ///
    /// # Panics
    /// Never: ids and times have a canonical form.
    pub fn key(&self) -> String {
        let bytes = canon::to_bytes(self).expect("BUG: ids and times have a canonical form");
        String::from_utf8(bytes).expect("BUG: canonical JSON is UTF-8")
    }

    /// Whether no row can be in both: other values of one field, or windows that do not meet.
    pub fn is_apart(&self, other: &Self) -> bool {
        match (self.window, other.window) {
            (None, None) => self.family == other.family && self.environment != other.environment,
            (Some(one), Some(two)) => one.to <= two.from || two.to <= one.from,
            (None, Some(_)) | (Some(_), None) => false,
        }
    }
}

impl std::fmt::Display for EnvironmentScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.family, self.environment)?;
        self.window.map_or(Ok(()), |window| {
            write!(f, " from {} to {}", window.from, window.to)
        })
    }
}

/// What the test of one environment found, on the scale of 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnvironmentOutcome {
    /// Distinct prompts.
    pub clusters: Count,
    /// Bias that would be seen with probability 0.80: 2.8 standard errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detectable_bias: Option<Finite>,
    /// Its rows that the probes were drawn from; absent in events of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn: Option<EnvironmentRows>,
    /// The 95 % interval of the mean residual, with the calibrator's own error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<IntervalEnds>,
    /// Mean residual, label less calibrated reward; absent without a probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Finite>,
    /// Two-sided p that the mean residual is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<Probability>,
    /// The p within the family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_adjusted: Option<Probability>,
    /// Whether a claim needs it to pass.
    pub required: bool,
    /// Probes.
    pub rows: Count,
    /// Which rows it is.
    pub scope: EnvironmentScope,
    /// Standard error with the calibrator's own; absent for one prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<Finite>,
    /// Rejected, too few probes to tell, or neither; not checked without a probe.
    pub verdict: Verdict,
}

/// One family of environments was tested on labels that the calibrator never saw: once by each design.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnvironmentsTested {
    /// Algorithm with its version.
    pub algorithm: Text,
    /// The program that computed it.
    pub build: Text,
    /// The calibrator.
    pub calibrator: Digest,
    /// The charge that opened the probes; absent where they were open from the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charge: Option<EventId>,
    /// How the family is corrected; absent for Benjamini-Hochberg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<FamilyCorrection>,
    /// The label design of the probes.
    pub design: DesignId,
    /// Every environment of the family that the plan names, in its order.
    pub environments: Vec<EnvironmentOutcome>,
    /// The family.
    pub family: FamilyId,
    /// Probes that do not count: their score, or a field that places them, was said once their label could be read.
    pub late: Count,
    /// The manifest version that names the environments.
    pub manifest: Digest,
    /// Why nothing passes, whatever the numbers are; absent where nothing stands in the way, and in events of older programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub obstacles: Vec<AuditObstacle>,
    /// Probes that count, of all policies.
    pub probes: Count,
    /// Merkle root of the probes that count, by policy.
    pub probes_root: Root,
    /// Level of the family.
    pub q_micro: Micro,
    /// On which terms the calibrator was fitted.
    pub terms: EstimateTerms,
    /// The last entry that was read.
    pub through_seq: Count,
    /// Probes that count and are in none of the environments.
    pub without: Count,
}

/// How rewards may be used in an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EnvironmentRegime {
    /// No surrogacy: nothing is claimed of it from rewards, and labels alone speak.
    #[serde(rename = "1")]
    LabelsAlone,
    /// Local surrogacy: a calibrator that was fitted on its labels alone is read in it alone.
    #[serde(rename = "2")]
    Local,
    /// Global transport: one calibrator everywhere.
    #[serde(rename = "3")]
    Global,
}

impl EnvironmentRegime {
    /// The number in events and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LabelsAlone => "1",
            Self::Local => "2",
            Self::Global => "3",
        }
    }

    /// What it lets be done, for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::LabelsAlone => "labels alone",
            Self::Local => "a local calibrator",
            Self::Global => "one calibrator everywhere",
        }
    }
}

/// A regime was selected for an environment in which the calibrator of its experiment failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RegimeSelected {
    /// The local calibrator, of regime 2 alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibrator: Option<Digest>,
    /// The judge whose scores are meant.
    pub judge: JudgeId,
    /// Why, in words.
    pub reason: Text,
    /// The regime.
    pub regime: EnvironmentRegime,
    /// The environment.
    pub scope: EnvironmentScope,
    /// The entry of the newest test of the environment.
    pub tested_seq: Count,
}
