//! Dialects: how asks are written for an endpoint, and how its answers are read. One file and one line in [`wire`] each.
//!
//! Answers are read into structs of our own. Members that are not known are passed over, and foreign words stay text.

mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;

use clover_event::calls::TokenCounts;
use clover_event::payload::endpoint::AuthForm;
use clover_event::payload::endpoint::Dialect;
use clover_num::Count;
use clover_num::Micro;
use clover_workflow::ask::AnswerFormat;
use clover_workflow::ask::ModelAsk;
use clover_workflow::ask::Speaker;
use clover_workflow::ask::WireForm;
use clover_workflow::ask::reading::TokenMass;
use serde::Deserialize;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use serde_json::value::RawValue;

/// Alternatives of a token that are asked for.
const ALTERNATIVES: u64 = 5;

/// What a dialect writes and reads.
pub fn wire(dialect: Dialect) -> &'static dyn WireForm {
    match dialect {
        Dialect::Anthropic => &anthropic::Anthropic,
        Dialect::Gemini => &gemini::Gemini,
        Dialect::OpenaiChat => &openai_chat::OpenaiChat,
        Dialect::OpenaiResponses => &openai_responses::OpenaiResponses,
    }
}

/// Headers that a dialect sends with every request.
pub fn headers(dialect: Dialect) -> &'static [(&'static str, &'static str)] {
    match dialect {
        Dialect::Anthropic => &[("anthropic-version", "2023-06-01")],
        Dialect::Gemini | Dialect::OpenaiChat | Dialect::OpenaiResponses => &[],
    }
}

/// In which form a dialect usually takes a key.
pub fn usual_auth(dialect: Dialect) -> AuthForm {
    match dialect {
        Dialect::Anthropic => AuthForm::XApiKey,
        Dialect::Gemini => AuthForm::XGoogApiKey,
        Dialect::OpenaiChat | Dialect::OpenaiResponses => AuthForm::Bearer,
    }
}

/// The bytes of a body, members in order.
fn bytes(body: Map<String, Value>) -> Vec<u8> {
    Value::Object(body).to_string().into_bytes()
}

/// A temperature as a number of JSON.
fn temperature(micro: u64) -> Value {
    if micro.is_multiple_of(1_000_000) {
        json!(micro / 1_000_000)
    } else {
        json!(micro as f64 / 1e6)
    }
}

/// What one speaker says, all of it.
fn said(ask: &ModelAsk, role: Speaker) -> String {
    let of = ask.messages.iter().filter(|message| message.role == role);
    let texts: Vec<_> = of.map(|message| message.text.as_str()).collect();
    texts.join("\n\n")
}

/// The JSON Schema of an answer; `None` for free text.
fn schema(format: &AnswerFormat) -> Option<Value> {
    let (names, members) = match format {
        AnswerFormat::Logprobs | AnswerFormat::Text => return None,
        AnswerFormat::Choice { choices } => (
            vec!["choice"],
            json!({"choice": {"type": "string", "enum": choices}}),
        ),
        AnswerFormat::Json { levels, .. } => (
            vec!["ticket", "reasoning", "score"],
            json!({
                "ticket": {"type": "string"},
                "reasoning": {"type": "string"},
                "score": {"type": "integer", "enum": levels},
            }),
        ),
    };
    Some(json!({
        "type": "object", "properties": members, "required": names, "additionalProperties": false,
    }))
}

fn count(value: u64) -> Count {
    Count::new(value).unwrap_or_else(|| Count::new(clover_num::INTEGER_MAX).unwrap_or_default())
}

/// Tokens where input counts what was read from and written to a cache too, and whether the sums fit.
fn tokens(
    [input, read, written]: [u64; 3],
    [output, reasoning]: [u64; 2],
    total: Option<u64>,
) -> (TokenCounts, bool) {
    let cached = read.saturating_add(written);
    let fits = cached <= input && total.is_none_or(|total| total == input.saturating_add(output));
    let counts = TokenCounts {
        cache_read: count(read),
        cache_write: count(written),
        input: count(input.saturating_sub(cached)),
        output: count(output),
        reasoning: count(reasoning),
    };
    (counts, fits)
}

/// A token as both OpenAI forms give it, with the alternatives that were weighed.
#[derive(Debug, Deserialize)]
struct TokenLogprobs {
    token: String,
    logprob: Box<RawValue>,
    #[serde(default)]
    top_logprobs: Vec<TokenLogprob>,
}

#[derive(Debug, Deserialize)]
struct TokenLogprob {
    token: String,
    logprob: Box<RawValue>,
}

impl TokenLogprobs {
    /// The alternatives of a token; the token itself where none are given.
    fn masses(&self) -> Vec<TokenMass> {
        let mass = |token: &str, logprob: &RawValue| TokenMass {
            token: token.to_owned(),
            logprob_micro: logprob_micro(logprob),
        };
        if self.top_logprobs.is_empty() {
            return vec![mass(&self.token, &self.logprob)];
        }
        let all = self.top_logprobs.iter();
        all.map(|of| mass(&of.token, &of.logprob)).collect()
    }
}

/// A log-probability in millionths of a nat, from its decimal text, half to even; none where it is no number that one can be.
fn logprob_micro(text: &RawValue) -> Option<i64> {
    let (micro, _) = Micro::parse(text.get()).ok()?;
    (micro.value() <= 0).then(|| micro.value())
}

#[derive(Debug, Deserialize)]
struct ComplaintBody {
    error: ComplaintError,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ComplaintError {
    Object(ComplaintObject),
    Text(String),
}

#[derive(Debug, Deserialize)]
struct ComplaintObject {
    #[serde(default)]
    code: Value,
    #[serde(default, rename = "type")]
    kind: Value,
    #[serde(default)]
    status: Value,
    #[serde(default)]
    message: Value,
}

/// What an error of any dialect says: its words and its message.
fn complaint(body: &[u8]) -> String {
    let Ok(of) = serde_json::from_slice::<ComplaintBody>(body) else {
        return String::from_utf8_lossy(&body[..body.len().min(2_000)]).into_owned();
    };
    match of.error {
        ComplaintError::Text(text) => text,
        ComplaintError::Object(of) => {
            let parts = [of.code, of.kind, of.status, of.message];
            let texts = parts.iter().filter_map(Value::as_str);
            texts.collect::<Vec<_>>().join(": ")
        }
    }
}

#[cfg(test)]
mod tests;
