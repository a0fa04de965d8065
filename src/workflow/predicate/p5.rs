//! P5: anchors stay where they are.

use clover_event::payload::Verdict;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::Evidence;

use crate::predicate::CriterionNumber;
use crate::predicate::CriterionRule;
use crate::predicate::ProfileThresholds;
use crate::predicate::pass_if;
use crate::predicate::worst;

/// Rows that an anchor set needs.
const ROWS_MIN: u64 = 200;
/// Anchor sets: a low and a high policy.
const SETS_MIN: usize = 2;

/// The mean reward of each anchor set moves by at most the cap.
pub(super) const RULE: CriterionRule = CriterionRule {
    id: Criterion::P5,
    asks: "anchors stay",
    splits: &[CriterionSplit::Dev],
    check,
    show,
};

fn check(evidence: &Evidence, held: &ProfileThresholds) -> Option<Verdict> {
    let Evidence::P5(found) = evidence else {
        return None;
    };
    if found.anchors.len() < SETS_MIN {
        return Some(Verdict::Inconclusive);
    }
    Some(worst(found.anchors.iter().map(|anchor| {
        if anchor.rows.value() < ROWS_MIN {
            return Verdict::Inconclusive;
        }
        pass_if(anchor.drift.value() <= held.drift_max)
    })))
}

fn show(evidence: &Evidence, held: &ProfileThresholds) -> Vec<CriterionNumber> {
    let Evidence::P5(found) = evidence else {
        return Vec::new();
    };
    let cap = format!("<= {}", held.drift_max);
    let line = |anchor: &clover_event::payload::predicate::AnchorDrift| {
        CriterionNumber::new(anchor.policy.as_str(), anchor.drift.value(), &*cap)
    };
    found.anchors.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use clover_event::payload::predicate::AnchorDrift;
    use clover_event::payload::predicate::Anchors;
    use clover_num::Count;
    use clover_num::Finite;

    use super::*;
    use crate::predicate::tests::held;

    #[test]
    fn both_sets_need_rows_and_stay() {
        let said = |sets: &[(f64, u64)]| {
            let anchors = sets.iter().map(|&(drift, rows)| AnchorDrift {
                drift: Finite::new(drift).unwrap(),
                policy: "p".parse().unwrap(),
                rows: Count::new(rows).unwrap(),
            });
            let found = Anchors {
                anchors: anchors.collect(),
            };
            check(&Evidence::P5(found), &held()).unwrap()
        };
        assert_eq!(said(&[(0.01, 200), (0.0, 300)]), Verdict::Pass);
        assert_eq!(said(&[(0.0101, 200), (0.0, 300)]), Verdict::Fail);
        assert_eq!(said(&[(0.0, 200), (0.0, 199)]), Verdict::Inconclusive);
        assert_eq!(said(&[(0.0, 200)]), Verdict::Inconclusive);
        assert_eq!(said(&[]), Verdict::Inconclusive);
    }
}
