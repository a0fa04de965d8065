//! How far a patch moves the rewards: KS, Wasserstein, calibration error on frozen bins, anchors.

use crate::distance;
use crate::quantile::Edges;
use crate::reliability::calibration_error;
use crate::sample::SampleError;
use crate::sample::Values;
use crate::sample::align;

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
    // Of equally many rows the common denominator is their number.
    let count = distance::ks_counts(patched, baseline).count();
    Ok(Shift {
        rows: baseline.len(),
        ks_count: usize::try_from(count).unwrap_or(usize::MAX),
        wasserstein: distance::wasserstein(patched, baseline),
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
    let edges = Edges::equal_frequency(baseline, bins)?;
    let before = calibration_error(&edges, baseline, labels)?;
    let after = calibration_error(&edges, patched, labels)?;
    Ok(Ece {
        baseline: before.ece,
        patched: after.ece,
        bins: before.bins.len(),
    })
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
