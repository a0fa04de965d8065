//! P3 and P9: no protected slice gets worse, on dev and on confirm.
//!
//! All must pass, an intersection-union test: Benjamini and Hochberg at q reject all exactly when the largest p is at
//! most q.

use clover_event::payload::Verdict;
use clover_event::payload::manifest::RegressionGuard;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::GreenSlice;
use clover_event::payload::predicate::Greens;
use clover_num::Finite;
use clover_num::Probability;
use clover_stats::predicate::GreenNumbers;
use clover_stats::predicate::GreenRule;

use crate::predicate::CriterionNumber;
use crate::predicate::CriterionRule;
use crate::predicate::ProfileThresholds;
use crate::predicate::whole;
use crate::predicate::worst;

/// Rise of the abstention share in a protected slice above which a candidate fails.
const ABSTENTION_RISE_MAX: f64 = 0.05;

/// On dev.
pub(super) const DEV: CriterionRule = CriterionRule {
    id: Criterion::P3,
    asks: "green slices not worse, dev",
    splits: &[CriterionSplit::Dev],
    check: |evidence, held| match evidence {
        Evidence::P3(found) => Some(check(found, held)),
        _ => None,
    },
    show: |evidence, held| match evidence {
        Evidence::P3(found) => show(found, held),
        _ => Vec::new(),
    },
};

/// On confirm.
pub(super) const CONFIRM: CriterionRule = CriterionRule {
    id: Criterion::P9,
    asks: "green slices not worse, confirm",
    splits: &[CriterionSplit::Confirm],
    check: |evidence, held| match evidence {
        Evidence::P9(found) => Some(check(found, held)),
        _ => None,
    },
    show: |evidence, held| match evidence {
        Evidence::P9(found) => show(found, held),
        _ => Vec::new(),
    },
};

/// The rule of a slice, and the p that it reads.
fn rule(
    slice: &GreenSlice,
    tau: f64,
    held: &ProfileThresholds,
) -> (GreenRule, Option<Probability>) {
    let level = held.q;
    match (slice.must_not_regress, held.must_not_regress) {
        (true, RegressionGuard::Guard) => (GreenRule::Guard, None),
        (true, RegressionGuard::Literal) => {
            (GreenRule::NonInferior { tau: 0.0, level }, slice.p_zero)
        }
        (false, _) => (GreenRule::NonInferior { tau, level }, slice.p),
    }
}

fn slice_verdict(slice: &GreenSlice, tau: f64, held: &ProfileThresholds) -> Verdict {
    if slice.abstention_rise.value() > ABSTENTION_RISE_MAX {
        return Verdict::Fail;
    }
    let Some(loss) = slice.loss else {
        return Verdict::Inconclusive;
    };
    let (rule, p) = rule(slice, tau, held);
    let outcome = rule.outcome(&GreenNumbers {
        rows: whole(loss.rows),
        untouched: slice.untouched,
        mean: loss.mean.value(),
        p: p.map(Probability::value),
        upper: slice.upper.map(Finite::value),
    });
    if outcome.passes() {
        return Verdict::Pass;
    }
    match outcome {
        clover_stats::predicate::GreenOutcome::Fail => Verdict::Fail,
        _ => Verdict::Inconclusive,
    }
}

fn check(found: &Greens, held: &ProfileThresholds) -> Verdict {
    let tau = found.tau_micro.value() as f64 / 1e6;
    // A p that was computed for another tolerance says nothing about the registered one.
    if (tau - held.tau).abs() > 0.0 {
        return Verdict::Inconclusive;
    }
    worst(
        found
            .slices
            .iter()
            .map(|slice| slice_verdict(slice, tau, held)),
    )
}

