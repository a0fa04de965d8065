//! What supports an estimate: the calibrator's part of its variance, labels where the scores lie, and audits
//! of whether calibration transfers.

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::id::DesignId;
use crate::id::EventId;
use crate::id::PolicyId;
use crate::id::Root;
use crate::id::Text;
use crate::payload::estimate::EstimateTerms;
use crate::payload::estimated::AuditObstacle;
use crate::payload::estimated::EnvironmentRows;
use crate::payload::estimated::IntervalEnds;
use crate::payload::estimated::TransportState;
use crate::payload::predicate::RowsRead;

/// The calibrator's share in one tenth of a policy's calibrated rewards.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecileShare {
    /// Rows in it.
    pub rows: Count,
    /// The share; absent without spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Finite>,
}

/// How much of an estimate's variance comes from having few labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OuaEstimated {
    /// The program that computed it.
    pub build: Text,
    /// The calibrator.
    pub calibrator: Digest,
    /// Seeds of the folds over which an iteration averages `var_oua`, its own first; empty for an estimate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fold_seeds: Vec<Count>,
    /// What an iteration read; absent for an estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<RowsRead>,
    /// The policy; absent for an iteration, which looks at all its logs together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyId>,
    /// Merkle root of the rows that were included.
    pub rows_root: Root,
    /// `var_oua / (var_main + var_oua)`; absent if both are 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Finite>,
    /// The share of the mean calibrated reward by tenth of it, lowest first; ties merge tenths.
    pub share_by_decile: Vec<DecileShare>,
    /// On which terms.
    pub terms: EstimateTerms,
    /// The last entry that was read.
    pub through_seq: Count,
    /// Sampling variance, in squared label units.
    pub var_main: Finite,
    /// Variance that the calibrator adds.
    pub var_oua: Finite,
}

/// Labels and rows in one tail of the labelled scores.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TailSupport {
    /// Where it begins, as recorded.
    pub edge: Finite,
    /// Labels strictly beyond the edge.
    pub labels: Count,
    /// Share of the policy's scores strictly beyond the edge.
    pub mass: Finite,
    /// Whether it holds far fewer labels than rows.
    pub starved: bool,
}

/// Whether a policy's scores lie where labels are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CoverageChecked {
    /// The program that computed it.
    pub build: Text,
    /// The calibrator.
    pub calibrator: Digest,
    /// Labels by tenth of the policy's scores, lowest first; ties merge tenths.
    pub decile_counts: Vec<Count>,
    /// Whether the calibrator is flat at the high end.
    pub flat_high: bool,
    /// Whether it is flat at the low end.
    pub flat_low: bool,
    /// Support above the labelled scores' ninth decile.
    pub high_tail: TailSupport,
    /// Support below their first decile.
    pub low_tail: TailSupport,
    /// What an iteration read; absent for an estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<RowsRead>,
    /// Share of scores outside the labelled ones.
    pub out_of_range: Finite,
    /// The policy; absent for an iteration, which looks at all its logs together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyId>,
    /// Whether no level may be claimed.
    pub refuse_level: bool,
    /// Merkle root of the rows that were included.
    pub rows_root: Root,
    /// Share of rewards within 5 % of the reward range from either end of it.
    pub saturation: Finite,
    /// On which terms.
    pub terms: EstimateTerms,
    /// The last entry that was read.
    pub through_seq: Count,
}

/// An interval for the mean residual, and what follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResidualWidth {
    /// Bias that would be detected with probability 0.80.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detectable_bias: Option<Finite>,
    /// Degrees of freedom.
    pub df: Finite,
    /// The interval at level 1 - alpha / family size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<IntervalEnds>,
    /// Smallest margin under which it would pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_margin_for_pass: Option<Finite>,
    /// Standard error; absent for one cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub se: Option<Finite>,
    /// The state that this width gives.
    pub state: TransportState,
    /// Two-sided p that the mean residual is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zero_null_p: Option<Finite>,
}

/// On which terms an audit is graded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditTerms {
    /// Error rate of the family of audits.
    pub alpha_micro: Micro,
    /// Kish-effective clusters below which nothing passes.
    pub clusters_min: Count,
    /// Audits that share the error rate.
    pub family_size: Count,
    /// The manifest that these numbers come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Digest>,
    /// Largest acceptable absolute mean residual, in label units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin_micro: Option<Micro>,
}

/// Calibration was audited on labels of one policy that it never saw: once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransportTested {
    /// Algorithm with its version.
    pub algorithm: Text,
    /// How it is graded.
    pub audit: AuditTerms,
    /// The program that computed it.
    pub build: Text,
    /// The calibrator.
    pub calibrator: Digest,
    /// The charge that opened the probes; absent where they were open from the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charge: Option<EventId>,
    /// Distinct prompts.
    pub clusters: Count,
    /// The label design of the probes.
    pub design: DesignId,
    /// Rows of the environment that the probes were drawn from; absent for all rows, and in events of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn: Option<EnvironmentRows>,
    /// Kish-effective clusters.
    pub effective_clusters: Finite,
    /// Probes of the policy that have no score from before their label could be read: they do not count, and where there is one
    /// nothing passes. Absent in events of older programs, which counted whatever had a score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<Count>,
    /// Mean residual, label less calibrated reward, in label units.
    pub mean_residual: Finite,
    /// With the sampling variance of residuals alone.
    pub narrow: ResidualWidth,
    /// Why nothing passes, whatever the numbers are; absent where nothing stands in the way, and in events of older programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub obstacles: Vec<AuditObstacle>,
    /// The policy.
    pub policy: PolicyId,
    /// Merkle root of the probes.
    pub probes_root: Root,
    /// Probes.
    pub rows: Count,
    /// A pass by the wide width; a failure by either.
    pub state: TransportState,
    /// On which terms the calibrator was fitted.
    pub terms: EstimateTerms,
    /// The last entry that was read.
    pub through_seq: Count,
    /// With the calibrator's own variance too.
    pub wide: ResidualWidth,
    /// The zero-null p within the family (Benjamini-Hochberg).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zero_null_p_adjusted: Option<Finite>,
}

/// The audit that stands for or against an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransportStanding {
    /// The entry of the audit.
    pub seq: Count,
    /// What it found.
    pub state: TransportState,
}
