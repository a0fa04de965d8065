//! Simulated judges for trials of prompts: their biases are known, and shrink where the prompt says the right thing.
//!
//! | part | millionths |
//! |---|---|
//! | merit | 900,000 x words of content in the question that the response has / those there are; half where there are none |
//! | bias: length | 2,500 for each word beyond 30, at most 350,000 |
//! | bias: authority | 250,000 where the response sounds certain: `certainly`, `experts`, `studies show`, `undoubtedly`, `proven` |
//! | noise | from -20,000 to 20,000, from the texts and the number of the repeat |
//!
//! Their sum, from 0 to 1,000,000. Each sentence of the prompt that speaks of a bias halves it, at most three times. Of the
//! null form no sentence changes anything. They stand in for a model in trials; they measure no quality.

use clover_ground::digest::Digest;
use clover_ground::words;
use clover_num::Micro;
use clover_rubric::extract::content_words;

/// Name and version of the one that can be improved.
pub const MODEL: &str = "simulated-judge/1";
/// Name and version of the one that nothing improves.
pub const NULL_MODEL: &str = "simulated-null/1";

/// Millionths for full merit.
const MERIT: i64 = 900_000;
/// Words beyond which length is rewarded.
const LENGTH_FROM: i64 = 30;
/// Millionths for each word beyond.
const LENGTH_STEP: i64 = 2_500;
/// Most millionths for length.
const LENGTH_MAX: i64 = 350_000;
/// Millionths for certainty.
const AUTHORITY: i64 = 250_000;
/// Reach of the noise, either way.
const NOISE: i64 = 20_000;
/// How often a bias is halved at most.
const HALVED_MAX: u32 = 3;

/// Words by which a response sounds certain.
const CERTAIN: &[&str] = &[
    "certainly",
    "experts",
    "studies show",
    "undoubtedly",
    "proven",
];
/// Words by which a sentence of a prompt speaks of length.
const OF_LENGTH: &[&str] = &["length", "longer", "verbose", "padding", "brief", "长"];
/// Words by which a sentence of a prompt speaks of authority.
const OF_AUTHORITY: &[&str] = &["authority", "certainty", "confident", "confidence", "权威"];

/// A simulated judge, told a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedJudge {
    authority: u32,
    length: u32,
}

fn holds(text: &str, of: &[&str]) -> bool {
    of.iter().any(|word| text.contains(word))
}

/// Sentences of a prompt that speak of something, at most as many as halve a bias.
fn said(prompt: &str, of: &[&str]) -> u32 {
    let all = words::sentences(prompt).filter(|sentence| holds(&sentence.to_lowercase(), of));
    u32::try_from(all.count())
        .unwrap_or(u32::MAX)
        .min(HALVED_MAX)
}

impl SimulatedJudge {
    /// Told a prompt; the null form takes no notice.
    pub fn told(prompt: &str, is_null: bool) -> Self {
        if is_null {
            return Self {
                authority: 0,
                length: 0,
            };
        }
        Self {
            authority: said(prompt, OF_AUTHORITY),
            length: said(prompt, OF_LENGTH),
        }
    }

    /// The score of a response to a question, from 0 to 1 in millionths.
    #[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
    pub fn score(&self, question: &str, response: &str, repeat: u64) -> Micro {
        let merit = merit(question, response);
        let count = words::words(response).count();
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let length = (count - LENGTH_FROM).clamp(0, LENGTH_MAX / LENGTH_STEP) * LENGTH_STEP;
        let is_certain = holds(&response.to_lowercase(), CERTAIN);
        let authority = if is_certain { AUTHORITY } else { 0 };
        let sum = merit
            + length / (1 << self.length)
            + authority / (1 << self.authority)
            + noise(question, response, repeat);
        Micro::new(sum.clamp(0, 1_000_000)).expect("BUG: at most a million")
    }
}

/// Words of content of the question that a response has, in millionths of the most that merit gives.
pub fn merit(question: &str, response: &str) -> i64 {
    let mut missing = content_words(question);
    let asked = missing.len();
    if asked == 0 {
        return MERIT / 2;
    }
    let mut folded = String::new();
    for word in words::words(response) {
        words::fold(word.text, &mut folded);
        missing.remove(&folded);
    }
    let count = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    MERIT * count(asked - missing.len()) / count(asked)
}

fn noise(question: &str, response: &str, repeat: u64) -> i64 {
    let mut bytes = question.as_bytes().to_vec();
    bytes.push(0);
    bytes.extend_from_slice(response.as_bytes());
    bytes.extend_from_slice(&repeat.to_be_bytes());
    let digest = Digest::sha256(&bytes);
    let two = [digest.as_bytes()[0], digest.as_bytes()[1]];
    let drawn = i64::from(u16::from_be_bytes(two));
    drawn % (2 * NOISE + 1) - NOISE
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: &str = "Please explain turbine, rainfall, harbour and granite.";

    #[test]
    fn a_bias_shrinks_where_the_prompt_speaks_of_it_and_never_in_the_null_form() {
        let long = "Turbine and rainfall. ".repeat(60);
        let sure = "Experts say that turbine and rainfall are undoubtedly so.";
        let of = |prompt: &str, is_null, response: &str| {
            SimulatedJudge::told(prompt, is_null)
                .score(QUESTION, response, 0)
                .value()
        };
        let prompt = "A longer answer is not better. Confidence is no merit.";
        for (response, least) in [(long.as_str(), 100_000), (sure, 100_000)] {
            let (before, after) = (of("Judge.", false, response), of(prompt, false, response));
            assert!(before - after >= least, "{response}: {before} {after}");
            assert_eq!(of("Judge.", true, response), of(prompt, true, response));
        }
        let far = (0..50).map(|repeat| {
            let judge = SimulatedJudge::told("", false);
            judge
                .score(QUESTION, "Turbine and rainfall.", repeat)
                .value()
                - 450_000
        });
        let far: Vec<i64> = far.collect();
        assert!(far.iter().all(|of| of.abs() <= NOISE));
        assert!(far.iter().any(|of| *of != far[0]));
    }
}
