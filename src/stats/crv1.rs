//! The mean of rows that repeat within clusters, and its cluster-robust (CRV1) variance.
//!
//! With weights w (1 each if there are none), scores `w (x - mean)` are totalled by cluster and the totals T centred:
//! V = C / (C - 1) sum (T - mean T)^2 / (sum w)^2 over the C clusters that have some weight. Row-level variance is
//! never a fallback. Source: CJE paper, section on uncertainty and appendix A.7; `cje-eval` 0.9.3; CLOVER v1.1,
//! section 4.

use crate::sample::Clusters;
use crate::sample::InsufficientData;
use crate::sample::constant;
use clover_num::math;

/// Cluster totals that are all below this share of the largest value, times the heaviest cluster, are rounding.
const NO_SPREAD: f64 = 1e-13;

/// CRV1 variance of a mean, split by whether a cluster holds a labelled row.
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
    /// Of the total of each cluster, beside whether it holds a labelled row: C / (C - 1) sum (T - mean T)^2 /
    /// `scale`^2. `None` below two clusters.
    pub(super) fn of_totals(totals: &[(f64, bool)], scale: f64) -> Option<Self> {
        let clusters = totals.len();
        if clusters < 2 {
            return None;
        }
        let all: Vec<f64> = totals.iter().map(|(total, _)| *total).collect();
        let centre = math::mean(&all);
        let factor = clusters as f64 / (clusters as f64 - 1.0) / (scale * scale);
        let part = |of: bool| {
            let squares: Vec<f64> = totals
                .iter()
                .filter(|(_, labelled)| *labelled == of)
                .map(|(total, _)| (total - centre) * (total - centre))
                .collect();
            factor * math::sum(&squares)
        };
        Some(Self {
            labelled: part(true),
            unlabelled: part(false),
            labelled_clusters: totals.iter().filter(|(_, labelled)| *labelled).count(),
            clusters,
        })
    }

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

/// A weighted mean of rows that repeat within clusters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusteredMean {
    /// Rows.
    pub rows: usize,
    /// Clusters with some weight.
    pub clusters: usize,
    /// sum w x / sum w; the value itself where all rows are equal.
    pub mean: f64,
    /// Its variance, exactly 0 without spread beyond rounding; `None` for one cluster.
    pub variance: Option<SplitVariance>,
    /// Kish: `(sum w)^2 / sum_c W_c^2`.
    pub effective_clusters: f64,
}

impl ClusteredMean {
    /// Square root of the variance; `None` for one cluster.
    pub fn standard_error(&self) -> Option<f64> {
        self.variance.map(|variance| variance.total().sqrt())
    }

    /// Clusters less one.
    pub fn df(&self) -> f64 {
        self.clusters as f64 - 1.0
    }

    /// (mean - null) / SE; `None` without spread or for one cluster.
    pub fn t(&self, null: f64) -> Option<f64> {
        let error = self.standard_error().filter(|error| *error > 0.0)?;
        Some((self.mean - null) / error)
    }
}

/// The mean of `values`, of the same length as `clusters`; `weights` absent means 1 each. No cluster is labelled.
pub(super) fn mean(values: &[f64], clusters: &Clusters, weights: Option<&[f64]>) -> ClusteredMean {
    split_mean(values, clusters, weights, &vec![false; values.len()])
}

/// The variance of the mean of `values`, split by which rows are `labelled`; all three of one length.
///
/// # Errors
/// [`InsufficientData`] below two clusters.
pub fn variance(
    values: &[f64],
    clusters: &Clusters,
    labelled: &[bool],
) -> Result<SplitVariance, InsufficientData> {
    let found = split_mean(values, clusters, None, labelled);
    found.variance.ok_or(InsufficientData {
        of: "prompt clusters",
        found: found.clusters,
        needed: 2,
    })
}

