//! Rows as they were scored: the mean and the variance of the scores that could be read.

use clover_num::math;

use crate::sample::SampleError;

/// The scores of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowScores {
    /// Their mean, in [0, 1].
    pub mean: f64,
    /// Their variance (n - 1); 0 for one score.
    pub variance: f64,
    /// How many could be read, at least 1.
    pub count: u32,
}

impl RowScores {
    /// Of normalised scores; `None` without any.
    pub fn of(scores: &[f64]) -> Option<Self> {
        let count = u32::try_from(scores.len())
            .ok()
            .filter(|count| *count > 0)?;
        let mean = math::mean(scores);
        let variance = match scores {
            [_] => 0.0,
            // The sum of two has one order; most rows have two or three scores.
            [a, b] => (a - mean) * (a - mean) + (b - mean) * (b - mean),
            _ => {
                let squares = scores.iter().map(|score| (score - mean) * (score - mean));
                math::sum(&squares.collect::<Vec<_>>()) / f64::from(count - 1)
            }
        };
        Some(Self {
            mean,
            variance,
            count,
        })
    }
}

/// Rows with a target, of which some could be scored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScoredRows {
    /// Place of each readable row among all, ascending.
    pub places: Vec<usize>,
    /// Targets of readable rows, in [0, 1].
    pub targets: Vec<f64>,
    /// Mean scores of readable rows, in [0, 1].
    pub means: Vec<f64>,
    /// Scores of readable rows.
    pub scores: Vec<RowScores>,
    /// Scores that were asked for, over all rows.
    pub asked: u64,
    /// Scores that could not be read, over all rows.
    pub failed: u64,
}

impl ScoredRows {
    /// Of targets, and of the readable scores of each row, both normalised; `repeats` scores were asked for each row.
    ///
    /// # Errors
    /// [`SampleError::Misaligned`] for other counts of rows; [`SampleError::OutOfRange`] for a target or score outside
    /// [0, 1]; [`SampleError::Parameter`] where a row has more scores than were asked for.
    pub fn new<'s>(
        targets: &[f64],
        scores: impl ExactSizeIterator<Item = &'s [f64]>,
        repeats: u32,
    ) -> Result<Self, SampleError> {
        if scores.len() != targets.len() {
            let (expected, found) = (targets.len(), scores.len());
            return Err(SampleError::Misaligned {
                column: "scores",
                expected,
                found,
            });
        }
        let outside = |column, row| SampleError::OutOfRange {
            column,
            row,
            low: 0,
            high: 1,
        };
        let mut rows = Self {
            asked: targets.len() as u64 * u64::from(repeats),
            ..Self::default()
        };
        for (row, (target, scores)) in targets.iter().zip(scores).enumerate() {
            if !(0.0..=1.0).contains(target) {
                return Err(outside("targets", row));
            }
            if scores.iter().any(|score| !(0.0..=1.0).contains(score)) {
                return Err(outside("scores", row));
            }
            let missing = u64::from(repeats).checked_sub(scores.len() as u64).ok_or(
                SampleError::Parameter {
                    name: "scores",
                    expected: "at most as many of a row as were asked for",
                },
            )?;
            rows.failed += missing;
            if let Some(of) = RowScores::of(scores) {
                rows.places.push(row);
                rows.targets.push(*target);
                rows.means.push(of.mean);
                rows.scores.push(of);
            }
        }
        Ok(rows)
    }

    /// Readable rows.
    pub fn len(&self) -> usize {
        self.means.len()
    }

    /// Whether no row could be read.
    pub fn is_empty(&self) -> bool {
        self.means.is_empty()
    }

    /// Share of the scores that could not be read, phi; 0 where none was asked for.
    pub fn failures(&self) -> f64 {
        if self.asked == 0 {
            0.0
        } else {
            self.failed as f64 / self.asked as f64
        }
    }

    /// Mean variance of the rows with at least two scores, V; 0 without such a row.
    pub fn selfvar(&self) -> f64 {
        let repeated = self.scores.iter().filter(|of| of.count > 1);
        let variances: Vec<f64> = repeated.map(|of| of.variance).collect();
        if variances.is_empty() {
            0.0
        } else {
            math::mean(&variances)
        }
    }

    /// Judged less human, by readable row.
    pub fn residuals(&self) -> Vec<f64> {
        self.means
            .iter()
            .zip(&self.targets)
            .map(|(mean, target)| mean - target)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_that_cannot_be_read_are_counted() {
        let read = |targets: &[f64], scores: &[Vec<f64>], repeats| {
            ScoredRows::new(targets, scores.iter().map(Vec::as_slice), repeats)
        };
        let scores = [vec![0.5, 0.7], Vec::new(), vec![1.0]];
        let rows = read(&[0.1, 0.2, 0.3], &scores, 2).unwrap();
        assert_eq!(
            (rows.places.as_slice(), rows.failed, rows.asked),
            ([0, 2].as_slice(), 3, 6)
        );
        assert!((rows.selfvar() - 0.02).abs() < 1e-15);
        assert!((rows.failures() - 0.5).abs() < 1e-15);
        assert!(read(&[0.1], &[vec![1.5]], 1).is_err());
        assert!(read(&[0.1], &[vec![0.5, 0.5]], 1).is_err());
    }
}
