//! Vectors of calibration errors.

use clover_stats::quantile::Edges;
use clover_stats::reliability;
use clover_stats::reliability::Bin;
use clover_stats::reliability::CalibrationError;
use clover_stats::sample::Values;

use crate::check::Case;
use crate::check::Check;
use crate::check::Node;
use crate::check::Stop;
use crate::check::refused;

/// `ece`: calibration errors on equal-frequency bins, also of patched predictions on the baseline's edges, and on
/// equal-width bins with the Brier split.
///
/// # Errors
/// [`Stop`].
pub fn ece(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let predictions = case.input.at("pred")?.numbers()?;
    let labels = case.input.at("y")?.numbers()?;
    let bins = case.input.at("n_bins")?.count()?;
    let predictions = Values::new("pred", &predictions).map_err(refused)?;
    let labels = Values::new("y", &labels).map_err(refused)?;
    let edges = Edges::equal_frequency(predictions, bins).map_err(refused)?;
    let baseline = reliability::calibration_error(&edges, predictions, labels).map_err(refused)?;
    let node = case.expected.at("equal_frequency")?;
    equal_frequency(&node, check, &edges, &baseline)?;
    equal_width(
        &case.expected.at("equal_width")?,
        check,
        predictions,
        labels,
        bins,
    )?;
    let mse = reliability::mean_squared_error(predictions, labels).map_err(refused)?;
    let rmse = reliability::root_mean_squared_error(predictions, labels).map_err(refused)?;
    check.number(&case.expected.at("mse")?, mse)?;
    check.number(&case.expected.at("rmse")?, rmse)?;
    let Some(patched) = case.input.maybe("pred_patched") else {
        return Ok(());
    };
    let patched = patched.numbers()?;
    let patched = Values::new("pred_patched", &patched).map_err(refused)?;
    let error = reliability::calibration_error(&edges, patched, labels).map_err(refused)?;
    let node = case.expected.at("patched_on_baseline_edges")?;
    equal_frequency(&node, check, &edges, &error)?;
    check.number(&case.expected.at("delta_ece")?, error.ece - baseline.ece)?;
    let patched_mse = reliability::mean_squared_error(patched, labels).map_err(refused)?;
    check.number(&case.expected.at("delta_mse")?, patched_mse - mse)
}

fn equal_frequency(
    expected: &Node<'_>,
    check: &mut Check<'_>,
    edges: &Edges,
    error: &CalibrationError,
) -> Result<(), Stop> {
    check.number(&expected.at("ece")?, error.ece)?;
    check.number(&expected.at("mce")?, error.mce)?;
    check.numbers(&expected.at("edges")?, edges.as_slice())?;
    let bins = expected.at("bins")?.elements()?;
    if bins.len() != error.bins.len() {
        check.fail(
            expected,
            format!("expected {} bins, found {}", bins.len(), error.bins.len()),
        );
    }
    for (node, bin) in bins.iter().zip(&error.bins) {
        check.count(&node.index(0)?, bin.rows)?;
        check.number(&node.index(1)?, bin.prediction)?;
        check.number(&node.index(2)?, bin.label)?;
    }
    Ok(())
}

/// An empty bin of the peer has the label 0 and predicts its midpoint.
fn equal_width(
    expected: &Node<'_>,
    check: &mut Check<'_>,
    predictions: Values<'_>,
    labels: Values<'_>,
    bins: usize,
) -> Result<(), Stop> {
    let split = reliability::equal_width(predictions, labels, bins).map_err(refused)?;
    let by_bin = |value: &dyn Fn(&Bin) -> f64, empty: &dyn Fn(usize) -> f64| {
        let found = split.bins.iter().enumerate();
        let values = found.map(|(at, bin)| bin.as_ref().map_or_else(|| empty(at), value));
        values.collect::<Vec<f64>>()
    };
    let total = predictions.len() as f64;
    let frequencies = by_bin(&|bin| bin.rows as f64 / total, &|_| 0.0);
    let accuracies = by_bin(&|bin| bin.label, &|_| 0.0);
    let confidences = by_bin(&|bin| bin.prediction, &|at| split.midpoint(at));
    check.number(&expected.at("ece")?, split.ece)?;
    check.number(&expected.at("mce_incl_empty_bins")?, split.mce_with_empty)?;
    check.number(&expected.at("brier")?, split.brier)?;
    check.number(&expected.at("reliability")?, split.reliability)?;
    check.number(&expected.at("resolution")?, split.resolution)?;
    check.number(&expected.at("uncertainty")?, split.uncertainty)?;
    check.numbers(&expected.at("frequencies")?, &frequencies)?;
    check.numbers(&expected.at("accuracies")?, &accuracies)?;
    check.numbers(&expected.at("confidences")?, &confidences)
}

#[cfg(test)]
mod tests {
    use crate::run;

    #[test]
    fn ece_vectors_pass() {
        let text = include_str!("../../fixtures/reference/stats/ece.json");
        let report = run("ece.json", text, None).unwrap();
        assert!(report.is_clean(), "{:#?}", report.failures);
        assert_eq!((report.passed, report.cases), (4, 4));
    }
}
