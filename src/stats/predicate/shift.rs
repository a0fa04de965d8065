//! How far a patch moves the rewards: KS, Wasserstein, calibration error on frozen bins, anchors.

use crate::num::math;
use crate::stats::quantile;
use crate::stats::sample::SampleError;
use crate::stats::sample::Values;
use crate::stats::sample::align;

/// How far apart two distributions of rewards over the same rows are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Rows.
    pub rows: usize,
    /// `sup_r |#{R' <= r} - #{R <= r}|`, an integer.
    pub ks_count: usize,
    /// `integral |F_R' - F_R| dr`.
    pub wasserstein: f64,
}

impl Shift {
    /// Kolmogorov-Smirnov distance, count / rows.
    pub fn ks(&self) -> f64 {
        self.ks_count as f64 / self.rows as f64
    }

    /// Whether count <= cap * rows; the quotient is correctly rounded, so a decimal cap that it equals is met.
    pub fn ks_within(&self, cap: f64) -> bool {
        self.ks() <= cap
    }
}

/// Distances between the rewards before and after a patch over the same rows.
///
/// # Errors
/// [`SampleError::Misaligned`].
pub fn shift(baseline: Values<'_>, patched: Values<'_>) -> Result<Shift, SampleError> {
    align("patched", patched.len(), baseline.len())?;
    let before = quantile::ascending(baseline.as_slice());
    let after = quantile::ascending(patched.as_slice());
    let rows = before.len();
    let (mut i, mut j, mut ks_count) = (0, 0, 0);
    while i < rows && j < rows {
        let here = before[i].min(after[j]);
        while i < rows && before[i] <= here {
            i += 1;
        }
        while j < rows && after[j] <= here {
            j += 1;
        }
        ks_count = ks_count.max(i.abs_diff(j));
    }
    // Equal sizes: the distance is the mean gap between order statistics.
    let gaps: Vec<f64> = before
        .iter()
        .zip(&after)
        .map(|(before, after)| (after - before).abs())
        .collect();
    Ok(Shift {
        rows,
        ks_count,
        wasserstein: math::mean(&gaps),
    })
}

/// Expected calibration errors of both rewards on the baseline's bins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ece {
    /// Of the baseline.
    pub baseline: f64,
    /// Of the patch, on the same edges.
    pub patched: f64,
    /// Bins with a baseline row; ties merge bins.
    pub bins: usize,
}

impl Ece {
    /// ECE(R') - ECE(R).
    pub fn change(&self) -> f64 {
        self.patched - self.baseline
    }
}

/// `ECE = sum_b (n_b / n) |mean Y_b - mean R_b|` over equal-frequency bins of the baseline: distinct type-7 quantiles,
/// bins closed below and open above, the last closed. The patch re-uses the edges.
///
/// # Errors
/// [`SampleError::Misaligned`]; [`SampleError::Parameter`] without bins.
pub fn ece_pair(
    labels: Values<'_>,
    baseline: Values<'_>,
    patched: Values<'_>,
    bins: usize,
) -> Result<Ece, SampleError> {
    align("baseline", baseline.len(), labels.len())?;
    align("patched", patched.len(), labels.len())?;
    if bins == 0 {
        return Err(SampleError::Parameter {
            name: "bins",
            expected: "at least 1",
        });
    }
    let edges = quantile::edges(baseline.as_slice(), bins);
    let (before, filled) = ece(&edges, labels, baseline);
    let (after, _) = ece(&edges, labels, patched);
    Ok(Ece {
        baseline: before,
        patched: after,
        bins: filled,
    })
}

/// The error on given edges and the number of bins with a row.
fn ece(edges: &[f64], labels: Values<'_>, rewards: Values<'_>) -> (f64, usize) {
    let mut gaps = vec![0.0; edges.len().saturating_sub(1).max(1)];
    let mut filled = vec![false; gaps.len()];
    for (label, reward) in labels.as_slice().iter().zip(rewards.as_slice()) {
        let bin = quantile::bin(edges, *reward);
        gaps[bin] += reward - label;
        filled[bin] = true;
    }
    // (n_b / n) |mean Y_b - mean R_b| = |sum over the bin| / n.
    let total: Vec<f64> = gaps.iter().map(|gap: &f64| gap.abs()).collect();
    let filled = filled.iter().filter(|&&filled| filled).count();
    (math::sum(&total) / labels.len() as f64, filled)
}

/// `|mean (R' - R)|` over the frozen rows of one anchor policy.
///
/// # Errors
/// [`SampleError::Misaligned`].
pub fn anchor_drift(baseline: Values<'_>, patched: Values<'_>) -> Result<f64, SampleError> {
    align("patched", patched.len(), baseline.len())?;
    let changes: Vec<f64> = patched
        .as_slice()
        .iter()
        .zip(baseline.as_slice())
        .map(|(after, before)| after - before)
        .collect();
    Ok(math::mean(&changes).abs())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(values: &[f64]) -> Values<'_> {
        Values::new("values", values).unwrap()
    }

    #[test]
    fn ties_are_one_step() {
        let found = shift(values(&[0.2, 0.2, 0.2, 0.8]), values(&[0.2, 0.2, 0.8, 0.8])).unwrap();
        assert_eq!(found.ks_count, 1);
        assert!((found.wasserstein - 0.15).abs() < 1e-15);
        assert!(found.ks_within(0.25) && !found.ks_within(0.249));
        let still = shift(values(&[0.4]), values(&[0.4])).unwrap();
        assert_eq!(still.ks_count, 0);
        assert!(shift(values(&[0.4]), values(&[0.4, 0.5])).is_err());
    }

    #[test]
    fn tied_rewards_merge_bins() {
        let y = [0.0, 1.0, 0.0, 1.0];
        let r = [0.5; 4];
        let found = ece_pair(values(&y), values(&r), values(&[0.6; 4]), 10).unwrap();
        assert_eq!(found.bins, 1);
        assert!(found.baseline.abs() < 1e-15);
        assert!((found.change() - 0.1).abs() < 1e-15);
        assert!(ece_pair(values(&y), values(&r), values(&r), 0).is_err());
        assert!((anchor_drift(values(&r), values(&[0.4; 4])).unwrap() - 0.1).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn the_count_is_the_largest_gap_of_the_empirical_functions(
            pairs in prop::collection::vec((0_u8..12, 0_u8..12), 1..40),
        ) {
            let before: Vec<f64> = pairs.iter().map(|pair| f64::from(pair.0) / 12.0).collect();
            let after: Vec<f64> = pairs.iter().map(|pair| f64::from(pair.1) / 12.0).collect();
            let below = |values: &Vec<f64>, r: f64| values.iter().filter(|&&x| x <= r).count();
            let mut most = 0;
            for r in before.iter().chain(&after) {
                most = most.max(below(&before, *r).abs_diff(below(&after, *r)));
            }
            prop_assert_eq!(shift(values(&before), values(&after)).unwrap().ks_count, most);
        }
    }
}
