//! Seeded draws: one `ChaCha20` stream per replicate, so that results do not depend on the number of threads.

use rand_chacha::ChaCha20Rng;
use rand_core::Rng as _;
use rand_core::SeedableRng as _;

/// Draws of one replicate.
pub(super) struct Draws(ChaCha20Rng);

impl Draws {
    /// The stream numbered `replicate` of a seed.
    pub(super) fn of(seed: [u8; 32], replicate: u64) -> Self {
        let mut stream = ChaCha20Rng::from_seed(seed);
        stream.set_stream(replicate);
        Self(stream)
    }

    /// Uniform on [0, 1): the 53 high bits of 64.
    pub(super) fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform on 0 to `count - 1`, for a count of 1 to 2^53.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the product is at least 0 and below the count"
    )]
    pub(super) fn below(&mut self, count: usize) -> usize {
        ((self.uniform() * count as f64) as usize).min(count - 1)
    }

    /// A fair coin.
    pub(super) fn coin(&mut self) -> bool {
        self.0.next_u64() >> 63 == 1
    }
}
