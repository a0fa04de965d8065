//! Bets on pseudo-outcomes with a known lower bound, such as doubly robust labels: exact.
//!
//! For H0 "the mean of psi given the past is at most d0" and psi >= lo, the factor is `1 + f_k (psi - d0) / (d0 - lo)`.

use crate::eprocess::bettor;
use crate::sample::SampleError;
use clover_num::math;

/// Wealth of a grid-Kelly mixture on values bounded below, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundedWealth {
    null: f64,
    low: f64,
    logs: Vec<f64>,
}

impl BoundedWealth {
    /// Before the first value; `low < null`, both finite.
    ///
    /// # Errors
    /// [`SampleError::Parameter`].
    pub fn new(null: f64, low: f64, fractions: usize) -> Result<Self, SampleError> {
        let some = (1..=bettor::FRACTIONS_MAX).contains(&fractions);
        if !(some && null.is_finite() && low.is_finite() && low < null) {
            return Err(SampleError::Parameter {
                name: "bounds",
                expected: "a finite lower bound below the null, and 1 to 100 fractions",
            });
        }
        Ok(Self {
            null,
            low,
            logs: vec![0.0; fractions],
        })
    }

    /// Bets on the next value, at least the lower bound.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] below it, for NaN and infinities.
    pub fn push(&mut self, value: f64) -> Result<(), SampleError> {
        if !(value.is_finite() && value >= self.low) {
            return Err(SampleError::Parameter {
                name: "value",
                expected: "finite and at least the lower bound",
            });
        }
        let gained = ((value - self.null) / (self.null - self.low)).max(-1.0);
        let fractions = self.logs.len();
        for (log, k) in self.logs.iter_mut().zip(1..) {
            *log += math::ln_1p(bettor::fraction(k, fractions) * gained);
        }
        Ok(())
    }

    /// Log wealth.
    pub fn ln_wealth(&self) -> f64 {
        bettor::log_mean_exp(&self.logs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_below_the_bound_are_refused_and_the_bound_ruins_nobody() {
        let mut bounded = BoundedWealth::new(0.0, -2.0, 20).unwrap();
        assert!(bounded.push(-2.1).is_err() && bounded.push(f64::NAN).is_err());
        for _ in 0..100 {
            bounded.push(-2.0).unwrap();
        }
        assert!(bounded.ln_wealth().is_finite() && bounded.ln_wealth() < -7.0);
        assert!(BoundedWealth::new(0.0, 0.0, 20).is_err());
    }
}
