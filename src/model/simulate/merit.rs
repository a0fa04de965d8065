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

#[cfg(test)]
mod tests {
    use clover_num::Micro;
    use clover_num::paired::PairedSums;

    use super::*;

    const LEVELS: usize = 11;

    /// Both scores of rows of one run: the second from a model that shifted by so much.
    fn measured(run: u64, rows: u64, shift: i32) -> PairedSums {
        let judge = SimulatedJudge {
            noise_sd_micro: 120_000,
            drift: Some((1, shift)),
        };
        let mut sums = PairedSums::default();
        for row in 0..rows {
            let body = format!("ITEM 0123456789abcdef\nrow {run} {row}\nEND 0123456789abcdef");
            let tree = SeedTree::of_number(run).child(&row.to_string());
            let score = |n: u64| {
                let drawn = tree.child(&n.to_string());
                let place = judge.level((7, n), (&body, &drawn), LEVELS).unwrap();
                Micro::share(place as u128, LEVELS as u128 - 1).unwrap()
            };
            sums.take(score(0), score(1));
        }
        sums
    }

    /// Given judges with a noise, of which some shifted; when 400 runs ask again about 30 rows; then the interval of the shift
    /// holds the truth, as 10,000 rows say it, in 93 to 97 of a hundred.
    #[test]
    fn the_interval_of_a_shift_holds_the_truth() {
        for shift in [0, 60_000] {
            let truth = measured(1 << 40, 10_000, shift).shift().unwrap().mean;
            let holds = (0..400).filter(|run| {
                let found = measured(*run, 30, shift).shift().unwrap();
                found.mean.abs_diff(truth) <= found.half
            });
            let held = holds.count();
            println!("shift {truth}: {held} of 400");
            assert!((372..=388).contains(&held), "shift {truth}: {held} of 400");
        }
    }
}
