//! Older sequential tests that peers offer, for comparison: mixtures for normal and Bernoulli data.

use clover_num::math;

/// Log likelihood ratio of the normal mixture test after n values of mean `mean`:
/// `sqrt(s2 / (s2 + n tau2)) exp(n^2 tau2 (mean - m0)^2 / (2 s2 (s2 + n tau2)))`, sigma known. Source: Robbins 1970.
pub fn normal_mixture(n: u64, mean: f64, null: f64, sigma: f64, tau: f64) -> f64 {
    let (n, s2, tau2) = (n as f64, sigma * sigma, tau * tau);
    let spread = s2 + n * tau2;
    let distance = n * (mean - null);
    0.5 * math::ln(s2 / spread) + tau2 * distance * distance / (2.0 * s2 * spread)
}

/// Log likelihood ratio of the uniform mixture over success rates: `B(s + 1, n - s + 1) / (m0^s (1 - m0)^(n - s))`.
pub fn bernoulli_mixture(successes: u64, n: u64, null: f64) -> f64 {
    let (s, n) = (successes as f64, n as f64);
    let beta = math::ln_gamma(s + 1.0) + math::ln_gamma(n - s + 1.0) - math::ln_gamma(n + 2.0);
    let term = |count: f64, rate: f64| {
        if count > 0.0 {
            count * math::ln(rate)
        } else {
            0.0
        }
    };
    beta - term(s, null) - term(n - s, 1.0 - null)
}

/// The rates whose uniform mixture ratio stays below `1/alpha`, bisected from the observed one.
pub fn bernoulli_bounds(successes: u64, n: u64, alpha: f64) -> (f64, f64) {
    let bar = math::ln(1.0 / alpha);
    let observed = successes as f64 / n as f64;
    let end = |to: f64| {
        let (mut inside, mut outside) = (observed, to);
        for _ in 0..60 {
            let middle = f64::midpoint(inside, outside);
            if bernoulli_mixture(successes, n, middle) < bar {
                inside = middle;
            } else {
                outside = middle;
            }
        }
        outside
    };
    let low = if successes == 0 { 0.0 } else { end(0.0) };
    let high = if successes == n { 1.0 } else { end(1.0) };
    (low, high)
}
