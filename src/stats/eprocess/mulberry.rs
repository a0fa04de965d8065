//! The generator and the shuffle of the peer `agent-eval`, for its streams to the digit; nothing of ours draws from it.

/// mulberry32: 32 bits of state, uniform doubles in [0, 1).
#[derive(Clone, Copy, Debug)]
pub struct Mulberry32(u32);

impl Mulberry32 {
    /// Seeds it with the low 32 bits, as `seed | 0` does.
    pub fn new(seed: i64) -> Self {
        let [a, b, c, d, ..] = seed.to_le_bytes();
        Self(u32::from_le_bytes([a, b, c, d]))
    }

    /// The next double.
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x6d2b_79f5);
        let a = self.0;
        let mut t = (a ^ (a >> 15)).wrapping_mul(1 | a);
        t = t.wrapping_add((t ^ (t >> 7)).wrapping_mul(0x3d | t)) ^ t;
        f64::from(t ^ (t >> 14)) / 4_294_967_296.0
    }

    /// Fisher-Yates: i from the last to 1, j = floor(u (i + 1)).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let share = self.uniform() * (i + 1) as f64;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the floor of a number from 0 to i"
            )]
            let j = share as usize;
            items.swap(i, j.min(i));
        }
    }
}
