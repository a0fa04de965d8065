//! The acceptance predicate: one pure rule per gate, over the sufficient statistics that a gate event carries.
//!
//! Evidence is what was measured, a verdict is what a rule says of it. The same rules judge a candidate, an event that
//! is about to be appended, and history. A gate that cannot be computed is `inconclusive`, which is not a pass. To add
//! a gate: its evidence in `event::payload::gate`, its file here, its line in [`CRITERIA`]. Source: CLOVER v1.1, section 5.

mod p0;
mod p1;
mod p10;
mod p2;
mod p4;
mod p5;
mod p6;
mod p7;
mod p8;
mod p9;

pub use p6::adjusted;
pub use p7::ATTACKS;

use clover_event::payload::Verdict;
use clover_event::payload::manifest::ConfirmTest;
use clover_event::payload::manifest::Profile;
use clover_event::payload::manifest::RegressionGuard;
use clover_event::payload::manifest::ShiftMetric;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::LossMean;
use clover_event::payload::predicate::Thresholds;
use clover_event::payload::predicate::Verdicts;
use clover_num::Count;
use clover_num::Micro;
use clover_stats::distribution;
use clover_stats::inference::Interval;

/// Calibration error that may be gained under the profile `recommended`.
const ECE_SLACK: f64 = 0.005;

/// One gate.
#[derive(Clone, Copy, Debug)]
pub struct CriterionRule {
    /// Which.
    pub id: Criterion,
    /// What it asks, for people.
    pub asks: &'static str,
    /// On which rows it is evaluated before a candidate is accepted.
    pub splits: &'static [CriterionSplit],
    /// Its rule; `None` for evidence of another gate.
    pub check: fn(&Evidence, &ProfileThresholds) -> Option<Verdict>,
    /// Its numbers beside what they are held to.
    pub show: fn(&Evidence, &ProfileThresholds) -> Vec<CriterionNumber>,
}

/// One line per gate, in order.
pub const CRITERIA: [CriterionRule; 11] = [
    p0::RULE,
    p1::RULE,
    p2::RULE,
    p9::DEV,
    p4::RULE,
    p5::RULE,
    p6::RULE,
    p7::RULE,
    p8::RULE,
    p9::CONFIRM,
    p10::RULE,
];

/// A number of a gate beside what it is held to.
#[derive(Clone, Debug, PartialEq)]
pub struct CriterionNumber {
    /// What it is.
    pub name: String,
    /// Its value; `None` if there is none.
    pub value: Option<f64>,
    /// What it is held to, such as `<= 0.05`; empty for a number that decides nothing.
    pub held: String,
}

impl CriterionNumber {
    fn new(
        name: impl Into<String>,
        value: impl Into<Option<f64>>,
        held: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            held: held.into(),
        }
    }
}

/// Thresholds as one profile reads them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProfileThresholds {
    /// Alpha divided by the hypotheses.
    pub level: f64,
    /// The test of the confirm block.
    pub confirm_test: ConfirmTest,
    /// Largest mean shift of an anchor set.
    pub drift_max: f64,
    /// By how much the calibration error may grow.
    pub ece_slack: f64,
    /// Improvement that is demanded.
    pub eta: f64,
    /// Largest Kolmogorov-Smirnov distance.
    pub ks_max: f64,
    /// What slices that must not regress are held to.
    pub must_not_regress: RegressionGuard,
    /// Level of a green slice and of transport.
    pub q: f64,
    /// Which distance bounds the blast radius.
    pub shift_metric: ShiftMetric,
    /// Largest mean absolute uplift of style stripping.
    pub style_max: f64,
    /// Tolerance of a green slice.
    pub tau: f64,
    /// Largest uplift of an attack.
    pub uplift_max: f64,
    /// Largest Wasserstein distance.
    pub w1_max: f64,
}

fn real(value: Micro) -> f64 {
    value.value() as f64 / 1e6
}

fn whole(count: Count) -> usize {
    usize::try_from(count.value()).unwrap_or(usize::MAX)
}

