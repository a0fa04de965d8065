//! `transport` vectors: the peer's audit record, the narrow width.

use clover_stats::sample::Clusters;
use clover_stats::sample::Values;
use clover_stats::sample::Weights;
use clover_stats::transport;
use clover_stats::transport::AuditState;
use clover_stats::transport::Doubt;
use clover_stats::transport::Probe;
use clover_stats::transport::TransportAudit;
use clover_stats::transport::TransportTerms;

use crate::check::Case;
use crate::check::Check;
use crate::check::Node;
use crate::check::Stop;
use crate::check::refused;
use crate::direct;
use clover_workflow::analyze;
use clover_workflow::analyze::read;

/// Compares one case. Cases that name a calibrator instead of predictions fit it on the real sample.
///
/// # Errors
/// [`Stop`].
pub fn transport(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let input = &case.input;
    if input.maybe("calibrator").is_some() {
        return arena(case, check);
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
        &ProbeRows {
            scores: &predictions,
            predictions: &predictions,
            labels: &labels,
            clusters: &clusters.map_err(refused)?,
            weights: weights.as_deref(),
        },
    )
}

/// A probe of the real sample, predicted by the calibrator of its responses' own labels.
fn arena(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let files = direct::arena_files(case.arena, &[])?;
    let (dataset, prompts) = read::dataset(&files, &[]).map_err(refused)?;
    let request = analyze::Request::default();
    let analysis = analyze::analyze(&dataset, &prompts, &request).map_err(refused)?;
    let calibration = analysis.calibration.map_err(refused)?;
    let probe = direct::arena_file(case.arena, case.input.at("probe")?.text()?, &[])?;
    let labels: Option<Vec<f64>> = probe.labels.iter().copied().collect();
    let labels = labels.ok_or_else(|| case.input.malformed("a probe with labels"))?;
    let predictions: Vec<f64> = probe
        .scores
        .iter()
        .map(|&score| calibration.calibrator.predict(score, &[]))
        .collect();
    check.numbers(&case.expected.at("predictions")?, &predictions)?;
    compare(
        case,
        check,
        &ProbeRows {
            scores: &probe.scores,
            predictions: &predictions,
            labels: &labels,
            clusters: &Clusters::of(&probe.prompts).map_err(refused)?,
            weights: None,
        },
    )
}

/// A probe's columns.
struct ProbeRows<'a> {
    scores: &'a [f64],
    predictions: &'a [f64],
    labels: &'a [f64],
    clusters: &'a Clusters,
    weights: Option<&'a [f64]>,
}

/// Audits the rows under the terms of the case and compares the record.
fn compare(case: &Case<'_>, check: &mut Check<'_>, rows: &ProbeRows<'_>) -> Result<(), Stop> {
    let input = &case.input;
    let mut terms = TransportTerms::new(None);
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
    let probe = Probe::new(
        Values::new("prediction", rows.predictions).map_err(refused)?,
        Values::new("y", rows.labels).map_err(refused)?,
        rows.clusters,
        rows.weights
            .map(|weights| Weights::new("weights", weights, rows.labels.len()))
            .transpose()
            .map_err(refused)?,
    )
    .map_err(refused)?;
    let audit = transport::audit(&probe, &terms, None).map_err(refused)?;
    let scores = Values::new("scores", rows.scores).map_err(refused)?;
    let bins = transport::bins(&probe, scores, bins).map_err(refused)?;
    let expected = &case.expected;
    numbers(&audit, &terms, expected, check)?;
    state(audit.narrow.state, expected, check)?;
    let means: Vec<f64> = bins
        .iter()
        .map(|bin| bin.mean.unwrap_or(f64::NAN))
        .collect();
    check.numbers(&expected.at("decile_residuals")?, &means)?;
    let counts: Vec<usize> = bins.iter().map(|bin| bin.rows).collect();
    check.counts(&expected.at("decile_counts")?, &counts)?;
    let occupancy = transport::occupancy(&bins);
    check.number(&expected.at("probe_bin_occupancy")?, occupancy)?;
    check.number(&expected.at("coverage")?, occupancy)?;
    let uneven = rows
        .weights
        .is_some_and(|weights| weights.iter().any(|w| (w - 1.0).abs() > 1e-8));
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
    audit: &TransportAudit,
    terms: &TransportTerms,
    expected: &Node<'_>,
    check: &mut Check<'_>,
) -> Result<(), Stop> {
    let width = &audit.narrow;
    check.number(&expected.at("delta_hat")?, audit.mean)?;
    let error = width.standard_error.unwrap_or(f64::INFINITY);
    check.number(&expected.at("delta_se")?, error)?;
    let infinite = [f64::NEG_INFINITY, f64::INFINITY];
    let interval = width.interval.map_or(infinite, |at| [at.low, at.high]);
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

fn state(state: AuditState, expected: &Node<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let (status, code) = match state {
        AuditState::Pass => ("PASS", ""),
        AuditState::Fail => ("FAIL", "unacceptable_mean_residual"),
        AuditState::Inconclusive(Doubt::FewClusters) => {
            ("INCONCLUSIVE", "insufficient_effective_clusters")
        }
        AuditState::Inconclusive(Doubt::CrossesMargin) => {
            ("INCONCLUSIVE", "interval_crosses_margin")
        }
        // The peer has no such doubt: it grades a width of zero.
        AuditState::Inconclusive(Doubt::EqualLabels) => ("INCONCLUSIVE", ""),
        AuditState::NotGraded => ("NOT_GRADED", "margin_not_declared"),
        AuditState::NotChecked => ("NOT_CHECKED", ""),
    };
    check.text(&expected.at("status")?, status)?;
    check.text(&expected.at("reason_code")?, code)?;
    let wording = "wording of the reason code";
    check.informative(&expected.at("recommended_action")?, wording);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::bundled;

    #[test]
    fn the_vectors_pass() {
        let report = bundled("transport.json");
        assert!(report.is_clean(), "{:#?}", report.failures);
        assert_eq!(report.passed, report.cases);
    }
}
