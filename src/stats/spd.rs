//! Small symmetric positive definite systems by Cholesky.

/// A lower triangular factor L with L L' = A, row by row.
#[derive(Clone, Debug)]
pub(super) struct Factor {
    size: usize,
    lower: Vec<f64>,
}

/// Factors a symmetric matrix of `size` x `size`, given row by row (its lower triangle is read); `None` unless
/// positive definite to working precision (every pivot above 1e-13 of its diagonal element).
pub(super) fn factor(matrix: &[f64], size: usize) -> Option<Factor> {
    cholesky(matrix, size, 0.0, |pivot, diagonal| {
        // NaN is refused too.
        (pivot > 1e-13 * diagonal && pivot > 0.0).then_some(pivot)
    })
}

/// Factors A + penalty I of a positive semidefinite A; a pivot that rounding took to 0 or below counts as the least
/// positive number, so that every penalty has a factor.
pub(super) fn penalised(matrix: &[f64], size: usize, penalty: f64) -> Factor {
    let factor = cholesky(matrix, size, penalty, |pivot, _| {
        Some(pivot.max(f64::MIN_POSITIVE))
    });
    factor.expect("BUG: every pivot was accepted")
}

/// The factor of A + penalty I; `accept` decides on each pivot beside its diagonal element.
fn cholesky(
    matrix: &[f64],
    size: usize,
    penalty: f64,
    accept: impl Fn(f64, f64) -> Option<f64>,
) -> Option<Factor> {
    let mut lower = vec![0.0; size * size];
    for i in 0..size {
        for j in 0..=i {
            let (left, right) = (&lower[i * size..], &lower[j * size..]);
            let dot: f64 = (0..j).map(|k| left[k] * right[k]).sum();
            let rest = matrix[i * size + j] - dot;
            lower[i * size + j] = if i == j {
                accept(rest + penalty, matrix[i * size + i])?.sqrt()
            } else {
                rest / lower[j * size + j]
            };
        }
    }
    Some(Factor { size, lower })
}

impl Factor {
    /// L z: of independent standard normals, normals with covariance A.
    pub(super) fn times(&self, z: &[f64]) -> Vec<f64> {
        let n = self.size;
        let row = |i: usize| (0..=i).map(|k| self.lower[i * n + k] * z[k]).sum();
        (0..n).map(row).collect()
    }

    /// x with A x = b.
    pub(super) fn solve(&self, b: &[f64]) -> Vec<f64> {
        let n = self.size;
        let mut x = b.to_vec();
        for row in 0..n {
            for k in 0..row {
                x[row] -= self.lower[row * n + k] * x[k];
            }
            x[row] /= self.lower[row * n + row];
        }
        for row in (0..n).rev() {
            for k in row + 1..n {
                x[row] -= self.lower[k * n + row] * x[k];
            }
            x[row] /= self.lower[row * n + row];
        }
        x
    }

    /// The inverse of A, row by row, full: M' M with M the inverse of the factor.
    pub(super) fn inverse(&self) -> Vec<f64> {
        let n = self.size;
        let mut below = vec![0.0; n * n];
        for j in 0..n {
            below[j * n + j] = 1.0 / self.lower[j * n + j];
            for i in j + 1..n {
                let dot: f64 = (j..i)
                    .map(|k| self.lower[i * n + k] * below[k * n + j])
                    .sum();
                below[i * n + j] = -dot / self.lower[i * n + i];
            }
        }
        let mut inverse = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let value: f64 = (i..n).map(|k| below[k * n + i] * below[k * n + j]).sum();
                inverse[i * n + j] = value;
                inverse[j * n + i] = value;
            }
        }
        inverse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_solved_and_inverted() {
        // By hand: the inverse of [4 2; 2 3] is [3 -2; -2 4] / 8.
        let factor = factor(&[4.0, 2.0, 2.0, 3.0], 2).unwrap();
        let x = factor.solve(&[2.0, 1.0]);
        assert!((x[0] - 0.5).abs() < 1e-15 && x[1].abs() < 1e-15);
        let inverse = factor.inverse();
        for (got, want) in inverse.iter().zip([0.375, -0.25, -0.25, 0.5]) {
            assert!((got - want).abs() < 1e-15);
        }
    }

    #[test]
    fn what_is_singular_is_refused() {
        assert!(factor(&[1.0, 1.0, 1.0, 1.0], 2).is_none());
        assert!(factor(&[f64::NAN], 1).is_none());
        assert!(factor(&[-1.0], 1).is_none());
    }
}
