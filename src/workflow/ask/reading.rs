//! What an answer says, whatever its dialect, and what the ask came to by it.

use clover_event::calls::CallOutcome;
use clover_event::calls::TokenCounts;
use clover_event::payload::model_calls::ANSWER_MAX;
use serde::Deserialize;

use crate::ask::AnswerFormat;

/// What an answer is called that is too long to be read.
pub const OVERSIZE: &str = "oversize";
/// Longest answer that is read in a closed form.
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// It was done.
    Done,
    /// It failed, or is not done yet: the same can be asked again.
    Failed,
    /// A filter of the provider stopped it.
    Filter,
    /// The limit of tokens.
    Limit,
    /// Something else.
    Other,
    /// It declined.
    Refusal,
}

/// A token with its log-probability, in millionths of a nat: not above zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenMass {
    /// The token.
    pub token: String,
    /// Its log-probability; none where that is no finite number.
    pub logprob_micro: Option<i64>,
}

/// A token of an answer, and what was weighed in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyToken {
    /// Its bytes: a token may end within a character.
    pub bytes: Vec<u8>,
    /// The alternatives, itself among them.
    pub masses: Vec<TokenMass>,
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyReading {
    /// The model that answered, as it says.
    pub model: Option<String>,
    /// Fingerprint of the system.
    pub fingerprint: Option<String>,
    /// Why it stopped, in the provider's word.
    pub finish: Option<String>,
    /// Why it stopped.
    pub stop: StopCause,
    /// The text.
    pub text: String,
    /// Tokens, where it says them.
    pub tokens: Option<TokenCounts>,
    /// Whether their sums fit.
    pub tokens_fit: bool,
    /// Whether it says what came from a cache.
    pub says_cache: bool,
    /// Its tokens, where it gives them with their alternatives.
    pub tokens_said: Vec<ReplyToken>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    choice: String,
}

/// What an ask came to by an answer, and what is wrong with the answer.
pub fn outcome_of(
    reading: &ReplyReading,
    format: &AnswerFormat,
) -> (CallOutcome, Option<&'static str>) {
    match reading.stop {
        StopCause::Filter => return (CallOutcome::Filtered, None),
        StopCause::Refusal => return (CallOutcome::Refused, None),
        StopCause::Limit => return (CallOutcome::Truncated, None),
        StopCause::Done | StopCause::Failed | StopCause::Other => {}
    }
    let unparsed = |detail| (CallOutcome::Unparsed, Some(detail));
    if reading.text.is_empty() {
        return unparsed("empty");
    }
    let most = match format {
        AnswerFormat::Candidates { .. } => ANSWER_MAX,
        _ => ANSWER_BYTES_MAX,
    };
    if reading.text.len() > most {
        return unparsed(OVERSIZE);
    }
    match format {
        AnswerFormat::Choice { choices } => match serde_json::from_str::<Choice>(&reading.text) {
            Ok(of) if choices.contains(&of.choice) => (CallOutcome::Answered, None),
            Ok(_) => unparsed("level"),
            Err(_) => unparsed("shape"),
        },
        // What candidates are is read by the checks of patches, and what scores are by the plan of the judge.
        AnswerFormat::Candidates { .. }
        | AnswerFormat::Json { .. }
        | AnswerFormat::Logprobs
        | AnswerFormat::Text => (CallOutcome::Answered, None),
    }
}

/// The choice of an answer, where it has the form.
pub fn choice_of(reading: &ReplyReading) -> Option<String> {
    let choice: Choice = serde_json::from_str(&reading.text).ok()?;
    Some(choice.choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, stop: StopCause) -> ReplyReading {
        ReplyReading {
            model: None,
            fingerprint: None,
            finish: None,
            stop,
            text: text.to_owned(),
            tokens: None,
            tokens_fit: true,
            says_cache: false,
            tokens_said: Vec::new(),
        }
    }

    #[test]
    fn an_answer_is_read_in_its_closed_form_or_not_at_all() {
        let choices = vec!["blue".to_owned(), "green".to_owned()];
        let format = AnswerFormat::Choice { choices };
        let of = |text| outcome_of(&said(text, StopCause::Done), &format);
        assert_eq!(of(r#"{"choice":"blue"}"#), (CallOutcome::Answered, None));
        let unparsed = |detail| (CallOutcome::Unparsed, Some(detail));
        assert_eq!(of(r#"{"choice":"red"}"#), unparsed("level"));
        assert_eq!(of(r#"{"choice":"blue","why":"-"}"#), unparsed("shape"));
        assert_eq!(of("I choose blue."), unparsed("shape"));
        assert_eq!(of(""), unparsed("empty"));
        assert_eq!(of(&"a".repeat(20_000)), unparsed("oversize"));
    }

    #[test]
    fn a_stop_before_the_end_is_no_answer() {
        for (stop, outcome) in [
            (StopCause::Limit, CallOutcome::Truncated),
            (StopCause::Refusal, CallOutcome::Refused),
            (StopCause::Filter, CallOutcome::Filtered),
        ] {
            let format = AnswerFormat::Text;
            assert_eq!(outcome_of(&said("{", stop), &format), (outcome, None));
        }
    }
}
