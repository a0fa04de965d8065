//! The judge in a double: a merit that each row has, with a noise, so that what is measured of it can be held against the truth.

use clover_ground::digest::Digest;
use clover_ground::seed::SeedTree;

/// Millionths of a whole.
const MILLION: i64 = 1_000_000;
/// Uniform numbers of which one normal number is made: their sum has variance 1.
const UNIFORMS: usize = 12;

/// How a double judges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimulatedJudge {
    /// Standard deviation of its noise, in millionths of the scale.
    pub noise_sd_micro: u32,
    /// What it adds to every score from its so many-th request on, in millionths of the scale: a model that changed.
    pub drift: Option<(u64, i32)>,
}

/// The row that a request shows, between the lines of its fence.
fn shown(body: &str) -> Option<&str> {
    let mut rest = body;
    loop {
        let (_, after) = rest.split_once("ITEM ")?;
        let fence = after.get(..16)?;
        if fence.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let (row, _) = after[16..].split_once(&format!("END {fence}"))?;
            return Some(row);
        }
        rest = after;
    }
}

impl SimulatedJudge {
    /// The place among so many levels that it gives the row of a request; `drawn` are the bytes of the request's own seed, and
    /// `n` says which request it is. `None` where the request shows no row.
    pub(super) fn level(
        &self,
        (seed, n): (u64, u64),
        (body, drawn): (&str, &SeedTree),
        levels: usize,
    ) -> Option<usize> {
        let row = shown(body)?;
        let merit = Digest::sha256(format!("{seed}\n{row}").as_bytes());
        let [a, b, c, d, ..] = *merit.as_bytes();
        let merit = i64::from(u32::from_be_bytes([a, b, c, d])) % (MILLION + 1);
        let noise = drawn.child("noise").seed();
        let uniforms = noise.chunks_exact(2).take(UNIFORMS);
        let sum = uniforms.map(|pair| i64::from(u16::from_be_bytes([pair[0], pair[1]])));
        let normal = (sum.sum::<i64>() - 6 * 65_536) * MILLION / 65_536;
        let mut at = merit + normal * i64::from(self.noise_sd_micro) / MILLION;
        if let Some((_, shift)) = self.drift.filter(|(from, _)| n >= *from) {
            at += i64::from(shift);
        }
        let steps = i64::try_from(levels.checked_sub(1)?).ok()?;
        let place = (at * steps + MILLION / 2).div_euclid(MILLION);
        usize::try_from(place.clamp(0, steps)).ok()
    }
}
