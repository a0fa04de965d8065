//! Whether the logger goes where the target lives: target-typicality coverage and the coverage-limited efficiency bound.
//!
//! T holds the rows whose surprisal under the target, `-ln pi'(a|x)` per unit of length, is at most its 0.9 quantile
//! under the target. `alpha` is the target's mass on T, `beta` (TTC) the logger's. No weighting of logged rows has a
//! standard error below `sigma_T (alpha / sqrt(beta n)) sqrt(1 + chi^2_T)` (CJE paper, equation 1): the CLE factor is
//! that floor over `sigma_T / sqrt n`.

use crate::inference;
use crate::overlap::affinity;
use crate::overlap::concentration;
use crate::quantile;
use crate::sample::SampleError;
use crate::sample::Unfit;
use crate::sample::Values;
use crate::sample::Weights;
use crate::sample::align;
use crate::sample::open_unit;
use crate::weights::LogRatios;
use clover_num::math;

/// Target mass that the typical region is built to hold.
pub const TYPICAL_MASS: f64 = 0.9;
/// Cumulative mass that rounding may leave short of the quantile.
const ROUNDING: f64 = 1e-12;

/// Where the quantile of surprisal comes from.
#[derive(Clone, Copy, Debug)]
pub enum SurprisalThreshold<'a> {
    /// Surprisals, per the same unit of length, of draws that the target made: the paper's definition.
    Fresh(Values<'a>),
    /// The logged rows, weighted by their ratios (`cje-eval` 0.3.0): where few rows carry the weight, it rests on them.
    Logged,
}

/// Coverage of the target by the logger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coverage {
    /// Largest surprisal of the typical region, nats per unit of length.
    pub threshold: f64,
    /// The logger's mass on it (TTC): share of logged rows inside.
    pub ttc: f64,
    /// The target's mass on it, by self-normalised weights.
    pub alpha: f64,
    /// `alpha / sqrt(beta)`.
    pub coverage_penalty: f64,
    /// Variance (denominator n) of the weights inside, scaled to mean one there; `None` where they weigh nothing.
    pub chi_squared: Option<f64>,
    /// Product of the penalty and `sqrt(1 + chi^2)`; `None` where the latter is, or nothing is inside.
    pub factor: Option<f64>,
    /// `E[sqrt w]` of all rows.
    pub hellinger: f64,
    /// Effective sample size of all rows, as a share.
    pub ess_fraction: f64,
}

/// Measures coverage from log-probabilities of the logged rows under target and logger, in nats. `lengths` divide the
/// surprisal: tokens where counts exist, else characters; without them it is the whole row's, which confounds what is
/// typical with what is short. A row that the target cannot write is outside.
///
/// # Errors
/// [`SampleError`] for columns that are not log-probabilities, misaligned, or lengths that are not above 0; a `mass`
/// outside (0, 1); [`InsufficientData`](crate::sample::InsufficientData) if the target can write no row.
pub fn coverage(
    target: &[f64],
    base: &[f64],
    lengths: Option<&[f64]>,
    threshold: SurprisalThreshold<'_>,
    mass: f64,
) -> Result<Coverage, Unfit> {
    open_unit("typical mass", mass)?;
    let ratios = LogRatios::new(target, base)?;
    let surprisal = surprisals(target, lengths)?;
    let weights = ratios.mean_one();
    let rows = weights.len() as f64;
    let threshold = match threshold {
        SurprisalThreshold::Fresh(draws) => {
            let sorted = quantile::ascending(draws.as_slice());
            quantile::type_7(&sorted, mass)
        }
        SurprisalThreshold::Logged => weighted_quantile(&surprisal, &weights, mass),
    };
    let inside: Vec<f64> = surprisal
        .iter()
        .zip(&weights)
        .filter(|(surprisal, _)| **surprisal <= threshold)
        .map(|(_, weight)| *weight)
        .collect();
    let ttc = inside.len() as f64 / rows;
    let alpha = math::sum(&inside) / rows;
    let mean = math::mean(&inside);
    let chi_squared = (mean > 0.0).then(|| {
        let scaled: Vec<f64> = inside.iter().map(|w| w / mean).collect();
        inference::squares(&scaled) / inside.len() as f64
    });
    let coverage_penalty = if ttc > 0.0 {
        alpha / ttc.sqrt()
    } else {
        f64::INFINITY
    };
    let checked = Weights::new("weights", &weights, weights.len())?;
    Ok(Coverage {
        threshold,
        ttc,
        alpha,
        coverage_penalty,
        chi_squared,
        factor: chi_squared.map(|chi| coverage_penalty * (1.0 + chi).sqrt()),
        hellinger: affinity::hellinger_of_weights(checked),
        ess_fraction: concentration::ess(checked).fraction,
    })
}

