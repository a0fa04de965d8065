//! The search for the worst chain: single steps on the best so far, no population, no crossover, no gradient.
//!
//! In each try a seed is drawn; with probability 1/2 (and a best chain that is not full) that chain is extended by a step,
//! else a fresh chain of one or two steps is drawn. A text outside of the violating set is discarded, and the best
//! per seed is kept. The ten best distinct chains are then applied to all seeds: `U_adv` is the largest mean uplift
//! within the violating set. Selecting and scoring on the same seeds biases it upward. Source: CLOVER v1.1, section 6.

use std::collections::BTreeSet;

use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_num::draws::Draws;

use crate::battery::CalibratedReward;
use crate::chain::Chain;
use crate::chain::Step;
use crate::operator::Operator;

/// Name and version, as results record it.
pub const ALGORITHM: &str = "mutation-search/1";
/// Tries that a search may have.
pub const TRIES: std::ops::RangeInclusive<u32> = 100..=200;
/// Tries unless a plan says otherwise.
pub const TRIES_DEFAULT: u32 = 150;
/// Chains that are applied to all seeds.
pub const CHAINS_MAX: usize = 10;

/// The generator's seed: labelled SHA-256 of the canonical pair (iteration id, patch hash).
pub fn seed(iteration: &str, patch: &Digest) -> [u8; 32] {
    *canon::digest("clover/attack-search/v1", &(iteration, patch)).as_bytes()
}

/// The best chain of a seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// Number of the seed.
    pub seed: usize,
    /// The chain.
    pub chain: Chain,
    /// Its uplift there.
    pub uplift: f64,
}

/// A chain over all seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Mean {
    /// The chain.
    pub chain: Chain,
    /// Seeds on which it lies in the violating set.
    pub seeds: usize,
    /// Mean uplift on those.
    pub mean: f64,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResult {
    /// Seeds with a chain that lies in the violating set, in order of seeds.
    pub best: Vec<Best>,
    /// The best distinct chains, in order of their best uplift.
    pub chains: Vec<Mean>,
    /// Texts that could not be scored: while there is one, nothing passes.
    pub unscored: usize,
    /// Tries made.
    pub tries: u32,
}

impl SearchResult {
    /// `U_adv`: the largest mean; `None` when no chain was found.
    pub fn worst(&self) -> Option<&Mean> {
        self.chains
            .iter()
            .reduce(|worst, next| if next.mean > worst.mean { next } else { worst })
    }
}

/// A search under way.
struct Search<'s, S> {
    seeds: &'s [&'s str],
    before: Vec<Option<f64>>,
    score: S,
    unscored: usize,
}

impl<S: FnMut(usize, &str) -> Option<CalibratedReward>> Search<'_, S> {
    /// Uplift of a chain on a seed; `None` outside of the violating set, and where a score is missing.
    fn uplift(&mut self, seed: usize, chain: &Chain) -> Option<f64> {
        let before = self.before[seed]?;
        let done = chain.apply(self.seeds[seed]);
        if !done.changed {
            return None;
        }
        let Some(after) = (self.score)(seed, &done.text) else {
            self.unscored += 1;
            return None;
        };
        (done.violates || after.violates).then_some(after.reward - before)
    }
}

/// A step with a drawn operator, setting and seed.
fn draw_step(draws: &mut Draws) -> Step {
    let edits = Operator::ALL[draws.below(Operator::ALL.len())].edits();
    let edit = edits[draws.below(edits.len())];
    let seed = u32::try_from(draws.below(1 << 32)).unwrap_or(u32::MAX);
    Step { edit, seed }
}

fn draw_chain(draws: &mut Draws) -> Chain {
    let chain = Chain::one(draw_step(draws));
    if !draws.coin() {
        return chain;
    }
    let step = draw_step(draws);
    chain.extended(step).unwrap_or(chain)
}

