//! Variances of means over clusters, their combination, degrees of freedom, and quantiles of replicates.

use crate::num::math;
use crate::stats::distribution;
use crate::stats::sample::Clusters;
use crate::stats::sample::Thin;

/// CRV1 variance of a mean, split by whether a cluster holds a labelled row (`cje.md` 2.9).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitVariance {
    /// Part of the clusters with a labelled row.
    pub labelled: f64,
    /// Part of the other clusters.
    pub unlabelled: f64,
    /// Clusters with a labelled row.
    pub labelled_clusters: usize,
    /// Clusters in all, at least 2.
    pub clusters: usize,
}

impl SplitVariance {
    /// The CRV1 variance.
    pub fn total(&self) -> f64 {
        self.labelled + self.unlabelled
    }

    /// Variance and degrees of freedom of a mean whose correction fits `fitted` parameters on the labelled
    /// clusters: the labelled part grows by n / (n - fitted), df = n - fitted. `None` below one degree.
    pub fn corrected(&self, fitted: usize) -> Option<(f64, f64)> {
        let df = self
            .labelled_clusters
            .checked_sub(fitted)
            .filter(|df| *df >= 1)?;
        let factor = self.labelled_clusters as f64 / df as f64;
        Some((self.labelled * factor + self.unlabelled, df as f64))
    }
}

/// CRV1 variance of the mean of `values`: centred, totalled by cluster, totals centred,
/// V = C / (C - 1) x sum T^2 / n^2. Clusters without rows here do not count.
///
/// # Errors
/// [`Thin`] below two clusters: row-level variance is never a fallback.
pub fn cluster_variance(
    values: &[f64],
    clusters: &Clusters,
    labelled: &[bool],
) -> Result<SplitVariance, Thin> {
    let mean = math::mean(values);
    let mut totals = vec![0.0; clusters.count()];
    let mut state = vec![0_u8; clusters.count()];
    for ((value, &cluster), &labelled) in values.iter().zip(clusters.of_row()).zip(labelled) {
        totals[cluster as usize] += value - mean;
        state[cluster as usize] |= 1 | u8::from(labelled) << 1;
    }
    let present: Vec<(f64, bool)> = totals
        .into_iter()
        .zip(state)
        .filter(|(_, state)| *state > 0)
        .map(|(total, state)| (total, state > 1))
        .collect();
    let count = present.len();
    Thin::unless("prompt clusters", count, 2)?;
    let centre = present.iter().map(|(total, _)| total).sum::<f64>() / count as f64;
    let rows = values.len() as f64;
    let scale = count as f64 / (count - 1) as f64 / (rows * rows);
    let part = |of: bool| -> f64 {
        let squares = present
            .iter()
            .filter(|(_, labelled)| *labelled == of)
            .map(|(total, _)| (total - centre) * (total - centre));
        scale * squares.sum::<f64>()
    };
    Ok(SplitVariance {
        labelled: part(true),
        unlabelled: part(false),
        labelled_clusters: present.iter().filter(|(_, labelled)| *labelled).count(),
        clusters: count,
    })
}

/// Delete-one-fold jackknife variance, `(K - 1) / K x sum (psi_k - mean psi)^2`: the sum form (`cje.md` 2.8).
/// 0 below two folds.
pub fn jackknife_variance(estimates: &[f64]) -> f64 {
    if estimates.len() < 2 {
        return 0.0;
    }
    let mean = math::mean(estimates);
    let squares: f64 = estimates.iter().map(|v| (v - mean) * (v - mean)).sum();
    let folds = estimates.len() as f64;
    (folds - 1.0) / folds * squares
}

/// Welch-Satterthwaite degrees of freedom of the sum of a sampling variance and a calibration variance,
/// at least 1; those of the sampling variance where there is no other.
pub fn welch(sampling: f64, df: f64, calibration: f64, folds: usize) -> f64 {
    let df = df.max(1.0);
    if calibration <= 0.0 {
        return df;
    }
    let df_calibration = folds.saturating_sub(1) as f64;
    if sampling <= 0.0 {
        return df_calibration;
    }
    let total = sampling + calibration;
    let (first, second) = (sampling / total, calibration / total);
    (1.0 / (first * first / df + second * second / df_calibration)).max(1.0)
}

/// A two-sided interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// `centre` ± the t quantile of `df` degrees at 1 - `alpha` / 2, times `se`.
    pub fn student(centre: f64, se: f64, df: f64, alpha: f64) -> Self {
        let reach = distribution::t_quantile(1.0 - 0.5 * alpha, df) * se;
        Self {
            low: centre - reach,
            high: centre + reach,
        }
    }

    /// Percentiles `alpha` / 2 and 1 - `alpha` / 2 of replicates, linearly interpolated (type 7).
    ///
    /// # Errors
    /// [`Thin`] without replicates.
    pub fn percentile(replicates: &[f64], alpha: f64) -> Result<Self, Thin> {
        Thin::unless("replicates", replicates.len(), 1)?;
        let mut sorted = replicates.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Ok(Self {
            low: quantile(&sorted, 0.5 * alpha),
            high: quantile(&sorted, 1.0 - 0.5 * alpha),
        })
    }

    /// Whether a value lies inside, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Its length.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }
}

/// Quantile of sorted values at p in [0, 1], linear between order statistics (Hyndman and Fan's type 7, numpy's
/// default). NaN without values.
pub fn quantile(sorted: &[f64], p: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = p * last as f64;
    let below = place.floor().clamp(0.0, last as f64);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the last index"
    )]
    let index = below as usize;
    let next = sorted[(index + 1).min(last)];
    let share = place - below;
    let rise = next - sorted[index];
    // numpy interpolates from the nearer end.
    if share >= 0.5 {
        next - rise * (1.0 - share)
    } else {
        sorted[index] + rise * share
    }
}

/// Standard deviation with n - 1 in the denominator; `None` below two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = math::mean(values);
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_split_adds_up_and_ignores_empty_clusters() {
        let values = [1.0, 2.0, 4.0, 8.0];
        let clusters = Clusters::numbered(vec![0, 2, 2, 3], 5).unwrap();
        let split = cluster_variance(&values, &clusters, &[true, false, false, false]).unwrap();
        assert_eq!((split.clusters, split.labelled_clusters), (3, 1));
        let whole = cluster_variance(&values, &clusters, &[false; 4]).unwrap();
        assert!((split.total() - whole.total()).abs() < 1e-15);
        // Totals -2.75, -1.5, 4.25 of mean 0: 3 / 2 x 27.875 / 16.
        assert!((whole.total() - 1.5 * 27.875 / 16.0).abs() < 1e-14);
        assert!(split.corrected(1).is_none());
        let one = Clusters::numbered(vec![0; 4], 1).unwrap();
        assert_eq!(
            cluster_variance(&values, &one, &[false; 4])
                .unwrap_err()
                .found,
            1
        );
    }

    #[test]
    fn quantiles_are_type_7() {
        let sorted = [1.0, 2.0, 4.0, 8.0];
        assert!((quantile(&sorted, 0.5) - 3.0).abs() < 1e-15);
        assert!((quantile(&sorted, 0.9) - 6.8).abs() < 1e-14);
        assert!((quantile(&sorted, 1.0) - 8.0).abs() < 1e-15);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
