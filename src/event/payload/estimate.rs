//! What a policy is worth: the calibrator that was fitted, the values it gives, and their differences.
//!
//! Every event carries the terms and the inclusive position by which it can be computed again from the log.

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::id::FieldId;
use crate::id::IterationId;
use crate::id::JudgeId;
use crate::id::PolicyId;
use crate::id::Root;
use crate::id::Text;
use crate::payload::BlobRef;
use crate::payload::audit::TransportStanding;
use crate::payload::environment::EnvironmentScope;
use crate::payload::estimated::CalibratorKind;
use crate::payload::estimated::CalibratorMode;
use crate::payload::estimated::Claim;
use crate::payload::estimated::FilterCounts;
use crate::payload::estimated::IntervalEnds;
use crate::payload::estimated::IntervalMethod;
use crate::payload::estimated::LabelMean;
use crate::payload::estimated::LabelUse;
use crate::payload::estimated::PlannedCorrection;
use crate::payload::estimated::PolicyLabels;
use crate::payload::estimated::PredictionWeight;
use crate::payload::estimated::Reading;
use crate::payload::estimated::Resampling;
use crate::payload::estimated::RowUse;
use crate::payload::estimated::ScaleEnds;
use crate::payload::predicate::RowsRead;

/// Everything beside the rows that an estimate depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EstimateTerms {
    /// One less the level of intervals.
    pub alpha_micro: Micro,
    /// A bootstrap in place of t intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<Resampling>,
    /// Covariates beside the score, in their order.
    pub covariates: Vec<FieldId>,
    /// The environment whose rows and labels alone are read; absent for all rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentScope>,
    /// Seed of the folds.
    pub fold_seed: Count,
    /// Folds asked for; few labelled prompts get fewer.
    pub folds: Count,
    /// The iteration that it belongs to, and the rubric whose scores are meant; absent for estimates of recorded scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<IterationTerms>,
    /// Whose scores.
    pub judge: JudgeId,
    /// Scale of scores; as observed when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge_scale: Option<ScaleEnds>,
    /// Scale of labels; as observed when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_scale: Option<ScaleEnds>,
    /// How rows were chosen for labels.
    pub labels: LabelUse,
    /// Which calibrator was asked for.
    pub mode: CalibratorMode,
    /// Which rows are read; absent before rulebook 23, where rows of any time were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<RowUse>,
    /// How far a prediction is trusted where own labels correct it; absent for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<PredictionWeight>,
}

/// Whose scores an iteration calibrates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IterationTerms {
    /// The candidate: hash of its patch, or of a composite; absent for the rubric that the iteration starts from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Digest>,
    /// The iteration.
    pub iteration: IterationId,
    /// Hash of the rubric that gives the scores.
    pub rubric_hash: Digest,
}

/// What the fit of an iteration says beside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IterationFit {
    /// Labelled rows that abstain and are calibrated as one atom; 0 where they are too few for one.
    pub atom_rows: Count,
    /// Merkle root of the fit part of the split, whose labels alone were read.
    pub fit_root: Root,
    /// Digest of the fold of every labelled row: the same for the rubric in force and every candidate.
    pub folds_hash: Digest,
    /// What was read.
    pub inputs: RowsRead,
    /// Digest of the curve of all labels.
    pub knots_hash: Digest,
    /// Root mean squared error out of fold of the monotone calibrator; absent for a candidate, whose mode is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oof_rmse_monotone: Option<Finite>,
    /// The same of the two-stage one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oof_rmse_two_stage: Option<Finite>,
}

