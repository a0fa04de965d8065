//! Off-policy: values of a policy from responses that another one gave, and whether those can answer at all.

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::id::PolicyId;
use crate::id::Root;
use crate::id::Text;
use crate::payload::BlobRef;
use crate::payload::audit::TransportStanding;
use crate::payload::estimate::EstimateTerms;
use crate::payload::estimated::Claim;
use crate::payload::estimated::IntervalEnds;
use crate::payload::overlap::Admissibility;
use crate::payload::overlap::CapFigure;
use crate::payload::overlap::GroupFigure;
use crate::payload::overlap::OverlapGrade;
use crate::payload::overlap::OverlapThresholds;
use crate::payload::overlap::ResidualFigures;
use crate::payload::overlap::WeightFigures;

/// Everything beside the rows that an off-policy estimate depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpeTerms {
    /// As for a direct estimate; folds here are by stable hash.
    pub estimate: EstimateTerms,
    /// The policy that gave the logged responses.
    pub logger: PolicyId,
    /// Digest of the manifest version that registers the thresholds; absent for those of table 9.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Digest>,
    /// Seed of the outer folds of calibrated IPS.
    pub outer_seed: Count,
    /// Where gates change their verdict.
    pub thresholds: OverlapThresholds,
}

/// Logged rows that were read, and those that were not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoggedFilter {
    /// Entries of the `logprobs.checked` that say what was filtered before.
    pub checked: Vec<Count>,
    /// Rows that the estimates rest on.
    pub kept: Count,
    /// Scored rows of the logger.
    pub rows: Count,
    /// Of those, rows without log-probabilities.
    pub without_logprob: Count,
    /// Of those, rows without one under this policy.
    pub without_target: Count,
}

/// One row of the estimator guide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuideEntry {
    /// The estimator.
    pub estimator: Text,
    /// Why it may not be read, or with what warning.
    pub reasons: Vec<Text>,
    /// Whether it may be read.
    pub verdict: Admissibility,
}

/// How far logged responses can answer for a policy was diagnosed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpeDiagnosed {
    /// Bhattacharyya affinity of judge scores, with the policy's own draws where there are any, else with weighted ones.
    pub affinity: Finite,
    /// The first estimator that logged rows alone may answer by; absent where they cannot answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Text>,
    /// The program that computed it.
    pub build: Text,
    /// How the self-normalised estimate moves with a cap on its weights.
    pub caps: Vec<CapFigure>,
    /// By how much the error of logged data exceeds that of own draws, at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cle_factor: Option<Finite>,
    /// What may be claimed of the policy's level by its own draws; absent without such draws and before rulebook 18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct_claim: Option<Claim>,
    /// Whether there are draws of the policy for every logged prompt.
    pub draws: bool,
    /// What was read and left out.
    pub filter: LoggedFilter,
    /// Overlap by group.
    pub groups: Vec<GroupFigure>,
    /// Share of folds whose caps bound.
    pub guarded: Finite,
    /// Every estimator with its verdict.
    pub guide: Vec<GuideEntry>,
    /// Share of ratios below 1e-10.
    pub near_zero: Finite,
    /// Worst of the gates of overlap, under the ratios as they are.
    pub overlap: OverlapGrade,
    /// The policy.
    pub policy: PolicyId,
    /// The ratios as they are.
    pub raw: WeightFigures,
    /// Weighted residuals of the outcome model; absent without draws.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residuals: Option<ResidualFigures>,
    /// Merkle root of the rows: item, draw and both log-probabilities.
    pub rows_root: Root,
    /// Weights stabilised in the score.
    pub stabilised: WeightFigures,
    /// Gate of the tail of the ratios.
    pub tail: OverlapGrade,
    /// On which terms.
    pub terms: OpeTerms,
    /// The last entry that was read.
    pub through_seq: Count,
    /// Target-typicality coverage: share of logged rows in what is typical of the policy.
    pub ttc: Finite,
    /// The same by total surprisal, where `ttc` is by token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttc_by_total: Option<Finite>,
}

/// A share of a mixture of estimators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackShare {
    /// The estimator.
    pub estimator: Text,
    /// Its share.
    pub share: Finite,
}

/// The value of one policy was estimated from responses of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpeEstimated {
    /// The program that computed it.
    pub build: Text,
    /// Digest of the calibrator on these folds.
    pub calibrator: Digest,
    /// Degrees of freedom of the t interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub df: Option<Finite>,
    /// The estimate, in label units.
    pub estimate: Finite,
    /// How it was made.
    pub estimator: Text,
    /// The interval, not clipped to the scale; absent below two prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<IntervalEnds>,
    /// The estimate with the calibrator without each fold.
    pub jackknife: Vec<Finite>,
    /// The policy.
    pub policy: PolicyId,
    /// Rows that it rests on.
    pub rows: Count,
    /// Merkle root of the rows: item, draw and both log-probabilities.
    pub rows_root: Root,
    /// Standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub se: Option<Finite>,
    /// Share of the variance that is the calibrator's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Finite>,
    /// Shares of a mixture.
    pub stack: Vec<StackShare>,
    /// On which terms.
    pub terms: OpeTerms,
    /// The last entry that was read.
    pub through_seq: Count,
    /// The failed audit that stands against the policy under this judge: its calibration does not transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportStanding>,
    /// Whether it may be read, by its `ope.diagnosed`; never after a failed audit.
    pub verdict: Admissibility,
}

/// Rows discarded, or not judged, under one clause of the contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClauseCount {
    /// The clause.
    pub clause: Text,
    /// Rows.
    pub rows: Count,
}

/// Teacher-forced log-probabilities of a file were held against their contract (CJE paper, E.2); what broke it is not
/// recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogprobsChecked {
    /// How far sums may differ, in millionths of a nat per 1 + |sum|.
    pub additivity_micro: Micro,
    /// Discarded rows by the first clause that they broke.
    pub broken: Vec<ClauseCount>,
    /// How far repeated calls may differ, in 1e-12 nats.
    pub determinism_pico: Count,
    /// SHA-256 of each judge configuration that a row names, in canonical JSON.
    pub judge_configs: Vec<Digest>,
    /// Rows whose log-probabilities are recorded.
    pub kept: Count,
    /// Rows without log-probabilities.
    pub missing: Count,
    /// Kept rows for which a clause could not be judged.
    pub not_checked: Vec<ClauseCount>,
    /// The policy that gave the responses.
    pub policy: PolicyId,
    /// Row by row: cohort, draw, item, token count and what was broken, one canonical JSON object a line.
    pub rows: BlobRef,
    /// Rows judged.
    pub rows_in: Count,
    /// Merkle root of the lines of `rows`.
    pub rows_root: Root,
    /// SHA-256 of each run configuration that a row names, in canonical JSON.
    pub run_configs: Vec<Digest>,
    /// The chat template's hash that every row had to name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<Text>,
    /// The tokenizer's hash that every row had to name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<Text>,
}
