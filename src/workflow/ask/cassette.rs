//! Cassettes: what a model was asked and what it answered, a line of canonical JSON a call, sorted by the keys of asks. A
//! cassette holds private texts, and nobody vouches for it: whatever is not exactly the form is refused, with its line.

use std::io::BufRead;
use std::io::Read as _;

use clover_event::calls::ATTEMPTS_MAX;
use clover_event::calls::CallAttempt;
use clover_ground::base64;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::seal;
use clover_num::Count;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use crate::ask::ModelAsk;
use crate::ask::RESPONSE_BYTES_MAX;

/// Longest line, in bytes: an ask and an answer, each with every character escaped.
pub const LINE_BYTES_MAX: usize = 64 << 20;
/// Longest name that a provider gives a request.
const REQUEST_NAME_BYTES: usize = 300;
/// Deepest member that is looked into where two asks are compared.
const DEPTH_MAX: usize = 16;

/// One call on a cassette.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CassetteCall {
    /// The ask.
    pub ask: ModelAsk,
    /// Every attempt; none of a call that was lost.
    pub attempts: Vec<CallAttempt>,
    /// The body of the answer; none where none was kept.
    pub body: Option<Vec<u8>>,
    /// Which call of the ask, from 0.
    pub nth: Count,
    /// The place of the ask in its run, from 0, where the exporter knew it.
    pub place: Option<Count>,
    /// The provider's name of the request.
    pub provider_request: Option<String>,
    /// The key under which the ledger has the ask; none on a cassette that nobody exported from a ledger.
    pub recorded: Option<Digest>,
    /// The salt of the commitment to the body that the ledger has.
    pub salt: Option<Digest>,
}

/// A line as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CassetteLine {
    ask: ModelAsk,
    attempts: Vec<CallAttempt>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// A body that is no UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    key: Digest,
    nth: Count,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<Count>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider_request: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recorded: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    salt: Option<Digest>,
}

/// Why a cassette is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CassetteError {
    /// A line is none.
    #[error("line {line}: {what}")]
    Line {
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// It cannot be read.
    #[error("{0}")]
    Read(String),
}

impl CassetteCall {
    /// Its ask's key: SHA-256 of the canonical bytes.
    pub fn key(&self) -> Digest {
        self.ask.plain_key()
    }

    /// The commitment to its body under its salt; none where it lacks one of both.
    pub fn commitment(&self) -> Option<Digest> {
        let (body, salt) = (self.body.as_ref()?, self.salt.as_ref()?);
        Some(seal::plaintext_commitment(salt.as_bytes(), body))
    }

    /// Its line, with the line feed.
    ///
    /// # Panics
    /// Never: texts, digests and small integers have a canonical form.
    pub fn to_line(&self) -> Vec<u8> {
        let body = self.body.as_ref();
        let text = body.and_then(|body| std::str::from_utf8(body).ok());
        let line = CassetteLine {
            ask: self.ask.clone(),
            attempts: self.attempts.clone(),
            body: text.map(str::to_owned),
            body_base64: body
                .filter(|_| text.is_none())
                .map(|body| base64::encode(body)),
            key: self.key(),
            nth: self.nth,
            place: self.place,
            provider_request: self.provider_request.clone(),
            recorded: self.recorded,
            salt: self.salt,
        };
        let bytes = canon::to_bytes(&line);
        let mut bytes = bytes.expect("BUG: texts and small integers have a canonical form");
        bytes.push(b'\n');
        bytes
    }

    /// Reads a line, without its line feed.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let line = serde_json::from_slice::<CassetteLine>(bytes);
        let line = line.map_err(|error| {
            // The line is the caller's to say: here each is the first.
            let what = error.to_string();
            let what = what.split(" at line ").next().unwrap_or_default();
            format!("column {}: {what}", error.column())
        })?;
        if line.attempts.len() > ATTEMPTS_MAX {
            return Err(format!("attempts: expected at most {ATTEMPTS_MAX}"));
        }
        let name = line.provider_request.as_ref();
        if name.is_some_and(|of| of.len() > REQUEST_NAME_BYTES) {
            return Err(format!(
                "provider_request: expected at most {REQUEST_NAME_BYTES} bytes"
            ));
        }
        let body = match (line.body, line.body_base64) {
            (Some(text), None) => Some(text.into_bytes()),
            (None, Some(text)) => {
                let bytes = base64::decode(text.as_bytes());
                Some(bytes.ok_or("body_base64: expected padded Base64")?)
            }
            (None, None) => None,
            (Some(_), Some(_)) => return Err("expected body or body_base64, found both".to_owned()),
        };
        if body
            .as_ref()
            .is_some_and(|of| of.len() > RESPONSE_BYTES_MAX)
        {
            return Err(format!("body: expected at most {RESPONSE_BYTES_MAX} bytes"));
        }
        let call = Self {
            ask: line.ask,
            attempts: line.attempts,
            body,
            nth: line.nth,
            place: line.place,
            provider_request: line.provider_request,
            recorded: line.recorded,
            salt: line.salt,
        };
        let key = call.key();
        if key != line.key {
            return Err(format!(
                "key: expected {key}, the digest of its ask, found {}",
                line.key
            ));
        }
        let again = call.to_line();
        if again.strip_suffix(b"\n") != Some(bytes) {
            return Err("expected canonical JSON: members in order, no blanks".to_owned());
        }
        Ok(call)
    }
}

