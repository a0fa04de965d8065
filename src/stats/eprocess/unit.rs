//! The unit of analysis: a cluster (a scenario with all its repeats) is one observation.
//!
//! Repeats of one scenario share its difficulty. Counted one by one they look like independent evidence, and a gate at
//! 5 % promotes nothing in 18 % of runs; as one mean they are one draw. The number of repeats R is fixed beforehand.

/// Why a unit gives no observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Not the registered number of repeats.
    #[error("{found} repeats, expected {expected}")]
    Repeats {
        /// What came.
        found: usize,
        /// What was registered.
        expected: u32,
    },
    /// A score outside its range.
    #[error("score {score}: expected {low} to {high}")]
    OutOfRange {
        /// What came, in millionths.
        score: i64,
        /// Lower end.
        low: i64,
        /// Upper end.
        high: i64,
    },
}

/// Scores of a metric, in millionths: the range bounds every delta by its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    low: i64,
    high: i64,
}

impl Range {
    /// `None` unless `low < high`, both within 10^12 millionths.
    pub fn new(low: i64, high: i64) -> Option<Self> {
        let bound = crate::stats::eprocess::design::SCALE_MAX;
        let inside = low.abs() <= bound && high.abs() <= bound;
        (inside && low < high).then_some(Self { low, high })
    }

    /// The scale S of a gate on this metric.
    pub fn scale(self) -> i64 {
        self.high - self.low
    }

    /// What a gate takes for a unit: the sum over its repeats of candidate minus baseline.
    ///
    /// A call that failed is `None` and counts against the claim: for the candidate the worst score, for the baseline the
    /// best. With lower scores better the two are swapped. So a claim that stands with failures stands without them.
    ///
    /// # Errors
    /// [`UnitError`].
    pub fn delta(
        self,
        pairs: &[(Option<i64>, Option<i64>)],
        repeats: u32,
        higher_is_better: bool,
    ) -> Result<i64, UnitError> {
        if pairs.len() != repeats as usize {
            return Err(UnitError::Repeats {
                found: pairs.len(),
                expected: repeats,
            });
        }
        let (worst, best) = if higher_is_better {
            (self.low, self.high)
        } else {
            (self.high, self.low)
        };
        let mut sum = 0;
        for (candidate, baseline) in pairs {
            sum += self.score(*candidate, worst)? - self.score(*baseline, best)?;
        }
        Ok(sum)
    }

    fn score(self, score: Option<i64>, missing: i64) -> Result<i64, UnitError> {
        let score = score.unwrap_or(missing);
        if (self.low..=self.high).contains(&score) {
            return Ok(score);
        }
        Err(UnitError::OutOfRange {
            score,
            low: self.low,
            high: self.high,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_the_exact_sum_of_its_repeats() {
        let range = Range::new(0, 1_000_000).unwrap();
        let pairs = [
            (Some(900_000), Some(400_000)),
            (None, Some(400_000)),
            (Some(1), None),
        ];
        assert_eq!(range.delta(&pairs, 3, true), Ok(-899_999));
        assert_eq!(range.delta(&pairs, 3, false), Ok(1_100_001));
        let few = range.delta(&pairs, 4, true).unwrap_err();
        assert_eq!(few.to_string(), "3 repeats, expected 4");
        assert!(range.delta(&[(Some(-1), Some(0))], 1, true).is_err());
        assert_eq!(range.scale(), 1_000_000);
        assert!(Range::new(1, 1).is_none() && Range::new(0, i64::MAX).is_none());
    }
}
