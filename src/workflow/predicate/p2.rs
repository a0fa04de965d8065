//! P2: calibration is not worse.

use clover_event::payload::Verdict;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::Evidence;

use crate::predicate::CriterionNumber;
use crate::predicate::CriterionRule;
use crate::predicate::ProfileThresholds;
use crate::predicate::pass_if;

/// ECE(R') - ECE(R) <= slack on dev, on the baseline's bins.
pub(super) const RULE: CriterionRule = CriterionRule {
    id: Criterion::P2,
    asks: "calibration not worse",
    splits: &[CriterionSplit::Dev],
    check,
    show,
};

fn check(evidence: &Evidence, held: &ProfileThresholds) -> Option<Verdict> {
    let Evidence::P2(found) = evidence else {
        return None;
    };
    let change = found.patched.value() - found.baseline.value();
    Some(pass_if(change <= held.ece_slack))
}

fn show(evidence: &Evidence, held: &ProfileThresholds) -> Vec<CriterionNumber> {
    let Evidence::P2(found) = evidence else {
        return Vec::new();
    };
    let change = found.patched.value() - found.baseline.value();
    vec![
        CriterionNumber::new("dece", change, format!("<= {}", held.ece_slack)),
        CriterionNumber::new("ece before", found.baseline.value(), ""),
        CriterionNumber::new("ece after", found.patched.value(), ""),
    ]
}

#[cfg(test)]
mod tests {
    use clover_event::payload::predicate::CalibrationChange;
    use clover_num::Count;
    use clover_num::Finite;

    use super::*;
    use crate::predicate::tests::held;

    #[test]
    fn slack_is_of_the_profile() {
        let found = Evidence::P2(CalibrationChange {
            baseline: Finite::new(0.02).unwrap(),
            bins: Count::new(10).unwrap(),
            patched: Finite::new(0.0245).unwrap(),
        });
        assert_eq!(check(&found, &held()), Some(Verdict::Pass));
        let literal = ProfileThresholds {
            ece_slack: 0.0,
            ..held()
        };
        assert_eq!(check(&found, &literal), Some(Verdict::Fail));
    }
}