fn split_mean(
    values: &[f64],
    clusters: &Clusters,
    weights: Option<&[f64]>,
    labelled: &[bool],
) -> ClusteredMean {
    let ones;
    let weights = if let Some(weights) = weights {
        weights
    } else {
        ones = vec![1.0; values.len()];
        &ones
    };
    let weight = math::sum(weights);
    let mean = if constant(values) {
        values.first().copied().unwrap_or(f64::NAN)
    } else {
        math::dot(weights, values) / weight
    };
    let scores: Vec<f64> = values
        .iter()
        .zip(weights)
        .map(|(value, weight)| weight * (value - mean))
        .collect();
    let mut holds_label = vec![false; clusters.count()];
    for (&cluster, &labelled) in clusters.of_row().iter().zip(labelled) {
        holds_label[cluster as usize] |= labelled;
    }
    let masses = clusters.totals(weights);
    let mut totals: Vec<(f64, bool)> = clusters
        .totals(&scores)
        .into_iter()
        .zip(holds_label)
        .zip(&masses)
        .filter(|(_, mass)| **mass > 0.0)
        .map(|(total, _)| total)
        .collect();
    let largest = values.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    let heaviest = masses.iter().fold(0.0_f64, |most, w| most.max(*w));
    let rounding = NO_SPREAD * largest * heaviest;
    if totals.iter().all(|(total, _)| total.abs() <= rounding) {
        for (total, _) in &mut totals {
            *total = 0.0;
        }
    }
    ClusteredMean {
        rows: values.len(),
        clusters: totals.len(),
        mean,
        variance: SplitVariance::of_totals(&totals, weight),
        effective_clusters: weight * weight / math::dot(&masses, &masses),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_split_adds_up_and_ignores_empty_clusters() {
        let values = [1.0, 2.0, 4.0, 8.0];
        let clusters = Clusters::numbered(vec![0, 2, 2, 3], 5).unwrap();
        let split = variance(&values, &clusters, &[true, false, false, false]).unwrap();
        assert_eq!((split.clusters, split.labelled_clusters), (3, 1));
        let whole = variance(&values, &clusters, &[false; 4]).unwrap();
        assert!((split.total() - whole.total()).abs() < 1e-15);
        // Totals -2.75, -1.5, 4.25 of mean 0: 3 / 2 x 27.875 / 16.
        assert!((whole.total() - 1.5 * 27.875 / 16.0).abs() < 1e-14);
        assert!(split.corrected(1).is_none());
        let one = Clusters::numbered(vec![0; 4], 1).unwrap();
        assert_eq!(variance(&values, &one, &[false; 4]).unwrap_err().found, 1);
    }

    #[test]
    fn singletons_give_the_error_of_a_mean() {
        let x = [0.3, -0.1, 0.4, 0.0, 0.9];
        let found = mean(&x, &Clusters::singletons(5).unwrap(), None);
        // source: numpy 2.4.6, x.std(ddof=1) / sqrt(5).
        assert!((found.standard_error().unwrap() - 0.176_068_168_616_590_08).abs() < 1e-15);
        assert!((found.effective_clusters - 5.0).abs() < 1e-12);
    }

    #[test]
    fn clusters_without_rows_do_not_count() {
        let x = [0.0, 1.0, 0.0, 1.0];
        let clusters = Clusters::numbered(vec![0, 0, 2, 2], 4).unwrap();
        let found = mean(&x, &clusters, None);
        assert_eq!(found.clusters, 2);
        // Both cluster totals are 0 about the mean.
        assert_eq!(found.standard_error(), Some(0.0));
        assert_eq!(found.t(0.3), None);
        let one = mean(&x, &Clusters::of([7; 4]).unwrap(), None);
        assert_eq!(one.standard_error(), None);
    }

    #[test]
    fn weights_scale_out() {
        let x = [0.3, -0.1, 0.4, 0.0, 0.9];
        let clusters = Clusters::of([0, 1, 0, 2, 3]).unwrap();
        let w = [1.0, 2.0, 0.5, 1.5, 3.0];
        let tripled: Vec<f64> = w.iter().map(|w| 3.0 * w).collect();
        let a = mean(&x, &clusters, Some(&w));
        let b = mean(&x, &clusters, Some(&tripled));
        assert!((a.standard_error().unwrap() - b.standard_error().unwrap()).abs() < 1e-15);
        assert!((a.effective_clusters - b.effective_clusters).abs() < 1e-12);
    }
}
