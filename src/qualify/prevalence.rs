//! Vectors of corrected prevalences and of prediction-powered means.

use clover_stats::ppi::Trust;
use clover_stats::ppi::ppi_mean;
use clover_stats::prevalence;
use clover_stats::sample::Values;

use crate::check::Case;
use crate::check::Check;
use crate::check::Stop;
use crate::check::refused;

/// `rogan_gladen`: the corrected prevalence and Youden's J.
///
/// # Errors
/// [`Stop`].
pub fn rogan_gladen(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let rate = |name: &str| case.input.at(name)?.number();
    let corrected =
        prevalence::rogan_gladen(rate("p_hat")?, rate("sensitivity")?, rate("specificity")?)
            .map_err(refused)?;
    check.number(&case.expected.at("theta")?, corrected.theta)?;
    check.number(&case.expected.at("youden_J")?, corrected.youden)
}

/// `ppi`: means of labels helped by predictions at weight 1, tuned, 0, and from labels alone.
///
/// # Errors
/// [`Stop`].
pub fn ppi(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let labels = case.input.at("Y")?.numbers()?;
    let predictions = case.input.at("Yhat")?.numbers()?;
    let unlabelled = case.input.at("Yhat_unlabeled")?.numbers()?;
    let level = 1.0 - case.input.at("alpha")?.number()?;
    let labels = Values::new("Y", &labels).map_err(refused)?;
    let predictions = Values::new("Yhat", &predictions).map_err(refused)?;
    let unlabelled = Values::new("Yhat_unlabeled", &unlabelled).map_err(refused)?;
    let estimates = [
        ("lam_1", Trust::Fixed(1.0)),
        ("lam_tuned", Trust::Tuned),
        ("lam_0", Trust::Fixed(0.0)),
        ("classical", Trust::Fixed(0.0)),
        ("formula_lam1", Trust::Fixed(1.0)),
    ];
    for (name, trust) in estimates {
        let expected = case.expected.at(name)?;
        let mean = ppi_mean(labels, predictions, unlabelled, trust).map_err(refused)?;
        let interval = mean.interval(level).map_err(refused)?;
        let (low, high) = interval.map_or((f64::NAN, f64::NAN), |bounds| (bounds.low, bounds.high));
        check.number(&expected.at("point")?, mean.mean)?;
        if name == "formula_lam1" {
            check.number(&expected.at("half_width")?, 0.5 * (high - low))?;
        } else {
            check.numbers(&expected.at("ci")?, &[low, high])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::run;

    #[test]
    fn rogan_gladen_vectors_pass() {
        let text = include_str!("../../fixtures/reference/stats/rogan_gladen.json");
        let report = run("rogan_gladen.json", text, None).unwrap();
        assert!(report.is_clean(), "{:#?}", report.failures);
        assert_eq!((report.passed, report.cases), (4, 4));
    }

    #[test]
    fn ppi_vectors_pass() {
        let text = include_str!("../../fixtures/reference/stats/ppi.json");
        let report = run("ppi.json", text, None).unwrap();
        assert!(report.is_clean(), "{:#?}", report.failures);
        assert_eq!((report.passed, report.cases), (4, 4));
    }
}
