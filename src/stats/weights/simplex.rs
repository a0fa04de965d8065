//! The least variance on the simplex: mixtures of few candidates by their covariance.

use ndarray::Array2;
use ndarray::Axis;

use clover_num::math;

/// A small square matrix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Square(pub(crate) Array2<f64>);

impl Square {
    /// Covariance (denominator n - 1) of columns of one length, at least 2.
    pub(crate) fn covariance(columns: &[Vec<f64>]) -> Self {
        let size = columns.len();
        let centred: Vec<Vec<f64>> = columns
            .iter()
            .map(|column| {
                let mean = math::mean(column);
                column.iter().map(|x| x - mean).collect()
            })
            .collect();
        let freedom = columns
            .first()
            .map_or(1.0, |c| c.len() as f64 - 1.0)
            .max(1.0);
        Self(Array2::from_shape_fn((size, size), |(i, j)| {
            math::dot(&centred[i], &centred[j]) / freedom
        }))
    }

    /// Sum of the diagonal.
    pub(crate) fn trace(&self) -> f64 {
        self.0.diag().iter().sum()
    }

    /// With a constant added to the diagonal.
    pub(crate) fn plus_diagonal(mut self, by: f64) -> Self {
        for value in self.0.diag_mut() {
            *value += by;
        }
        self
    }

    /// The rows and columns named.
    fn select(&self, keep: &[usize]) -> Self {
        Self(self.0.select(Axis(0), keep).select(Axis(1), keep))
    }

    /// x with A x = b by elimination with partial pivoting; `None` for a pivot of 0.
    fn solve(&self, b: &[f64]) -> Option<Vec<f64>> {
        let n = self.0.nrows();
        let mut rows: Vec<Vec<f64>> = self.0.rows().into_iter().map(|row| row.to_vec()).collect();
        for (row, right) in rows.iter_mut().zip(b) {
            row.push(*right);
        }
        for at in 0..n {
            let largest = (at..n).fold(at, |best, row| {
                if rows[row][at].abs() > rows[best][at].abs() {
                    row
                } else {
                    best
                }
            });
            rows.swap(at, largest);
            let pivot = rows[at].clone();
            if pivot[at].is_nan() || pivot[at].abs() <= 0.0 {
                return None;
            }
            for row in rows.iter_mut().skip(at + 1) {
                let factor = row[at] / pivot[at];
                for column in at..=n {
                    row[column] -= factor * pivot[column];
                }
            }
        }
        let mut x = vec![0.0; n];
        for i in (0..n).rev() {
            let rest: f64 = (i + 1..n).map(|j| rows[i][j] * x[j]).sum();
            x[i] = (rows[i][n] - rest) / rows[i][i];
        }
        x.iter().all(|value| value.is_finite()).then_some(x)
    }
}

/// Shares p of at least 0 that sum to 1 and minimise p' A p, by the active set of `cje-eval` 0.3.0: solve with the sum
/// fixed, drop the most negative share until none is below `-slack`; equal shares where the system is singular.
pub(crate) fn least_variance(covariance: &Square, slack: f64) -> Vec<f64> {
    let size = covariance.0.nrows();
    let mut active: Vec<usize> = (0..size).collect();
    while !active.is_empty() {
        let equal = 1.0 / active.len() as f64;
        let solved = covariance
            .select(&active)
            .solve(&vec![1.0; active.len()])
            .map(|x| (x.iter().sum::<f64>(), x))
            .filter(|(total, _)| total.abs() >= slack);
        let shares = match solved {
            Some((total, x)) => x.iter().map(|value| value / total).collect(),
            None => vec![equal; active.len()],
        };
        let worst = (0..shares.len()).fold(0, |worst, at| {
            if shares[at] < shares[worst] {
                at
            } else {
                worst
            }
        });
        if shares[worst] >= -slack {
            let total: f64 = shares.iter().map(|share| share.max(0.0)).sum();
            let mut full = vec![0.0; size];
            for (&at, share) in active.iter().zip(&shares) {
                full[at] = share.max(0.0) / total;
            }
            return full;
        }
        active.remove(worst);
    }
    vec![1.0 / size as f64; size]
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn shares_fall_with_variance_and_stop_at_zero() {
        // By hand: variances 1 and 3 without covariance weigh 3 to 1.
        let shares = least_variance(&Square(array![[1.0, 0.0], [0.0, 3.0]]), 1e-10);
        assert!((shares[0] - 0.75).abs() < 1e-15);
        // Covariance above the smaller variance: the larger gets nothing.
        let shares = least_variance(&Square(array![[1.0, 1.5], [1.5, 4.0]]), 1e-10);
        assert_eq!(shares, [1.0, 0.0]);
        let shares = least_variance(&Square(Array2::zeros((2, 2))), 1e-10);
        assert_eq!(shares, [0.5, 0.5]);
    }

    #[test]
    fn columns_have_a_covariance() {
        let columns = [vec![1.0, 2.0, 3.0], vec![0.0, 2.0, 4.0]];
        let found = Square::covariance(&columns);
        assert_eq!(found.0, array![[1.0, 2.0], [2.0, 4.0]]);
        assert!((found.trace() - 5.0).abs() < 1e-15);
    }
}
