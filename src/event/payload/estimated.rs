//! Words and parts that estimates, audits and plans share.

use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::id::PolicyId;
use crate::id::Text;

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name {
            $($(#[$of])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word in events.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )*};
}

words! {
    /// Which calibrator is asked for.
    CalibratorMode {
        /// Out-of-fold errors choose; with covariates always two-stage.
        Auto = "auto",
        /// Isotonic on the score.
        Monotone = "monotone",
        /// Smooth index, rank, isotonic.
        TwoStage = "two_stage",
    }
    /// Which calibrator was fitted.
    CalibratorKind {
        /// Isotonic on the score.
        Monotone = "monotone",
        /// Smooth index, rank, isotonic.
        TwoStage = "two_stage",
    }
    /// How far a calibrated reward is trusted where a policy's own labels correct it.
    PredictionWeight {
        /// Whole: the mean reward and the mean residual.
        One = "one",
        /// By the slope that its labels show, between none and whole (PPI++).
        Tuned = "tuned",
    }
    /// How the p-values of a family of differences are corrected.
    PlannedCorrection {
        /// False discovery rate under independence or positive dependence (Benjamini and Hochberg 1995).
        BenjaminiHochberg = "benjamini_hochberg",
        /// False discovery rate under any dependence (Benjamini and Yekutieli 2001).
        BenjaminiYekutieli = "benjamini_yekutieli",
        /// Familywise error, one step.
        Bonferroni = "bonferroni",
        /// Familywise error, stepping down (Holm 1979).
        Holm = "holm",
    }
    /// How rows were chosen for labels.
    LabelUse {
        /// Each with the same probability: residuals of labelled rows correct their policy.
        Representative = "representative",
        /// By what they are: labels fit the calibrator and correct nothing.
        Targeted = "targeted",
        /// By stratum, with the probabilities of their design: labels correct their policy, each by one over its own.
        Weighted = "weighted",
    }
    /// Which rows of a policy are read.
    RowUse {
        /// Those whose score stands before the first label of the policy can be read.
        ScoredBefore = "scored_before",
    }
    /// How an interval came about.
    IntervalMethod {
        /// Either of the others, widened by the exact bound of labels that nearly all are one value.
        Bounded = "bounded",
        /// There is none.
        None = "none",
        /// Percentiles of replicates.
        Percentile = "percentile",
        /// Cluster-robust and jackknife, Student t.
        T = "t",
    }
    /// What may be claimed of a policy's level.
    Claim {
        /// Calibration of others, and an audit within its margin.
        BorrowedChecked = "borrowed_checked",
        /// Calibration of others, that no passed audit supports.
        BorrowedUnchecked = "borrowed_unchecked",
        /// Labels of its own correct it.
        OwnLabels = "own_labels",
        /// Nothing: the level is withheld.
        Refused = "refused",
        /// A mean of raw scores.
        Uncalibrated = "uncalibrated",
    }
    /// How a difference is to be read.
    Reading {
        /// Both sides are checked, and nothing tells them apart.
        NotToldApart = "not_told_apart",
        /// Both sides are checked, and they differ.
        ToldApart = "told_apart",
        /// A side has neither own labels nor a passed audit, or its level is withheld: nothing is said.
        Unchecked = "unchecked",
    }
    /// What an audit of transport found.
    TransportState {
        /// The interval lies wholly beyond the margin.
        Fail = "fail",
        /// Neither, or too few clusters.
        Inconclusive = "inconclusive",
        /// No probe was drawn.
        NotChecked = "not_checked",
        /// No margin was declared.
        NotGraded = "not_graded",
        /// The interval lies within the margin.
        Pass = "pass",
    }
    /// Why an audit passes nothing, whatever its numbers are.
    AuditObstacle {
        /// A label of the calibrator came after the first probe of the policy could be read.
        FittedLate = "fitted_late",
        /// Fewer rows of the policy have a label than the design of the probes draws.
        FewerProbes = "fewer_probes",
        /// More rows of the policy have a label than the design of the probes draws.
        MoreProbes = "more_probes",
        /// The calibrator was fitted on terms that are not usual and that no fit before the first probe had.
        OtherTerms = "other_terms",
    }
    /// What a plan is for.
    PlanPurpose {
        /// Labels of transport audits.
        Audit = "audit",
        /// Scores and labels of a budget.
        Budget = "budget",
        /// Rows of an iteration.
        Iteration = "iteration",
        /// Scores and labels that detect an effect.
        Labels = "labels",
    }
}

impl Claim {
    /// Whether a value with this claim may be compared: own labels correct it, or an audit of its calibration passed.
    pub fn is_checked(self) -> bool {
        matches!(self, Self::BorrowedChecked | Self::OwnLabels)
    }
}

/// Two ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntervalEnds {
    /// Upper end.
    pub high: Finite,
    /// Lower end.
    pub low: Finite,
}

/// Ends of a declared scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScaleEnds {
    /// Greatest value.
    pub high_micro: Micro,
    /// Least value.
    pub low_micro: Micro,
}

impl ScaleEnds {
    /// Whether a value lies on the scale.
    pub fn holds(self, value: Micro) -> bool {
        self.low_micro <= value && value <= self.high_micro
    }

    /// The share of the scale that a value on it is, in millionths, rounded half to even; `None` off the scale.
    pub fn share(self, value: Micro) -> Option<Micro> {
        let whole = |micro: Micro| i128::from(micro.value());
        let (low, high) = (whole(self.low_micro), whole(self.high_micro));
        let above = whole(value) - low;
        let span = high - low;
        if span <= 0 || above < 0 || above > span {
            return None;
        }
        let (share, rest) = (above * 1_000_000 / span, above * 1_000_000 % span);
        let up = 2 * rest > span || 2 * rest == span && share % 2 == 1;
        i64::try_from(share + i128::from(up))
            .ok()
            .and_then(Micro::new)
    }
}

/// A cluster bootstrap: exponential weights, refitted in every replicate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resampling {
    /// Replicates.
    pub replicates: Count,
    /// Root of the seeds.
    pub seed: Count,
    /// Path of the stream from the root.
    pub seed_label: Text,
}

/// Labels of one policy in a fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyLabels {
    /// Labelled rows.
    pub labels: Count,
    /// The entry of the newest label.
    pub newest_seq: Count,
    /// The policy.
    pub policy: PolicyId,
    /// Distinct prompts among the labelled rows; absent in events of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<Count>,
}

/// Scored rows of an environment, as they stood when the first probe could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnvironmentRows {
    /// Those that were left to draw probes from: without a label for calibration, and outside of confirm.
    pub left: Count,
    /// All of them.
    pub rows: Count,
}

/// What an estimate read of its experiment, and what it left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilterCounts {
    /// Labelled rows that are kept for audits.
    pub audit_labels: Count,
    /// Scores that differ from the recorded one, not used.
    pub conflicts: Count,
    /// Labels of rows that this judge did not score.
    pub labels_without_score: Count,
    /// Scores of other judges.
    pub other_judges: Count,
    /// Labels beyond the first of their row, averaged into it.
    pub repeated_labels: Count,
    /// Rows of all policies that were read.
    pub rows: Count,
    /// Sealed labels that are not open.
    pub sealed: Count,
}

/// What labels alone say.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabelMean {
    /// Its interval; absent for one prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<IntervalEnds>,
    /// The mean label.
    pub mean: Finite,
}
