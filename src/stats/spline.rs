//! Cubic B-spline columns on uniform knots, as `cje-eval` 0.9.3 builds them.
//!
//! `n` base knots from the least to the largest training value, three more on each side at the same spacing, so
//! `n + 2` basis functions, of which the last is dropped. Inputs outside are clamped to the nearer end. A column
//! without spread gives a block of zeros.

/// Degree of the splines.
const DEGREE: usize = 3;
/// Most base knots of a column.
const KNOTS_MAX: usize = 8;

/// Base knots for `rows` training rows: min(8, rows / 4).
pub(crate) fn base_knots(rows: usize) -> usize {
    KNOTS_MAX.min(rows / 4)
}

/// The knots of one column.
#[derive(Clone, Debug, PartialEq)]
pub struct Spline {
    /// All knots with their three extensions on each side; empty for a column without spread.
    knots: Vec<f64>,
    /// Basis functions kept.
    columns: usize,
}

/// The basis functions at one value that can be other than 0: `values[i]` belongs to column `first + i`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Local {
    /// Column of the first value.
    pub(crate) first: usize,
    /// Values; 0 where the column was dropped.
    pub(crate) values: [f64; DEGREE + 1],
}

impl Spline {
    /// Uniform knots over `[low, high]`, the range of the training values.
    pub(crate) fn new(low: f64, high: f64, base: usize) -> Self {
        let columns = base + DEGREE - 2;
        if high <= low {
            return Self {
                knots: Vec::new(),
                columns,
            };
        }
        let step = (high - low) / (base - 1) as f64;
        let mut inner: Vec<f64> = (0..base).map(|i| low + step * i as f64).collect();
        inner[base - 1] = high;
        let (left, right) = (inner[1] - inner[0], inner[base - 1] - inner[base - 2]);
        let before = (1..=DEGREE).rev().map(|i| low - left * i as f64);
        let after = (1..=DEGREE).map(|i| high + right * i as f64);
        let knots = before.chain(inner.iter().copied()).chain(after).collect();
        Self { knots, columns }
    }

    /// A spline from knots that were kept elsewhere; none for a column without spread.
    pub(crate) fn from_knots(knots: Vec<f64>, columns: usize) -> Option<Self> {
        let whole = knots.is_empty() || knots.len() == columns + DEGREE + 2;
        let ordered = knots.windows(2).all(|pair| pair[0] < pair[1]);
        (whole && ordered && columns > DEGREE).then_some(Self { knots, columns })
    }

    /// Knots, three extensions on each side included; empty for a column without spread.
    pub fn knots(&self) -> &[f64] {
        &self.knots
    }

    /// Basis functions kept, base knots + 1.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The basis at x, by de Boor's recursion.
    pub(crate) fn at(&self, x: f64) -> Local {
        let mut values = [0.0; DEGREE + 1];
        if self.knots.is_empty() {
            return Local { first: 0, values };
        }
        let knots = &self.knots;
        let last = knots.len() - 1 - DEGREE;
        let x = x.clamp(knots[DEGREE], knots[last]);
        // The base interval that holds x; the last one is closed at its right end.
        let interval = (knots[DEGREE..last].partition_point(|&knot| knot <= x) + DEGREE - 1)
            .clamp(DEGREE, last - 1);
        values[0] = 1.0;
        for degree in 1..=DEGREE {
            let mut saved = 0.0;
            for i in 0..degree {
                let right = knots[interval + 1 + i] - x;
                let left = x - knots[interval + 1 + i - degree];
                let share = values[i] / (right + left);
                values[i] = saved + right * share;
                saved = left * share;
            }
            values[degree] = saved;
        }
        let first = interval - DEGREE;
        for (i, value) in values.iter_mut().enumerate() {
            if first + i >= self.columns {
                *value = 0.0;
            }
        }
        Local { first, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_basis_sums_to_one_before_its_last_function_is_dropped() {
        let spline = Spline::new(-1.0, 3.0, 8);
        assert_eq!(spline.columns(), 9);
        assert_eq!(spline.knots().len(), 14);
        for step in 0..=32 {
            let x = -1.0 + 4.0 * f64::from(step) / 32.0 * (6.0 / 7.0);
            let local = spline.at(x);
            let total: f64 = local.values.iter().sum();
            assert!((total - 1.0).abs() < 1e-15, "{x}: {total}");
        }
        assert_eq!(spline.at(-9.0), spline.at(-1.0));
        assert_eq!(spline.at(9.0), spline.at(3.0));
    }

    #[test]
    fn a_column_without_spread_is_zero() {
        let spline = Spline::new(0.5, 0.5, 5);
        assert_eq!(spline.columns(), 6);
        assert!(
            spline
                .at(0.5)
                .values
                .iter()
                .all(|value| value.abs() < 1e-300)
        );
    }

    #[test]
    fn the_cubic_basis_has_its_textbook_values() {
        // source: a uniform cubic B-spline at a knot is 1/6, 2/3, 1/6; in the middle 1/48, 23/48, 23/48, 1/48.
        let spline = Spline::new(0.0, 6.0, 7);
        let at = spline.at(2.0).values;
        let middle = spline.at(2.5).values;
        for (got, want) in at.iter().zip([1.0 / 6.0, 2.0 / 3.0, 1.0 / 6.0, 0.0]) {
            assert!((got - want).abs() < 1e-15);
        }
        for (got, want) in middle.iter().zip([1.0, 23.0, 23.0, 1.0]) {
            assert!((got - want / 48.0).abs() < 1e-15);
        }
    }
}
