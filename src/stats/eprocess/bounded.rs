//! Bets on pseudo-outcomes with a known lower bound: strata as a control variate, and doubly robust labels, both exact.
//!
//! For H0 "the mean of psi given the past is at most d0" and psi >= lo, the factor is `1 + f_k (psi - d0) / (d0 - lo)`.

use crate::num::math;
use crate::stats::eprocess::bettor;
use crate::stats::sample::SampleError;

/// Wealth of a grid-Kelly mixture on values bounded below, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounded {
    null: f64,
    low: f64,
    logs: Vec<f64>,
}

impl Bounded {
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

/// A stratum's expected value as a control variate: `psi = x - g (b_s - bbar)`, x in [0, 1].
///
/// b are predictions of the strata's means and bbar their mean over the units, all fixed beforehand; with units in random
/// order the correction has mean 0, so psi has the mean of x and less spread.
#[derive(Clone, Debug, PartialEq)]
pub struct Strata {
    corrections: Vec<f64>,
    low: f64,
}

impl Strata {
    /// Predictions with the share of units of each stratum, and the weight g in [0, 1].
    ///
    /// # Errors
    /// [`SampleError`] for misaligned columns, shares that are no weights, or a weight outside [0, 1].
    pub fn new(predicted: &[f64], shares: &[f64], g: f64) -> Result<Self, SampleError> {
        use crate::stats::sample::Values;
        use crate::stats::sample::Weights;
        let predicted = Values::new("predicted", predicted)?.as_slice();
        let weights = Weights::new("shares", shares, predicted.len())?.as_slice();
        crate::stats::sample::unit("weight", &[g])?;
        let centre = math::dot(predicted, weights) / math::sum(weights);
        let corrections: Vec<f64> = predicted.iter().map(|b| g * (b - centre)).collect();
        let low = -corrections.iter().fold(0.0_f64, |most, one| most.max(*one));
        Ok(Self { corrections, low })
    }

    /// The least that psi can be: `-g max(b - bbar)`.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// psi of a value in [0, 1].
    ///
    /// # Errors
    /// [`SampleError`] for an unknown stratum or a value outside [0, 1].
    pub fn outcome(&self, stratum: usize, x: f64) -> Result<f64, SampleError> {
        crate::stats::sample::unit("x", &[x])?;
        let correction = self.corrections.get(stratum);
        let correction = correction.ok_or(SampleError::Parameter {
            name: "stratum",
            expected: "a number below the count of strata",
        })?;
        Ok((x - correction).max(self.low))
    }
}

/// The least that a doubly robust pseudo-outcome can be: `min(-k, k - (1 + k) / pi_min)` for predictions of at most k in
/// magnitude and labels in [-1, 1].
pub fn doubly_robust_low(k: f64, pi_min: f64) -> f64 {
    (-k).min(k - (1.0 + k) / pi_min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_below_the_bound_are_refused_and_the_bound_ruins_nobody() {
        let mut bounded = Bounded::new(0.0, -2.0, 20).unwrap();
        assert!(bounded.push(-2.1).is_err() && bounded.push(f64::NAN).is_err());
        for _ in 0..100 {
            bounded.push(-2.0).unwrap();
        }
        assert!(bounded.ln_wealth().is_finite() && bounded.ln_wealth() < -7.0);
        assert!(Bounded::new(0.0, 0.0, 20).is_err());
        assert!((doubly_robust_low(0.5, 0.2) + 7.0).abs() < 1e-12);
    }

    #[test]
    fn corrections_average_to_nothing() {
        let strata = Strata::new(&[0.2, 0.4, 0.9], &[1.0, 2.0, 1.0], 0.5).unwrap();
        let psi: Vec<f64> = [0, 1, 1, 2]
            .map(|stratum| strata.outcome(stratum, 0.5).unwrap())
            .to_vec();
        assert!((math::mean(&psi) - 0.5).abs() < 1e-15);
        assert!((strata.low() + 0.5 * (0.9 - 0.475)).abs() < 1e-15);
        assert!(strata.outcome(3, 0.5).is_err() && strata.outcome(0, 1.5).is_err());
    }
}
