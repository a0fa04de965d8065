//! Dialects: how asks are written for an endpoint, and how its answers are read. One file and one line in [`wire`] each.
//!
//! Answers are read into structs of our own. Members that are not known are passed over, and foreign words stay text.

mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;

use std::collections::BTreeMap;

use clover_event::calls::TokenCounts;
use clover_event::payload::endpoint::AuthForm;
use clover_event::payload::endpoint::Dialect;
use clover_num::Count;
use clover_num::Micro;
use clover_workflow::ask::AnswerFormat;
use clover_workflow::ask::ModelAsk;
use clover_workflow::ask::Speaker;
use clover_workflow::ask::WireForm;
use clover_workflow::ask::reading::ReplyToken;
use clover_workflow::ask::reading::TokenMass;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::json;
use serde_json::value::RawValue;
use serde_json::value::to_raw_value;

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

/// The members of a request by their names, each as its JSON: what stands inside of one keeps its order.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
struct RequestBody(BTreeMap<&'static str, Box<RawValue>>);

impl RequestBody {
    fn insert(&mut self, name: &'static str, value: impl Serialize) {
        let json = to_raw_value(&value).expect("BUG: texts and numbers are JSON");
        self.0.insert(name, json);
    }

    fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("BUG: texts and numbers are JSON")
    }
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

/// What an answer may hold under a name.
#[derive(Debug, Serialize)]
struct MemberSchema<'a> {
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    levels: Option<&'a [i64]>,
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    choices: Option<&'a [String]>,
    #[serde(rename = "type")]
    kind: &'static str,
}

/// The members of an answer. Servers that hold a model to a schema have it write them in this order, so it is the order that
/// the answer has to have.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum MemberSchemas<'a> {
    Candidates {
        candidates: Value,
    },
    Choice {
        choice: MemberSchema<'a>,
    },
    Score {
        ticket: MemberSchema<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning: Option<MemberSchema<'a>>,
        score: MemberSchema<'a>,
    },
}

/// The JSON Schema of an answer.
#[derive(Debug, Serialize)]
struct AnswerSchema<'a> {
    #[serde(rename = "additionalProperties")]
    open: bool,
    properties: MemberSchemas<'a>,
    required: &'static [&'static str],
    #[serde(rename = "type")]
    kind: &'static str,
}

/// A schema as a dialect names it.
#[derive(Debug, Serialize)]
struct SchemaFormat<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    schema: AnswerSchema<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
}

impl<'a> SchemaFormat<'a> {
    /// A schema that is told to be of a kind, under a name where the dialect wants one.
    fn new(schema: AnswerSchema<'a>, is_named: bool, kind: Option<&'static str>) -> Self {
        Self {
            name: is_named.then_some("answer"),
            schema,
            strict: is_named.then_some(true),
            kind,
        }
    }
}

/// What an optimizer returns: a list of documents with cards and reasons.
fn candidates() -> Value {
    let text = json!({"type": "string"});
    json!({"type": "array", "items": {
        "type": "object",
        "additionalProperties": false,
        "properties": {"cards": {"type": "array", "items": text}, "why": text, "yaml": text},
        "required": ["cards", "why", "yaml"],
    }})
}

/// What a dialect calls a format that is a JSON Schema.
const JSON_SCHEMA: &str = "json_schema";

/// The JSON Schema of an answer; `None` for free text.
fn schema(format: &AnswerFormat) -> Option<AnswerSchema<'_>> {
    let member = |kind, levels, choices| MemberSchema {
        levels,
        choices,
        kind,
    };
    let (required, properties): (&[&str], _) = match format {
        AnswerFormat::Logprobs | AnswerFormat::Text => return None,
        AnswerFormat::Candidates { .. } => (
            &["candidates"],
            MemberSchemas::Candidates {
                candidates: candidates(),
            },
        ),
        AnswerFormat::Choice { choices } => (
            &["choice"],
            MemberSchemas::Choice {
                choice: member("string", None, Some(choices.as_slice())),
            },
        ),
        AnswerFormat::Json {
            levels, reasoning, ..
        } => {
            let has_reasons = reasoning != "none";
            let required: &[&str] = if has_reasons {
                &["ticket", "reasoning", "score"]
            } else {
                &["ticket", "score"]
            };
            let score = MemberSchemas::Score {
                ticket: member("string", None, None),
                reasoning: has_reasons.then(|| member("string", None, None)),
                score: member("integer", Some(levels.as_slice()), None),
            };
            (required, score)
        }
    };
    Some(AnswerSchema {
        open: false,
        properties,
        required,
        kind: "object",
    })
}

/// What an answer says of its tokens; nothing where that has another form than its dialect's.
fn usage<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let said = Option::<Box<RawValue>>::deserialize(deserializer)?;
    Ok(said.and_then(|said| serde_json::from_str(said.get()).ok()))
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
    // No request is without a token, and what was reasoned is a part of the output.
    let fits = input > 0
        && cached <= input
        && reasoning <= output
        && total.is_none_or(|total| total == input.saturating_add(output));
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
    bytes: Option<Vec<u8>>,
    #[serde(default)]
    top_logprobs: Vec<TokenLogprob>,
}

#[derive(Debug, Deserialize)]
struct TokenLogprob {
    token: String,
    logprob: Box<RawValue>,
}

fn token_mass(token: &str, logprob: &RawValue) -> TokenMass {
    TokenMass {
        token: token.to_owned(),
        logprob_micro: logprob_micro(logprob),
    }
}

impl TokenLogprobs {
    fn read(&self) -> ReplyToken {
        let said = token_mass(&self.token, &self.logprob);
        let others = self.top_logprobs.iter();
        let others = others.map(|of| token_mass(&of.token, &of.logprob));
        let bytes = self.bytes.as_deref();
        let bytes = bytes.unwrap_or(self.token.as_bytes()).to_vec();
        reply_token(bytes, said, others.collect())
    }
}

/// A token with its alternatives. Servers list the most probable ones; the one that was drawn need not be among them.
fn reply_token(bytes: Vec<u8>, said: TokenMass, mut masses: Vec<TokenMass>) -> ReplyToken {
    if masses.iter().all(|of| of.token != said.token) {
        masses.push(said);
    }
    ReplyToken { bytes, masses }
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
