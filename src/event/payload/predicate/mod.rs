//! Gates: what was measured of a candidate, what it was held to, and what each profile says.

mod event;
mod losses;
mod moves;

pub use event::CandidatesSealed;
pub use event::ConfirmLooked;
pub use event::ConfirmUnsealed;
pub use event::GateCalibrators;
pub use event::GateEvaluated;
pub use event::LookedHypothesis;
pub use event::PatchAccepted;
pub use event::RowsRead;
pub use event::SealedHypothesis;
pub use losses::CalibrationChange;
pub use losses::CalibrationShare;
pub use losses::ConfirmLoss;
pub use losses::GreenSlice;
pub use losses::Greens;
pub use losses::LossMean;
pub use losses::SequentialLook;
pub use losses::SequentialStop;
pub use moves::Admissible;
pub use moves::AnchorDrift;
pub use moves::Anchors;
pub use moves::AttackUplift;
pub use moves::Blast;
pub use moves::EnvironmentTests;
pub use moves::Gaming;
pub use moves::TestedEnvironment;

use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::payload::Verdict;
use crate::payload::manifest::ConfirmTest;
use crate::payload::manifest::Profile;
use crate::payload::manifest::RegressionGuard;
use crate::payload::manifest::ShiftMetric;

/// A gate of the acceptance predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Criterion {
    /// Admissible.
    P0,
    /// Global squared error, dev.
    P1,
    /// Calibration not worse.
    P2,
    /// Green slices not worse, dev.
    P3,
    /// Blast radius.
    P4,
    /// Anchors stay.
    P5,
    /// Transport.
    P6,
    /// Anti-gaming.
    P7,
    /// Global squared error, confirm.
    P8,
    /// Green slices not worse, confirm.
    P9,
    /// Calibration uncertainty.
    P10,
}

impl Criterion {
    /// Every gate in order.
    pub const ALL: [Self; 11] = [
        Self::P0,
        Self::P1,
        Self::P2,
        Self::P3,
        Self::P4,
        Self::P5,
        Self::P6,
        Self::P7,
        Self::P8,
        Self::P9,
        Self::P10,
    ];

    /// The word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::P0 => "p0",
            Self::P1 => "p1",
            Self::P2 => "p2",
            Self::P3 => "p3",
            Self::P4 => "p4",
            Self::P5 => "p5",
            Self::P6 => "p6",
            Self::P7 => "p7",
            Self::P8 => "p8",
            Self::P9 => "p9",
            Self::P10 => "p10",
        }
    }
}

impl std::fmt::Display for Criterion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// On which rows a gate was evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CriterionSplit {
    /// The confirm block, after it was unsealed.
    Confirm,
    /// Everything before: dev labels, logs, anchors, the battery.
    Dev,
}

impl CriterionSplit {
    /// The word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confirm => "confirm",
            Self::Dev => "dev",
        }
    }
}

/// What the gates hold a candidate to, as registered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Thresholds {
    /// Error rate of the confirm tests together.
    pub alpha_micro: Micro,
    /// The test of the confirm block.
    pub confirm_test: ConfirmTest,
    /// Largest mean shift of an anchor set.
    pub drift_max_micro: Micro,
    /// By how much the calibration error may grow.
    pub ece_slack_micro: Micro,
    /// Improvement of the mean squared error that is demanded.
    pub eta_micro: Micro,
    /// Hypotheses among which alpha is divided.
    pub hypotheses: Count,
    /// Largest Kolmogorov-Smirnov distance.
    pub ks_max_micro: Micro,
    /// What slices that must not regress are held to.
    pub must_not_regress: RegressionGuard,
    /// The profile that binds.
    pub profile: Profile,
    /// Level of a green slice and of transport.
    pub q_micro: Micro,
    /// Which distance bounds the blast radius.
    pub shift_metric: ShiftMetric,
    /// Largest mean absolute uplift of style stripping.
    pub style_max_micro: Micro,
    /// Tolerance of a green slice.
    pub tau_micro: Micro,
    /// Largest uplift of an attack.
    pub uplift_max_micro: Micro,
    /// Largest Wasserstein distance.
    pub w1_max_micro: Micro,
}

/// Sufficient statistics of one gate: all that its verdict needs besides the thresholds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Evidence {
    /// Of the patch itself.
    P0(Admissible),
    /// Change of the squared error on dev.
    P1(LossMean),
    /// Calibration errors on dev.
    P2(CalibrationChange),
    /// Green slices on dev.
    P3(Greens),
    /// How far rewards move.
    P4(Blast),
    /// How far anchors move.
    P5(Anchors),
    /// Residuals by environment.
    P6(EnvironmentTests),
    /// Uplift of attacks.
    P7(Gaming),
    /// Change of the squared error on confirm.
    P8(ConfirmLoss),
    /// Green slices on confirm.
    P9(Greens),
    /// Share of the variance that the calibrator causes.
    P10(CalibrationShare),
}

impl Evidence {
    /// The gate that it is about.
    pub fn gate(&self) -> Criterion {
        match self {
            Self::P0(_) => Criterion::P0,
            Self::P1(_) => Criterion::P1,
            Self::P2(_) => Criterion::P2,
            Self::P3(_) => Criterion::P3,
            Self::P4(_) => Criterion::P4,
            Self::P5(_) => Criterion::P5,
            Self::P6(_) => Criterion::P6,
            Self::P7(_) => Criterion::P7,
            Self::P8(_) => Criterion::P8,
            Self::P9(_) => Criterion::P9,
            Self::P10(_) => Criterion::P10,
        }
    }
}

/// What each profile says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdicts {
    /// Under the thresholds as the paper prints them.
    pub literal: Verdict,
    /// Under those that Clover recommends.
    pub recommended: Verdict,
}

impl Verdicts {
    /// The one that binds.
    pub fn under(self, profile: Profile) -> Verdict {
        match profile {
            Profile::Literal => self.literal,
            Profile::Recommended => self.recommended,
        }
    }
}
