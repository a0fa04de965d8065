//! Vectors of folds, isotonic regression and calibrators.

use clover_stats::calibrator;
use clover_stats::calibrator::Algorithm;
use clover_stats::calibrator::Calibrator;
use clover_stats::calibrator::CalibratorSettings;
use clover_stats::calibrator::Mode;
use clover_stats::calibrator::Model;
use clover_stats::folds;
use clover_stats::isotonic;
use clover_stats::isotonic::ClipBounds;
use clover_stats::isotonic::Monotonicity;
use clover_stats::sample::Values;
use clover_stats::sample::Weights;

use crate::check::Case;
use crate::check::Check;
use crate::check::Node;
use crate::check::Stop;
use crate::check::refused;

/// Fold rules and the count of folds.
///
/// # Errors
/// [`Stop`].
pub fn folds(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let rule = case.input.at("rule")?;
    if rule.text()? == "resolve_n_folds" {
        let requested = case.input.at("requested")?.count()?;
        let clusters = case.input.at("n_clusters")?.counts()?;
        let got: Vec<usize> = clusters
            .iter()
            .map(|&clusters| folds::resolve_count(requested, clusters))
            .collect();
        return check.counts(&case.expected.at("n_folds")?, &got);
    }
    let ids = case.input.at("prompt_ids")?.texts()?;
    let count = case.input.at("n_folds")?;
    let count = match count.count()? {
        0 => return Err(refused("0 folds: expected at least 1")),
        count => count,
    };
    let seed = case.input.at("seed")?.integer()?;
    let got: Vec<usize> = match rule.text()? {
        "hash_mod" => ids
            .iter()
            .map(|id| folds::hash_mod(id, count, seed))
            .collect(),
        "balanced_round_robin" => {
            let labelled = match case.input.maybe("labelled_prompt_ids") {
                Some(labelled) => labelled.texts()?,
                None => ids.clone(),
            };
            folds::balanced(&ids, &labelled, count, seed)
        }
        _ => return Err(rule.unsupported("resolve_n_folds, hash_mod and balanced_round_robin")),
    };
    check.counts(&case.expected.at("folds")?, &got)
}

/// An array that may be absent or null.
fn maybe_numbers(input: &Node<'_>, name: &str) -> Result<Option<Vec<f64>>, Stop> {
    input.maybe(name).map(|node| node.numbers()).transpose()
}

/// Isotonic regression.
///
/// # Errors
/// [`Stop`].
pub fn isotonic(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let (x, y) = (
        case.input.at("x")?.numbers()?,
        case.input.at("y")?.numbers()?,
    );
    let weights = maybe_numbers(&case.input, "w")?;
    let bound = |name: &str| case.input.maybe(name).map(|node| node.number()).transpose();
    let bounds = ClipBounds {
        low: bound("y_min")?,
        high: bound("y_max")?,
    };
    let direction = if case.input.at("increasing")?.flag()? {
        Monotonicity::Increasing
    } else {
        Monotonicity::Decreasing
    };
    let weights = weights
        .as_deref()
        .map(|weights| Weights::new("w", weights, x.len()))
        .transpose()
        .map_err(refused)?;
    let curve = isotonic::fit(
        Values::new("x", &x).map_err(refused)?,
        Values::new("y", &y).map_err(refused)?,
        weights,
        bounds,
        direction,
    )
    .map_err(refused)?;
    let at = |query: &[f64]| -> Vec<f64> { query.iter().map(|&x| curve.at(x)).collect() };
    let query = case.input.at("query")?.numbers()?;
    check.numbers(&case.expected.at("fit_at_x")?, &at(&x))?;
    check.numbers(&case.expected.at("at_query")?, &at(&query))?;
    check.numbers(&case.expected.at("thresholds_x")?, curve.knots().0)?;
    check.numbers(&case.expected.at("thresholds_y")?, curve.knots().1)
}

/// Cross-fitted calibrators.
///
/// # Errors
/// [`Stop`].
pub fn calibrator(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let input = &case.input;
    let scores = input.at("S")?.numbers()?;
    let labels = input.at("Y")?.numbers()?;
    let ids = input.at("prompt_ids")?.texts()?;
    let weights = maybe_numbers(input, "sample_weight")?;
    let columns = columns(input.maybe("covariates"))?;
    let covariates: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let mode = input.at("mode")?;
    let settings = CalibratorSettings {
        algorithm: Algorithm::Peer1,
        mode: match mode.text()? {
            "monotone" => Mode::Monotone,
            "two_stage" => Mode::TwoStage,
            "auto" => Mode::Auto,
            _ => return Err(mode.unsupported("monotone, two_stage and auto")),
        },
    };
    let clusters = calibrator::cluster_count(&ids).map_err(refused)?;
    let count = folds::resolve_count(input.at("n_folds")?.count()?, clusters);
    folds::check_clusters(count, clusters).map_err(refused)?;
    let folds = folds::balanced(&ids, &ids, count, input.at("seed")?.integer()?);
    let fitted = calibrator::fit(
        &scores,
        &labels,
        &covariates,
        &folds,
        count,
        weights.as_deref(),
        settings,
    )
    .map_err(refused)?;
    check.count(&case.expected.at("n_folds")?, count)?;
    check.counts(&case.expected.at("fold_ids")?, &folds)?;
    compare_calibrator(case, check, &fitted, &scores, &columns)
}

