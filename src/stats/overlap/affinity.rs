//! Shared mass of two distributions of scores, and of a policy's actions.

use crate::sample::SampleError;
use crate::sample::Values;
use crate::sample::Weights;
use crate::sample::align;
use crate::sample::some_bins;
use clover_num::math;

/// Least weight whose root counts (`cje-eval` 0.3.0).
const ROOT_MIN: f64 = 1e-10;

/// Shares of equal-width bins between two ends; the last bin holds its upper end.
struct Bins {
    edges: Vec<f64>,
}

impl Bins {
    fn new(low: f64, high: f64, bins: usize) -> Self {
        let step = (high - low) / bins as f64;
        let mut edges: Vec<f64> = (0..=bins).map(|at| low + at as f64 * step).collect();
        edges[bins] = high;
        Self { edges }
    }

    /// Weight by bin over all weight.
    fn shares(&self, values: &[f64], weights: impl Iterator<Item = f64>) -> Vec<f64> {
        let bins = self.edges.len() - 1;
        let mut mass = vec![0.0; bins];
        for (&value, weight) in values.iter().zip(weights) {
            let above = self.edges.partition_point(|edge| *edge <= value);
            mass[above.clamp(1, bins) - 1] += weight;
        }
        let total = math::sum(&mass);
        mass.iter().map(|m| m / total).collect()
    }
}

fn affinity(p: &[f64], q: &[f64]) -> f64 {
    let roots: Vec<f64> = p.iter().zip(q).map(|(p, q)| (p * q).sqrt()).collect();
    math::sum(&roots).clamp(0.0, 1.0)
}

fn ends<'a>(values: impl Iterator<Item = &'a f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &x| {
        (low.min(x), high.max(x))
    })
}

/// Bhattacharyya affinity of two samples of judge scores, `sum_b sqrt(p_b q_b)` over equal-width bins of their pooled
/// range; 0 to 1, 1 where all scores are one. An upper bound of the affinity of the policies themselves.
/// (CJE paper, appendix D.1: `A_B`, 20 bins.)
///
/// # Errors
/// [`SampleError::Parameter`] for no bins.
pub fn bhattacharyya(
    logged: Values<'_>,
    target: Values<'_>,
    bins: usize,
) -> Result<f64, SampleError> {
    some_bins(bins)?;
    let (low, high) = ends(logged.as_slice().iter().chain(target.as_slice()));
    if high <= low {
        return Ok(1.0);
    }
    let cut = Bins::new(low, high, bins);
    let share = |values: Values<'_>| cut.shares(values.as_slice(), std::iter::repeat(1.0));
    Ok(affinity(&share(logged), &share(target)))
}

/// The same where there are no fresh draws: the target's scores are the logged ones, weighted by the ratios.
///
/// # Errors
/// [`SampleError`] for misaligned weights or no bins.
pub fn bhattacharyya_weighted(
    logged: Values<'_>,
    weights: Weights<'_>,
    bins: usize,
) -> Result<f64, SampleError> {
    some_bins(bins)?;
    align("weights", weights.as_slice().len(), logged.len())?;
    let (low, high) = ends(logged.as_slice().iter());
    if high <= low {
        return Ok(1.0);
    }
    let cut = Bins::new(low, high, bins);
    let p = cut.shares(logged.as_slice(), std::iter::repeat(1.0));
    let q = cut.shares(logged.as_slice(), weights.as_slice().iter().copied());
    Ok(affinity(&p, &q))
}

/// Hellinger distance of an affinity in [0, 1]: `sqrt(1 - A)`.
pub fn hellinger_distance(affinity: f64) -> f64 {
    (1.0 - affinity).max(0.0).sqrt()
}

/// Affinity of the policies over their actions, `E[sqrt w]` of mean-one weights under the logger: 0 to 1. It is a property
/// of the two policies; no stabilisation improves it.
pub fn hellinger_of_weights(weights: Weights<'_>) -> f64 {
    let weights = weights.as_slice();
    let mean = math::mean(weights);
    let roots: Vec<f64> = weights
        .iter()
        .map(|w| (w / mean).max(ROOT_MIN).sqrt())
        .collect();
    math::mean(&roots).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[f64]) -> Values<'_> {
        Values::new("scores", values).unwrap()
    }

    #[test]
    fn the_same_scores_share_all_and_distant_ones_nothing() {
        let a = [0.1, 0.2, 0.9];
        assert!((bhattacharyya(column(&a), column(&a), 20).unwrap() - 1.0).abs() < 1e-15);
        assert!(bhattacharyya(column(&[0.0, 0.1]), column(&[0.9, 1.0]), 20).unwrap() < 1e-15);
        assert!((bhattacharyya(column(&[0.5]), column(&[0.5]), 20).unwrap() - 1.0).abs() < 1e-15);
        assert!(bhattacharyya(column(&a), column(&a), 0).is_err());
        // By hand: halves of one against all of one, sqrt(1/2).
        let half = bhattacharyya(column(&[0.0, 1.0]), column(&[0.0]), 2).unwrap();
        assert!((half - 0.5_f64.sqrt()).abs() < 1e-15);
        assert!((hellinger_distance(half) - (1.0 - half).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn weights_stand_for_fresh_draws() {
        let scores = [0.0, 0.0, 1.0, 1.0];
        let even = Weights::new("w", &[1.0; 4], 4).unwrap();
        assert!((bhattacharyya_weighted(column(&scores), even, 20).unwrap() - 1.0).abs() < 1e-15);
        let one = Weights::new("w", &[2.0, 2.0, 0.0, 0.0], 4).unwrap();
        let found = bhattacharyya_weighted(column(&scores), one, 20).unwrap();
        assert!((found - 0.5_f64.sqrt()).abs() < 1e-15);
        assert!((hellinger_of_weights(even) - 1.0).abs() < 1e-15);
        assert!((hellinger_of_weights(one) - 0.5_f64.sqrt()).abs() < 1e-4);
    }
}