/// Reads a cassette and gives each call with its line, in order, one in memory at a time.
///
/// # Errors
/// [`CassetteError`], and what `take` returns.
pub fn each<E: From<CassetteError>>(
    mut reader: impl BufRead,
    mut take: impl FnMut(u64, CassetteCall) -> Result<(), E>,
) -> Result<u64, E> {
    let (mut line, mut last) = (0, None);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let mut limited = reader.by_ref().take(LINE_BYTES_MAX as u64 + 1);
        let read = limited.read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| CassetteError::Read(error.to_string()))?;
        if read == 0 {
            return Ok(line);
        }
        line += 1;
        let wrong = |what: String| CassetteError::Line { line, what };
        if read > LINE_BYTES_MAX {
            return Err(wrong(format!("expected at most {LINE_BYTES_MAX} bytes")).into());
        }
        let Some(text) = bytes.strip_suffix(b"\n") else {
            return Err(
                wrong("expected a line feed at its end: the file is cut".to_owned()).into(),
            );
        };
        let call = CassetteCall::parse(text).map_err(wrong)?;
        let at = (call.key(), call.nth);
        if last.is_some_and(|last| last >= at) {
            let what = "expected lines sorted by key and nth, each once".to_owned();
            return Err(wrong(what).into());
        }
        last = Some(at);
        take(line, call)?;
    }
}

/// Members in which two documents differ: how many, and the path of the first.
pub fn difference(one: &Value, other: &Value) -> (u64, Option<String>) {
    let mut found = (0, None);
    walk((one, other), String::new(), DEPTH_MAX, &mut found);
    found
}

