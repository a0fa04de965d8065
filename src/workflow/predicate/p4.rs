//! P4: the patch is local.

use clover_event::payload::Verdict;
use clover_event::payload::manifest::ShiftMetric;
use clover_event::payload::predicate::Blast;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::Evidence;
use clover_stats::predicate::Shift;

use crate::predicate::CriterionNumber;
use crate::predicate::CriterionRule;
use crate::predicate::ProfileThresholds;
use crate::predicate::pass_if;
use crate::predicate::whole;

/// KS <= cap or W1 <= cap over the logs, and again over those of the confirm window.
pub(super) const RULE: CriterionRule = CriterionRule {
    id: Criterion::P4,
    asks: "blast radius",
    splits: &[CriterionSplit::Dev, CriterionSplit::Confirm],
    check,
    show,
};

fn shift(found: &Blast) -> Shift {
    Shift {
        rows: whole(found.rows),
        ks_count: whole(found.ks_count),
        wasserstein: found.w1.value(),
    }
}

fn check(evidence: &Evidence, held: &ProfileThresholds) -> Option<Verdict> {
    let Evidence::P4(found) = evidence else {
        return None;
    };
    if found.rows.value() == 0 {
        return Some(Verdict::Inconclusive);
    }
    let ks = shift(found).ks_within(held.ks_max);
    let w1 = found.w1.value() <= held.w1_max;
    Some(pass_if(match held.shift_metric {
        ShiftMetric::Both => ks && w1,
        ShiftMetric::Either => ks || w1,
        ShiftMetric::Ks => ks,
        ShiftMetric::W1 => w1,
    }))
}

fn show(evidence: &Evidence, held: &ProfileThresholds) -> Vec<CriterionNumber> {
    let Evidence::P4(found) = evidence else {
        return Vec::new();
    };
    let (ks, w1) = match held.shift_metric {
        ShiftMetric::Both => (" and w1 holds", ""),
        ShiftMetric::Either => (" or w1 holds", ""),
        ShiftMetric::Ks => ("", " (not held)"),
        ShiftMetric::W1 => (" (not held)", ""),
    };
    let distance = (found.rows.value() > 0).then(|| shift(found).ks());
    vec![
        CriterionNumber::new("ks", distance, format!("<= {}{ks}", held.ks_max)),
        CriterionNumber::new("w1", found.w1.value(), format!("<= {}{w1}", held.w1_max)),
    ]
}

#[cfg(test)]
mod tests {
    use clover_num::Count;
    use clover_num::Finite;

    use super::*;
    use crate::predicate::tests::held;

    #[test]
    fn the_registered_metric_decides() {
        let said = |ks_count: u64, w1: f64, shift_metric| {
            let found = Evidence::P4(Blast {
                ks_count: Count::new(ks_count).unwrap(),
                rows: Count::new(1000).unwrap(),
                w1: Finite::new(w1).unwrap(),
            });
            check(
                &found,
                &ProfileThresholds {
                    shift_metric,
                    ..held()
                },
            )
            .unwrap()
        };
        assert_eq!(said(50, 0.5, ShiftMetric::Ks), Verdict::Pass);
        assert_eq!(said(51, 0.0, ShiftMetric::Ks), Verdict::Fail);
        assert_eq!(said(51, 0.02, ShiftMetric::Either), Verdict::Pass);
        assert_eq!(said(51, 0.02, ShiftMetric::Both), Verdict::Fail);
        assert_eq!(said(50, 0.021, ShiftMetric::W1), Verdict::Fail);
    }
}
