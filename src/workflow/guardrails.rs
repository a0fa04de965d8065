//! Guardrails of a running deployment, as pure functions of what live rows show: the caps of acceptance, applied again.
//! Source: CLOVER v1.1, section 9.

use clover_event::payload::Verdict;
use clover_event::payload::deployment::AbstentionShares;
use clover_event::payload::deployment::GreenBound;
use clover_event::payload::deployment::GuardrailVerdicts;
use clover_event::payload::deployment::LiveEvidence;
use clover_event::payload::deployment::OutOfRange;
use clover_event::payload::manifest::IterationPlan;
use clover_event::payload::manifest::Profile;
use clover_event::payload::manifest::ShiftMetric;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::Thresholds;
use clover_projection::decisions::thresholds_of;

use crate::predicate;
use crate::predicate::pass_if;
use crate::predicate::worst;

/// Fresh labels below which guardrails on labels decide nothing.
pub const LABELS_MIN: u64 = 40;
/// Live rows below which shares of them decide nothing.
const ROWS_MIN: u64 = 40;
/// Live rows below which a shift decides nothing: two samples of one law differ by more than 0.02 in W1 often enough.
const SHIFT_ROWS_MIN: u64 = 400;
/// How far the share of abstentions may rise.
const ABSTENTION_RISE_MAX: f64 = 0.05;
/// One row in this many may lie outside of the labelled scores; as many as that is a breach.
const OUTSIDE_ONE_IN: u64 = 20;

/// What guardrails are held to: the numbers of the plan under which the running rubric was accepted, where a shift needs
/// both distances to be too large.
pub fn thresholds(plan: &IterationPlan) -> Thresholds {
    Thresholds {
        profile: Profile::Recommended,
        shift_metric: ShiftMetric::Either,
        ..thresholds_of(plan)
    }
}

/// Seven verdicts: what was not looked at is not checked, what was looked at on too few labels or rows is inconclusive.
pub fn verdicts(found: &LiveEvidence, held: &Thresholds) -> GuardrailVerdicts {
    let gate = |evidence: Option<Evidence>| {
        let said = evidence.map(|of| predicate::verdicts(&of, held).recommended);
        said.unwrap_or(Verdict::NotChecked)
    };
    let labelled = found.labels.value() >= LABELS_MIN;
    let least = |rows: u64| found.rows.is_none_or(|of| of.value() >= rows);
    let enough = |said: Verdict, enough: bool| match said {
        Verdict::NotChecked => Verdict::NotChecked,
        said if enough => said,
        _ => Verdict::Inconclusive,
    };
    let greens = found.greens.as_ref();
    let thin = found.thin.is_some_and(|thin| thin.value() > 0);
    let greens = greens.map_or(Verdict::NotChecked, |all| {
        let unread = thin.then_some(Verdict::Inconclusive);
        worst(unread.into_iter().chain([slices(all, held)]))
    });
    let abstention = found.abstention.map_or(Verdict::NotChecked, abstention);
    let out_of_range = found.out_of_range.map_or(Verdict::NotChecked, outside);
    GuardrailVerdicts {
        abstention: enough(abstention, least(ROWS_MIN)),
        anchors: gate(found.anchors.clone().map(Evidence::P5)),
        environments: enough(gate(found.environments.clone().map(Evidence::P6)), labelled),
        greens: enough(greens, labelled),
        out_of_range: enough(out_of_range, least(ROWS_MIN)),
        reopened: found
            .reopened
            .map_or(Verdict::NotChecked, |count| pass_if(count.value() == 0)),
        shift: enough(gate(found.shift.map(Evidence::P4)), least(SHIFT_ROWS_MIN)),
    }
}

fn abstention(shares: AbstentionShares) -> Verdict {
    let rise = shares.live.value() - shares.accepted.value();
    pass_if(rise <= ABSTENTION_RISE_MAX)
}

/// A slice is in breach when even the least that it may have lost is more than its tolerance.
fn slices(all: &[GreenBound], held: &Thresholds) -> Verdict {
    let tolerance = |green: &GreenBound| {
        if green.must_not_regress {
            0.0
        } else {
            held.tau_micro.value() as f64 / 1e6
        }
    };
    worst(
        all.iter()
            .map(|green| pass_if(green.lower.value() <= tolerance(green))),
    )
}

fn outside(found: OutOfRange) -> Verdict {
    if found.rows.value() == 0 {
        return Verdict::Inconclusive;
    }
    let scaled = found.outside.value().saturating_mul(OUTSIDE_ONE_IN);
    pass_if(scaled < found.rows.value())
}

