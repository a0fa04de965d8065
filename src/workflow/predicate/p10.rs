//! P10: the gain is not calibration noise.

use clover_event::payload::Verdict;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::Evidence;
use clover_stats::oua;

use crate::predicate::CriterionNumber;
use crate::predicate::CriterionRule;
use crate::predicate::ProfileThresholds;
use crate::predicate::pass_if;

/// Not both: a share of at least 0.30, and less than twice eta gained on confirm.
pub(super) const RULE: CriterionRule = CriterionRule {
    id: Criterion::P10,
    asks: "calibration uncertainty",
    splits: &[CriterionSplit::Confirm],
    check,
    show,
};

fn check(evidence: &Evidence, held: &ProfileThresholds) -> Option<Verdict> {
    let Evidence::P10(found) = evidence else {
        return None;
    };
    let (share, change) = (found.share.value(), found.confirm_change.value());
    Some(
        match oua::gain_is_within_calibration_noise(share, change, held.eta) {
            Some(noise) => pass_if(!noise),
            None => Verdict::Inconclusive,
        },
    )
}

fn show(evidence: &Evidence, held: &ProfileThresholds) -> Vec<CriterionNumber> {
    let Evidence::P10(found) = evidence else {
        return Vec::new();
    };
    let (share, change) = (found.share.value(), found.confirm_change.value());
    vec![
        CriterionNumber::new(
            "oua share",
            share,
            format!("< {} or dmse holds", oua::PAUSE_SHARE),
        ),
        CriterionNumber::new("dmse", change, format!("<= {}", -2.0 * held.eta)),
    ]
}

#[cfg(test)]
mod tests {
    use clover_event::payload::predicate::CalibrationShare;
    use clover_num::Finite;
    use clover_num::Probability;

    use super::*;
    use crate::predicate::tests::held;

    #[test]
    fn a_tiny_gain_under_a_large_share_fails() {
        let said = |share: f64, change: f64| {
            let found = CalibrationShare {
                confirm_change: Finite::new(change).unwrap(),
                share: Probability::new(share).unwrap(),
            };
            check(&Evidence::P10(found), &held()).unwrap()
        };
        assert_eq!(said(0.30, -0.0019), Verdict::Fail);
        assert_eq!(said(0.30, -0.002), Verdict::Pass);
        assert_eq!(said(0.299, -0.001), Verdict::Pass);
    }
}