/// A calibrator was fitted on every open label for calibration of one judge, or on those of the fit part of an iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CalibratorFitted {
    /// Algorithm with its version.
    pub algorithm: Text,
    /// The program that computed it.
    pub build: Text,
    /// Digest of its curves.
    pub calibrator: Digest,
    /// Distinct labelled prompts.
    pub clusters: Count,
    /// Folds that were made.
    pub folds: Count,
    /// Of an iteration: what it says beside; absent for estimates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<IterationFit>,
    /// Labelled rows.
    pub labels: Count,
    /// Labels by policy, in the order of their names; empty for an iteration, which answers no audit of a policy.
    pub labels_by_policy: Vec<PolicyLabels>,
    /// The curves: of all labels, and without each fold.
    pub model: BlobRef,
    /// Root mean squared error out of fold, in label units from 0 to 1.
    pub oof_rmse: Finite,
    /// Share of out-of-fold predictions within 0.1 of the label.
    pub oof_within_tenth: Finite,
    /// Least and largest calibrated reward of a labelled row, from 0 to 1.
    pub reward_range: IntervalEnds,
    /// Root mean squared error on its own labels.
    pub rmse: Finite,
    /// The labelled rows with their folds, one canonical JSON object a line.
    pub rows: BlobRef,
    /// Merkle root of the lines of `rows`.
    pub rows_root: Root,
    /// Least and largest labelled score, as recorded.
    pub score_range: IntervalEnds,
    /// What was fitted.
    pub selected: CalibratorKind,
    /// Slope in the highest tenth of labelled scores; absent where it has no width.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slope_high: Option<Finite>,
    /// Slope in the lowest tenth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slope_low: Option<Finite>,
    /// On which terms.
    pub terms: EstimateTerms,
    /// The last entry that was read.
    pub through_seq: Count,
    /// Whether the covariates entered the fit.
    pub uses_covariates: bool,
}

/// The value of one policy was estimated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EstimateRecorded {
    /// Ends that monotonicity alone leaves open, where a level is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<IntervalEnds>,
    /// The program that computed it.
    pub build: Text,
    /// The calibrator; absent where there were too few labels for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibrator: Option<Digest>,
    /// What may be claimed.
    pub claim: Claim,
    /// Estimate less mean calibrated reward.
    pub correction: Finite,
    /// Degrees of freedom of the t interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub df: Option<Finite>,
    /// Where they come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub df_method: Option<Text>,
    /// The estimate, in label units.
    pub estimate: Finite,
    /// What was read and left out.
    pub filter: FilterCounts,
    /// The interval, not clipped to the scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<IntervalEnds>,
    /// The interval as it is shown, clipped to the scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_clipped: Option<IntervalEnds>,
    /// How the interval came about.
    pub interval_method: IntervalMethod,
    /// Labels of its own that correct it.
    pub labels: Count,
    /// The mean of its own labels, without a judge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels_only: Option<LabelMean>,
    /// Rows that do not count, since they were scored once a label of the policy could be read; absent before rulebook 23.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<Count>,
    /// Why there is no interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_interval: Option<Text>,
    /// Labelled prompts of its own with another label than the most common one; absent before rulebook 18, where such
    /// labels did not widen the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off_mode: Option<Count>,
    /// Mean calibrated reward.
    pub plug_in: Finite,
    /// The policy.
    pub policy: PolicyId,
    /// Distinct prompts.
    pub prompts: Count,
    /// Mean judge score, as recorded.
    pub raw_mean: Finite,
    /// How labels and calibrator make the estimate.
    pub route: Text,
    /// Rows.
    pub rows: Count,
    /// Merkle root of the rows that were included.
    pub rows_root: Root,
    /// Standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub se: Option<Finite>,
    /// Share of the variance that is the calibrator's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Finite>,
    /// On which terms.
    pub terms: EstimateTerms,
    /// The last entry that was read.
    pub through_seq: Count,
    /// The transport audit that stands for or against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportStanding>,
}

/// How the p-values of a family are corrected, where it is not by Benjamini and Hochberg (1995).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FamilyCorrection {
    /// False discovery rate under any dependence (Benjamini and Yekutieli 2001).
    BenjaminiYekutieli,
    /// Familywise error, one step.
    Bonferroni,
    /// Familywise error, stepping down (Holm 1979).
    Holm,
}

