//! Checked inputs: what cannot hold NaN, nothing, misaligned columns, or fewer clusters than a statistic needs.

use std::collections::BTreeMap;

/// Why columns are not a sample.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// No rows.
    #[error("{column} has no rows")]
    Empty {
        /// The column.
        column: &'static str,
    },
    /// NaN or an infinity.
    #[error("{column} row {row} is not a finite number")]
    NotFinite {
        /// The column.
        column: &'static str,
        /// The first such row, from 0.
        row: usize,
    },
    /// Two columns of different lengths.
    #[error("{column} has {found} rows, expected {expected}")]
    Misaligned {
        /// The column.
        column: &'static str,
        /// Rows of the columns before it.
        expected: usize,
        /// Its rows.
        found: usize,
    },
    /// A weight below zero, or no weight above it.
    #[error("{column} row {row}: expected a weight of at least 0 and some weight above 0")]
    Weight {
        /// The column.
        column: &'static str,
        /// The first such row, from 0.
        row: usize,
    },
    /// A value outside the range that the statistic is defined on.
    #[error("{column} row {row}: expected a value in [{low}, {high}]")]
    OutOfRange {
        /// The column.
        column: &'static str,
        /// The first such row, from 0.
        row: usize,
        /// Lower bound, inclusive.
        low: i64,
        /// Upper bound, inclusive.
        high: i64,
    },
    /// A parameter outside its range.
    #[error("{name}: expected {expected}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

/// Data too thin for a statistic: a named outcome, recorded as such, never a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found} {of}, needs at least {needed}")]
pub struct InsufficientData {
    /// What is too few: `labelled clusters`, `rows`, `groups`.
    pub of: &'static str,
    /// How many there are.
    pub found: usize,
    /// How many the statistic needs.
    pub needed: usize,
}

impl InsufficientData {
    /// `Err(InsufficientData)` unless `found >= needed`.
    ///
    /// # Errors
    /// The outcome itself.
    pub fn unless(of: &'static str, found: usize, needed: usize) -> Result<(), Self> {
        if found >= needed {
            return Ok(());
        }
        Err(Self { of, found, needed })
    }
}

/// Why a statistic gives no number: its input is wrong, or there is too little of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The input is not a sample.
    #[error(transparent)]
    Invalid(#[from] SampleError),
    /// Too little data.
    #[error(transparent)]
    InsufficientData(#[from] InsufficientData),
}

/// At least one value, all finite.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a>(&'a [f64]);

impl<'a> Values<'a> {
    /// Checks a column.
    ///
    /// # Errors
    /// [`SampleError::Empty`] or [`SampleError::NotFinite`].
    pub fn new(column: &'static str, values: &'a [f64]) -> Result<Self, SampleError> {
        if values.is_empty() {
            return Err(SampleError::Empty { column });
        }
        match values.iter().position(|value| !value.is_finite()) {
            Some(row) => Err(SampleError::NotFinite { column, row }),
            None => Ok(Self(values)),
        }
    }

    /// Checks a column that must have `rows` rows.
    ///
    /// # Errors
    /// [`SampleError::Misaligned`] and what [`Values::new`] refuses.
    pub fn aligned(
        column: &'static str,
        values: &'a [f64],
        rows: usize,
    ) -> Result<Self, SampleError> {
        align(column, values.len(), rows)?;
        Self::new(column, values)
    }

    /// The values.
    pub fn as_slice(self) -> &'a [f64] {
        self.0
    }

    /// How many, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(self) -> usize {
        self.0.len()
    }
}

/// `Err` unless a column has as many rows as those before it.
///
/// # Errors
/// [`SampleError::Misaligned`].
pub fn align(column: &'static str, found: usize, expected: usize) -> Result<(), SampleError> {
    if found == expected {
        return Ok(());
    }
    Err(SampleError::Misaligned {
        column,
        expected,
        found,
    })
}

/// `Err` unless every value lies in [0, 1].
///
/// # Errors
/// [`SampleError::OutOfRange`] with the first row that does not; NaN does not.
pub(crate) fn unit(column: &'static str, values: &[f64]) -> Result<(), SampleError> {
    match values.iter().position(|value| !(0.0..=1.0).contains(value)) {
        Some(row) => Err(SampleError::OutOfRange {
            column,
            row,
            low: 0,
            high: 1,
        }),
        None => Ok(()),
    }
}

/// `Err` unless 0 < value < 1.
///
/// # Errors
/// [`SampleError::Parameter`]; for NaN too.
pub(crate) fn open_unit(name: &'static str, value: f64) -> Result<(), SampleError> {
    if value > 0.0 && value < 1.0 {
        return Ok(());
    }
    Err(SampleError::Parameter {
        name,
        expected: "a number between 0 and 1, both excluded",
    })
}

/// A result, or the error for values so large that their sums or squares overflow.
///
/// # Errors
/// [`SampleError::Parameter`] for what is not finite.
pub(crate) fn finite(result: f64) -> Result<f64, SampleError> {
    if result.is_finite() {
        return Ok(result);
    }
    Err(SampleError::Parameter {
        name: "values",
        expected: "sums and squares within the range of a double",
    })
}

/// `Err` without bins.
///
/// # Errors
/// [`SampleError::Parameter`].
pub(crate) fn some_bins(bins: usize) -> Result<(), SampleError> {
    if bins > 0 {
        return Ok(());
    }
    Err(SampleError::Parameter {
        name: "bins",
        expected: "a count of at least 1",
    })
}

