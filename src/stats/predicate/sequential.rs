//! Gate P8, sequential: the confirm test by betting, row by row in the registered order.

use crate::num::math;
use crate::stats::eprocess::bettor;
use crate::stats::eprocess::bettor::FRACTIONS;
use crate::stats::eprocess::bounded::Bounded;
use crate::stats::sample::SampleError;
use crate::stats::sample::open_unit;

/// Stopping because the designed improvement is not there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SequentialFutility {
    /// The designed improvement of DMSE, above 0.
    pub effect: f64,
    /// The largest improvement that any labels could give, above `effect`: H of the two rewards exchanged.
    pub gain: f64,
    /// Bound on the probability to stop although DMSE is at most minus the effect.
    pub beta: f64,
}

/// What ends a sequential confirm test; the threshold on DMSE and the other gates are judged on the whole block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequentialVerdict {
    /// More rows may come.
    Continue,
    /// The evidence crossed.
    Crossed,
    /// The designed improvement is not there.
    Futile,
}

/// The test of one hypothesis of M: `W_t = (1/K) sum_k prod_(i <= t) (1 - f_k d_i / H_j)` crosses at `M / alpha`.
///
/// `H_j` bounds every difference whatever the labels, so it is known before any of them; differences come in beacon order,
/// one for each unit. Source: CLOVER v1.1, section 6; Waudby-Smith and Ramdas 2024.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequential {
    bound: f64,
    claim: Option<Bounded>,
    futile: Option<(Bounded, f64)>,
    ln_threshold: f64,
    n: u64,
    verdict: SequentialVerdict,
}

impl Sequential {
    /// The test before its first row: `bound` `H_j`, at least 0, `hypotheses` M and `alpha`.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] for a number outside its range.
    pub fn new(
        bound: f64,
        hypotheses: usize,
        alpha: f64,
        futility: Option<SequentialFutility>,
    ) -> Result<Self, SampleError> {
        open_unit("alpha", alpha)?;
        if hypotheses == 0 || !(bound.is_finite() && bound >= 0.0) {
            return Err(SampleError::Parameter {
                name: "bound or hypotheses",
                expected: "a finite bound of at least 0 and at least 1 hypothesis",
            });
        }
        let futile = match futility {
            Some(futility) => {
                open_unit("beta", futility.beta)?;
                let test = Bounded::new(-futility.effect, -futility.gain, FRACTIONS)?;
                Some((test, -math::ln(futility.beta)))
            }
            None => None,
        };
        // Without a reward that moved every difference is 0, and so is the bound.
        let claim = if bound > 0.0 {
            Some(Bounded::new(0.0, -bound, FRACTIONS)?)
        } else {
            None
        };
        Ok(Self {
            bound,
            claim,
            futile,
            ln_threshold: math::ln(hypotheses as f64 / alpha),
            n: 0,
            verdict: SequentialVerdict::Continue,
        })
    }

    /// Takes the difference `(Y - R')^2 - (Y - R)^2` of the next unit; after a verdict it counts for nothing.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] above the bound, or for NaN; the test stays as it was.
    pub fn push(&mut self, difference: f64) -> Result<SequentialVerdict, SampleError> {
        if difference.is_nan() || difference > self.bound {
            return Err(SampleError::Parameter {
                name: "difference",
                expected: "at most the bound",
            });
        }
        if self.verdict != SequentialVerdict::Continue {
            return Ok(self.verdict);
        }
        if let Some((futile, _)) = &mut self.futile {
            futile.push(difference)?;
        }
        if let Some(claim) = &mut self.claim {
            claim.push(-difference)?;
        }
        self.n += 1;
        let past = |ln: f64, bar: f64| bettor::is_past(self.n, FRACTIONS, ln, bar);
        let futile = self.futile.as_ref();
        if past(self.ln_wealth(), self.ln_threshold) {
            self.verdict = SequentialVerdict::Crossed;
        } else if futile.is_some_and(|(test, bar)| past(test.ln_wealth(), *bar)) {
            self.verdict = SequentialVerdict::Futile;
        }
        Ok(self.verdict)
    }

    /// Units that were bet on.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Log wealth.
    pub fn ln_wealth(&self) -> f64 {
        self.claim.as_ref().map_or(0.0, Bounded::ln_wealth)
    }

    /// The verdict so far.
    pub fn verdict(&self) -> SequentialVerdict {
        self.verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_cross_at_the_hypotheses_over_alpha() {
        let run = |hypotheses, difference: f64| {
            let mut test = Sequential::new(0.5, hypotheses, 0.05, None).unwrap();
            while test.verdict() == SequentialVerdict::Continue && test.n() < 1000 {
                test.push(difference).unwrap();
            }
            (test.verdict(), test.n())
        };
        // source: by hand, the mean over k of (1 + k/21)^n is 30.3 at n = 7, 170.8 at 10, 309.3 at 11.
        assert_eq!(run(1, -0.5), (SequentialVerdict::Crossed, 7));
        assert_eq!(run(10, -0.5), (SequentialVerdict::Crossed, 11));
        assert_eq!(run(1, 0.0), (SequentialVerdict::Continue, 1000));
        let mut test = Sequential::new(0.5, 1, 0.05, None).unwrap();
        assert!(test.push(0.6).is_err() && test.push(f64::NAN).is_err());
        assert_eq!(test.n(), 0);
        let mut still = Sequential::new(0.0, 1, 0.05, None).unwrap();
        assert_eq!(still.push(0.0), Ok(SequentialVerdict::Continue));
        assert!(Sequential::new(-1.0, 1, 0.05, None).is_err());
    }

    #[test]
    fn a_designed_improvement_that_is_not_there_is_futile() {
        let futility = SequentialFutility {
            effect: 0.1,
            gain: 0.5,
            beta: 0.1,
        };
        let mut test = Sequential::new(0.5, 1, 0.05, Some(futility)).unwrap();
        while test.push(0.0).unwrap() == SequentialVerdict::Continue {}
        assert_eq!(test.verdict(), SequentialVerdict::Futile);
        assert!(test.n() < 40);
    }
}