fn walk(
    (one, other): (&Value, &Value),
    path: String,
    deep: usize,
    found: &mut (u64, Option<String>),
) {
    let under = |name: &str| match path.as_str() {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match (one, other) {
        _ if one == other => {}
        (Value::Object(one), Value::Object(other)) if deep > 0 => {
            let mut names: Vec<_> = one.keys().chain(other.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let pair = (one.get(name), other.get(name));
                let pair = (
                    pair.0.unwrap_or(&Value::Null),
                    pair.1.unwrap_or(&Value::Null),
                );
                walk(pair, under(name), deep - 1, found);
            }
        }
        (Value::Array(one), Value::Array(other)) if deep > 0 && one.len() == other.len() => {
            for (at, pair) in one.iter().zip(other).enumerate() {
                walk(pair, under(&at.to_string()), deep - 1, found);
            }
        }
        _ => {
            found.0 += 1;
            found.1.get_or_insert(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use clover_event::calls::AttemptClass;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::ask::AnswerFormat;
    use crate::ask::AskDecoding;
    use crate::ask::Message;
    use crate::ask::Speaker;

    fn call(text: &str, body: Option<&[u8]>, nth: u64) -> CassetteCall {
        let message = Message {
            role: Speaker::User,
            text: text.to_owned(),
        };
        let decoding = AskDecoding {
            max_output_tokens: 600,
            seed: Some(7),
            temperature_micro: None,
        };
        let format = AnswerFormat::Json {
            form: "answer/1".into(),
            levels: vec![1, 2],
            reasoning: "before".into(),
            weighed: false,
        };
        let to = ("sim".parse().unwrap(), "m-1".to_owned());
        let count = |of| Count::new(of).unwrap();
        CassetteCall {
            ask: ModelAsk::new(to, (vec![message], format), decoding, "score".to_owned()),
            attempts: vec![CallAttempt {
                class: AttemptClass::Ok,
                ms: count(12),
                status: Some(count(200)),
            }],
            body: body.map(<[u8]>::to_vec),
            nth: count(nth),
            place: Some(count(3)),
            provider_request: Some("req_9".to_owned()),
            recorded: Some(Digest([7; 32])),
            salt: Some(Digest([8; 32])),
        }
    }

    fn read(bytes: &[u8]) -> Result<Vec<CassetteCall>, CassetteError> {
        let mut calls = Vec::new();
        each(bytes, |_, call| {
            calls.push(call);
            Ok::<_, CassetteError>(())
        })?;
        Ok(calls)
    }

    /// source: the specification of endpoints, 11: the members of a line; the key is the vector of `ask/1`.
    #[test]
    fn a_line_that_somebody_else_wrote_is_read() {
        let ask = r#"{"decoding":{"max_output_tokens":600,"seed":7,"temperature_micro":0},"endpoint":"openai-main","format":{"form":"answer/1","kind":"json","levels":[1,2,3,4,5],"reasoning":"before"},"messages":[{"role":"system","text":"Judge."},{"role":"user","text":"Hi"}],"model":"m-1","pin":"m-1-2026-01-15","repeat":0,"series":"score","v":"ask/1"}"#;
        let key = "7f5786eafc02f8b7f89503d8132634ed9b8396be5238369b20fbebe73c350327";
        let line = format!(
            r#"{{"ask":{ask},"attempts":[],"body":"…","key":"{key}","nth":0,"provider_request":"req_9"}}"#
        );
        let found = CassetteCall::parse(line.as_bytes()).unwrap();
        assert_eq!(found.body.as_deref(), Some("…".as_bytes()));
        assert_eq!(found.provider_request.as_deref(), Some("req_9"));
        let other = line.replace("Hi", "Ho");
        let error = CassetteCall::parse(other.as_bytes()).unwrap_err();
        assert!(error.starts_with("key: expected"), "{error}");
    }

    #[test]
    fn what_is_not_exactly_the_form_is_refused_with_its_line() {
        let line = |call: &CassetteCall| String::from_utf8(call.to_line()).unwrap();
        let (first, again) = (call("a", Some(b"{}"), 0), call("a", Some(b"{}"), 1));
        let good = line(&first) + &line(&again);
        assert_eq!(
            read(good.as_bytes()).unwrap(),
            [first.clone(), again.clone()]
        );
        let of = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        for (text, expected) in [
            (
                line(&again) + &line(&first),
                "line 2: expected lines sorted",
            ),
            (
                line(&first) + &line(&first),
                "line 2: expected lines sorted",
            ),
            (good.trim_end().to_owned(), "line 2: expected a line feed"),
            (
                good.replace("{\"ask\"", "{ \"ask\""),
                "line 1: expected canonical",
            ),
            (
                good.replace("\"nth\":0", "\"more\":1,\"nth\":0"),
                "unknown field",
            ),
            (
                good.replace("\"seed\":7", "\"seed\":8"),
                "line 1: key: expected",
            ),
            (
                good.replace("\"v\":\"ask/1\"", "\"v\":\"ask/2\""),
                "unknown variant",
            ),
            (
                good.replace("{\"ask\"", "{\"body_base64\":\"\",\"ask\""),
                "line 1: expected body or",
            ),
            ("\n".to_owned(), "line 1: column 0: EOF"),
            ("[".repeat(9_000) + "\n", "line 1:"),
        ] {
            let found = of(&text);
            assert!(found.contains(expected), "{expected}: {found}");
        }
        let mut many = first;
        many.attempts = vec![many.attempts[0]; ATTEMPTS_MAX + 1];
        let found = of(&line(&many));
        assert!(found.starts_with("line 1: attempts"), "{found}");
    }

    #[test]
    fn the_member_that_differs_is_named() {
        let one = json!({"a": {"b": [1, {"c": 2}]}, "d": 1});
        let other = json!({"a": {"b": [1, {"c": 3}]}, "e": 1});
        let (count, first) = difference(&one, &other);
        assert_eq!((count, first.as_deref()), (3, Some("a.b.1.c")));
        assert_eq!(difference(&one, &one), (0, None));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(text in "\\PC{0,40}", body in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..60))) {
            let of = call(&text, body.as_deref(), 0);
            let line = of.to_line();
            let parsed = CassetteCall::parse(&line[..line.len() - 1]);
            prop_assert_eq!(parsed.as_ref(), Ok(&of));
        }

        #[test]
        fn no_bytes_bring_it_down(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(of) = CassetteCall::parse(&bytes) {
                prop_assert_eq!(of.to_line(), [&bytes[..], b"\n"].concat());
            }
        }
    }
}
