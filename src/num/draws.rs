//! Seeded draws: one `ChaCha20` stream per replicate, so that results do not depend on the number of threads.

use rand::Rng as _;
use rand::SeedableRng as _;
use rand::rngs::ChaCha20Rng;

use crate::math;

/// Draws of one replicate: a stream of its seed.
#[derive(Debug)]
pub struct Draws(ChaCha20Rng);

impl Draws {
    /// The stream numbered `replicate` of a seed.
    pub fn of(seed: [u8; 32], replicate: usize) -> Self {
        let mut stream = ChaCha20Rng::from_seed(seed);
        stream.set_stream(replicate as u64);
        Self(stream)
    }

    /// The 53 high bits of 64.
    fn bits(&mut self) -> u64 {
        self.0.next_u64() >> 11
    }

    /// Uniform u on [0, 1): 53 bits.
    pub fn uniform(&mut self) -> f64 {
        self.bits() as f64 / (1_u64 << 53) as f64
    }

    /// Standard exponential, -ln(1 - u); above 0, since a weight of 0 would drop what it weighs.
    pub fn exponential(&mut self) -> f64 {
        (-math::ln_1p(-self.uniform())).max(f64::MIN_POSITIVE)
    }

    /// Uniform on 0 to `count - 1`: floor(u count), in integers.
    pub fn below(&mut self, count: usize) -> usize {
        let place = (u128::from(self.bits()) * count as u128) >> 53;
        usize::try_from(place).unwrap_or(0)
    }

    /// A fair coin.
    pub fn coin(&mut self) -> bool {
        self.0.next_u64() >> 63 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_their_own_and_in_range() {
        let column = |seed, stream| -> Vec<f64> {
            let mut draws = Draws::of([seed; 32], stream);
            (0..1000).map(|_| draws.uniform()).collect()
        };
        assert_eq!(column(1, 0), column(1, 0));
        assert_ne!(column(1, 0), column(1, 1));
        assert_ne!(column(1, 0), column(2, 0));
        let mut draws = Draws::of([3; 32], 7);
        let mut seen = [0; 6];
        for _ in 0..6000 {
            seen[draws.below(6)] += 1;
            assert!(draws.exponential() > 0.0);
        }
        // Six standard deviations of a binomial count.
        assert!(seen.iter().all(|&count: &i32| (count - 1000).abs() < 174));
        assert_eq!(draws.below(1), 0);
    }
}