fn show(found: &Greens, held: &ProfileThresholds) -> Vec<CriterionNumber> {
    let line = |slice: &GreenSlice| {
        let name = |what: &str| format!("{} {} {what}", slice.family, slice.slice);
        if slice.untouched {
            return CriterionNumber::new(name("untouched"), None, "");
        }
        match rule(slice, held.tau, held) {
            (GreenRule::Guard, _) => {
                let upper = slice.upper.map(Finite::value);
                CriterionNumber::new(name("upper"), upper, "<= 0.0005")
            }
            (GreenRule::NonInferior { .. }, p) => CriterionNumber::new(
                name("p"),
                p.map(Probability::value),
                format!("<= {}", held.q),
            ),
        }
    };
    found.slices.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use clover_event::payload::predicate::LossMean;
    use clover_num::Count;

    use super::*;
    use crate::predicate::tests::held;
    use crate::predicate::tests::thresholds;

    fn slice(rows: u64, p: f64) -> GreenSlice {
        let finite = |value| Finite::new(value).unwrap();
        GreenSlice {
            abstention_rise: finite(0.05),
            family: "f".parse().unwrap(),
            loss: Some(LossMean {
                clusters: Count::new(rows).unwrap(),
                mean: finite(-0.0001),
                rows: Count::new(rows).unwrap(),
                standard_error: None,
            }),
            must_not_regress: false,
            p: Probability::new(p),
            p_zero: Probability::new(0.4),
            slice: "a".parse().unwrap(),
            untouched: false,
            upper: Finite::new(0.0005),
            worst: Vec::new(),
        }
    }

    fn said(slices: Vec<GreenSlice>, held: &ProfileThresholds) -> Verdict {
        let tau_micro = thresholds().tau_micro;
        (DEV.check)(&Evidence::P3(Greens { slices, tau_micro }), held).unwrap()
    }

    #[test]
    fn the_worst_slice_decides() {
        let good = slice(40, 0.1);
        assert_eq!(said(vec![good.clone()], &held()), Verdict::Pass);
        assert_eq!(said(Vec::new(), &held()), Verdict::Pass);
        let said_with = |other| said(vec![good.clone(), other], &held());
        assert_eq!(said_with(slice(40, 0.101)), Verdict::Fail);
        assert_eq!(said_with(slice(39, 0.0)), Verdict::Inconclusive);
        assert_eq!(
            said_with(GreenSlice {
                p: None,
                ..slice(40, 0.0)
            }),
            Verdict::Inconclusive
        );
        assert_eq!(
            said_with(GreenSlice {
                loss: None,
                ..slice(40, 0.0)
            }),
            Verdict::Inconclusive
        );
        let untouched = GreenSlice {
            p: None,
            untouched: true,
            ..slice(40, 0.0)
        };
        assert_eq!(said_with(untouched), Verdict::Pass);
        let silent = GreenSlice {
            abstention_rise: Finite::new(0.0501).unwrap(),
            ..slice(40, 0.0)
        };
        assert_eq!(said_with(silent), Verdict::Fail);
    }

    #[test]
    fn must_not_regress_has_two_readings() {
        let kept = GreenSlice {
            must_not_regress: true,
            ..slice(40, 0.9)
        };
        let guard = ProfileThresholds {
            must_not_regress: RegressionGuard::Guard,
            ..held()
        };
        let literal = ProfileThresholds {
            must_not_regress: RegressionGuard::Literal,
            ..held()
        };
        assert_eq!(said(vec![kept.clone()], &guard), Verdict::Pass);
        assert_eq!(said(vec![kept.clone()], &literal), Verdict::Fail);
        let high = GreenSlice {
            upper: Finite::new(0.000_51),
            ..kept
        };
        assert_eq!(said(vec![high], &guard), Verdict::Fail);
    }

    #[test]
    fn a_p_for_another_tolerance_decides_nothing() {
        let other = ProfileThresholds {
            tau: 0.002,
            ..held()
        };
        assert_eq!(said(vec![slice(40, 0.0)], &other), Verdict::Inconclusive);
    }
}
