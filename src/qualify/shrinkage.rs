//! `shrinkage` vectors: empirical Bayes with one pooled variance, and James-Stein.

use clover_stats::pooling;
use clover_stats::pooling::Group;
use clover_stats::pooling::Tau2Estimator;
use clover_stats::pooling::VarianceRule;
use clover_stats::sample::Values;

use crate::check::Case;
use crate::check::Check;
use crate::check::Stop;
use crate::check::refused;

/// Compares one case.
///
/// # Errors
/// [`Stop`].
pub fn shrinkage(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let mut groups = Vec::new();
    for group in case.input.at("groups")?.elements()? {
        let values = group.numbers()?;
        groups.push(Group::of(Values::new("group", &values).map_err(refused)?));
    }
    let expected = &case.expected;
    let column = |pick: fn(&Group) -> f64| groups.iter().map(pick).collect::<Vec<f64>>();
    check.numbers(&expected.at("n")?, &column(|group| group.rows() as f64))?;
    check.numbers(&expected.at("mean")?, &column(Group::mean))?;
    let spread = pooling::spread(&groups, VarianceRule::Pooled).map_err(refused)?;
    if let Some(flag) = expected.maybe("degenerate") {
        return check.flag(&flag, spread.is_none());
    }
    let Some(spread) = spread else {
        return Err(refused("nothing varies within the groups"));
    };
    check.number(&expected.at("pooled_var")?, spread.within)?;
    check.numbers(&expected.at("v")?, &spread.variances)?;
    check.number(&expected.at("mu0")?, spread.mean)?;
    check.number(&expected.at("Q")?, spread.q)?;
    for (name, estimator) in [
        ("eb_dersimonian_laird", Tau2Estimator::DerSimonianLaird),
        ("eb_paule_mandel", Tau2Estimator::PauleMandel),
    ] {
        let want = expected.at(name)?;
        let pooled = pooling::pool(&groups, VarianceRule::Pooled, estimator)
            .map_err(refused)?
            .ok_or_else(|| refused("nothing varies within the groups"))?;
        check.number(&want.at("tau2")?, pooled.between)?;
        check.number(&want.at("mu")?, pooled.mu)?;
        let shrunk = |pick: fn(&pooling::Shrunk) -> f64| {
            pooled.groups.iter().map(pick).collect::<Vec<f64>>()
        };
        check.numbers(&want.at("B")?, &shrunk(|group| group.weight))?;
        check.numbers(&want.at("theta")?, &shrunk(|group| group.mean))?;
        check.numbers(&want.at("se")?, &shrunk(|group| group.standard_error))?;
    }
    let want = expected.at("james_stein_plus")?;
    let stein = pooling::james_stein(&groups, VarianceRule::Pooled)
        .map_err(refused)?
        .ok_or_else(|| refused("nothing varies within the groups"))?;
    check.number(&want.at("factor")?, stein.factor)?;
    let theta: Vec<f64> = stein.groups.iter().map(|group| group.mean).collect();
    check.numbers(&want.at("theta")?, &theta)
}

#[cfg(test)]
mod tests {
    use crate::run;

    #[test]
    fn the_vectors_pass() {
        let text = include_str!("../../fixtures/reference/stats/shrinkage.json");
        let report = run("shrinkage.json", text, None).unwrap();
        assert!(report.is_clean(), "{:#?}", report.failures);
        assert_eq!(report.passed, report.cases);
    }
}
