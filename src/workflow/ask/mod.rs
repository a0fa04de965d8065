//! What is asked of a model behind HTTP, and every decision about sending it: pure, without a clock and without a socket.
//!
//! A [`ModelAsk`] is a canonical document, and its digest is its key: asked once, answered once. [`dispatch`]
//! says when it is sent, sent again or given up; [`probe`] asks an endpoint what it can do. A [`Desk`] sends; it belongs to the floor above.

pub mod breaker;
pub mod called;
pub mod cassette;
pub mod dispatch;
pub mod fence;
pub mod judged;
pub mod limit;
pub mod plan_file;
pub mod prices;
pub mod probe;
pub mod reading;
pub mod retry;
pub mod sending;

use std::borrow::Cow;

use clover_event::id::EndpointId;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::seal;
use serde::Deserialize;
use serde::Serialize;

use crate::ask::reading::ReplyReading;

/// Microseconds: a time since some start, or a span.
pub type Micros = u64;
/// One second.
pub const SECOND: Micros = 1_000_000;
/// Version of the form of an ask.
pub const ASK_VERSION: &str = "ask/1";
/// Longest request that is sent.
pub const REQUEST_BYTES_MAX: usize = 8 << 20;
/// Longest answer that is read.
pub const RESPONSE_BYTES_MAX: usize = 4 << 20;

/// Alternatives of a token that a probe asks for.
const ALTERNATIVES_TRIED: u64 = 5;
/// The most alternatives of a token that dialects give.
const ALTERNATIVES_MOST: u64 = 20;

/// How a model is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskDecoding {
    /// Most tokens of output.
    pub max_output_tokens: u64,
    /// The seed; none where the model draws its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Temperature in millionths; none for the model's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_micro: Option<u64>,
}

/// The form that an answer has to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AnswerFormat {
    /// Candidates of an optimizer, in JSON.
    Candidates {
        /// Version of the form.
        form: Cow<'static, str>,
    },
    /// One of these words, as the member `choice` of a JSON object.
    Choice {
        /// The words.
        choices: Vec<String>,
    },
    /// A score on levels, in JSON.
    Json {
        /// Version of the form.
        form: Cow<'static, str>,
        /// The levels, lowest first.
        levels: Vec<i64>,
        /// Whether reasoning stands before the score.
        reasoning: Cow<'static, str>,
        /// Whether the tokens come with the log-probabilities of their alternatives.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        weighed: bool,
    },
    /// Any text, with log-probabilities of its tokens.
    Logprobs,
    /// Any text.
    Text,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// Instructions.
    System,
    /// What is asked.
    User,
}

/// What one of them says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Who speaks.
    pub role: Speaker,
    /// What is said.
    pub text: String,
}

/// One ask of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelAsk {
    /// How it is decoded.
    pub decoding: AskDecoding,
    /// Where it is asked.
    pub endpoint: EndpointId,
    /// The form of the answer.
    pub format: AnswerFormat,
    /// What is said.
    pub messages: Vec<Message>,
    /// The model that is requested.
    pub model: String,
    /// The model that has to answer; none for a probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// Which repeat of the same ask, from 0.
    pub repeat: u64,
    /// The series.
    pub series: String,
    v: AskVersion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum AskVersion {
    #[serde(rename = "ask/1")]
    First,
}

impl AnswerFormat {
    /// Alternatives of each token that are asked for; 0 where none are. A level may come in several tokens, with white space.
    pub fn alternatives(&self) -> u64 {
        match self {
            Self::Json { weighed: true, .. } => ALTERNATIVES_MOST,
            Self::Logprobs => ALTERNATIVES_TRIED,
            _ => 0,
        }
    }
}

impl ModelAsk {
    /// The first ask of a series to a model.
    pub fn new(
        (endpoint, model): (EndpointId, String),
        (messages, format): (Vec<Message>, AnswerFormat),
        decoding: AskDecoding,
        series: String,
    ) -> Self {
        Self {
            decoding,
            endpoint,
            format,
            messages,
            model,
            pin: None,
            repeat: 0,
            series,
            v: AskVersion::First,
        }
    }

    /// Its canonical bytes.
    ///
    /// # Panics
    /// Never: an ask holds texts and small integers.
    pub fn to_bytes(&self) -> Vec<u8> {
        canon::to_bytes(self).expect("BUG: an ask holds texts and small integers")
    }

    /// Its key where it holds no private text: SHA-256 of its bytes.
    pub fn plain_key(&self) -> Digest {
        Digest::sha256(&self.to_bytes())
    }

    /// Its key where it holds private text, which nobody without the pepper can guess.
    ///
    /// # Panics
    /// Never: canonical JSON is UTF-8.
    pub fn keyed(&self, pepper: &[u8; 32]) -> Digest {
        let bytes = self.to_bytes();
        let text = std::str::from_utf8(&bytes).expect("BUG: canonical JSON is UTF-8");
        seal::peppered_identifier(pepper, &format!("ask\n{text}"))
    }

