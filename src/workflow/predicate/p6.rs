//! P6: the candidate's calibrator holds in every environment.

use std::collections::BTreeMap;

use clover_event::payload::Verdict;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::EnvironmentTests;
use clover_event::payload::predicate::Evidence;
use clover_num::Finite;
use clover_num::Probability;
use clover_stats::environment;
use clover_stats::multiplicity;
use clover_stats::multiplicity::MultiplicityCorrection;

use crate::predicate::CriterionNumber;
use crate::predicate::CriterionRule;
use crate::predicate::ProfileThresholds;
use crate::predicate::whole;
use crate::predicate::worst;

/// Required environments pass, no other fails; on dev, and again on confirm.
pub(super) const RULE: CriterionRule = CriterionRule {
    id: Criterion::P6,
    asks: "transport",
    splits: &[CriterionSplit::Dev, CriterionSplit::Confirm],
    check,
    show,
};

/// p of each environment, adjusted within its family by Benjamini and Hochberg; what has no p counts as 1 there,
/// and what has no row does not count.
///
/// # Panics
/// Never: probabilities lie in [0, 1].
pub fn adjusted(found: &EnvironmentTests) -> Vec<Option<f64>> {
    let mut families: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, environment) in found.environments.iter().enumerate() {
        if environment.rows.value() == 0 {
            continue;
        }
        families.entry(&environment.family).or_default().push(at);
    }
    let p = |at: usize| found.environments[at].p.map(Probability::value);
    let mut adjusted = vec![None; found.environments.len()];
    for members in families.values() {
        let of: Vec<f64> = members.iter().map(|&at| p(at).unwrap_or(1.0)).collect();
        let corrected = multiplicity::adjusted(&of, MultiplicityCorrection::BenjaminiHochberg)
            .expect("BUG: probabilities lie in [0, 1]");
        for (&at, value) in members.iter().zip(corrected) {
            adjusted[at] = p(at).map(|_| value);
        }
    }
    adjusted
}

fn of_each(found: &EnvironmentTests, held: &ProfileThresholds) -> Vec<Verdict> {
    let adjusted = adjusted(found);
    let judged = found.environments.iter().zip(adjusted);
    let verdict = judged.map(|(environment, p_adjusted)| {
        let bias = environment.detectable_bias.map(Finite::value);
        match environment::verdict(whole(environment.rows), p_adjusted, bias, held.q) {
            environment::EnvironmentVerdict::Fail => Verdict::Fail,
            environment::EnvironmentVerdict::Inconclusive => Verdict::Inconclusive,
            environment::EnvironmentVerdict::Pass => Verdict::Pass,
        }
    });
    verdict.collect()
}

fn check(evidence: &Evidence, held: &ProfileThresholds) -> Option<Verdict> {
    let Evidence::P6(found) = evidence else {
        return None;
    };
    if found.environments.is_empty() && found.none_claimed == Some(true) {
        return Some(Verdict::NotChecked);
    }
    let each = found.environments.iter().zip(of_each(found, held));
    Some(worst(each.map(|(environment, verdict)| {
        if !environment.required && verdict == Verdict::Inconclusive {
            return Verdict::Pass;
        }
        verdict
    })))
}

fn show(evidence: &Evidence, held: &ProfileThresholds) -> Vec<CriterionNumber> {
    let Evidence::P6(found) = evidence else {
        return Vec::new();
    };
    if found.environments.is_empty() {
        // Nothing was tested: whoever reads the verdict must see why.
        let name = match found.none_claimed {
            Some(true) => "environments claimed: nothing tested",
            Some(false) | None => "environments planned: nothing tested",
        };
        return vec![CriterionNumber::new(name, 0.0, "")];
    }
    let adjusted = adjusted(found);
    let lines = found.environments.iter().zip(adjusted);
    let line = lines.map(|(environment, p_adjusted)| {
        let name = format!("{} {} p", environment.family, environment.environment);
        CriterionNumber::new(name, p_adjusted, format!("> {}", held.q))
    });
    line.collect()
}

#[cfg(test)]
mod tests {
    use clover_event::payload::predicate::TestedEnvironment;
    use clover_num::Count;
    use clover_num::Probability;

    use super::*;
    use crate::predicate::tests::held;

    #[test]
    fn a_plan_without_environments_says_that_nothing_was_tested() {
        let without = |none_claimed| {
            let environments = Vec::new();
            let evidence = Evidence::P6(EnvironmentTests {
                environments,
                none_claimed,
            });
            let shown = show(&evidence, &held());
            assert_eq!(shown[0].value, Some(0.0));
            (check(&evidence, &held()), shown[0].name.clone())
        };
        let claimed = (
            Some(Verdict::NotChecked),
            "environments claimed: nothing tested".to_owned(),
        );
        assert_eq!(without(Some(true)), claimed);
        // Such evidence is from before rulebook 21.
        let planned = (
            Some(Verdict::Pass),
            "environments planned: nothing tested".to_owned(),
        );
        assert_eq!(without(None), planned);
    }

    fn tested(p: f64, rows: u64, bias: f64, required: bool) -> TestedEnvironment {
        TestedEnvironment {
            baseline_fails: false,
            detectable_bias: Finite::new(bias),
            environment: "e".parse().unwrap(),
            family: "f".parse().unwrap(),
            mean: Finite::new(0.0),
            p: Probability::new(p),
            required,
            rows: Count::new(rows).unwrap(),
            standard_error: Finite::new(bias / 2.8),
        }
    }

    fn said(environments: &[TestedEnvironment]) -> Verdict {
        let found = EnvironmentTests {
            environments: environments.to_vec(),
            none_claimed: None,
        };
        check(&Evidence::P6(found), &held()).unwrap()
    }

    #[test]
    fn required_environments_must_pass_and_others_must_not_fail() {
        let good = tested(0.5, 200, 0.05, true);
        assert_eq!(said(std::slice::from_ref(&good)), Verdict::Pass);
        assert_eq!(said(&[tested(0.5, 39, 0.05, true)]), Verdict::Inconclusive);
        assert_eq!(
            said(&[tested(0.5, 200, 0.051, true)]),
            Verdict::Inconclusive
        );
        let unsure = tested(0.5, 39, 0.05, false);
        assert_eq!(said(&[good.clone(), unsure]), Verdict::Pass);
        // .05 among two is adjusted to .10, and on the level it is rejected.
        let off = tested(0.05, 200, 0.05, false);
        assert_eq!(said(&[good.clone(), off]), Verdict::Fail);
        let near = tested(0.051, 200, 0.05, false);
        assert_eq!(said(&[good, near]), Verdict::Pass);
        let silent = TestedEnvironment {
            p: None,
            ..tested(0.5, 200, 0.01, true)
        };
        assert_eq!(said(&[silent]), Verdict::Inconclusive);
        assert_eq!(said(&[]), Verdict::Pass);
    }
}
