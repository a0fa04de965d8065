//! Simulated truth: worlds whose answer is known, and how often each statistic says it.
//!
//! Seconds by default; at least 2,000 worlds each with `RUN_SLOW_TESTS=1`. Bands are the claim, widened by three
//! Monte Carlo errors.

mod claims;
mod decisions;
mod drift;
mod environments;
mod gates;
mod intervals;
mod iteration;
mod logged;
mod missing;
mod planned_labels;
mod sample;
mod sizes;
mod strata;
mod tests_and_distances;

use clover::stats::distribution;
use rand::Rng as _;
use rand::SeedableRng as _;
use rand::rngs::ChaCha20Rng;

pub(crate) fn is_slow() -> bool {
    std::env::var_os("RUN_SLOW_TESTS").is_some()
}

fn worlds(short: u64, long: u64) -> u64 {
    if is_slow() { long } else { short }
}

/// A stream of its own for each world.
struct World(ChaCha20Rng);

impl World {
    fn new(seed: u8, number: u64) -> Self {
        let mut stream = ChaCha20Rng::from_seed([seed; 32]);
        stream.set_stream(number);
        Self(stream)
    }

    fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        distribution::normal_quantile(self.uniform().max(1e-16))
    }
}
