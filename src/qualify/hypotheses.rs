//! Vectors of tests of means and of families of tests.

use std::cmp::Ordering;

use clover_stats::inference;
use clover_stats::multiplicity;
use clover_stats::multiplicity::MultiplicityCorrection;
use clover_stats::multiplicity::PValues;
use clover_stats::sample::Unfit;
use clover_stats::sample::Values;
use clover_stats::student;
use clover_stats::student::Alternative;
use clover_stats::student::MeanEstimate;
use clover_stats::student::MeanTest;

use crate::check::Case;
use crate::check::Check;
use crate::check::Node;
use crate::check::Stop;
use crate::check::refused;

/// The alternatives by the names of the files.
pub(super) const ALTERNATIVES: [(&str, Alternative); 3] = [
    ("two-sided", Alternative::TwoSided),
    ("less", Alternative::Less),
    ("greater", Alternative::Greater),
];

/// `ttest`: one-sample tests of a mean. One row has no deviation and no test; rows that do not vary have an infinite
/// statistic with p 0 or 1, or none on the null itself.
///
/// # Errors
/// [`Stop`].
pub fn ttest(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let x = case.input.at("x")?.numbers()?;
    let null = case.input.at("popmean")?.number()?;
    let values = Values::new("x", &x).map_err(refused)?;
    let estimate = unless_thin(student::one_sample(values))?;
    let deviation = inference::standard_deviation(values.as_slice()).ok();
    let mean = estimate.map_or(x[0], |estimate| estimate.mean);
    check.number(&case.expected.at("mean")?, mean)?;
    check.maybe(&case.expected.at("sd_ddof1")?, deviation)?;
    for (name, alternative) in ALTERNATIVES {
        let expected = case.expected.at(name)?;
        match estimate {
            Some(estimate) => side(&expected, check, estimate, null, alternative)?,
            None => thin(&expected, check)?,
        }
    }
    Ok(())
}

fn unless_thin<T>(outcome: Result<T, Unfit>) -> Result<Option<T>, Stop> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(Unfit::InsufficientData(_)) => Ok(None),
        Err(Unfit::Invalid(error)) => Err(refused(error)),
    }
}

fn side(
    expected: &Node<'_>,
    check: &mut Check<'_>,
    estimate: MeanEstimate,
    null: f64,
    alternative: Alternative,
) -> Result<(), Stop> {
    let (statistic, p) = match estimate.test(null, alternative).map_err(refused)? {
        MeanTest::Statistic { t, p } => (t, p),
        MeanTest::NoVariance(Ordering::Equal) => (f64::NAN, f64::NAN),
        MeanTest::NoVariance(side) => {
            let against = matches!(
                (alternative, side),
                (Alternative::Less, Ordering::Greater) | (Alternative::Greater, Ordering::Less)
            );
            let statistic = if side == Ordering::Less {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            };
            (statistic, if against { 1.0 } else { 0.0 })
        }
    };
    let interval = estimate.interval(0.95, alternative).map_err(refused)?;
    // Without variance the peer's open bound is infinity times 0.
    let bound = |bound: f64| {
        if estimate.variance <= 0.0 && bound.is_infinite() {
            f64::NAN
        } else {
            bound
        }
    };
    check.number(&expected.at("statistic")?, statistic)?;
    check.p_value(&expected.at("pvalue")?, p)?;
    check.number(&expected.at("df")?, estimate.df)?;
    check.numbers(
        &expected.at("ci95")?,
        &[bound(interval.low), bound(interval.high)],
    )
}

fn thin(expected: &Node<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    check.maybe(&expected.at("statistic")?, None)?;
    check.maybe(&expected.at("pvalue")?, None)?;
    check.number(&expected.at("df")?, 0.0)?;
    check.numbers(&expected.at("ci95")?, &[f64::NAN, f64::NAN])
}

/// `multipletests`: adjusted p-values and rejections of four corrections.
///
/// # Errors
/// [`Stop`].
pub fn multipletests(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let p = case.input.at("p")?.numbers()?;
    let level = case.input.at("alpha")?.number()?;
    let family = PValues::new(&p).map_err(refused)?;
    let corrections = [
        ("fdr_bh", MultiplicityCorrection::BenjaminiHochberg),
        ("fdr_by", MultiplicityCorrection::BenjaminiYekutieli),
        ("holm", MultiplicityCorrection::Holm),
        ("bonferroni", MultiplicityCorrection::Bonferroni),
    ];
    for (name, correction) in corrections {
        let expected = case.expected.at(name)?;
        let corrected = multiplicity::correct(family, correction, level).map_err(refused)?;
        check.flags(&expected.at("reject")?, &corrected.reject)?;
        check.numbers(&expected.at("p_adjusted")?, &corrected.adjusted)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::run;

    #[test]
    fn ttest_vectors_pass() {
        let text = include_str!("../../fixtures/reference/stats/ttest.json");
        let report = run("ttest.json", text, None).unwrap();
        assert!(report.is_clean(), "{:#?}", report.failures);
        assert_eq!((report.passed, report.cases), (5, 5));
    }

    #[test]
    fn multipletests_vectors_pass() {
        let text = include_str!("../../fixtures/reference/stats/multipletests.json");
        let report = run("multipletests.json", text, None).unwrap();
        assert!(report.is_clean(), "{:#?}", report.failures);
        assert_eq!((report.passed, report.cases), (5, 5));
    }

    #[test]
    fn degenerate_tests_come_out_as_in_the_peer() {
        // source: scipy 1.17.1, stats.ttest_1samp(x, 0.5) and its confidence_interval(0.95).
        let text = r#"{"file": "ttest", "note": "", "produced_by": {"scipy": "1.17.1"}, "tolerance": {"abs": 1e-12}, "n_cases": 3, "cases": [
{"name": "one_row", "input": {"x": [0.25], "popmean": 0.5},
 "expected": {"mean": 0.25, "sd_ddof1": null,
  "two-sided": {"statistic": null, "pvalue": null, "df": 0.0, "ci95": [null, null]},
  "less": {"statistic": null, "pvalue": null, "df": 0.0, "ci95": [null, null]},
  "greater": {"statistic": null, "pvalue": null, "df": 0.0, "ci95": [null, null]}}},
{"name": "all_above", "input": {"x": [0.75, 0.75, 0.75], "popmean": 0.5},
 "expected": {"mean": 0.75, "sd_ddof1": 0.0,
  "two-sided": {"statistic": "inf", "pvalue": 0.0, "df": 2.0, "ci95": [0.75, 0.75]},
  "less": {"statistic": "inf", "pvalue": 1.0, "df": 2.0, "ci95": [null, 0.75]},
  "greater": {"statistic": "inf", "pvalue": 0.0, "df": 2.0, "ci95": [0.75, null]}}},
{"name": "all_on_the_null", "input": {"x": [0.5, 0.5], "popmean": 0.5},
 "expected": {"mean": 0.5, "sd_ddof1": 0.0,
  "two-sided": {"statistic": null, "pvalue": null, "df": 1.0, "ci95": [0.5, 0.5]},
  "less": {"statistic": null, "pvalue": null, "df": 1.0, "ci95": [null, 0.5]},
  "greater": {"statistic": null, "pvalue": null, "df": 1.0, "ci95": [0.5, null]}}}]}"#;
        let report = run("ttest.json", text, None).unwrap();
        assert!(report.is_clean(), "{:#?}", report.failures);
        assert_eq!((report.passed, report.cases), (3, 3));
    }
}
