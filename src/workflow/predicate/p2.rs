//! P2: calibration is not worse.

use clover_event::payload::Verdict;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::GateId;
use clover_event::payload::predicate::GateSplit;

use crate::predicate::Gate;
use crate::predicate::GateNumber;
use crate::predicate::ProfileThresholds;
use crate::predicate::pass_if;

/// ECE(R') - ECE(R) <= slack on dev, on the baseline's bins.
pub(super) const GATE: Gate = Gate {
    id: GateId::P2,
    asks: "calibration not worse",
    splits: &[GateSplit::Dev],
    judge,
    show,
};

fn judge(evidence: &Evidence, held: &ProfileThresholds) -> Option<Verdict> {
    let Evidence::P2(found) = evidence else {
        return None;
    };
    let change = found.patched.value() - found.baseline.value();
    Some(pass_if(change <= held.ece_slack))
}

fn show(evidence: &Evidence, held: &ProfileThresholds) -> Vec<GateNumber> {
    let Evidence::P2(found) = evidence else {
        return Vec::new();
    };
    let change = found.patched.value() - found.baseline.value();
    vec![
        GateNumber::new("dece", change, format!("<= {}", held.ece_slack)),
        GateNumber::new("ece before", found.baseline.value(), ""),
        GateNumber::new("ece after", found.patched.value(), ""),
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
        assert_eq!(judge(&found, &held()), Some(Verdict::Pass));
        let literal = ProfileThresholds {
            ece_slack: 0.0,
            ..held()
        };
        assert_eq!(judge(&found, &literal), Some(Verdict::Fail));
    }
}