/// `after - before` by row.
///
/// # Errors
/// [`SampleError::Misaligned`].
pub(crate) fn differences(after: Values<'_>, before: Values<'_>) -> Result<Vec<f64>, SampleError> {
    align("before", before.len(), after.len())?;
    let pairs = after.as_slice().iter().zip(before.as_slice());
    Ok(pairs.map(|(after, before)| after - before).collect())
}

/// Whether all values are equal; the two zeros are.
pub(crate) fn constant(values: &[f64]) -> bool {
    values.iter().all(|x| (x - values[0]).abs() <= 0.0)
}

/// Weights: finite, none below zero, some above.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a>(&'a [f64]);

impl<'a> Weights<'a> {
    /// Checks weights for `rows` rows.
    ///
    /// # Errors
    /// [`SampleError::Misaligned`], [`SampleError::NotFinite`], [`SampleError::Weight`].
    pub fn new(column: &'static str, weights: &'a [f64], rows: usize) -> Result<Self, SampleError> {
        let weights = Values::aligned(column, weights, rows)?.as_slice();
        if let Some(row) = weights.iter().position(|&weight| weight < 0.0) {
            return Err(SampleError::Weight { column, row });
        }
        if weights.iter().all(|&weight| weight <= 0.0) {
            return Err(SampleError::Weight { column, row: 0 });
        }
        Ok(Self(weights))
    }

    /// The weights.
    pub fn as_slice(self) -> &'a [f64] {
        self.0
    }
}

/// Which cluster each row belongs to: numbers 0 to `count - 1` in order of first appearance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clusters {
    of_row: Vec<u32>,
    count: usize,
}

impl Clusters {
    /// Numbers the clusters of rows by their keys.
    ///
    /// # Errors
    /// [`SampleError::Empty`].
    pub fn of<K: Ord>(keys: impl IntoIterator<Item = K>) -> Result<Self, SampleError> {
        let mut numbers = BTreeMap::new();
        let mut of_row = Vec::new();
        for key in keys {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            of_row.push(*numbers.entry(key).or_insert(next));
        }
        Self::numbered(of_row, numbers.len())
    }

    /// Every row its own cluster.
    ///
    /// # Errors
    /// [`SampleError::Empty`].
    pub fn singletons(rows: usize) -> Result<Self, SampleError> {
        let of_row = (0..rows)
            .map(|row| u32::try_from(row).unwrap_or(u32::MAX))
            .collect();
        Self::numbered(of_row, rows)
    }

    /// Rows whose cluster numbers, all below `count`, were given elsewhere; a cluster may have no row here.
    ///
    /// # Errors
    /// [`SampleError::Empty`] without rows, [`SampleError::Parameter`] for a number of `count` or more.
    pub fn numbered(of_row: Vec<u32>, count: usize) -> Result<Self, SampleError> {
        if of_row.is_empty() {
            return Err(SampleError::Empty { column: "clusters" });
        }
        if of_row.iter().any(|&number| number as usize >= count) {
            return Err(SampleError::Parameter {
                name: "clusters",
                expected: "numbers below the count of clusters, at most 2^32 - 1",
            });
        }
        Ok(Self { of_row, count })
    }

    /// The cluster of each row.
    pub fn of_row(&self) -> &[u32] {
        &self.of_row
    }

    /// Clusters in all.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Sums of a column within each cluster, in row order; length [`Clusters::count`].
    pub fn totals(&self, values: &[f64]) -> Vec<f64> {
        let mut totals = vec![0.0; self.count];
        for (&cluster, value) in self.of_row.iter().zip(values) {
            totals[cluster as usize] += value;
        }
        totals
    }

    /// The same, renumbered in order of first appearance so that every cluster has a row.
    ///
    /// # Errors
    /// [`SampleError::Empty`].
    pub fn present(&self) -> Result<Self, SampleError> {
        Self::of(self.of_row.iter().copied())
    }

    /// The clusters of some rows, renumbered in order of first appearance.
    ///
    /// # Errors
    /// [`SampleError::Empty`].
    pub fn select(&self, rows: &[usize]) -> Result<Self, SampleError> {
        Self::of(rows.iter().map(|&row| self.of_row[row]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_sample_is_refused_with_its_row() {
        let bad = Values::new("y", &[0.1, f64::NAN]).unwrap_err();
        assert_eq!(
            bad,
            SampleError::NotFinite {
                column: "y",
                row: 1
            }
        );
        assert_eq!(bad.to_string(), "y row 1 is not a finite number");
        assert!(matches!(
            Values::new("y", &[]),
            Err(SampleError::Empty { .. })
        ));
        let short = Values::aligned("y", &[0.1], 2).unwrap_err();
        assert_eq!(short.to_string(), "y has 1 rows, expected 2");
        assert!(matches!(
            Weights::new("w", &[0.0, -1.0], 2),
            Err(SampleError::Weight { row: 1, .. })
        ));
        assert!(Weights::new("w", &[0.0, 0.0], 2).is_err());
        assert!(Clusters::numbered(vec![0, 2], 2).is_err());
    }

    #[test]
    fn clusters_are_numbered_by_first_appearance() {
        let clusters = Clusters::of(["b", "a", "b", "c"]).unwrap();
        assert_eq!(clusters.of_row(), [0, 1, 0, 2]);
        assert_eq!(clusters.count(), 3);
        assert_eq!(clusters.totals(&[1.0, 2.0, 4.0, 8.0]), [5.0, 2.0, 8.0]);
    }

    #[test]
    fn thin_data_names_itself() {
        let thin = InsufficientData::unless("labelled clusters", 3, 4).unwrap_err();
        assert_eq!(thin.to_string(), "3 labelled clusters, needs at least 4");
    }
}
