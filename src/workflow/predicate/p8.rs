//! P8: the squared error falls on confirm, beyond chance.

use clover_event::payload::Verdict;
use clover_event::payload::manifest::ConfirmTest;
use clover_event::payload::predicate::ConfirmLoss;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::SequentialStop;
use clover_num::Probability;
use clover_stats::crv1::ClusteredMean;
use clover_stats::predicate;
use clover_stats::predicate::BettingTest;
use clover_stats::predicate::Confirm;
use clover_stats::predicate::ConfirmOutcome;

use crate::predicate::CriterionNumber;
use crate::predicate::CriterionRule;
use crate::predicate::ProfileThresholds;
use crate::predicate::loss_lines;
use crate::predicate::pass_if;
use crate::predicate::whole;

/// DMSE(confirm) <= -eta and p <= alpha divided by the hypotheses.
pub(super) const RULE: CriterionRule = CriterionRule {
    id: Criterion::P8,
    asks: "squared error falls, confirm",
    splits: &[CriterionSplit::Confirm],
    check,
    show,
};

fn test_of(held: &ProfileThresholds) -> predicate::ConfirmTest {
    match held.confirm_test {
        // The sequential test is exact too; its own p decides.
        ConfirmTest::Betting | ConfirmTest::Sequential => predicate::ConfirmTest::Betting,
        ConfirmTest::Bootstrap => predicate::ConfirmTest::Bootstrap,
        ConfirmTest::T => predicate::ConfirmTest::StudentT,
    }
}

fn numbers(found: &ConfirmLoss) -> Confirm {
    Confirm {
        mean: ClusteredMean {
            rows: whole(found.loss.rows),
            clusters: whole(found.loss.clusters),
            mean: found.loss.mean.value(),
            variance: None,
            effective_clusters: found.loss.clusters.value() as f64,
        },
        bound: found.bound.value(),
        betting: BettingTest {
            units: whole(found.loss.clusters),
            ln_wealth: found.ln_wealth.value(),
            p: found.p_exact.value(),
        },
        t_p: found.p_t.map(Probability::value),
        bootstrap_p: found.p_bootstrap.map(Probability::value),
        moved_clusters: whole(found.moved_clusters),
    }
}

fn check(evidence: &Evidence, held: &ProfileThresholds) -> Option<Verdict> {
    let Evidence::P8(found) = evidence else {
        return None;
    };
    if held.confirm_test == ConfirmTest::Sequential {
        return Some(sequential(found, held));
    }
    Some(
        match numbers(found).decide(test_of(held), held.eta, held.level) {
            Ok(ConfirmOutcome::Pass) => Verdict::Pass,
            Ok(ConfirmOutcome::Fail) => Verdict::Fail,
            Ok(ConfirmOutcome::Inconclusive) | Err(_) => Verdict::Inconclusive,
        },
    )
}

/// The test crossed at its level while labels were shown, and the whole block improves as demanded.
fn sequential(found: &ConfirmLoss, held: &ProfileThresholds) -> Verdict {
    let Some(test) = found.sequential else {
        return Verdict::Inconclusive;
    };
    let crossed = test.stop == SequentialStop::Crossed && test.p.value() <= held.level;
    pass_if(crossed && found.loss.mean.value() <= -held.eta)
}

fn show(evidence: &Evidence, held: &ProfileThresholds) -> Vec<CriterionNumber> {
    let Evidence::P8(found) = evidence else {
        return Vec::new();
    };
    let mut lines = loss_lines(&found.loss, format!("<= {}", -held.eta));
    let level = |test: ConfirmTest| {
        if test == held.confirm_test {
            format!("<= {}", held.level)
        } else {
            String::new()
        }
    };
    let p = |p: Option<Probability>| p.map(Probability::value);
    if let Some(test) = found.sequential {
        let (stop, units) = (test.stop.as_str(), test.units);
        lines.push(CriterionNumber::new(
            format!("p sequential, {stop} at cluster {units}"),
            test.p.value(),
            level(ConfirmTest::Sequential),
        ));
    }
    lines.push(CriterionNumber::new(
        "p betting",
        found.p_exact.value(),
        level(ConfirmTest::Betting),
    ));
    lines.push(CriterionNumber::new(
        "p t",
        p(found.p_t),
        level(ConfirmTest::T),
    ));
    lines.push(CriterionNumber::new(
        "p bootstrap",
        p(found.p_bootstrap),
        level(ConfirmTest::Bootstrap),
    ));
    let moved = found.moved_clusters.value() as f64;
    let needed = if test_of(held).is_asymptotic() {
        format!(">= {} (asymptotic)", predicate::CONFIRM_CLUSTERS_MIN)
    } else {
        String::new()
    };
    lines.push(CriterionNumber::new("moved clusters", moved, needed));
    lines
}

