//! What an analysis found, in the units of the output scale.

use clover_event::payload::estimated::Reading;
use clover_stats::boundary;
use clover_stats::boundary::Card;
use clover_stats::boundary::Slopes;
use clover_stats::boundary::Support;
use clover_stats::calibrator::Calibrator;
use clover_stats::direct::Basis;
use clover_stats::direct::DfMethod;
use clover_stats::direct::Route;
use clover_stats::direct::Scale;
use clover_stats::direct::Unavailable;
use clover_stats::direct::WeightReason;
use clover_stats::inference::Interval;
use clover_stats::oua::Share;
use clover_stats::reliability::CalibrationLine;
use clover_stats::sample::InsufficientData;
use clover_stats::transport::AuditState;
use clover_stats::transport::TransportAudit;

/// Estimates of all policies.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// Policies in order of their names.
    pub policies: Vec<PolicyResult>,
    /// Every pair of policies that has an interval.
    pub differences: Vec<Difference>,
    /// The calibrator, or why there is none.
    pub calibration: Result<Calibration, InsufficientData>,
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

impl Analysis {
    /// How a difference is to be read: nothing is told apart where a side is not checked, nor by less than the margins of
    /// the audits that it rests on.
    pub fn reading(&self, pair: &Difference) -> Reading {
        let sides = [&self.policies[pair.first], &self.policies[pair.second]];
        if !sides.iter().all(|side| side.is_checked()) {
            return Reading::Unchecked;
        }
        let margins: f64 = sides.iter().map(|side| side.audited_margin()).sum();
        let base = pair.widest().unwrap_or(pair.interval);
        let leaves_zero = base.low - margins > 0.0 || base.high + margins < 0.0;
        if pair.p_adjusted < self.alpha && leaves_zero {
            Reading::ToldApart
        } else {
            Reading::NotToldApart
        }
    }
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
    /// Labels on out-of-fold predictions, on the unit scale; `None` where predictions are all one value, or too few.
    pub line: Option<CalibrationLine>,
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
    pub resampled: Option<BootstrapResult>,
    /// Labelled prompts with another label than the most common one of its own.
    pub off_mode: usize,
    /// What bounds its value where nearly all of its own labels are one value.
    pub rare: Option<RareLabels>,
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

/// Labels of one policy of which nearly all are one value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RareLabels {
    /// Where its mean lies; `None` for equal labels on a scale that nobody declared.
    pub bound: Option<Interval>,
    /// Whether the bound takes the place of the interval: it counts in what the other labels say, by stratum.
    pub takes_place: bool,
}

/// How the interval of a policy came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Cluster-robust and jackknife, Student t.
    Student,
    /// Percentiles of replicates.
    Percentile,
    /// Either, widened by the exact bound of nearly constant labels.
    Bounded,
}

impl Method {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Student => "t",
            Self::Percentile => "percentile",
            Self::Bounded => "bounded",
        }
    }
}

/// Why a policy has no interval, where no rule of the peer's says so.
const EQUAL_LABELS: &str = "equal_labels_on_undeclared_scale";
const NO_VARIATION: &str = "no_variation";

impl PolicyResult {
    /// The interval as statistics give it, before it is asked whether its labels vary enough for one.
    ///
    /// # Errors
    /// Why there is none, in a word.
    pub fn plain_interval(&self) -> Result<(Interval, Method), &'static str> {
        match (&self.resampled, &self.spread) {
            (Some(resampled), _) => Ok((resampled.interval, Method::Percentile)),
            (None, Ok(spread)) => Ok((spread.interval, Method::Student)),
            (None, Err(why)) => Err(why.name()),
        }
    }

    /// The interval in force, or why there is none: nearly constant labels widen it, and none has no width.
    ///
    /// # Errors
    /// The reason, in a word.
    pub fn interval(&self) -> Result<(Interval, Method), &'static str> {
        let (plain, method) = self.plain_interval()?;
        match self.rare {
            Some(RareLabels { bound: None, .. }) => Err(EQUAL_LABELS),
            Some(RareLabels {
                bound: Some(bound),
                takes_place,
            }) => {
                let found = if takes_place {
                    bound
                } else {
                    plain.hull(bound)
                };
                Ok((found, Method::Bounded))
            }
            None if plain.width() <= 0.0 => Err(NO_VARIATION),
            None => Ok((plain, method)),
        }
    }

    /// Whether the exact bound of nearly constant labels reaches beyond the plain interval.
    pub fn is_widened(&self) -> bool {
        let both = self.plain_interval().ok().zip(self.interval().ok());
        both.is_some_and(|((plain, _), (found, _))| found != plain)
    }

    /// What its labels alone say: widened, or without an interval, as its own is.
    pub fn labels_alone(&self) -> Option<LabelsOnly> {
        let alone = self.labels_only?;
        let interval = match self.rare {
            Some(RareLabels {
                bound,
                takes_place: false,
            }) => bound.zip(alone.interval).map(|(a, b)| a.hull(b)),
            _ => alone.interval.filter(|of| of.width() > 0.0),
        };
        Some(LabelsOnly { interval, ..alone })
    }

    /// How far its calibration may be off by the audit that it rests on; 0 where own labels correct it.
    pub fn audited_margin(&self) -> f64 {
        let audit = self.transport.as_ref();
        let audit = audit.filter(|_| !self.route.uses_own_labels());
        audit.and_then(|result| result.margin).unwrap_or(0.0)
    }

    /// Whether its value may be compared: own labels correct it, or an audit passed, and its level is not withheld.
    pub fn is_checked(&self) -> bool {
        let audit = self.transport.as_ref().map(|result| result.audit.state);
        let refused = self.support.is_some_and(|support| support.refuse_level);
        let supported = self.route.uses_own_labels() || audit == Some(AuditState::Pass);
        supported && !refused && audit != Some(AuditState::Fail)
    }

    /// Whether its estimate stands on calibration that its own labels did not correct and no audit passed.
    pub fn borrows(&self) -> bool {
        let passed = self
            .transport
            .as_ref()
            .is_some_and(|result| result.audit.state == AuditState::Pass);
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
pub struct BootstrapResult {
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
    pub audit: TransportAudit,
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
    /// The interval as far as the two policies' own intervals are apart, where the labels of a side hardly vary.
    pub unvaried: Option<Interval>,
}

impl Difference {
    /// The widest of its intervals: what must leave zero out before anything is told apart.
    pub fn widest(&self) -> Option<Interval> {
        match (self.conservative, self.unvaried) {
            (Some(a), Some(b)) => Some(a.hull(b)),
            (a, b) => a.or(b),
        }
    }
}

/// How much weight a policy's level can bear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Nothing speaks against it.
    Good,
    /// Saturated, uncalibrated, or it stands on borrowed calibration.
    Warning,
    /// Its level is refused.
    Critical,
}

impl Status {
    /// Of one policy as the peer has it: its boundary card, and whether it stands on labels other than its own without a
    /// passed audit.
    pub fn of_peer(policy: &PolicyResult) -> Self {
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

    /// Of one policy: as the peer has it, but for a mean of labels, which needs no calibrator, for a mean of raw scores,
    /// which nothing supports, and for a failed audit.
    pub fn of(policy: &PolicyResult) -> Self {
        let failed = policy
            .transport
            .as_ref()
            .is_some_and(|result| result.audit.state == AuditState::Fail);
        match policy.route {
            Route::DirectOracle => Self::Good,
            Route::Naive => Self::Warning,
            _ if failed => Self::of_peer(policy).max(Self::Warning),
            _ => Self::of_peer(policy),
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
