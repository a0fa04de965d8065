//! Vectors of distances between distributions.

use clover_stats::distance;
use clover_stats::distance::Method;
use clover_stats::distance::Sign;
use clover_stats::sample::Values;
use clover_stats::sample::Weights;

use crate::check::Case;
use crate::check::Check;
use crate::check::Stop;
use crate::check::refused;
use crate::hypotheses::ALTERNATIVES;

/// `distribution`: two-sample Kolmogorov-Smirnov tests and Wasserstein-1 distances.
///
/// # Errors
/// [`Stop`].
pub fn distribution(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let (a, b) = (
        case.input.at("a")?.numbers()?,
        case.input.at("b")?.numbers()?,
    );
    let a = Values::new("a", &a).map_err(refused)?;
    let b = Values::new("b", &b).map_err(refused)?;
    let counts = distance::ks_counts(a, b);
    let methods = [
        ("auto", Method::Auto),
        ("exact", Method::Exact),
        ("asymp", Method::Asymptotic),
    ];
    let tests = case.expected.at("ks")?;
    for (method_name, method) in methods {
        for (side_name, alternative) in ALTERNATIVES {
            let expected = tests.at(&format!("{method_name}:{side_name}"))?;
            let test = counts.test(alternative, method);
            check.number(&expected.at("statistic")?, test.statistic)?;
            check.p_value(&expected.at("pvalue")?, test.p)?;
            check.number(&expected.at("location")?, test.location)?;
            let sign = match test.sign {
                Sign::Above => 1.0,
                Sign::Below => -1.0,
            };
            check.number(&expected.at("sign")?, sign)?;
        }
    }
    check.number(
        &case.expected.at("wasserstein")?,
        distance::wasserstein(a, b),
    )?;
    let weights = match (case.input.maybe("wa"), case.input.maybe("wb")) {
        (Some(wa), Some(wb)) => Some((wa.numbers()?, wb.numbers()?)),
        _ => None,
    };
    let weighted = match &weights {
        Some((wa, wb)) => {
            let wa = Weights::new("wa", wa, a.len()).map_err(refused)?;
            let wb = Weights::new("wb", wb, b.len()).map_err(refused)?;
            Some(distance::weighted_wasserstein(a, wa, b, wb).map_err(refused)?)
        }
        None => None,
    };
    check.maybe(&case.expected.at("wasserstein_weighted")?, weighted)
}

#[cfg(test)]
mod tests {
    use crate::run;

    #[test]
    fn distribution_vectors_pass() {
        let text = include_str!("../../fixtures/reference/stats/distribution.json");
        let report = run("distribution.json", text, None).unwrap();
        assert!(report.is_clean(), "{:#?}", report.failures);
        assert_eq!((report.passed, report.cases), (6, 6));
    }
}
