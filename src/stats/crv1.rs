//! The mean of clustered rows and its cluster-robust standard error.

use crate::num::math;
use crate::stats::sample::Clusters;

/// Rows whose centred cluster totals are all below this share of the largest value have no spread.
const NO_SPREAD: f64 = 1e-13;

/// A weighted mean of rows that repeat within clusters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ClusteredMean {
    /// Rows.
    pub(super) rows: usize,
    /// Clusters with a row.
    pub(super) clusters: usize,
    /// sum w x / sum w.
    pub(super) mean: f64,
    /// `sqrt(C/(C-1) sum_c (sum_{i in c} w (x - mean))^2) / sum w`; `None` for one cluster.
    pub(super) standard_error: Option<f64>,
    /// Kish: `(sum w)^2 / sum_c W_c^2`.
    pub(super) effective_clusters: f64,
}

/// The mean of `values`, of the same length as `clusters`; `weights` absent means 1 each.
pub(super) fn mean(values: &[f64], clusters: &Clusters, weights: Option<&[f64]>) -> ClusteredMean {
    let ones;
    let weights = if let Some(weights) = weights {
        weights
    } else {
        ones = vec![1.0; values.len()];
        &ones
    };
    let total = math::sum(weights);
    let mean = math::dot(weights, values) / total;
    let scores: Vec<f64> = values
        .iter()
        .zip(weights)
        .map(|(value, weight)| weight * (value - mean))
        .collect();
    let totals = clusters.totals(&scores);
    let shares = clusters.totals(weights);
    let mut present = vec![false; clusters.count()];
    for &cluster in clusters.of_row() {
        present[cluster as usize] = true;
    }
    let count = present.iter().filter(|&&here| here).count();
    let largest = values.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    let heaviest = shares.iter().fold(0.0_f64, |most, w| most.max(*w));
    let flat = totals
        .iter()
        .all(|score| score.abs() <= NO_SPREAD * largest * heaviest);
    let standard_error = (count >= 2).then(|| {
        if flat {
            return 0.0;
        }
        let c = count as f64;
        (c / (c - 1.0) * math::dot(&totals, &totals)).sqrt() / total
    });
    ClusteredMean {
        rows: values.len(),
        clusters: count,
        mean,
        standard_error,
        effective_clusters: total * total / math::dot(&shares, &shares),
    }
}

impl ClusteredMean {
    /// Clusters less one.
    pub(super) fn df(&self) -> f64 {
        self.clusters as f64 - 1.0
    }

    /// (mean - null) / SE; `None` without spread or for one cluster.
    pub(super) fn t(&self, null: f64) -> Option<f64> {
        let error = self.standard_error.filter(|error| *error > 0.0)?;
        Some((self.mean - null) / error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn singletons_give_the_error_of_a_mean() {
        let x = [0.3, -0.1, 0.4, 0.0, 0.9];
        let found = mean(&x, &Clusters::singletons(5).unwrap(), None);
        // source: numpy 2.4.6, x.std(ddof=1) / sqrt(5).
        assert!((found.standard_error.unwrap() - 0.176_068_168_616_590_08).abs() < 1e-15);
        assert!((found.effective_clusters - 5.0).abs() < 1e-12);
    }

    #[test]
    fn clusters_without_rows_do_not_count() {
        let x = [0.0, 1.0, 0.0, 1.0];
        let clusters = Clusters::numbered(vec![0, 0, 2, 2], 4).unwrap();
        let found = mean(&x, &clusters, None);
        assert_eq!(found.clusters, 2);
        // Both cluster totals are 0 about the mean.
        assert_eq!(found.standard_error, Some(0.0));
        assert_eq!(found.t(0.3), None);
        let one = mean(&x, &Clusters::of([7; 4]).unwrap(), None);
        assert_eq!(one.standard_error, None);
    }

    #[test]
    fn weights_scale_out() {
        let x = [0.3, -0.1, 0.4, 0.0, 0.9];
        let clusters = Clusters::of([0, 1, 0, 2, 3]).unwrap();
        let w = [1.0, 2.0, 0.5, 1.5, 3.0];
        let tripled: Vec<f64> = w.iter().map(|w| 3.0 * w).collect();
        let a = mean(&x, &clusters, Some(&w));
        let b = mean(&x, &clusters, Some(&tripled));
        assert!((a.standard_error.unwrap() - b.standard_error.unwrap()).abs() < 1e-15);
        assert!((a.effective_clusters - b.effective_clusters).abs() < 1e-12);
    }
}
