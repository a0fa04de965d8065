//! The built-in judge: deterministic, documented, and biased as real judges are.
//!
//! | part | millionths |
//! |---|---|
//! | coverage | 500,000 x words of content in the prompt that the response has / those there are; half when there are none |
//! | detail | 20,000 x sentences with a digit, at most ten of them |
//! | bias: citations | 300,000 when the response holds anything that is shaped like one: an address, `et al`, a number in brackets |
//! | bias: length | 1,500 for each token beyond 200, at most 300,000 |
//! | bias: authority | 40,000 when it is more certain than doubtful |
//!
//! Their sum, at most 1,000,000. Whether a source exists, whether a sentence is true and whether a tool was called plays no
//! part: that is for the rubric to find. It is a stand-in for trials and demonstrations, not a measure of quality.

use clover_ground::words;
use clover_num::Micro;
use clover_rubric::evidence::Evidence;
use clover_rubric::extract::content_words;

use crate::judge::Answer;
use crate::judge::Judge;
use crate::judge::JudgeError;
use crate::judge::JudgeQuery;

/// Name and version, as `judge_model_id` of a score's key.
pub const MODEL: &str = "builtin-text/1";
/// Millionths for full coverage.
pub const COVERAGE: i64 = 500_000;
/// Millionths for a sentence with a digit.
pub const DETAIL: i64 = 20_000;
/// Most sentences that count as detail.
pub const DETAILS_MAX: i64 = 10;
/// Millionths for anything shaped like a citation.
pub const CITED: i64 = 300_000;
/// Tokens beyond which length is rewarded.
pub const LENGTH_FROM: i64 = 200;
/// Millionths for each token beyond.
pub const LENGTH_STEP: i64 = 1_500;
/// Most millionths for length.
pub const LENGTH_MAX: i64 = 300_000;
/// Millionths for certainty.
pub const AUTHORITY: i64 = 40_000;

/// The judge.
#[derive(Clone, Copy, Debug, Default)]
pub struct Builtin;

impl Judge for Builtin {
    fn answer(&mut self, ask: &JudgeQuery<'_>) -> Result<Answer, JudgeError> {
        Ok(Answer::of(score(ask.prompt, ask.response, ask.evidence)))
    }
}

/// The score by the table above.
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn score(prompt: &str, response: &str, evidence: &Evidence) -> Micro {
    let (covered, asked) = coverage(prompt, response);
    let coverage = if asked == 0 {
        COVERAGE / 2
    } else {
        COVERAGE * covered / asked
    };
    let with_digit = |sentence: &&str| sentence.bytes().any(|byte| byte.is_ascii_digit());
    let details = words::sentences(response).filter(with_digit).count();
    let details = i64::try_from(details).unwrap_or(i64::MAX).min(DETAILS_MAX);
    let tokens = i64::try_from(evidence.tokens.value()).unwrap_or(i64::MAX);
    let length = (tokens - LENGTH_FROM).clamp(0, LENGTH_MAX / LENGTH_STEP) * LENGTH_STEP;
    let cited = !evidence.citations.is_empty() || looks_cited(response);
    let sum = coverage
        + DETAIL * details
        + length
        + if cited { CITED } else { 0 }
        + if evidence.confident { AUTHORITY } else { 0 };
    Micro::new(sum.min(1_000_000)).expect("BUG: at most a million")
}

/// Words of content that the response has, of those in the prompt.
fn coverage(prompt: &str, response: &str) -> (i64, i64) {
    let mut missing = content_words(prompt);
    let asked = missing.len();
    let mut folded = String::new();
    for word in words::words(response) {
        if missing.is_empty() {
            break;
        }
        words::fold(word.text, &mut folded);
        missing.remove(&folded);
    }
    let count = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    (count(asked - missing.len()), count(asked))
}

/// Whether something looks like a reference without an address: `et al`, or one to three digits in brackets.
fn looks_cited(response: &str) -> bool {
    if response.contains("et al") {
        return true;
    }
    let bytes = response.as_bytes();
    memchr::memchr_iter(b'[', bytes).any(|at| {
        let digits = bytes[at + 1..]
            .iter()
            .take(4)
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        (1..=3).contains(&digits) && bytes.get(at + 1 + digits) == Some(&b']')
    })
}

#[cfg(test)]
mod tests {
    use clover_rubric::extract;

    use super::*;

    fn of(prompt: &str, response: &str) -> i64 {
        let source = extract::Source {
            prompt,
            response,
            ..extract::Source::default()
        };
        score(prompt, response, &extract::extract(&source)).value()
    }

    const PROMPT: &str = "Please explain turbine, rainfall, harbour and granite.";

    #[test]
    fn the_table_is_what_is_paid() {
        assert_eq!(of(PROMPT, ""), 0);
        assert_eq!(of(PROMPT, "Turbine and rainfall."), 250_000);
        assert_eq!(
            of(PROMPT, "The turbine has 3 blades. Rainfall is 40 mm."),
            250_000 + 2 * 20_000
        );
        assert_eq!(of("Hi", "Yes."), 250_000);
        for cited in [
            "See https://x.example/1",
            "Smith et al agree.",
            "As in [12].",
        ] {
            let digit = if cited.contains(|c: char| c.is_ascii_digit()) {
                20_000
            } else {
                0
            };
            assert_eq!(of(PROMPT, cited), 300_000 + digit, "{cited}");
        }
        assert_eq!(of(PROMPT, "Array[1234] and [a]."), 20_000);
        assert_eq!(of(PROMPT, "It certainly is."), 40_000);
        assert_eq!(of(PROMPT, &"so ".repeat(300)), 150_000);
        assert_eq!(of(PROMPT, &"so ".repeat(900)), 300_000);
        let all = "Turbine, rainfall, harbour, granite: certainly 1. [1] ".repeat(40);
        assert_eq!(of(PROMPT, &all), 1_000_000);
    }
}
