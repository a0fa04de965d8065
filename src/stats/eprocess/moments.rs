//! Running mean and variance with the prior of one half observation, from which adaptive bets are made.
//!
//! `mu_t = (1/2 + sum x) / (t + 1)`, `var_t = (1/4 + sum_(i <= t) (x_i - mu_i)^2) / (t + 1)`: both are known before the
//! next observation. Source: Waudby-Smith and Ramdas 2024, section 4; agent-eval 0.170.0.

use clover_num::math;

/// Moments of the observations so far, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Observations.
    pub n: u64,
    /// Their sum.
    pub sum: f64,
    /// Sum of squared distances from the running mean that includes each.
    pub squares: f64,
}

impl Moments {
    /// `mu_t`.
    pub fn mean(&self) -> f64 {
        (0.5 + self.sum) / (self.n as f64 + 1.0)
    }

    /// `var_t`, above 0.
    pub fn variance(&self) -> f64 {
        (0.25 + self.squares) / (self.n as f64 + 1.0)
    }

    /// The next observation, in [0, 1].
    pub fn push(&mut self, x: f64) {
        self.n += 1;
        self.sum += x;
        let distance = x - self.mean();
        self.squares += distance * distance;
    }

    /// Approximate growth rate adaptive bet `e / (var + e^2)`, `e = mu - m`, not truncated.
    pub fn agrapa(&self, mean: f64) -> f64 {
        let e = self.mean() - mean;
        e / (self.variance() + e * e)
    }

    /// Predictable plug-in bet `sqrt(2 ln(k/alpha) / (var t ln(1 + t)))` for the next observation t, not truncated.
    pub fn plugin(&self, ln_k_over_alpha: f64) -> f64 {
        let t = self.n as f64 + 1.0;
        (2.0 * ln_k_over_alpha / (self.variance() * t * math::ln_1p(t))).sqrt()
    }
}
