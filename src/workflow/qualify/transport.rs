//! `transport` vectors: the peer's audit record, the narrow width.

use crate::stats::sample::Clusters;
use crate::stats::sample::Values;
use crate::stats::sample::Weights;
use crate::stats::transport;
use crate::stats::transport::Audit;
use crate::stats::transport::Doubt;
use crate::stats::transport::Probe;
use crate::stats::transport::State;
use crate::stats::transport::Terms;
use crate::workflow::qualify::check::Case;
use crate::workflow::qualify::check::Check;
use crate::workflow::qualify::check::Node;
use crate::workflow::qualify::check::Stop;
use crate::workflow::qualify::check::refused;

/// Compares one case. Cases that name a calibrator instead of predictions need it.
///
/// # Errors
/// [`Stop`].
pub fn transport(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let input = &case.input;
    if input.maybe("calibrator").is_some() {
        return Err(Stop::NotRun("needs the calibrator".to_owned()));
    }
    let predictions = input.at("prediction")?.numbers()?;
    let labels = input.at("y")?.numbers()?;
    let clusters = match input.maybe("clusters") {
        Some(clusters) => Clusters::of(clusters.texts()?),
        None => Clusters::singletons(labels.len()),
    };
    let weights = input.maybe("weights").map(|weights| weights.numbers());
    let weights = weights.transpose()?;
    compare(
        case,
        check,
        &predictions,
        &labels,
        &clusters.map_err(refused)?,
        weights.as_deref(),
    )
}

/// Audits the rows under the terms of the case and compares the record.
///
/// # Errors
/// [`Stop`].
pub fn compare(
    case: &Case<'_>,
    check: &mut Check<'_>,
    predictions: &[f64],
    labels: &[f64],
    clusters: &Clusters,
    weights: Option<&[f64]>,
) -> Result<(), Stop> {
    let input = &case.input;
    let mut terms = Terms::new(None);
    if let Some(margin) = input.maybe("delta_max") {
        terms.margin = Some(margin.number()?);
    }
    if let Some(alpha) = input.maybe("alpha") {
        terms.alpha = alpha.number()?;
    }
    if let Some(size) = input.maybe("family_size") {
        terms.family_size = size.count()?;
    }
    let bins = match input.maybe("bins") {
        Some(bins) => bins.count()?,
        None => transport::BINS,
    };
    let predictions = Values::new("prediction", predictions).map_err(refused)?;
    let probe = Probe::new(
        predictions,
        Values::new("y", labels).map_err(refused)?,
        clusters,
        weights
            .map(|weights| Weights::new("weights", weights, labels.len()))
            .transpose()
            .map_err(refused)?,
    )
    .map_err(refused)?;
    let audit = transport::audit(&probe, &terms, None).map_err(refused)?;
    let bins = transport::bins(&probe, predictions, bins).map_err(refused)?;
    let expected = &case.expected;
    numbers(&audit, &terms, expected, check)?;
    state(audit.narrow.state, expected, check)?;
    let means: Vec<f64> = bins
        .iter()
        .map(|bin| bin.mean.unwrap_or(f64::NAN))
        .collect();
    check.numbers(&expected.at("decile_residuals")?, &means)?;
    let rows: Vec<usize> = bins.iter().map(|bin| bin.rows).collect();
    check.counts(&expected.at("decile_counts")?, &rows)?;
    let occupancy = transport::occupancy(&bins);
    check.number(&expected.at("probe_bin_occupancy")?, occupancy)?;
    check.number(&expected.at("coverage")?, occupancy)?;
    let uneven = weights.is_some_and(|weights| weights.iter().any(|w| (w - 1.0).abs() > 1e-8));
    check.flag(&expected.at("weighted")?, uneven)?;
    for (name, reason) in [
        ("cluster_field", "a name"),
        ("covariate_names", "a name"),
        ("group_label", "a name"),
    ] {
        check.informative(&expected.at(name)?, reason);
    }
    Ok(())
}

fn numbers(
    audit: &Audit,
    terms: &Terms,
    expected: &Node<'_>,
    check: &mut Check<'_>,
) -> Result<(), Stop> {
    let width = &audit.narrow;
    check.number(&expected.at("delta_hat")?, audit.mean)?;
    let error = width.standard_error.unwrap_or(f64::INFINITY);
    check.number(&expected.at("delta_se")?, error)?;
    let interval = width.interval.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
    check.numbers(&expected.at("delta_ci")?, &interval)?;
    check.maybe(&expected.at("delta_max")?, terms.margin)?;
    check.count(&expected.at("n_probe")?, audit.rows)?;
    check.count(&expected.at("n_clusters")?, audit.clusters)?;
    let effective = audit.effective_clusters;
    check.number(&expected.at("effective_clusters")?, effective)?;
    check.number(&expected.at("alpha")?, terms.alpha)?;
    check.count(&expected.at("family_size")?, terms.family_size)?;
    let family = 1.0 - terms.alpha;
    check.number(&expected.at("simultaneous_confidence_level")?, family)?;
    let each = 1.0 - terms.alpha / terms.family_size as f64;
    check.number(&expected.at("per_audit_confidence_level")?, each)?;
    for (name, number) in [
        ("ci_half_width", width.half_width),
        ("min_margin_for_pass", width.min_margin_for_pass),
        ("detectable_bias_80", width.detectable_bias),
    ] {
        check.number(&expected.at(name)?, number.unwrap_or(f64::INFINITY))?;
    }
    Ok(())
}

fn state(state: State, expected: &Node<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let (status, code) = match state {
        State::Pass => ("PASS", ""),
        State::Fail => ("FAIL", "unacceptable_mean_residual"),
        State::Inconclusive(Doubt::FewClusters) => {
            ("INCONCLUSIVE", "insufficient_effective_clusters")
        }
        State::Inconclusive(Doubt::CrossesMargin) => ("INCONCLUSIVE", "interval_crosses_margin"),
        State::NotGraded => ("NOT_GRADED", "margin_not_declared"),
        State::NotChecked => ("NOT_CHECKED", ""),
    };
    check.text(&expected.at("status")?, status)?;
    check.text(&expected.at("reason_code")?, code)?;
    let wording = "wording of the reason code";
    check.informative(&expected.at("recommended_action")?, wording);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::workflow::qualify::run;

    #[test]
    fn the_vectors_pass() {
        let text = include_str!("../../../fixtures/reference/stats/transport.json");
        let report = run("transport.json", text, None).unwrap();
        assert!(report.is_clean(), "{:#?}", report.failures);
        assert_eq!(report.passed + report.not_run.len(), report.cases);
        assert!(
            report
                .not_run
                .iter()
                .all(|(name, _)| name.starts_with("arena_probe_"))
        );
        assert_eq!(report.passed, 7);
    }
}