fn surprisals(target: &[f64], lengths: Option<&[f64]>) -> Result<Vec<f64>, SampleError> {
    let Some(lengths) = lengths else {
        return Ok(target.iter().map(|l| -l).collect());
    };
    align("lengths", lengths.len(), target.len())?;
    let wrong = |length: &f64| !(length.is_finite() && *length > 0.0);
    if lengths.iter().any(wrong) {
        return Err(SampleError::Parameter {
            name: "lengths",
            expected: "finite numbers above 0",
        });
    }
    Ok(target.iter().zip(lengths).map(|(l, n)| -l / n).collect())
}

/// The surprisal at which the weight of the rows before and at it first reaches `mass` of all weight.
fn weighted_quantile(surprisal: &[f64], weights: &[f64], mass: f64) -> f64 {
    let mut order: Vec<usize> = (0..surprisal.len()).collect();
    order.sort_by(|&a, &b| surprisal[a].total_cmp(&surprisal[b]));
    let needed = mass * math::sum(weights) * (1.0 - ROUNDING);
    let mut below = 0.0;
    for &row in &order {
        below += weights[row];
        if below >= needed {
            return surprisal[row];
        }
    }
    order.last().map_or(f64::INFINITY, |&row| surprisal[row])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identical_policies_cover_what_is_typical() {
        let base: Vec<f64> = (1..=100).map(|i| -f64::from(i)).collect();
        let same = coverage(&base, &base, None, SurprisalThreshold::Logged, 0.9).unwrap();
        assert!((same.ttc - 0.9).abs() < 1e-12 && (same.alpha - 0.9).abs() < 1e-12);
        assert!(same.chi_squared.unwrap().abs() < 1e-12);
        assert!((same.factor.unwrap() - 0.9_f64.sqrt()).abs() < 1e-12);
        let draws: Vec<f64> = (1..=100).map(f64::from).collect();
        let fresh = SurprisalThreshold::Fresh(Values::new("draws", &draws).unwrap());
        let same = coverage(&base, &base, None, fresh, 0.9).unwrap();
        assert!((same.threshold - 90.1).abs() < 1e-12 && (same.ttc - 0.9).abs() < 1e-12);
    }

    #[test]
    fn a_logger_that_goes_elsewhere_does_not_cover() {
        let base = [-1.0; 10];
        let mut target = [-200.0; 10];
        target[4] = -1.0;
        target[5] = f64::NEG_INFINITY;
        let found = coverage(&target, &base, None, SurprisalThreshold::Logged, 0.9).unwrap();
        assert!((found.ttc - 0.1).abs() < 1e-15 && (found.alpha - 1.0).abs() < 1e-12);
        assert!((found.factor.unwrap() - 10.0_f64.sqrt()).abs() < 1e-12);
        // No logged row is as little surprising as the target's own draws.
        let draws = [0.1, 0.2];
        let fresh = SurprisalThreshold::Fresh(Values::new("draws", &draws).unwrap());
        let none = coverage(&target, &base, None, fresh, 0.9).unwrap();
        assert_eq!((none.ttc.to_bits(), none.factor), (0, None));
    }

    #[test]
    fn wrong_input_is_refused() {
        let logs = [-1.0, -2.0];
        let run = |lengths: Option<&[f64]>, mass| {
            coverage(&logs, &logs, lengths, SurprisalThreshold::Logged, mass).is_err()
        };
        assert!(run(Some(&[1.0, 0.0]), 0.9) && run(Some(&[1.0]), 0.9));
        assert!(run(None, 1.0) && run(None, f64::NAN) && !run(Some(&[1.0, 2.0]), 0.9));
        let none = [f64::NEG_INFINITY; 2];
        assert!(matches!(
            coverage(&none, &logs, None, SurprisalThreshold::Logged, 0.9),
            Err(Unfit::InsufficientData(_))
        ));
    }
}