    /// The seed of a plan that derives it: the first 4 bytes of SHA-256 of the ask without a seed, big-endian, the top bit
    /// cleared.
    pub fn derived_seed(&self) -> u64 {
        let mut bare = self.clone();
        bare.decoding.seed = None;
        let digest = bare.plain_key();
        let [a, b, c, d, ..] = *digest.as_bytes();
        u64::from(u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff)
    }
}

/// A request that is ready to be sent, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Its place in the run, from 0.
    pub place: u64,
    /// What is added to the endpoint's URL.
    pub path: String,
    /// The body.
    pub body: Vec<u8>,
}

/// What an attempt to send came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeskAnswer {
    /// Its place in the run.
    pub place: u64,
    /// How long it took.
    pub took: Micros,
    /// What came back.
    pub reply: Reply,
}

/// What came back of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// An answer of HTTP, whole.
    Http {
        /// Its status.
        status: u16,
        /// Headers that decisions read, in lower case, as text.
        headers: Vec<(String, String)>,
        /// Its body.
        body: Vec<u8>,
    },
    /// None, or none that is whole.
    Broken {
        /// Why.
        cause: BrokenCause,
        /// The status, where one came.
        status: Option<u16>,
    },
}

/// Why there is no whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenCause {
    /// The connection was lost after the request was sent.
    Cut,
    /// No answer within the time.
    Late,
    /// It is longer than is read.
    Oversize,
    /// No connection came about: nothing was sent.
    Unreachable,
    /// The certificate is not trusted: nothing was sent.
    Untrusted,
}

/// A desk that takes no request now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullDesk(pub Ready);

/// Sends requests, each once: it never sends one again, follows no redirect, and keeps nothing.
pub trait Desk {
    /// Takes a request.
    ///
    /// # Errors
    /// [`FullDesk`] with the request, when too many are open.
    fn offer(&mut self, ready: Ready) -> Result<(), FullDesk>;

    /// What an attempt came to, waited for as long as `wait`; `None` where none ended.
    fn next(&mut self, wait: Micros) -> Option<DeskAnswer>;

    /// Takes nothing more, and gives what is open this long to end.
    fn stop(&mut self, grace: Micros);

    /// The time since it was opened, which never goes back.
    fn now(&self) -> Micros;

    /// What a provider says, made fit to be shown: without secrets, without controls, short.
    fn masked(&self, text: &str) -> String;

    /// Whether bytes hold a secret that it sends.
    fn holds_secret(&self, bytes: &[u8]) -> bool;
}

/// How asks are written for an endpoint, and how its answers are read.
pub trait WireForm {
    /// Whether it gives log-probabilities of tokens.
    fn has_logprobs(&self) -> bool;

    /// Whether it takes a seed. Where it does not, no ask that has one is sent.
    fn has_seed(&self) -> bool;

    /// The request of an ask.
    fn request(&self, ask: &ModelAsk) -> (String, Vec<u8>);

    /// What an answer with status 200 says; `None` where it is no JSON of this form.
    fn read(&self, body: &[u8]) -> Option<ReplyReading>;

    /// What an answer with another status says: the code and the message, without secrets.
    fn complaint(&self, body: &[u8]) -> String;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask() -> ModelAsk {
        let say = |role, text: &str| Message {
            role,
            text: text.to_owned(),
        };
        let format = AnswerFormat::Json {
            form: "answer/1".into(),
            levels: vec![1, 2, 3, 4, 5],
            reasoning: "before".into(),
            weighed: false,
        };
        let decoding = AskDecoding {
            max_output_tokens: 600,
            seed: Some(7),
            temperature_micro: Some(0),
        };
        let to = (EndpointId::new("openai-main").unwrap(), "m-1".to_owned());
        let said = vec![say(Speaker::System, "Judge."), say(Speaker::User, "Hi")];
        let mut ask = ModelAsk::new(to, (said, format), decoding, "score".to_owned());
        ask.pin = Some("m-1-2026-01-15".to_owned());
        ask
    }

    /// source: the specification of `ask/1`, its vector.
    #[test]
    fn an_ask_has_the_bytes_and_the_keys_of_its_vector() {
        let first = ask();
        assert_eq!(first.to_bytes().len(), 331);
        assert_eq!(
            first.plain_key().to_hex(),
            "7f5786eafc02f8b7f89503d8132634ed9b8396be5238369b20fbebe73c350327"
        );
        assert_eq!(
            first.keyed(&[7; 32]).to_hex(),
            "da313970a28b4fbca3dce146e1ddb52b33d170a6eb9476b66d9ff5996b7bd0a6"
        );
        let again = ModelAsk { repeat: 1, ..ask() };
        assert_eq!(
            again.plain_key().to_hex(),
            "84c5e2616efb9c880538b2cb704968bcec8d232f257da6572ec2f15cb5eed074"
        );
        assert_eq!(first.derived_seed(), 1_029_859_570);
    }
}
