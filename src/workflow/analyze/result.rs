//! What an analysis found, in the units of the output scale.

use crate::stats::boundary;
use crate::stats::boundary::Card;
use crate::stats::boundary::Slopes;
use crate::stats::boundary::Support;
use crate::stats::calibrator::Calibrator;
use crate::stats::direct::Basis;
use crate::stats::direct::DfMethod;
use crate::stats::direct::Route;
use crate::stats::direct::Scale;
use crate::stats::direct::Unavailable;
use crate::stats::direct::WeightReason;
use crate::stats::inference::Interval;
use crate::stats::oua::Share;
use crate::stats::sample::Thin;
use crate::stats::transport::Audit;
use crate::stats::transport::State;

/// Estimates of all policies.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// Policies in order of their names.
    pub policies: Vec<PolicyResult>,
    /// Every pair of policies that has an interval.
    pub differences: Vec<Difference>,
    /// The calibrator, or why there is none.
    pub calibration: Result<Calibration, Thin>,
    /// Scale of judge scores; `None` for scores that are all one value outside [0, 1].
    pub judge_scale: Option<Scale>,
    /// Scale of labels; `None` likewise.
    pub label_scale: Option<Scale>,
    /// Scale of everything reported here.
    pub output_scale: Scale,
    /// One less the level of intervals.
    pub alpha: f64,
    /// Replicates of the bootstrap, by replicate, then policy; empty without one.
    pub replicates: Vec<Vec<f64>>,
    /// Prompts over all policies.
    pub prompts: usize,
}

/// The calibrator and where it may be trusted.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The calibrator, on the unit scale.
    pub calibrator: Calibrator,
    /// Labelled rows that it was fitted on.
    pub labels: usize,
    /// Their prompts.
    pub clusters: usize,
    /// Folds.
    pub folds: usize,
    /// Least and largest labelled score, as recorded.
    pub score_range: (f64, f64),
    /// Slopes at the ends of the labelled scores, on the unit scale.
    pub slopes: Slopes,
}

/// One policy's estimate.
#[derive(Clone, Debug)]
pub struct PolicyResult {
    /// Its name.
    pub name: String,
    /// Responses.
    pub rows: usize,
    /// Prompts.
    pub clusters: usize,
    /// Responses with a label.
    pub labelled: usize,
    /// Weighted share of labelled responses.
    pub labelled_share: f64,
    /// The estimate.
    pub estimate: f64,
    /// How.
    pub route: Route,
    /// Mean calibrated reward.
    pub plug_in: f64,
    /// Estimate less mean calibrated reward.
    pub correction: f64,
    /// Weight on the prediction inside the correction.
    pub weight: Option<(f64, WeightReason)>,
    /// Analytic standard error, degrees of freedom and interval, or why there is none.
    pub spread: Result<SpreadResult, Unavailable>,
    /// Calibration variance; `None` without a jackknife.
    pub calibration_variance: Option<f64>,
    /// Bootstrap standard error and percentile interval.
    pub resampled: Option<Resampled>,
    /// Mean of its own labels with its interval: what the judge is worth.
    pub labels_only: Option<LabelsOnly>,
    /// The peer's boundary card.
    pub card: Option<Card>,
    /// Whether a level may be claimed.
    pub support: Option<Support>,
    /// What monotonicity alone says, where a level is refused.
    pub bounds: Option<Interval>,
    /// Shares and labels by decile, where they were asked for and there is a calibrator.
    pub detail: Option<Detail>,
    /// Transport audit on held-out labels, where a probe was given.
    pub transport: Option<TransportResult>,
}

impl PolicyResult {
    /// Whether its estimate stands on calibration that its own labels did not correct and no audit passed.
    pub fn borrows(&self) -> bool {
        let passed = self
            .transport
            .as_ref()
            .is_some_and(|result| result.audit.state == State::Pass);
        !self.route.uses_own_labels() && self.route != Route::Naive && !passed
    }
}

/// Standard error and interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpreadResult {
    /// Standard error.
    pub se: f64,
    /// Degrees of freedom.
    pub df: f64,
    /// Where they come from.
    pub df_method: DfMethod,
    /// The t interval, not clipped.
    pub interval: Interval,
    /// Sampling variance, the labelled part inflated where a correction was fitted.
    pub sampling: f64,
    /// Share of the variance that is the calibrator's.
    pub calibration_share: f64,
}

/// Where a policy's rewards are uncertain, and where its scores have labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// Variance of the mean calibrated reward and the calibrator's part of it, on the unit scale; `None` for one
    /// prompt.
    pub share: Option<Share>,
    /// The same by decile of the calibrated reward, lowest first; ties merge deciles.
    pub share_by_decile: Vec<Option<Share>>,
    /// Rows of each of those deciles.
    pub decile_rows: Vec<usize>,
    /// Labels by decile of the policy's scores, lowest first; ties merge deciles.
    pub labels_by_decile: Vec<usize>,
}

/// Bootstrap results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resampled {
    /// Standard deviation of replicates.
    pub se: f64,
    /// Percentile interval.
    pub interval: Interval,
}

/// What labels alone say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LabelsOnly {
    /// Mean label.
    pub mean: f64,
    /// Its interval; `None` for one prompt.
    pub interval: Option<Interval>,
}

/// A transport audit.
#[derive(Clone, Debug, PartialEq)]
pub struct TransportResult {
    /// The audit, on the unit scale.
    pub audit: Audit,
    /// The margin, in output units; `None` was not given.
    pub margin: Option<f64>,
    /// Adjusted p that the mean residual is 0, within the family of probes (Benjamini-Hochberg).
    pub zero_null_p_adjusted: Option<f64>,
}

/// A difference of two policies.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Index of the first policy.
    pub first: usize,
    /// Index of the second.
    pub second: usize,
    /// First less second.
    pub difference: f64,
    /// Standard error.
    pub se: f64,
    /// Degrees of freedom; `None` for a bootstrap.
    pub df: Option<f64>,
    /// Interval.
    pub interval: Interval,
    /// Two-sided p of no difference.
    pub p: f64,
    /// Benjamini-Hochberg over all pairs.
    pub p_adjusted: f64,
    /// What it is paired on.
    pub basis: Basis,
    /// The interval widened by what monotonicity leaves open, where a side's level is refused (paper, D.7).
    pub conservative: Option<Interval>,
}

/// How much weight a policy's level can bear, in the peer's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Nothing speaks against it.
    Good,
    /// Saturated, or it stands on borrowed calibration.
    Warning,
    /// Its level is refused.
    Critical,
}

impl Status {
    /// Of one policy: its boundary card, and whether it stands on labels other than its own without a passed audit.
    pub fn of(policy: &PolicyResult) -> Self {
        let card = match policy.card.map(|card| card.status) {
            Some(boundary::Status::RefuseLevel) => Self::Critical,
            Some(boundary::Status::Caution) => Self::Warning,
            Some(boundary::Status::Ok) | None => Self::Good,
        };
        if policy.borrows() {
            card.max(Self::Warning)
        } else {
            card
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "GOOD",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
        }
    }
}