impl From<Option<FamilyCorrection>> for PlannedCorrection {
    fn from(said: Option<FamilyCorrection>) -> Self {
        match said {
            None => Self::BenjaminiHochberg,
            Some(FamilyCorrection::BenjaminiYekutieli) => Self::BenjaminiYekutieli,
            Some(FamilyCorrection::Bonferroni) => Self::Bonferroni,
            Some(FamilyCorrection::Holm) => Self::Holm,
        }
    }
}

impl FamilyCorrection {
    /// What an event says of a correction: `None` for Benjamini-Hochberg.
    pub fn of(planned: PlannedCorrection) -> Option<Self> {
        match planned {
            PlannedCorrection::BenjaminiHochberg => None,
            PlannedCorrection::BenjaminiYekutieli => Some(Self::BenjaminiYekutieli),
            PlannedCorrection::Bonferroni => Some(Self::Bonferroni),
            PlannedCorrection::Holm => Some(Self::Holm),
        }
    }
}

/// Which prompts the policies of a difference have scores of, and what those could do that lack.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedPrompts {
    /// Prompts that both have scores of.
    pub both: Count,
    /// Prompts that the first alone has scores of.
    pub first_only: Count,
    /// Prompts that the second alone has scores of.
    pub second_only: Count,
    /// Prompts of both on which the draws of the two do not stand in the ratio that they have over all of these: 0 where the
    /// second has, on each, as many draws as the first, or always twice as many, and so on.
    pub uneven: Count,
    /// How far the difference could move, in label units, if every score that lacks were the worst for it; 0 where none
    /// lacks, or where the two share no prompt.
    pub worst: Finite,
}

/// Two policies were compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContrastRecorded {
    /// What it is paired on.
    pub basis: Text,
    /// The program that computed it.
    pub build: Text,
    /// The calibrator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibrator: Option<Digest>,
    /// The interval widened by what monotonicity leaves open, where a level is refused; and, from rulebook 18 on, by the
    /// margins of the audits that it rests on, and by labels that hardly vary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conservative: Option<IntervalEnds>,
    /// How the family is corrected; absent for Benjamini-Hochberg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<FamilyCorrection>,
    /// Degrees of freedom; absent for a bootstrap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub df: Option<Finite>,
    /// First less second, in label units.
    pub difference: Finite,
    /// The first look at this order that is on record before it and saw it otherwise: its entry. Absent where there is none, and
    /// before rulebook 27.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exploratory_since: Option<Count>,
    /// Policies whose pairs are one family.
    pub family: Vec<PolicyId>,
    /// The first policy.
    pub first: PolicyId,
    /// What may be claimed of its level; absent before rulebook 18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_claim: Option<Claim>,
    /// Its rows that do not count, since they were scored once a label of it could be read; absent before rulebook 23.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_late: Option<Count>,
    /// Merkle root of its rows.
    pub first_root: Root,
    /// The failed audit that stands against the first policy under this judge: its calibration does not transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_transport: Option<TransportStanding>,
    /// The interval.
    pub interval: IntervalEnds,
    /// Two-sided p of no difference.
    pub p: Finite,
    /// The same within the family, by its correction.
    pub p_adjusted: Finite,
    /// Which prompts were compared; absent before rulebook 23.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<ComparedPrompts>,
    /// How it is to be read; absent before rulebook 18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<Reading>,
    /// Standard error.
    pub se: Finite,
    /// The second policy.
    pub second: PolicyId,
    /// What may be claimed of its level; absent before rulebook 18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_claim: Option<Claim>,
    /// Its rows that do not count, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_late: Option<Count>,
    /// Merkle root of its rows.
    pub second_root: Root,
    /// The failed audit that stands against the second policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_transport: Option<TransportStanding>,
    /// Whether the adjusted p is below alpha, and the widened interval leaves zero out; never after a failed audit of
    /// either policy, from rulebook 18 on only where both claims are checked, and from rulebook 23 on only where it leaves
    /// zero out whatever the scores are that lack.
    pub told_apart: bool,
    /// On which terms.
    pub terms: EstimateTerms,
    /// The last entry that was read.
    pub through_seq: Count,
}