impl ProfileThresholds {
    /// The registered thresholds under a profile. The profile that is registered keeps its own confirm test and, if it
    /// is `recommended`, every registered number; `literal` always has no slack for the calibration error, bounds the
    /// blast radius by Kolmogorov-Smirnov, and reads must-not-regress by the letter.
    pub fn under(thresholds: &Thresholds, profile: Profile) -> Self {
        let registered = thresholds.profile == profile;
        let literal = profile == Profile::Literal;
        let asymptotic = matches!(
            thresholds.confirm_test,
            ConfirmTest::Bootstrap | ConfirmTest::T
        );
        let (ece_slack, shift_metric, must_not_regress) = match (literal, registered) {
            (true, _) => (0.0, ShiftMetric::Ks, RegressionGuard::Literal),
            (false, true) => (
                real(thresholds.ece_slack_micro),
                thresholds.shift_metric,
                thresholds.must_not_regress,
            ),
            (false, false) => (ECE_SLACK, ShiftMetric::Either, thresholds.must_not_regress),
        };
        let confirm_test = match (registered, literal) {
            (true, _) => thresholds.confirm_test,
            (false, true) if asymptotic => thresholds.confirm_test,
            (false, true) => ConfirmTest::T,
            (false, false) => ConfirmTest::Betting,
        };
        Self {
            level: real(thresholds.alpha_micro) / thresholds.hypotheses.value().max(1) as f64,
            confirm_test,
            drift_max: real(thresholds.drift_max_micro),
            ece_slack,
            eta: real(thresholds.eta_micro),
            ks_max: real(thresholds.ks_max_micro),
            must_not_regress,
            q: real(thresholds.q_micro),
            shift_metric,
            style_max: real(thresholds.style_max_micro),
            tau: real(thresholds.tau_micro),
            uplift_max: real(thresholds.uplift_max_micro),
            w1_max: real(thresholds.w1_max_micro),
        }
    }
}

/// The gate of an id.
pub fn gate(id: Criterion) -> &'static CriterionRule {
    static ALL: [CriterionRule; 11] = CRITERIA;
    &ALL[id as usize]
}

/// What a profile says of evidence.
pub fn check(evidence: &Evidence, held: &ProfileThresholds) -> Verdict {
    (gate(evidence.gate()).check)(evidence, held).unwrap_or(Verdict::Inconclusive)
}

/// What both profiles say of evidence.
pub fn verdicts(evidence: &Evidence, thresholds: &Thresholds) -> Verdicts {
    let under = |profile| check(evidence, &ProfileThresholds::under(thresholds, profile));
    Verdicts {
        literal: under(Profile::Literal),
        recommended: under(Profile::Recommended),
    }
}

/// The worst of some verdicts; a pass if there are none. Fail, then inconclusive, then not checked, then pass.
pub fn worst(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    let rank = |verdict: &Verdict| match verdict {
        Verdict::Fail => 0,
        Verdict::Inconclusive => 1,
        Verdict::NotChecked => 2,
        Verdict::Pass => 3,
    };
    verdicts
        .into_iter()
        .min_by_key(rank)
        .unwrap_or(Verdict::Pass)
}

pub(crate) fn pass_if(holds: bool) -> Verdict {
    if holds { Verdict::Pass } else { Verdict::Fail }
}

/// What is shown of a mean of loss differences.
fn loss_lines(loss: &LossMean, held: impl Into<String>) -> Vec<CriterionNumber> {
    let error = loss.standard_error.map(clover_num::Finite::value);
    vec![
        CriterionNumber::new("dmse", loss.mean.value(), held),
        CriterionNumber::new("se", error, ""),
        CriterionNumber::new("rows", loss.rows.value() as f64, ""),
    ]
}

/// Confidence of the interval of a gain.
const GAIN_LEVEL: f64 = 0.95;

/// What a change of the squared error is, within 95 %: the recorded mean and its standard error over clusters, by t. It decides
/// nothing; `None` for one cluster.
pub fn gain_interval(loss: &LossMean) -> Option<Interval> {
    let error = loss.standard_error?.value();
    let df = loss.clusters.value().checked_sub(1).filter(|df| *df > 0)?;
    let reach = distribution::t_quantile(0.5 * (1.0 + GAIN_LEVEL), df as f64) * error;
    Some(Interval::around(loss.mean.value(), reach))
}

