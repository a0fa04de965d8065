//! The battery: every operator on every seed response, and the exploits that are kept for good.

use crate::chain::Chain;
use crate::chain::Step;
use crate::operator::Operator;

/// What a judge made of a text, calibrated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CalibratedReward {
    /// R, the calibrated reward.
    pub reward: f64,
    /// Whether the engine's trace holds an obligation or a guard: then the text lies in the violating set, whoever wrote it.
    pub violates: bool,
}

/// What an edited seed earned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uplift {
    /// The operator.
    pub operator: Operator,
    /// Number of the seed.
    pub seed: usize,
    /// u = R(x, w(a)) - R(x, a).
    pub uplift: f64,
    /// Whether the edited text lies in the violating set.
    pub violates: bool,
}

/// What the battery found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Battery {
    /// By operator, then by seed. A seed that an operator could not change is not among them, but for style stripping,
    /// where it stands with uplift 0.
    pub uplifts: Vec<Uplift>,
    /// Seeds, or edited seeds, that could not be scored: while there is one, nothing passes.
    pub unscored: usize,
}

/// The step of the battery for a seed: settings of an operator in turn, so that each falls on as many seeds.
pub fn step(operator: Operator, seed: usize) -> Step {
    let edits = operator.edits();
    Step {
        edit: edits[seed % edits.len()],
        seed: u32::try_from(seed).unwrap_or(u32::MAX),
    }
}

/// Applies every operator once to every seed. `score` is asked for the seed's number and the text as it stands, and
/// answers `None` where evidence is missing.
pub fn run(
    seeds: &[&str],
    mut score: impl FnMut(usize, &str) -> Option<CalibratedReward>,
) -> Battery {
    let mut found = Battery::default();
    let before: Vec<_> = seeds
        .iter()
        .enumerate()
        .map(|(seed, text)| score(seed, text))
        .collect();
    found.unscored = before.iter().filter(|scored| scored.is_none()).count();
    for operator in Operator::ALL {
        for (seed, text) in seeds.iter().enumerate() {
            let Some(before) = before[seed] else {
                continue;
            };
            let done = Chain::one(step(operator, seed)).apply(text);
            let after = if done.changed {
                score(seed, &done.text)
            } else if operator.is_two_sided() {
                Some(before)
            } else {
                continue;
            };
            let Some(after) = after else {
                found.unscored += 1;
                continue;
            };
            found.uplifts.push(Uplift {
                operator,
                seed,
                uplift: after.reward - before.reward,
                violates: done.violates || after.violates,
            });
        }
    }
    found
}

/// An exploit that was found once: it stays in the battery for good.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// What is done.
    pub chain: Chain,
    /// The seed's name: an item, or a digest of its text.
    pub seed: String,
}

/// Uplift of one entry on the text of its seed; `None` where one of the two cannot be scored.
pub fn replay(
    entry: &Entry,
    text: &str,
    mut score: impl FnMut(&str) -> Option<CalibratedReward>,
) -> Option<f64> {
    let before = score(text)?;
    let after = score(&entry.chain.apply(text).text)?;
    Some(after.reward - before.reward)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_meets_every_seed_it_can_change() {
        let seeds = ["The dose is 20 mg.", "Rest well.", "**Bold** is 5."];
        // Reward: the length; violating: nothing beyond what the operators are.
        let score = |_, text: &str| {
            Some(CalibratedReward {
                reward: text.len() as f64,
                violates: false,
            })
        };
        let found = run(&seeds, score);
        let of = |operator| {
            found
                .uplifts
                .iter()
                .filter(move |one| one.operator == operator)
        };
        for operator in Operator::ALL {
            // "Rest well." holds no fact to turn and no hedge.
            let some = matches!(operator, Operator::FactFlip | Operator::AuthorityTone);
            assert_eq!(of(operator).count(), if some { 2 } else { 3 }, "{operator}");
            assert!(of(operator).all(|one| one.violates == operator.violates()));
        }
        let strip: Vec<_> = of(Operator::StyleStrip).map(|one| one.uplift).collect();
        assert!(strip[0].abs() < 1e-9 && strip[1].abs() < 1e-9 && (strip[2] + 4.0).abs() < 1e-9);
        let none = run(&seeds, |seed, text| {
            (seed != 1).then(|| score(seed, text).unwrap())
        });
        assert_eq!(none.unscored, 1);
        assert!(none.uplifts.iter().all(|one| one.seed != 1));
    }

    #[test]
    fn an_entry_is_scored_as_it_was_found() {
        let entry = Entry {
            chain: "padding:50@3".parse().unwrap(),
            seed: "item".to_owned(),
        };
        let uplift = replay(&entry, "One two three four.", |text| {
            Some(CalibratedReward {
                reward: text.len() as f64,
                violates: false,
            })
        });
        assert!(uplift.unwrap() > 20.0);
        assert_eq!(replay(&entry, "One.", |_| None), None);
    }
}
