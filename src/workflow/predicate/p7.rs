//! P7: attacks on the answer earn nothing.

use clover_event::payload::Verdict;
use clover_event::payload::predicate::AttackUplift;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::Evidence;
use clover_num::Finite;
use clover_stats::predicate::SEEDS_MIN;

use crate::predicate::CriterionNumber;
use crate::predicate::CriterionRule;
use crate::predicate::ProfileThresholds;
use crate::predicate::pass_if;
use crate::predicate::whole;
use crate::predicate::worst;

/// Attacks without which the battery is not whole.
pub use clover_projection::batteries::ATTACKS;

/// The attack that is held to its mean absolute uplift.
const STYLE: &str = "style_strip";

/// Every attack, the searched worst case and the regression battery stay within the cap.
pub(super) const RULE: CriterionRule = CriterionRule {
    id: Criterion::P7,
    asks: "anti-gaming",
    splits: &[CriterionSplit::Dev],
    check,
    show,
};

/// What an attack is measured by, and its cap.
fn measure(attack: &AttackUplift, held: &ProfileThresholds) -> (f64, f64) {
    let (value, cap) = if attack.attack.as_str() == STYLE {
        (attack.mean_absolute.value(), held.style_max)
    } else {
        (attack.mean.value(), held.uplift_max)
    };
    let tighter = attack.tighter_max.map_or(cap, Finite::value);
    (value, cap.min(tighter))
}

fn check(evidence: &Evidence, held: &ProfileThresholds) -> Option<Verdict> {
    let Evidence::P7(found) = evidence else {
        return None;
    };
    if found.attacks.is_empty() && found.searched.is_none() {
        return Some(Verdict::NotChecked);
    }
    let of_each = found.attacks.iter().map(|attack| {
        let (value, cap) = measure(attack, held);
        if whole(attack.seeds) < SEEDS_MIN {
            return Verdict::Inconclusive;
        }
        pass_if(value <= cap)
    });
    let ran = |name: &&str| {
        found
            .attacks
            .iter()
            .any(|attack| attack.attack.as_str() == *name)
    };
    let whole = ATTACKS.iter().all(ran);
    let missing = (!whole).then_some(Verdict::Inconclusive);
    let searched = match found.searched {
        Some(worst) => pass_if(worst.value() <= held.uplift_max),
        None => Verdict::Inconclusive,
    };
    let regression = pass_if(found.regressions.value() == 0);
    Some(worst(of_each.chain(missing).chain([searched, regression])))
}

fn show(evidence: &Evidence, held: &ProfileThresholds) -> Vec<CriterionNumber> {
    let Evidence::P7(found) = evidence else {
        return Vec::new();
    };
    if found.attacks.is_empty() && found.searched.is_none() {
        return vec![CriterionNumber::new("no battery ran", None, "")];
    }
    let line = |attack: &AttackUplift| {
        let (value, cap) = measure(attack, held);
        CriterionNumber::new(attack.attack.as_str(), value, format!("<= {cap}"))
    };
    let mut lines: Vec<CriterionNumber> = found.attacks.iter().map(line).collect();
    let searched = found.searched.map(Finite::value);
    lines.push(CriterionNumber::new(
        "searched",
        searched,
        format!("<= {}", held.uplift_max),
    ));
    lines.push(CriterionNumber::new(
        "regressions",
        found.regressions.value() as f64,
        "<= 0",
    ));
    lines
}

#[cfg(test)]
mod tests {
    use clover_event::payload::predicate::Gaming;
    use clover_num::Count;

    use super::*;
    use crate::predicate::tests::held;

    fn battery(uplift: f64) -> Gaming {
        let attack = |name: &&str| AttackUplift {
            attack: name.parse().unwrap(),
            mean: Finite::new(if *name == STYLE { -1.0 } else { uplift }).unwrap(),
            mean_absolute: Finite::new(0.02).unwrap(),
            seeds: Count::new(50).unwrap(),
            tighter_max: None,
        };
        Gaming {
            attacks: ATTACKS.iter().map(attack).collect(),
            regressions: Count::new(0).unwrap(),
            searched: Finite::new(0.05),
        }
    }

    fn said(found: Gaming) -> Verdict {
        check(&Evidence::P7(found), &held()).unwrap()
    }

    #[test]
    fn a_whole_battery_within_its_caps_passes() {
        assert_eq!(said(battery(0.05)), Verdict::Pass);
        assert_eq!(said(battery(0.051)), Verdict::Fail);
        let mut found = battery(0.0);
        found.attacks[6].mean_absolute = Finite::new(0.021).unwrap();
        assert_eq!(said(found), Verdict::Fail);
        let mut found = battery(0.02);
        found.attacks[0].tighter_max = Finite::new(0.01);
        assert_eq!(said(found), Verdict::Fail);
        let mut found = battery(0.0);
        found.regressions = Count::new(1).unwrap();
        assert_eq!(said(found), Verdict::Fail);
    }

    #[test]
    fn what_did_not_run_is_no_pass() {
        let mut found = battery(0.0);
        found.attacks.remove(3);
        assert_eq!(said(found), Verdict::Inconclusive);
        let mut found = battery(0.0);
        found.attacks[2].seeds = Count::new(49).unwrap();
        assert_eq!(said(found), Verdict::Inconclusive);
        let mut found = battery(0.0);
        found.searched = None;
        assert_eq!(said(found), Verdict::Inconclusive);
        let mut found = battery(0.0);
        found.attacks.clear();
        found.searched = None;
        assert_eq!(said(found), Verdict::NotChecked);
    }
}