/// Covariate columns from a list of rows.
fn columns(rows: Option<Node<'_>>) -> Result<Vec<Vec<f64>>, Stop> {
    let Some(rows) = rows else {
        return Ok(Vec::new());
    };
    let rows: Vec<Vec<f64>> = rows
        .elements()?
        .iter()
        .map(Node::numbers)
        .collect::<Result<_, _>>()?;
    let width = rows.first().map_or(0, Vec::len);
    Ok((0..width)
        .map(|column| rows.iter().map(|row| row[column]).collect())
        .collect())
}

fn compare_calibrator(
    case: &Case<'_>,
    check: &mut Check<'_>,
    fitted: &Calibrator,
    scores: &[f64],
    covariates: &[Vec<f64>],
) -> Result<(), Stop> {
    let (input, expected) = (&case.input, &case.expected);
    let used = fitted.uses_covariates;
    let predict = |scores: &[f64], columns: &[Vec<f64>]| -> Vec<f64> {
        (0..scores.len())
            .map(|row| {
                let row_of: Vec<f64> = columns.iter().map(|column| column[row]).collect();
                fitted.predict(scores[row], &row_of)
            })
            .collect()
    };
    let query = input.at("query_S")?.numbers()?;
    let query_columns = if used {
        columns(input.maybe("query_cov"))?
    } else {
        Vec::new()
    };
    check.text(&expected.at("selected_mode")?, fitted.selected.name())?;
    check.numbers(&expected.at("at_query")?, &predict(&query, &query_columns))?;
    check.numbers(&expected.at("at_S")?, &predict(scores, covariates))?;
    check.numbers(&expected.at("oof")?, &fitted.out_of_fold)?;
    let quality = &fitted.quality;
    check.number(&expected.at("rmse")?, quality.rmse)?;
    check.number(&expected.at("oof_rmse")?, quality.oof_rmse)?;
    check.number(&expected.at("coverage_at_01")?, quality.within_tenth)?;
    let pair = |range: (f64, f64)| [range.0, range.1];
    check.numbers(&expected.at("oracle_s_range")?, &pair(quality.score_range))?;
    check.numbers(
        &expected.at("oracle_reward_range")?,
        &pair(quality.reward_range),
    )?;
    check.flag(&expected.at("covariates_used")?, used)?;
    check.count(
        &expected.at("n_folds_without_covariates")?,
        fitted.folds_without_covariates,
    )?;
    compare_full(expected, check, fitted)
}

/// The full model's own numbers.
fn compare_full(
    expected: &Node<'_>,
    check: &mut Check<'_>,
    fitted: &Calibrator,
) -> Result<(), Stop> {
    match (
        &fitted.full,
        expected.maybe("full_two_stage"),
        expected.maybe("full_monotone"),
    ) {
        (Model::Monotone(curve), None, Some(full)) => {
            check.numbers(&full.at("iso_x")?, curve.knots().0)?;
            check.numbers(&full.at("iso_y")?, curve.knots().1)
        }
        (
            Model::Ranked {
                index: Some(index),
                curve,
                ..
            },
            Some(full),
            None,
        ) => {
            check.number(&full.at("ridge_alpha")?, index.penalty())?;
            check.numbers(&full.at("coef")?, index.coefficients())?;
            check.number(&full.at("intercept")?, index.intercept())?;
            for (knots, spline) in full
                .at("knots_per_feature")?
                .elements()?
                .iter()
                .zip(index.splines())
            {
                check.numbers(knots, spline.knots())?;
            }
            check.numbers(&full.at("iso_x")?, curve.knots().0)?;
            check.numbers(&full.at("iso_y")?, curve.knots().1)
        }
        (_, None, None) => Ok(()),
        _ => {
            check.fail(expected, "another kind of full model was fitted".to_owned());
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::bundled;

    #[test]
    fn every_case_of_the_bundled_vectors_passes() {
        for name in ["folds.json", "isotonic.json", "calibrator.json"] {
            let report = bundled(name);
            assert!(report.is_clean(), "{:#?}", report.failures);
            assert_eq!(report.passed, report.cases, "{name}: {:?}", report.not_run);
        }
    }
}
