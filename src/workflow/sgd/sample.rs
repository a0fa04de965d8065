//! Rows for trials: questions, responses of known merit, and labels that follow it. Length and certainty of a response have
//! nothing to do with its merit, so that a judge which rewards them is wrong in a known way.

use std::fmt::Write as _;

use clover_num::draws::Draws;
use serde::Serialize;

use crate::judge::simulated;

/// Words of content that questions ask about.
const WORDS: &[&str] = &[
    "turbine", "rainfall", "harbour", "granite", "orchard", "glacier", "copper", "meadow",
    "lantern", "canal", "basalt", "willow", "beacon", "quarry", "estuary", "furnace", "pasture",
    "railway", "summit", "tundra",
];
/// Words that add length alone.
const FILLER: &[&str] = &[
    "and so it goes on as before",
    "which is to say the same once more",
    "as was said above in other terms",
    "though there is more to be said of it",
    "and that is how it was and will be",
];
/// What makes a response sound certain.
const CERTAIN: &str = "This is certainly and undoubtedly so.";

/// A row as `clover import cje` reads it.
#[derive(Serialize)]
struct SampleRow {
    judge_score: f64,
    oracle_label: f64,
    target_policy: &'static str,
    prompt: String,
    prompt_id: String,
    response: String,
}

/// So many rows as JSON Lines, drawn by a seed.
///
/// # Panics
/// Never: texts and numbers are JSON.
pub fn rows(count: u64, seed: u64) -> String {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    let mut draws = Draws::of(bytes, 0);
    let mut text = String::new();
    for number in 0..count {
        let mut asked: Vec<&str> = Vec::new();
        while asked.len() < 4 {
            let word = WORDS[draws.below(WORDS.len())];
            if !asked.contains(&word) {
                asked.push(word);
            }
        }
        let [a, b, c, d] = [asked[0], asked[1], asked[2], asked[3]];
        let prompt = format!("Please explain {a}, {b}, {c} and {d}.");
        let covered = draws.below(5);
        let mut response = format!("Note {number}:");
        for word in &asked[..covered] {
            write!(response, " the {word} is told of.").expect("BUG: writing to a string");
        }
        for _ in 0..draws.below(4) * 6 {
            write!(response, " {}", FILLER[draws.below(FILLER.len())])
                .expect("BUG: writing to a string");
        }
        if draws.coin() {
            write!(response, " {CERTAIN}").expect("BUG: writing to a string");
        }
        let merit = simulated::merit(&prompt, &response);
        let noise = i64::try_from(draws.below(80_001)).unwrap_or(0) - 40_000;
        let label = (merit + 50_000 + noise).clamp(0, 1_000_000);
        let row = SampleRow {
            judge_score: 0.5,
            oracle_label: label as f64 / 1e6,
            target_policy: "base",
            prompt,
            prompt_id: format!("p{number:05}"),
            response,
        };
        text.push_str(&serde_json::to_string(&row).expect("BUG: texts and numbers are JSON"));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_rows() {
        assert_eq!(rows(20, 7), rows(20, 7));
        assert_ne!(rows(20, 7), rows(20, 8));
        assert_eq!(rows(20, 7).lines().count(), 20);
    }
}
