//! Small symmetric positive definite systems by Cholesky.

/// A lower triangular factor L with L L' = A, row by row.
#[derive(Clone, Debug)]
pub(super) struct Factor {
    size: usize,
    lower: Vec<f64>,
}

/// Factors a symmetric matrix of `size` x `size`, given row by row; `None` unless positive definite to working
/// precision (every pivot above 1e-13 of its diagonal element).
pub(super) fn factor(matrix: &[f64], size: usize) -> Option<Factor> {
    let mut lower = vec![0.0; size * size];
    for row in 0..size {
        for column in 0..=row {
            let mut rest = matrix[row * size + column];
            for k in 0..column {
                rest -= lower[row * size + k] * lower[column * size + k];
            }
            if row == column {
                let floor = 1e-13 * matrix[row * size + row];
                // Negated so that NaN is refused too.
                if !(rest > floor && rest > 0.0) {
                    return None;
                }
                lower[row * size + row] = rest.sqrt();
            } else {
                lower[row * size + column] = rest / lower[column * size + column];
            }
        }
    }
    Some(Factor { size, lower })
}

impl Factor {
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

    /// The inverse of A, row by row.
    pub(super) fn inverse(&self) -> Vec<f64> {
        let n = self.size;
        let mut inverse = vec![0.0; n * n];
        for column in 0..n {
            let mut unit = vec![0.0; n];
            unit[column] = 1.0;
            for (row, value) in self.solve(&unit).into_iter().enumerate() {
                inverse[row * n + column] = value;
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