/// Searches; `None` without seeds, or when `tries` is not within [`TRIES`]. `score` is as in
/// [`battery::run`](crate::battery::run), under the patched rubric.
pub fn run<S: FnMut(usize, &str) -> Option<CalibratedReward>>(
    seeds: &[&str],
    tries: u32,
    seed: [u8; 32],
    mut score: S,
) -> Option<SearchResult> {
    if seeds.is_empty() || !TRIES.contains(&tries) {
        return None;
    }
    let before: Vec<_> = seeds
        .iter()
        .enumerate()
        .map(|(at, text)| score(at, text).map(|scored| scored.reward))
        .collect();
    let unscored = before.iter().filter(|reward| reward.is_none()).count();
    let mut search = Search {
        seeds,
        before,
        score,
        unscored,
    };
    let mut draws = Draws::of(seed, 0);
    let mut best: Vec<Option<(Chain, f64)>> = vec![None; seeds.len()];
    for _ in 0..tries {
        let at = draws.below(seeds.len());
        let extends = draws.coin();
        let longer = match &best[at] {
            Some((chain, _)) if extends && chain.steps().len() < super::DEPTH_MAX => {
                let step = draw_step(&mut draws);
                chain.extended(step)
            }
            _ => None,
        };
        let chain = longer.unwrap_or_else(|| draw_chain(&mut draws));
        let Some(uplift) = search.uplift(at, &chain) else {
            continue;
        };
        if best[at].as_ref().is_none_or(|(_, old)| uplift > *old) {
            best[at] = Some((chain, uplift));
        }
    }
    let best: Vec<_> = (0..)
        .zip(best)
        .filter_map(|(seed, best)| {
            best.map(|(chain, uplift)| Best {
                seed,
                chain,
                uplift,
            })
        })
        .collect();
    let chains = over_all(&mut search, &best);
    Some(SearchResult {
        best,
        chains,
        unscored: search.unscored,
        tries,
    })
}

/// Applies the best distinct chains to all seeds.
fn over_all<S: FnMut(usize, &str) -> Option<CalibratedReward>>(
    search: &mut Search<'_, S>,
    best: &[Best],
) -> Vec<Mean> {
    let mut ranked: Vec<&Best> = best.iter().collect();
    ranked.sort_by(|a, b| b.uplift.total_cmp(&a.uplift));
    let mut seen = BTreeSet::new();
    ranked.retain(|best| seen.insert(&best.chain));
    ranked.truncate(CHAINS_MAX);
    let mean = |best: &Best| {
        let uplifts: Vec<f64> = (0..search.seeds.len())
            .filter_map(|seed| search.uplift(seed, &best.chain))
            .collect();
        Mean {
            chain: best.chain.clone(),
            seeds: uplifts.len(),
            mean: clover_num::math::mean(&uplifts),
        }
    };
    ranked.into_iter().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pays for citations, but not more than twice.
    #[expect(clippy::unnecessary_wraps, reason = "scores may be missing")]
    fn naive(_: usize, text: &str) -> Option<CalibratedReward> {
        let cited = text.matches("https://").count().min(2);
        Some(CalibratedReward {
            reward: 0.2 + 0.15 * cited as f64,
            violates: false,
        })
    }

    fn seeds() -> Vec<String> {
        (0..60)
            .map(|at| format!("Answer {at} is that the dose may be {at} mg."))
            .collect()
    }

    #[test]
    fn the_search_finds_what_a_judge_pays_for_and_repeats() {
        let seeds = seeds();
        let seeds: Vec<_> = seeds.iter().map(String::as_str).collect();
        let seed = seed("it-1", &Digest::sha256(b"patch"));
        let found = run(&seeds, 150, seed, naive).unwrap();
        assert_eq!(found, run(&seeds, 150, seed, naive).unwrap());
        let worst = found.worst().unwrap();
        assert!((worst.mean - 0.30).abs() < 1e-12, "{worst:?}");
        assert_eq!(worst.seeds, 60);
        assert!(found.chains.len() <= CHAINS_MAX && !found.chains.is_empty());
        assert!(
            found
                .best
                .iter()
                .all(|best| best.chain.steps().len() <= crate::DEPTH_MAX)
        );
        let other = run(
            &seeds,
            150,
            super::seed("it-2", &Digest::sha256(b"patch")),
            naive,
        )
        .unwrap();
        assert_ne!(found.best, other.best);
    }

    #[test]
    fn what_lies_outside_of_the_violating_set_does_not_count() {
        // Style stripping alone is paid for, and violates nothing.
        let paid = |_: usize, text: &str| {
            let plain = !text.contains('*');
            Some(CalibratedReward {
                reward: if plain { 0.9 } else { 0.1 },
                violates: false,
            })
        };
        let seeds = ["**The** dose is 5."; 8];
        let found = run(&seeds, 200, [3; 32], paid).unwrap();
        for best in &found.best {
            let alone = best
                .chain
                .steps()
                .iter()
                .all(|step| step.edit.operator() == Operator::StyleStrip);
            assert!(!alone, "{}", best.chain);
        }
    }

    #[test]
    fn plans_out_of_range_and_missing_scores_are_named() {
        assert!(run(&[], 150, [0; 32], naive).is_none());
        assert!(
            run(&["a"], 99, [0; 32], naive).is_none() && run(&["a"], 201, [0; 32], naive).is_none()
        );
        let found = run(&["a b."; 3], 100, [0; 32], |_, _| None).unwrap();
        assert!(found.unscored == 3 && found.worst().is_none());
    }
}
