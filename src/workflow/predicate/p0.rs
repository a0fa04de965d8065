//! P0: the patch is admissible.

use clover_event::payload::Verdict;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::Evidence;

use crate::predicate::CriterionNumber;
use crate::predicate::CriterionRule;
use crate::predicate::ProfileThresholds;
use crate::predicate::pass_if;
use crate::predicate::worst;

/// Grammar, family, code length, declared inputs, an open iteration, and scores that repeat.
pub(super) const RULE: CriterionRule = CriterionRule {
    id: Criterion::P0,
    asks: "admissible",
    splits: &[CriterionSplit::Dev],
    check,
    show,
};

fn check(evidence: &Evidence, _: &ProfileThresholds) -> Option<Verdict> {
    let Evidence::P0(found) = evidence else {
        return None;
    };
    let holds =
        found.valid && found.inputs_declared && found.open && found.kappa <= found.kappa_max;
    Some(worst([pass_if(holds), found.replay]))
}

fn show(evidence: &Evidence, _: &ProfileThresholds) -> Vec<CriterionNumber> {
    let Evidence::P0(found) = evidence else {
        return Vec::new();
    };
    let held = format!("<= {}", found.kappa_max.value());
    vec![CriterionNumber::new(
        "kappa",
        found.kappa.value() as f64,
        held,
    )]
}

#[cfg(test)]
mod tests {
    use clover_event::payload::predicate::Admissible;
    use clover_num::Count;

    use super::*;
    use crate::predicate::tests::held;

    #[test]
    fn every_part_is_needed() {
        let count = |value| Count::new(value).unwrap();
        let good = Admissible {
            inputs_declared: true,
            kappa: count(150),
            kappa_max: count(150),
            open: true,
            replay: Verdict::Pass,
            valid: true,
        };
        let said = |found: Admissible| check(&Evidence::P0(found), &held()).unwrap();
        assert_eq!(said(good), Verdict::Pass);
        assert_eq!(
            said(Admissible {
                open: false,
                ..good
            }),
            Verdict::Fail
        );
        assert_eq!(
            said(Admissible {
                valid: false,
                ..good
            }),
            Verdict::Fail
        );
        let kappa = count(151);
        assert_eq!(said(Admissible { kappa, ..good }), Verdict::Fail);
        let inputs_declared = false;
        assert_eq!(
            said(Admissible {
                inputs_declared,
                ..good
            }),
            Verdict::Fail
        );
        // Imported scores cannot be asked for again: that stays visible, and is no pass.
        let replay = Verdict::NotChecked;
        assert_eq!(said(Admissible { replay, ..good }), Verdict::NotChecked);
        let replay = Verdict::Fail;
        assert_eq!(said(Admissible { replay, ..good }), Verdict::Fail);
    }
}
