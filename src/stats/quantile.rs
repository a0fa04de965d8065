//! Sample quantiles by linear interpolation (type 7) and the equal-frequency bins they cut.

use crate::sample::SampleError;
use crate::sample::Values;
use crate::sample::some_bins;

/// Quantile of ascending values at p in [0, 1], linear between order statistics (Hyndman and Fan's type 7, numpy's
/// default); exact where neighbours are equal. NaN without values.
pub fn type_7(sorted: &[f64], p: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = p * last as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place lies between 0 and the last row"
    )]
    let below = (place.floor().max(0.0) as usize).min(last);
    between(sorted, below, place - below as f64)
}

/// The point a share of the way from row `below` to the next, from the nearer end as numpy does, so that both ends
/// are exact.
fn between(sorted: &[f64], below: usize, share: f64) -> f64 {
    let (low, high) = (sorted[below], sorted[(below + 1).min(sorted.len() - 1)]);
    if share < 0.5 {
        low + (high - low) * share
    } else {
        high - (high - low) * (1.0 - share)
    }
}

/// Ascending copy, in which both zeros are 0.
pub fn ascending(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().map(|value| value + 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Edges of bins that hold about equally many values, frozen so that other values meet the same bins (CLOVER v1.1,
/// gate P2).
#[derive(Clone, Debug, PartialEq)]
pub struct Edges(Vec<f64>);

impl Edges {
    /// The distinct quantiles 0, 1/bins, …, 1 of the values (type 7), at positions (n - 1) k / bins computed in
    /// integers: an edge that falls on a value is that value. Ties merge bins, so there may be fewer than asked for.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] for no bins.
    pub fn equal_frequency(values: Values<'_>, bins: usize) -> Result<Self, SampleError> {
        some_bins(bins)?;
        let sorted = ascending(values.as_slice());
        let last = sorted.len() - 1;
        let edge = |bin: usize| {
            let steps = last as u128 * bin as u128;
            let (at, part) = (steps / bins as u128, steps % bins as u128);
            let at = usize::try_from(at).unwrap_or(last).min(last);
            between(&sorted, at, part as f64 / bins as f64)
        };
        let mut edges: Vec<f64> = (0..=bins).map(edge).collect();
        edges.dedup_by(|next, last| *next <= *last);
        Ok(Self(edges))
    }

    /// The edges, ascending and distinct; a single one where all values were equal.
    pub fn as_slice(&self) -> &[f64] {
        &self.0
    }

    /// How many bins they bound, at least 1.
    pub fn bins(&self) -> usize {
        self.0.len().saturating_sub(1).max(1)
    }

    /// The bin of a value, from 0. Bins are open on the right but for the last; what lies outside all belongs to
    /// the first or last.
    pub fn bin(&self, value: f64) -> usize {
        let inner = self.0.get(1..self.0.len() - 1).unwrap_or(&[]);
        inner.partition_point(|edge| *edge <= value)
    }

    /// The rows of each bin, in their order.
    pub fn rows(&self, values: Values<'_>) -> Vec<Vec<usize>> {
        let of_row = values.as_slice().iter().map(|&value| self.bin(value));
        rows_by_bin(self.bins(), of_row)
    }
}

/// The rows of each bin, in their order, from the bin of each row.
pub(crate) fn rows_by_bin(bins: usize, of_row: impl Iterator<Item = usize>) -> Vec<Vec<usize>> {
    let mut rows = vec![Vec::new(); bins];
    for (row, bin) in of_row.enumerate() {
        rows[bin].push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(x: &[f64], bins: usize) -> Edges {
        Edges::equal_frequency(Values::new("x", x).unwrap(), bins).unwrap()
    }

    #[test]
    fn quantiles_interpolate_and_ties_stay_exact() {
        let sorted = [0.1, 0.1, 0.3, 0.7];
        assert!((type_7(&sorted, 0.5) - 0.2).abs() < 1e-15);
        assert!((type_7(&sorted, 0.1) - 0.1).abs() <= 0.0);
        assert!((type_7(&sorted, 1.0) - 0.7).abs() <= 0.0);
        assert!((type_7(&[0.4], 0.3) - 0.4).abs() <= 0.0);
        assert!(type_7(&[], 0.5).is_nan());
        // By hand: place 2.7 of 1, 2, 4, 8.
        assert!((type_7(&[1.0, 2.0, 4.0, 8.0], 0.9) - 6.8).abs() < 1e-14);
    }

    #[test]
    fn bins_are_closed_below_and_the_last_above() {
        let edges = edges(&[0.0, 0.25, 0.5, 0.75, 1.0], 4);
        assert_eq!(edges.as_slice().len(), 5);
        let bins = [-1.0, 0.0, 0.25, 0.3, 1.0, 2.0].map(|value| edges.bin(value));
        assert_eq!(bins, [0, 0, 1, 1, 3, 3]);
        let rows = edges.rows(Values::new("x", &[0.9, 0.1, 0.8]).unwrap());
        assert_eq!(rows, [vec![1], vec![], vec![], vec![0, 2]]);
    }

    #[test]
    fn equal_values_share_one_bin() {
        let one = edges(&[0.4; 5], 10);
        assert_eq!((one.as_slice().len(), one.bins()), (1, 1));
        assert_eq!((one.bin(0.0), one.bin(0.4), one.bin(1.0)), (0, 0, 0));
        assert!(edges(&[0.1, 0.1, 0.1, 0.9], 4).bins() <= 2);
        let values = Values::new("x", &[0.4]).unwrap();
        assert!(Edges::equal_frequency(values, 0).is_err());
    }

    #[test]
    fn edges_fall_on_values_exactly() {
        let x: Vec<f64> = (0..=100).map(|i| f64::from(i) / 7.0).collect();
        let edges = edges(&x, 10);
        for (at, edge) in edges.as_slice().iter().enumerate() {
            assert!((edge - x[10 * at]).abs() <= 0.0);
            assert_eq!(edges.bin(*edge), at.min(9));
        }
    }
}
