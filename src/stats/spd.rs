//! Small symmetric positive definite systems by Cholesky.

use ndarray::Array2;

/// A lower triangular factor L with L L' = A.
#[derive(Clone, Debug)]
pub(super) struct Factor {
    lower: Array2<f64>,
}

/// Factors a symmetric matrix (its lower triangle is read); `None` unless positive definite to working precision (every
/// pivot above 1e-13 of its diagonal element).
pub(super) fn factor(matrix: &Array2<f64>) -> Option<Factor> {
    cholesky(matrix, 0.0, |pivot, diagonal| {
        // NaN is refused too.
        (pivot > 1e-13 * diagonal && pivot > 0.0).then_some(pivot)
    })
}

/// Factors A + penalty I of a positive semidefinite A; a pivot that rounding took to 0 or below counts as the least
/// positive number, so that every penalty has a factor.
pub(super) fn penalised(matrix: &Array2<f64>, penalty: f64) -> Factor {
    let factor = cholesky(matrix, penalty, |pivot, _| {
        Some(pivot.max(f64::MIN_POSITIVE))
    });
    factor.expect("BUG: every pivot was accepted")
}

/// The factor of A + penalty I; `accept` decides on each pivot beside its diagonal element.
fn cholesky(
    matrix: &Array2<f64>,
    penalty: f64,
    accept: impl Fn(f64, f64) -> Option<f64>,
) -> Option<Factor> {
    let size = matrix.nrows();
    let mut lower = Array2::zeros((size, size));
    for i in 0..size {
        for j in 0..=i {
            let rest = matrix[[i, j]] - dot(&lower, i, j, j);
            lower[[i, j]] = if i == j {
                accept(rest + penalty, matrix[[i, i]])?.sqrt()
            } else {
                rest / lower[[j, j]]
            };
        }
    }
    Some(Factor { lower })
}

/// Sum of products of the first `until` elements of two rows, in their order.
fn dot(matrix: &Array2<f64>, i: usize, j: usize, until: usize) -> f64 {
    let pairs = matrix.row(i).into_iter().zip(matrix.row(j)).take(until);
    pairs.map(|(left, right)| left * right).sum()
}

impl Factor {
    /// x with A x = b.
    pub(super) fn solve(&self, b: &[f64]) -> Vec<f64> {
        let n = self.lower.nrows();
        let mut x = b.to_vec();
        for row in 0..n {
            for k in 0..row {
                x[row] -= self.lower[[row, k]] * x[k];
            }
            x[row] /= self.lower[[row, row]];
        }
        for row in (0..n).rev() {
            for k in row + 1..n {
                x[row] -= self.lower[[k, row]] * x[k];
            }
            x[row] /= self.lower[[row, row]];
        }
        x
    }

    /// The inverse of A, full: M' M with M the inverse of the factor.
    pub(super) fn inverse(&self) -> Array2<f64> {
        let n = self.lower.nrows();
        // The transpose of M, so that sums run along rows.
        let mut above = Array2::<f64>::zeros((n, n));
        for j in 0..n {
            above[[j, j]] = 1.0 / self.lower[[j, j]];
            for i in j + 1..n {
                let products = self.lower.row(i).into_iter().zip(above.row(j));
                let dot: f64 = products.take(i).skip(j).map(|(a, b)| a * b).sum();
                above[[j, i]] = -dot / self.lower[[i, i]];
            }
        }
        let mut inverse = Array2::zeros((n, n));
        for i in 0..n {
            for j in 0..=i {
                let products = above.row(i).into_iter().zip(above.row(j)).skip(i);
                let value: f64 = products.map(|(a, b)| a * b).sum();
                inverse[[i, j]] = value;
                inverse[[j, i]] = value;
            }
        }
        inverse
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn a_system_is_solved_and_inverted() {
        // By hand: the inverse of [4 2; 2 3] is [3 -2; -2 4] / 8.
        let factor = factor(&array![[4.0, 2.0], [2.0, 3.0]]).unwrap();
        let x = factor.solve(&[2.0, 1.0]);
        assert!((x[0] - 0.5).abs() < 1e-15 && x[1].abs() < 1e-15);
        let inverse = factor.inverse();
        for (got, want) in inverse.iter().zip([0.375, -0.25, -0.25, 0.5]) {
            assert!((got - want).abs() < 1e-15);
        }
    }

    #[test]
    fn what_is_singular_is_refused() {
        assert!(factor(&array![[1.0, 1.0], [1.0, 1.0]]).is_none());
        assert!(factor(&array![[f64::NAN]]).is_none());
        assert!(factor(&array![[-1.0]]).is_none());
    }
}
