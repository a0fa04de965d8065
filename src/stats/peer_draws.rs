//! The peer's random numbers: numpy's `default_rng(seed).exponential(size=n)`, bit by bit where it matters.
//!
//! PCG64 (XSL-RR 128/64; O'Neill 2014) seeded through numpy's `SeedSequence`, and the exponential ziggurat of
//! Marsaglia and Tsang (2000) with 256 layers. With it a bootstrap repeats the replicates that `cje-eval` 0.9.3 draws,
//! so that intervals can be compared to the digit; our own draws are `ChaCha20`.

use crate::direct::ClusterWeights;
use clover_num::math;

/// Layers of the ziggurat.
const LAYERS: usize = 256;
/// Where its tail begins. Source: Marsaglia and Tsang 2000, table of r for 256 layers.
const TAIL: f64 = 7.697_117_470_131_05;
/// Area of each layer. Source: as above.
const AREA: f64 = 0.003_949_659_822_581_557;
/// 2^53.
const SCALE: f64 = 9_007_199_254_740_992.0;
/// Multiplier of PCG64's congruential generator.
const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

/// numpy's `PCG64(seed)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pcg64 {
    state: u128,
    increment: u128,
}

impl Pcg64 {
    /// Seeds as `numpy.random.default_rng(seed)` does.
    pub fn new(seed: u64) -> Self {
        let words = seed_words(seed);
        let wide = |at: usize| u128::from(words[at]) << 64 | u128::from(words[at + 1]);
        let increment = wide(2) << 1 | 1;
        let state = increment.wrapping_add(wide(0));
        let mut generator = Self { state, increment };
        generator.step();
        generator
    }

    fn step(&mut self) {
        self.state = self
            .state
            .wrapping_mul(MULTIPLIER)
            .wrapping_add(self.increment);
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.step();
        let (high, low) = halves(self.state);
        // The top six bits say how far to rotate.
        let rotation = u32::try_from(high >> 58).unwrap_or(0);
        (high ^ low).rotate_right(rotation)
    }

    /// A double in [0, 1) from 53 bits.
    pub fn next_double(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / SCALE
    }
}

/// Words of the Mersenne Twister.
const TWISTER: usize = 624;

/// numpy's `RandomState(seed)`: MT19937 (Matsumoto and Nishimura 1998), seeded by its 1812433253 recurrence.
#[derive(Clone, Debug)]
pub struct Twister {
    words: Vec<u32>,
    at: usize,
}

impl Twister {
    /// Seeds as `numpy.random.RandomState(seed)` does.
    pub fn new(seed: u32) -> Self {
        let mut words = Vec::with_capacity(TWISTER);
        let mut word = seed;
        for next in 1_u32..=624 {
            words.push(word);
            word = (word ^ word >> 30)
                .wrapping_mul(1_812_433_253)
                .wrapping_add(next);
        }
        Self { words, at: TWISTER }
    }

    fn refill(&mut self) {
        for at in 0..TWISTER {
            let next = self.words[(at + 1) % TWISTER];
            let mixed = self.words[at] & 0x8000_0000 | next & 0x7fff_ffff;
            let odd = if mixed & 1 == 1 { 0x9908_b0df } else { 0 };
            self.words[at] = self.words[(at + 397) % TWISTER] ^ mixed >> 1 ^ odd;
        }
        self.at = 0;
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.at == TWISTER {
            self.refill();
        }
        let mut word = self.words[self.at];
        self.at += 1;
        word ^= word >> 11;
        word ^= word << 7 & 0x9d2c_5680;
        word ^= word << 15 & 0xefc6_0000;
        word ^ word >> 18
    }

    /// Uniform on 0 to `most`, by masking and rejection.
    fn up_to(&mut self, most: u32) -> u32 {
        let mask = u32::MAX.checked_shr(most.leading_zeros()).unwrap_or(0);
        loop {
            let value = self.next_u32() & mask;
            if value <= most {
                return value;
            }
        }
    }
}

/// The fold of each row under scikit-learn's `KFold(folds, shuffle=True, random_state=seed)`; `folds` at least 1.
pub fn shuffled_folds(seed: u32, rows: usize, folds: usize) -> Vec<usize> {
    let mut twister = Twister::new(seed);
    let mut order: Vec<usize> = (0..rows).collect();
    for at in (1..rows).rev() {
        let other = twister.up_to(u32::try_from(at).unwrap_or(u32::MAX));
        order.swap(at, other as usize);
    }
    let mut of_row = vec![0; rows];
    let mut from = 0;
    for fold in 0..folds {
        let size = rows / folds + usize::from(fold < rows % folds);
        for &row in &order[from..from + size] {
            of_row[row] = fold;
        }
        from += size;
    }
    of_row
}

/// High and low 64 bits.
fn halves(wide: u128) -> (u64, u64) {
    let bytes = wide.to_be_bytes();
    let half = |from: usize| {
        let mut eight = [0; 8];
        eight.copy_from_slice(&bytes[from..from + 8]);
        u64::from_be_bytes(eight)
    };
    (half(0), half(8))
}

