//! Paired loss differences of a patch.

use crate::crv1;
use crate::crv1::ClusteredMean;
use crate::sample::Clusters;
use crate::sample::SampleError;
use crate::sample::Values;
use crate::sample::align;
use crate::sample::unit;
use clover_num::math;

/// Change of a reward from which a row counts as moved.
pub const MOVED: f64 = 0.005;

/// Labels with the rewards before and after a patch, all in [0, 1], on the same rows.
#[derive(Clone, Debug)]
pub struct Losses {
    differences: Vec<f64>,
    changes: Vec<f64>,
    before: Vec<f64>,
    after: Vec<f64>,
    bound: f64,
    clusters: Clusters,
}

/// `H = max_i max(R'^2 - R^2, (1-R')^2 - (1-R)^2)`, at least 0, of rewards before and after on the same rows: no difference
/// of losses can exceed it, whatever the labels. With both exchanged it bounds the improvement.
pub fn bound(before: &[f64], after: &[f64]) -> f64 {
    // d is linear in Y, so its largest value lies at Y = 0 or Y = 1.
    before.iter().zip(after).fold(0.0_f64, |bound, (r, s)| {
        let at_zero = s * s - r * r;
        let at_one = (1.0 - s) * (1.0 - s) - (1.0 - r) * (1.0 - r);
        bound.max(at_zero).max(at_one)
    })
}

impl Losses {
    /// Pairs labels with both rewards.
    ///
    /// # Errors
    /// [`SampleError::Misaligned`]; [`SampleError::OutOfRange`] for a number outside [0, 1], on which the bound of the
    /// betting test rests.
    pub fn new(
        labels: Values<'_>,
        baseline: Values<'_>,
        patched: Values<'_>,
        clusters: &Clusters,
    ) -> Result<Self, SampleError> {
        align("baseline", baseline.len(), labels.len())?;
        align("patched", patched.len(), labels.len())?;
        align("clusters", clusters.of_row().len(), labels.len())?;
        for (column, values) in [
            ("labels", labels),
            ("baseline", baseline),
            ("patched", patched),
        ] {
            unit(column, values.as_slice())?;
        }
        let (y, r, s) = (labels.as_slice(), baseline.as_slice(), patched.as_slice());
        let square =
            |row: usize, rewards: &[f64]| (y[row] - rewards[row]) * (y[row] - rewards[row]);
        let before: Vec<f64> = (0..y.len()).map(|row| square(row, r)).collect();
        let after: Vec<f64> = (0..y.len()).map(|row| square(row, s)).collect();
        Ok(Self {
            differences: after.iter().zip(&before).map(|(a, b)| a - b).collect(),
            changes: r.iter().zip(s).map(|(r, s)| s - r).collect(),
            before,
            after,
            bound: bound(r, s),
            clusters: clusters.clone(),
        })
    }

    /// `d_i` in row order.
    pub fn differences(&self) -> &[f64] {
        &self.differences
    }

    /// Clusters of the rows.
    pub fn clusters(&self) -> &Clusters {
        &self.clusters
    }

    /// MSE of the baseline.
    pub fn baseline_mse(&self) -> f64 {
        math::mean(&self.before)
    }

    /// MSE of the patch.
    pub fn patched_mse(&self) -> f64 {
        math::mean(&self.after)
    }

    /// [`bound`] of the rewards.
    pub fn bound(&self) -> f64 {
        self.bound
    }

    /// DMSE over all rows, negative when better.
    pub fn mean(&self) -> ClusteredMean {
        crv1::mean(&self.differences, &self.clusters, None)
    }

    /// Clusters with a row whose reward moved by at least 0.005.
    pub fn moved_clusters(&self) -> usize {
        let mut moved = vec![false; self.clusters.count()];
        for (&cluster, change) in self.clusters.of_row().iter().zip(&self.changes) {
            moved[cluster as usize] |= change.abs() >= MOVED;
        }
        moved.iter().filter(|&&moved| moved).count()
    }

    /// Mean difference of each cluster with a row, by cluster number.
    pub fn cluster_means(&self) -> Vec<f64> {
        let totals = self.clusters.totals(&self.differences);
        let rows = self.clusters.totals(&vec![1.0; self.differences.len()]);
        totals
            .iter()
            .zip(&rows)
            .filter(|(_, rows)| **rows > 0.0)
            .map(|(total, rows)| total / rows)
            .collect()
    }

    /// The rows of one slice; the bound stays that of all rows, which holds for some of them too.
    ///
    /// # Errors
    /// [`SampleError::Empty`] without rows; [`SampleError::Parameter`] for a row beyond the last.
    pub fn select(&self, rows: &[usize]) -> Result<Self, SampleError> {
        if rows.iter().any(|&row| row >= self.differences.len()) {
            return Err(SampleError::Parameter {
                name: "rows",
                expected: "numbers of rows",
            });
        }
        let clusters = self.clusters.select(rows)?;
        let pick = |values: &Vec<f64>| rows.iter().map(|&row| values[row]).collect::<Vec<f64>>();
        Ok(Self {
            differences: pick(&self.differences),
            changes: pick(&self.changes),
            before: pick(&self.before),
            after: pick(&self.after),
            bound: self.bound,
            clusters,
        })
    }

    /// Rows of the largest differences, worst first, ties by row: what harm confined to few rows looks like.
    pub fn worst(&self, top: usize) -> Vec<(usize, f64)> {
        let mut rows: Vec<(usize, f64)> = self.differences.iter().copied().enumerate().collect();
        rows.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        rows.truncate(top);
        rows
    }
}