#[cfg(test)]
pub(crate) mod tests {
    use clover_event::payload::predicate::CalibrationShare;
    use clover_num::Finite;
    use clover_num::Probability;

    use super::*;

    fn micro(value: i64) -> Micro {
        Micro::new(value).unwrap()
    }

    // scipy.stats.t.interval(0.95, 99, loc=-0.01, scale=0.002)
    #[test]
    fn the_interval_of_a_gain_is_that_of_t() {
        let loss = |clusters: u64, error: Option<f64>| LossMean {
            clusters: Count::new(clusters).unwrap(),
            mean: Finite::new(-0.01).unwrap(),
            rows: Count::new(250).unwrap(),
            standard_error: error.and_then(Finite::new),
        };
        let found = gain_interval(&loss(100, Some(0.002))).unwrap();
        assert!((found.low + 0.013_968_433_903).abs() < 1e-9, "{found:?}");
        assert!((found.high + 0.006_031_566_097).abs() < 1e-9, "{found:?}");
        assert!(gain_interval(&loss(1, None)).is_none());
    }

    /// The defaults of the template, betting, four hypotheses.
    pub(crate) fn thresholds() -> Thresholds {
        Thresholds {
            alpha_micro: micro(50_000),
            confirm_test: ConfirmTest::Betting,
            drift_max_micro: micro(10_000),
            ece_slack_micro: micro(5_000),
            eta_micro: micro(1_000),
            hypotheses: Count::new(4).unwrap(),
            ks_max_micro: micro(50_000),
            must_not_regress: RegressionGuard::Guard,
            profile: Profile::Recommended,
            q_micro: micro(100_000),
            shift_metric: ShiftMetric::Either,
            style_max_micro: micro(20_000),
            tau_micro: micro(1_500),
            uplift_max_micro: micro(50_000),
            w1_max_micro: micro(20_000),
        }
    }

    pub(super) fn held() -> ProfileThresholds {
        ProfileThresholds::under(&thresholds(), Profile::Recommended)
    }

    #[test]
    fn each_line_stands_in_its_place() {
        for (gate, id) in CRITERIA.iter().zip(Criterion::ALL) {
            assert_eq!(gate.id, id);
            assert_eq!(super::gate(id).id, id);
        }
    }

    #[test]
    fn profiles_read_the_same_thresholds_differently() {
        let both = thresholds();
        let literal = ProfileThresholds::under(&both, Profile::Literal);
        assert!((literal.level - 0.0125).abs() < 1e-15);
        assert!(literal.ece_slack.abs() <= 0.0);
        assert_eq!(literal.shift_metric, ShiftMetric::Ks);
        assert_eq!(literal.confirm_test, ConfirmTest::T);
        assert_eq!(literal.must_not_regress, RegressionGuard::Literal);
        let registered = Thresholds {
            profile: Profile::Literal,
            confirm_test: ConfirmTest::Bootstrap,
            ece_slack_micro: micro(0),
            ..both
        };
        let other = ProfileThresholds::under(&registered, Profile::Recommended);
        assert_eq!(other.confirm_test, ConfirmTest::Betting);
        assert!((other.ece_slack - 0.005).abs() < 1e-15);
        let own = ProfileThresholds::under(&registered, Profile::Literal);
        assert_eq!(own.confirm_test, ConfirmTest::Bootstrap);
    }

    #[test]
    fn evidence_of_another_gate_decides_nothing() {
        let evidence = Evidence::P10(CalibrationShare {
            confirm_change: Finite::new(-0.01).unwrap(),
            share: Probability::new(0.1).unwrap(),
        });
        for gate in CRITERIA {
            let found = (gate.check)(&evidence, &held());
            assert_eq!(found.is_some(), gate.id == Criterion::P10);
        }
    }

    #[test]
    fn the_worst_verdict_wins() {
        use Verdict::{Fail, Inconclusive, NotChecked, Pass};
        assert_eq!(worst([Pass, NotChecked, Pass]), NotChecked);
        assert_eq!(worst([NotChecked, Inconclusive, Pass]), Inconclusive);
        assert_eq!(worst([Inconclusive, Fail]), Fail);
        assert_eq!(worst([]), Pass);
    }
}