#[cfg(test)]
mod tests {
    use clover_event::payload::predicate::Blast;
    use clover_num::Count;
    use clover_num::Finite;
    use clover_num::Micro;
    use clover_num::Probability;

    use super::*;

    fn held() -> Thresholds {
        Thresholds {
            shift_metric: ShiftMetric::Either,
            ks_max_micro: Micro::new(50_000).unwrap(),
            w1_max_micro: Micro::new(20_000).unwrap(),
            tau_micro: Micro::new(1_500).unwrap(),
            ..predicate::tests::thresholds()
        }
    }

    fn count(value: u64) -> Count {
        Count::new(value).unwrap()
    }

    fn said(edit: impl FnOnce(&mut LiveEvidence)) -> GuardrailVerdicts {
        let mut found = LiveEvidence::default();
        edit(&mut found);
        verdicts(&found, &held())
    }

    #[test]
    fn what_nobody_looked_at_is_not_checked_and_no_breach() {
        let said = said(|_| {});
        let each = said.each();
        assert!(each.iter().all(|(_, said)| *said == Verdict::NotChecked));
        assert!(!said.is_breach());
    }

    #[test]
    fn a_shift_needs_both_distances() {
        let shift = |ks_count, w1| {
            let found = Blast {
                ks_count: count(ks_count),
                rows: count(1000),
                w1: Finite::new(w1).unwrap(),
            };
            said(|of| of.shift = Some(found)).shift
        };
        assert_eq!(shift(51, 0.02), Verdict::Pass);
        assert_eq!(shift(50, 0.03), Verdict::Pass);
        assert_eq!(shift(51, 0.021), Verdict::Fail);
    }

    #[test]
    fn five_percent_outside_is_a_breach() {
        let outside = |outside| {
            let (outside, rows) = (count(outside), count(100));
            said(|of| of.out_of_range = Some(OutOfRange { outside, rows })).out_of_range
        };
        assert_eq!(outside(4), Verdict::Pass);
        assert_eq!(outside(5), Verdict::Fail);
    }

    #[test]
    fn abstention_may_rise_by_a_twentieth() {
        let rise = |live| {
            let share = |value| Probability::new(value).unwrap();
            let shares = AbstentionShares {
                accepted: share(0.0),
                live: share(live),
            };
            said(|of| of.abstention = Some(shares)).abstention
        };
        assert_eq!(rise(0.05), Verdict::Pass);
        assert_eq!(rise(0.051), Verdict::Fail);
    }

    #[test]
    fn a_green_slice_fails_on_enough_labels_and_beyond_its_tolerance() {
        let green = |lower, must_not_regress, labels| {
            let one = GreenBound {
                family: "f".parse().unwrap(),
                lower: Finite::new(lower).unwrap(),
                must_not_regress,
                slice: "s".parse().unwrap(),
            };
            said(|of| {
                of.greens = Some(vec![one]);
                of.labels = count(labels);
            })
            .greens
        };
        assert_eq!(green(0.0015, false, 40), Verdict::Pass);
        assert_eq!(green(0.0016, false, 40), Verdict::Fail);
        assert_eq!(green(0.0001, true, 40), Verdict::Fail);
        assert_eq!(green(0.0016, false, 39), Verdict::Inconclusive);
    }
    #[test]
    fn shares_and_shifts_of_few_rows_and_thin_slices_decide_nothing() {
        let few = |rows: Option<u64>| {
            said(|of| {
                of.rows = rows.map(count);
                of.out_of_range = Some(OutOfRange {
                    outside: count(30),
                    rows: count(60),
                });
                of.shift = Some(Blast {
                    ks_count: count(60),
                    rows: count(100),
                    w1: Finite::new(0.2).unwrap(),
                });
            })
        };
        let each = |of: GuardrailVerdicts| (of.out_of_range, of.shift);
        assert_eq!(each(few(None)), (Verdict::Fail, Verdict::Fail));
        assert_eq!(each(few(Some(400))), (Verdict::Fail, Verdict::Fail));
        assert_eq!(each(few(Some(399))), (Verdict::Fail, Verdict::Inconclusive));
        assert_eq!(
            each(few(Some(39))),
            (Verdict::Inconclusive, Verdict::Inconclusive)
        );
        let thin = |thin: u64| {
            said(|of| {
                of.greens = Some(Vec::new());
                of.labels = count(60);
                of.thin = Some(count(thin));
            })
        };
        assert_eq!(thin(0).greens, Verdict::Pass);
        assert_eq!(thin(1).greens, Verdict::Inconclusive);
    }
}
