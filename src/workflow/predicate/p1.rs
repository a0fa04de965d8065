//! P1: the squared error falls on dev. The search is free there, so nothing is tested.

use clover_event::payload::Verdict;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::Evidence;

use crate::predicate::CriterionNumber;
use crate::predicate::CriterionRule;
use crate::predicate::ProfileThresholds;
use crate::predicate::loss_lines;
use crate::predicate::pass_if;

/// DMSE(dev) <= -eta.
pub(super) const RULE: CriterionRule = CriterionRule {
    id: Criterion::P1,
    asks: "squared error falls, dev",
    splits: &[CriterionSplit::Dev],
    check,
    show,
};

fn check(evidence: &Evidence, held: &ProfileThresholds) -> Option<Verdict> {
    let Evidence::P1(loss) = evidence else {
        return None;
    };
    Some(pass_if(loss.mean.value() <= -held.eta))
}

fn show(evidence: &Evidence, held: &ProfileThresholds) -> Vec<CriterionNumber> {
    let Evidence::P1(loss) = evidence else {
        return Vec::new();
    };
    loss_lines(loss, format!("<= {}", -held.eta))
}

#[cfg(test)]
mod tests {
    use clover_event::payload::predicate::LossMean;
    use clover_num::Count;
    use clover_num::Finite;

    use super::*;
    use crate::predicate::tests::held;

    #[test]
    fn the_margin_itself_passes() {
        let said = |mean: f64| {
            let loss = LossMean {
                clusters: Count::new(9).unwrap(),
                mean: Finite::new(mean).unwrap(),
                rows: Count::new(9).unwrap(),
                standard_error: None,
            };
            check(&Evidence::P1(loss), &held()).unwrap()
        };
        assert_eq!(said(-0.001), Verdict::Pass);
        assert_eq!(said(-0.000_999_999), Verdict::Fail);
        assert_eq!(said(0.0), Verdict::Fail);
    }
}