/// The four 64-bit words that numpy's `SeedSequence(seed)` generates.
fn seed_words(seed: u64) -> [u64; 4] {
    const MULTIPLIER_A: u32 = 0x931e_8875;
    const MULTIPLIER_B: u32 = 0x58f3_8ded;
    let mut hash = 0x43b0_d7e5_u32;
    let mut hashed = |value: u32| {
        let mut value = value ^ hash;
        hash = hash.wrapping_mul(MULTIPLIER_A);
        value = value.wrapping_mul(hash);
        value ^ value >> 16
    };
    let mix = |x: u32, y: u32| {
        let mixed = 0xca01_f9dd_u32
            .wrapping_mul(x)
            .wrapping_sub(0x4973_f715_u32.wrapping_mul(y));
        mixed ^ mixed >> 16
    };
    let half = |bits: u64| u32::try_from(bits & 0xffff_ffff).unwrap_or(0);
    let mut pool = [half(seed), half(seed >> 32), 0, 0].map(&mut hashed);
    for source in 0..4 {
        for target in 0..4 {
            if source != target {
                pool[target] = mix(pool[target], hashed(pool[source]));
            }
        }
    }
    let mut hash = 0x8b51_f9dd_u32;
    let mut halves = [0_u32; 8];
    for (at, half) in halves.iter_mut().enumerate() {
        let mut value = pool[at % 4] ^ hash;
        hash = hash.wrapping_mul(MULTIPLIER_B);
        value = value.wrapping_mul(hash);
        *half = value ^ value >> 16;
    }
    let word = |at: usize| u64::from(halves[2 * at + 1]) << 32 | u64::from(halves[2 * at]);
    [word(0), word(1), word(2), word(3)]
}

/// Layers of the exponential ziggurat, layer 0 being the tail's.
#[derive(Clone, Debug)]
pub struct Ziggurat {
    /// Right edge of a layer over 2^53.
    width: [f64; LAYERS],
    /// Bits below which a draw lies under the curve.
    inside: [u64; LAYERS],
    /// The curve at a layer's right edge.
    height: [f64; LAYERS],
}

impl Default for Ziggurat {
    fn default() -> Self {
        let mut edge = [0.0; LAYERS];
        edge[LAYERS - 1] = TAIL;
        for layer in (1..LAYERS - 1).rev() {
            let above = edge[layer + 1];
            edge[layer] = -math::ln(AREA / above + math::exp(-above));
        }
        // The base strip reaches beyond the tail's beginning by what the tail's area is worth.
        let base = AREA / math::exp(-TAIL);
        let bits = |share: f64| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of 2^53"
            )]
            let bits = (share * SCALE) as u64;
            bits
        };
        let mut ziggurat = Self {
            width: [0.0; LAYERS],
            inside: [0; LAYERS],
            height: [1.0; LAYERS],
        };
        for layer in 0..LAYERS {
            let right = if layer == 0 { base } else { edge[layer] };
            ziggurat.width[layer] = right / SCALE;
            ziggurat.inside[layer] = match layer {
                0 => bits(TAIL / base),
                1 => 0,
                _ => bits(edge[layer - 1] / right),
            };
            if layer > 0 {
                ziggurat.height[layer] = math::exp(-right);
            }
        }
        ziggurat
    }
}

impl Ziggurat {
    /// A standard exponential, as numpy draws it.
    pub fn exponential(&self, generator: &mut Pcg64) -> f64 {
        loop {
            let bits = generator.next_u64() >> 3;
            let layer = (bits & 0xff) as usize;
            let bits = bits >> 8;
            let x = bits as f64 * self.width[layer];
            if bits < self.inside[layer] {
                return x;
            }
            if layer == 0 {
                return TAIL - math::ln_1p(-generator.next_double());
            }
            let drop = self.height[layer - 1] - self.height[layer];
            if drop * generator.next_double() + self.height[layer] < math::exp(-x) {
                return x;
            }
        }
    }
}

/// The cluster weights that `cje-eval` draws from `default_rng(seed)`, replicate by replicate.
#[derive(Clone, Debug)]
pub struct PeerExponential {
    ziggurat: Ziggurat,
    /// The generator before each replicate.
    starts: Vec<Pcg64>,
}

impl PeerExponential {
    /// Finds where each of `replicates` replicates of `clusters` clusters begins in the stream of `seed`.
    pub fn new(seed: u64, replicates: usize, clusters: usize) -> Self {
        let ziggurat = Ziggurat::default();
        let mut generator = Pcg64::new(seed);
        let starts = (0..replicates)
            .map(|_| {
                let start = generator;
                for _ in 0..clusters {
                    ziggurat.exponential(&mut generator);
                }
                start
            })
            .collect();
        Self { ziggurat, starts }
    }
}

impl ClusterWeights for PeerExponential {
    fn replicates(&self) -> usize {
        self.starts.len()
    }

    fn weights(&self, replicate: usize, clusters: usize) -> Vec<f64> {
        let mut generator = self.starts[replicate];
        (0..clusters)
            .map(|_| {
                self.ziggurat
                    .exponential(&mut generator)
                    .max(f64::MIN_POSITIVE)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_twister_repeats_numpy() {
        let mut twister = Twister::new(42);
        // source: numpy 2.4.6, MT19937 with _legacy_seeding(42), random_raw(3).
        for want in [1_608_637_542, 3_421_126_067, 4_083_286_876] {
            assert_eq!(twister.next_u32(), want);
        }
        // source: scikit-learn 1.9.1, KFold(5, shuffle=True, random_state=42) of 12 rows.
        let want = [0, 2, 1, 4, 3, 1, 4, 3, 1, 0, 0, 2];
        assert_eq!(shuffled_folds(42, 12, 5), want);
    }
}
