//! `weights` and `cle` vectors: concentration, tails, shared scores and coverage.

use clover_stats::overlap;
use clover_stats::overlap::Coverage;
use clover_stats::overlap::SurprisalThreshold;
use clover_stats::sample::Values;
use clover_stats::sample::Weights;

use crate::check::Case;
use crate::check::Check;
use crate::check::Node;
use crate::check::Stop;
use crate::check::refused;

/// Diagnostics of weights.
///
/// # Errors
/// [`Stop`].
pub fn weights(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let (input, expected) = (&case.input, &case.expected);
    let values = input.at("w")?.numbers()?;
    let weights = Weights::new("w", &values, values.len()).map_err(refused)?;
    let found = overlap::concentration(weights);
    check.number(&expected.at("ess")?, found.ess.rows)?;
    check.number(&expected.at("ess_fraction")?, found.ess.fraction)?;
    check.number(&expected.at("max_share")?, found.max_share)?;
    check.number(&expected.at("cv2_population")?, found.cv_squared)?;
    check.number(&expected.at("top5pct_mass")?, found.top_5_percent)?;
    let share = |below: f64| {
        let count = values.iter().filter(|w| **w < below).count();
        count as f64 / values.len() as f64
    };
    check.number(&expected.at("near_zero_lt_1e-10")?, share(1e-10))?;
    let affinity = overlap::hellinger_of_weights(weights);
    check.number(&expected.at("hellinger_action")?, affinity)?;
    check.maybe(
        &expected.at("hill_peer_top5pct")?,
        overlap::hill(weights, 0.05).index(),
    )?;
    // The peer's median is of finite indices only.
    let stable = overlap::hill_stable(weights).index();
    check.maybe(
        &expected.at("hill_peer_stable_median")?,
        stable.filter(|alpha| alpha.is_finite()),
    )?;
    for (k, index) in expected.at("hill_paper_k")?.members()? {
        let k = k.parse().map_err(|_| index.malformed("a count as name"))?;
        check.maybe(&index, overlap::hill_at(weights, k).index())?;
    }
    if let Some(logged) = input.maybe("scores_logged") {
        let (logged, target) = (logged.numbers()?, input.at("scores_target")?.numbers()?);
        let affinity = overlap::bhattacharyya(
            Values::new("scores_logged", &logged).map_err(refused)?,
            Values::new("scores_target", &target).map_err(refused)?,
            input.at("n_bins")?.count()?,
        )
        .map_err(refused)?;
        check.number(&expected.at("bhattacharyya_judge_space")?, affinity)?;
        let distance = overlap::hellinger_distance(affinity);
        check.number(&expected.at("hellinger_distance")?, distance)?;
    }
    Ok(())
}

/// Coverage-limited efficiency.
///
/// # Errors
/// [`Stop`].
pub fn cle(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let (input, expected) = (&case.input, &case.expected);
    let base = input.at("logp_base")?.numbers()?;
    let target = input.at("logp_target")?.numbers()?;
    let tokens = input
        .maybe("tokens")
        .map(|node| node.numbers())
        .transpose()?;
    let mass = input.at("target_typical_mass")?.number()?;
    let found = overlap::coverage(
        &target,
        &base,
        tokens.as_deref(),
        SurprisalThreshold::Logged,
        mass,
    );
    let found = found.map_err(refused)?;
    check.number(&expected.at("threshold")?, found.threshold)?;
    check.number(
        &expected.at("chi2_T")?,
        found.chi_squared.unwrap_or(f64::NAN),
    )?;
    check.number(&expected.at("bhattacharyya_action")?, found.hellinger)?;
    factors(expected, check, &found)
}

/// The members that every coverage record has.
pub(super) fn factors(
    expected: &Node<'_>,
    check: &mut Check<'_>,
    found: &Coverage,
) -> Result<(), Stop> {
    check.number(&expected.at("ttc")?, found.ttc)?;
    check.number(&expected.at("alpha")?, found.alpha)?;
    check.number(&expected.at("coverage_penalty")?, found.coverage_penalty)?;
    let mismatch = found.chi_squared.map(|chi| (1.0 + chi).sqrt());
    check.maybe(&expected.at("shape_mismatch")?, mismatch)?;
    check.maybe(&expected.at("cle_factor")?, found.factor)?;
    check.number(&expected.at("ess_fraction")?, found.ess_fraction)
}

#[cfg(test)]
mod tests {
    use crate::bundled;

    #[test]
    fn the_vectors_pass() {
        for name in ["cle.json", "weights.json"] {
            let report = bundled(name);
            assert!(report.is_clean(), "{:#?}", report.failures);
            assert_eq!(report.passed, report.cases, "{name}: {:?}", report.not_run);
        }
    }
}