#[cfg(test)]
mod tests {
    use clover_event::payload::predicate::LossMean;
    use clover_event::payload::predicate::SequentialLook;
    use clover_num::Count;
    use clover_num::Finite;

    use super::*;
    use crate::predicate::tests::held;

    fn found(mean: f64, p_exact: f64, p_t: f64, moved: u64) -> ConfirmLoss {
        let count = |value| Count::new(value).unwrap();
        ConfirmLoss {
            bound: Finite::new(0.1).unwrap(),
            ln_wealth: Finite::new(5.0).unwrap(),
            loss: LossMean {
                clusters: count(300),
                mean: Finite::new(mean).unwrap(),
                rows: count(300),
                standard_error: None,
            },
            moved_clusters: count(moved),
            p_bootstrap: None,
            p_exact: Probability::new(p_exact).unwrap(),
            p_t: Probability::new(p_t),
            risk_improve: Finite::default(),
            sequential: None,
        }
    }

    #[test]
    fn a_sequential_test_passes_by_crossing_and_by_nothing_else() {
        let said = |mean: f64, p: f64, stop: Option<SequentialStop>| {
            let number = |value| Finite::new(value).unwrap();
            let test = stop.map(|stop| SequentialLook {
                bound: number(0.1),
                ln_peak: number(5.0),
                ln_wealth: number(5.0),
                p: Probability::new(p).unwrap(),
                stop,
                units: Count::new(120).unwrap(),
            });
            let of = ConfirmLoss {
                sequential: test,
                // Every other test would pass.
                ..found(mean, 0.0, 0.0, 300)
            };
            let confirm_test = ConfirmTest::Sequential;
            let held = ProfileThresholds {
                confirm_test,
                ..held()
            };
            check(&Evidence::P8(of), &held).unwrap()
        };
        let crossed = Some(SequentialStop::Crossed);
        assert_eq!(said(-0.002, 0.0125, crossed), Verdict::Pass);
        assert_eq!(said(-0.002, 0.0126, crossed), Verdict::Fail);
        assert_eq!(said(-0.0009, 0.001, crossed), Verdict::Fail);
        for stop in [
            SequentialStop::Continue,
            SequentialStop::Futile,
            SequentialStop::Harmful,
        ] {
            assert_eq!(said(-0.002, 0.001, Some(stop)), Verdict::Fail);
        }
        assert_eq!(said(-0.002, 0.001, None), Verdict::Inconclusive);
    }

    #[test]
    fn the_registered_test_decides_at_the_divided_level() {
        let said = |of, confirm_test| {
            check(
                &Evidence::P8(of),
                &ProfileThresholds {
                    confirm_test,
                    ..held()
                },
            )
            .unwrap()
        };
        let betting = ConfirmTest::Betting;
        assert_eq!(said(found(-0.002, 0.0125, 0.5, 3), betting), Verdict::Pass);
        assert_eq!(said(found(-0.002, 0.0126, 0.0, 3), betting), Verdict::Fail);
        assert_eq!(said(found(-0.0009, 0.0, 0.0, 300), betting), Verdict::Fail);
        let t = ConfirmTest::T;
        assert_eq!(said(found(-0.002, 1.0, 0.01, 30), t), Verdict::Pass);
        assert_eq!(said(found(-0.002, 1.0, 0.01, 29), t), Verdict::Inconclusive);
        let bootstrap = ConfirmTest::Bootstrap;
        assert_eq!(
            said(found(-0.002, 0.0, 0.0, 300), bootstrap),
            Verdict::Inconclusive
        );
    }
}
