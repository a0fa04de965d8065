//! Merging e-values, and changing them into p-values and back.
//!
//! Of the same hypothesis and whatever dependence: the weighted mean, weights fixed in advance. Independent, or each
//! valid given the earlier ones: the product. Never the largest. Source: Vovk and Wang 2021.

use crate::sample::SampleError;
use crate::sample::Values;
use crate::sample::unit;
use clover_num::math;

/// e-values: at least one, finite, none below 0.
#[derive(Clone, Copy, Debug)]
pub struct EValues<'a>(&'a [f64]);

impl<'a> EValues<'a> {
    /// Checks e-values.
    ///
    /// # Errors
    /// [`SampleError`].
    pub fn new(e: &'a [f64]) -> Result<Self, SampleError> {
        let values = Values::new("e", e)?.as_slice();
        if values.iter().any(|e| *e < 0.0) {
            return Err(SampleError::Parameter {
                name: "e",
                expected: "e-values of at least 0",
            });
        }
        Ok(Self(values))
    }

    /// The e-values.
    pub fn as_slice(self) -> &'a [f64] {
        self.0
    }

    /// The mean: an e-value whatever the dependence.
    pub fn mean(self) -> f64 {
        math::mean(self.0)
    }

    /// The product, at most the largest double: an e-value if each is valid given those before it.
    pub fn product(self) -> f64 {
        let product = self.0.iter().fold(1.0, |product, e| product * e);
        product.min(f64::MAX)
    }
}

/// Logarithm of the mean of `slots` e-values of one hypothesis, of which these are known by their logarithms and each other
/// one is 1, as one of which nothing was seen. The number of slots is fixed before any e-value is seen, and is at least that
/// of the known ones.
pub fn ln_mean(ln_e: &[f64], slots: u64) -> f64 {
    let slots = slots.max(ln_e.len() as u64).max(1);
    let others = slots - ln_e.len() as u64;
    let most = ln_e.iter().copied().fold(0.0, f64::max);
    if most.is_infinite() {
        return most;
    }
    let known = ln_e.iter().map(|ln| math::exp(ln - most));
    let known: Vec<f64> = known.collect();
    let all = math::sum(&known) + others as f64 * math::exp(-most);
    most + math::ln(all / slots as f64)
}

/// `min(1, 1 / e)`.
pub fn p_of_e(e: f64) -> f64 {
    if e > 1.0 { 1.0 / e } else { 1.0 }
}

/// `kappa p^(kappa - 1)`, kappa in (0, 1); the largest double at p = 0.
///
/// # Errors
/// [`SampleError`] outside the ranges.
pub fn e_of_p(p: f64, kappa: f64) -> Result<f64, SampleError> {
    unit("p", &[p])?;
    crate::sample::open_unit("kappa", kappa)?;
    if p <= 0.0 {
        return Ok(f64::MAX);
    }
    Ok(kappa * math::pow(p, kappa - 1.0))
}

/// The uniform mixture of [`e_of_p`] over kappa, `(1 - p + p ln p) / (p (ln p)^2)`; 1/2 at p = 1.
///
/// # Errors
/// [`SampleError`] for p outside [0, 1].
pub fn e_of_p_mixed(p: f64) -> Result<f64, SampleError> {
    unit("p", &[p])?;
    if p <= 0.0 {
        return Ok(f64::MAX);
    }
    let ln = math::ln(p);
    if ln.abs() < 1e-4 {
        // (e^-z - 1 + z) / z^2 for z = ln p: where the quotient cancels, its series.
        return Ok(0.5 - ln / 6.0 + ln * ln / 24.0);
    }
    Ok((1.0 - p + p * ln) / (p * ln * ln))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: (20 + 5 + 1 + 1) / 4 = 6.75; of no member 1; far past what a double can be as an e-value.
    #[test]
    fn a_mean_by_logarithms() {
        let ln_e = [math::ln(20.0), math::ln(5.0)];
        assert!((ln_mean(&ln_e, 4) - math::ln(6.75)).abs() < 1e-15);
        assert!((ln_mean(&ln_e, 2) - math::ln(12.5)).abs() < 1e-15);
        assert!(ln_mean(&[], 3).abs() < 1e-15);
        assert!((ln_mean(&[2_000.0, -2_000.0], 2) - (2_000.0 - math::ln(2.0))).abs() < 1e-12);
        assert!((ln_mean(&[-2_000.0], 4) - math::ln(0.75)).abs() < 1e-15);
        assert!(ln_mean(&[f64::INFINITY], 9).is_infinite());
    }
}
