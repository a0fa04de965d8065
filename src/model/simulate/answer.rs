//! What a double answers: by its seed and the request, and without a seed in the request also by how often it was asked.

use clover_event::payload::endpoint::Dialect;
use clover_ground::digest::Digest;
use clover_ground::seed::SeedTree;
use clover_workflow::sgd::agents;
use serde_json::Value;
use serde_json::json;

use super::SimulatedJudge;
use super::VERSION_SUFFIX;
use super::judged;
use super::script::Fault;
use super::script::SaidStop;
use super::script::SaidUsage;

/// Words that free answers are made of.
const WORDS: [&str; 8] = [
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron",
];
/// Words of a free answer.
const WORDS_SAID: u64 = 6;
/// Bytes of a token, as the double counts them.
const TOKEN_BYTES: usize = 4;

/// What a request asks for, whatever its dialect.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a member of a request that is there or not"
)]
struct WantedAnswer {
    /// Whether candidates of an optimizer are asked for.
    candidates: bool,
    choices: Vec<String>,
    /// Levels of a score, and the ticket that the answer repeats.
    levels: Vec<i64>,
    ticket: String,
    limit: u64,
    logprobs: bool,
    model: String,
    /// Whether reasons stand before the score.
    reasons: bool,
    seed: Option<u64>,
    warm: bool,
}

impl WantedAnswer {
    /// The level that is said: that of a simulated judge where one is asked for, else a drawn one; none where no score is wanted.
    fn level(&self, body: &Value, (asked, drawn): (u64, usize)) -> Option<&i64> {
        let draw = self.seed.unwrap_or(asked);
        let judged = judged::level(&self.model, body, self.levels.len(), draw);
        let drawn = drawn % self.levels.len().max(1);
        self.levels.get(judged.unwrap_or(drawn))
    }

    /// An answer with a score. Its members stand in the order in which the request names them, as servers have it that hold a
    /// model to a schema.
    fn scored(&self, bytes: &[u8], level: i64, why: &str) -> String {
        let mut members = vec![("ticket", json!(self.ticket)), ("score", json!(level))];
        if self.reasons {
            members.insert(1, ("reasoning", json!(why)));
        }
        members.sort_by_key(|(name, _)| named_at(bytes, name));
        let members = members.iter();
        let members = members.map(|(name, value)| format!("\"{name}\":{value}"));
        let members: Vec<_> = members.collect();
        format!("{{{}}}", members.join(","))
    }
}

/// An answer with what it bills.
#[derive(Clone, Debug)]
pub(super) struct SimulatedAnswer {
    pub(super) body: String,
    pub(super) model: String,
    pub(super) input: u64,
    pub(super) output: u64,
}

/// The dialect of a path; `None` where there is none.
pub(super) fn dialect_of(path: &str) -> Option<Dialect> {
    let path = path.split('?').next().unwrap_or_default();
    match path {
        path if path.ends_with("/chat/completions") => Some(Dialect::OpenaiChat),
        path if path.ends_with("/responses") => Some(Dialect::OpenaiResponses),
        path if path.ends_with("/messages") => Some(Dialect::Anthropic),
        path if path.ends_with(":generateContent") => Some(Dialect::Gemini),
        _ => None,
    }
}

fn wanted(dialect: Dialect, path: &str, body: &Value, ignored: &[String]) -> WantedAnswer {
    let follows = |name: &str| !ignored.iter().any(|of| of == name);
    let config = &body["generationConfig"];
    let (schema, limit, seed, temperature, logprobs) = match dialect {
        Dialect::OpenaiChat => (
            &body["response_format"]["json_schema"]["schema"],
            body.get("max_completion_tokens").or(body.get("max_tokens")),
            &body["seed"],
            &body["temperature"],
            body["logprobs"] == json!(true),
        ),
        Dialect::OpenaiResponses => (
            &body["text"]["format"]["schema"],
            body.get("max_output_tokens"),
            &Value::Null,
            &body["temperature"],
            body["include"].is_array(),
        ),
        Dialect::Anthropic => (
            &body["output_config"]["format"]["schema"],
            body.get("max_tokens"),
            &Value::Null,
            &body["temperature"],
            false,
        ),
        Dialect::Gemini => (
            &config["responseJsonSchema"],
            config.get("maxOutputTokens"),
            &config["seed"],
            &config["temperature"],
            config["responseLogprobs"] == json!(true),
        ),
    };
    let choices = schema["properties"]["choice"]["enum"].as_array();
    let choices = choices.into_iter().flatten().filter_map(Value::as_str);
    let in_path = path
        .rsplit('/')
        .next()
        .and_then(|name| name.strip_suffix(":generateContent"));
    let model = body["model"].as_str().or(in_path).unwrap_or("model");
    let levels = schema["properties"]["score"]["enum"].as_array();
    let levels = levels.into_iter().flatten().filter_map(Value::as_i64);
    WantedAnswer {
        candidates: schema["properties"]["candidates"].is_object(),
        levels: levels.filter(|_| follows("json_schema")).collect(),
        ticket: ticket(&body.to_string()),
        choices: choices
            .filter(|_| follows("json_schema"))
            .map(str::to_owned)
            .collect(),
        limit: limit
            .and_then(Value::as_u64)
            .filter(|_| follows("limit"))
            .unwrap_or(u64::MAX),
        logprobs: logprobs && follows("logprobs"),
        model: model.to_owned(),
        reasons: schema["properties"]["reasoning"].is_object(),
        seed: seed.as_u64().filter(|_| follows("seed")),
        warm: temperature.as_f64().is_none_or(|of| of > 0.0) && follows("temperature"),
    }
}

/// The first four digits of the fence that a request shows.
fn ticket(body: &str) -> String {
    let fence = body.split_once("ITEM ").map_or("", |(_, rest)| rest);
    // What a judge is told names the word too: a fence is the first that digits follow.
    let mut parts = std::iter::successors(Some(fence), |rest| {
        rest.split_once("ITEM ").map(|(_, rest)| rest)
    });
    let is_fence = |rest: &&str| {
        rest.len() >= 16 && rest.bytes().take(16).all(|byte| byte.is_ascii_hexdigit())
    };
    let found = parts.find(is_fence).unwrap_or_default();
    found.chars().take(4).collect()
}

/// Where a request describes a member of the answer.
fn named_at(request: &[u8], name: &str) -> Option<usize> {
    let described = format!("\"{name}\":{{");
    String::from_utf8_lossy(request).find(&described)
}

/// What a script has the model say; no candidates where it says nothing.
fn said(fault: &Fault) -> String {
    let none = || json!({"candidates": []}).to_string();
    fault.text.clone().unwrap_or_else(none)
}

/// What the pair `aggregate/1` answers to a request that shows what it is asked.
fn played(bytes: &[u8]) -> Option<String> {
    let shown = |text: &Value| text.as_str().and_then(agents::answered);
    let body: Value = serde_json::from_slice(bytes).ok()?;
    let mut left = vec![&body];
    while let Some(of) = left.pop() {
        match of {
            Value::Array(all) => left.extend(all),
            Value::Object(all) => left.extend(all.values()),
            text => {
                if let Some(answer) = shown(text) {
                    return Some(answer);
                }
            }
        }
    }
    None
}

/// The tokens that an answer says, of input and output.
fn usage_said(fault: Option<SaidUsage>, [input, output]: [u64; 2]) -> Option<[u64; 2]> {
    match fault {
        None => Some([input, output]),
        Some(SaidUsage::Absent) => None,
        Some(SaidUsage::Huge) => Some([1 << 40, output]),
    }
}

/// The answer to a request that was asked `asked` times before.
pub(super) fn answer(
    (dialect, path): (Dialect, &str),
    (body, bytes): (&Value, &[u8]),
    (seed, asked): (u64, u64),
    (fault, judge): (&Fault, Option<(SimulatedJudge, u64)>),
) -> SimulatedAnswer {
    let wanted = wanted(dialect, path, body, &fault.ignore);
    let digest = Digest::sha256(body.to_string().as_bytes());
    let mut tree = SeedTree::of_number(seed).child(&digest.to_hex());
    if wanted.warm && wanted.seed.is_none() {
        tree = tree.child(&asked.to_string());
    }
    let drawn = tree.seed();
    let number = |at: usize| usize::from(drawn[at % drawn.len()]);
    let played = played(bytes).filter(|_| fault.text.is_none());
    let is_said = fault.text.is_some() || wanted.candidates || played.is_some();
    let words: Vec<&str> = match wanted.choices.len() {
        _ if is_said => Vec::new(),
        0 => (0..WORDS_SAID.min(wanted.limit))
            .zip(0..)
            .map(|(_, at)| WORDS[number(at) % WORDS.len()])
            .collect(),
        _ => Vec::new(),
    };
    let judged = judge.and_then(|(judge, n)| {
        let text = body.to_string();
        // Who wavers does so each time, whatever the seed and the temperature of a request are.
        let drawn = tree.child(&format!("time {asked}"));
        judge.level((seed, n), (&text, &drawn), wanted.levels.len())
    });
    let level = wanted.level(body, (asked, judged.unwrap_or_else(|| number(1))));
    let (text, cut) = match wanted.choices.len() {
        _ if is_said => (played.unwrap_or_else(|| said(fault)), false),
        _ if level.is_some() => {
            let why = WORDS[number(2) % WORDS.len()];
            (
                wanted.scored(bytes, level.copied().unwrap_or_default(), why),
                false,
            )
        }
        0 => (words.join(" "), wanted.limit < WORDS_SAID),
        some => {
            let choice = &wanted.choices[number(0) % some];
            (json!({"choice": choice}).to_string(), false)
        }
    };
    let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(TOKEN_BYTES)).unwrap_or(u64::MAX);
    let input = tokens(body.to_string().len());
    let output = if words.is_empty() {
        tokens(text.len())
    } else {
        words.len() as u64
    };
    let suffix = VERSION_SUFFIX;
    let model = fault.model.clone();
    let model = model.unwrap_or_else(|| format!("{}{suffix}", wanted.model));
    let said = usage_said(fault.usage, [input, output]);
    let tokens_said = wanted.logprobs.then(|| match level {
        Some(level) if !is_said => level_tokens(&text, *level, &wanted.levels, number(3)),
        _ => words.iter().map(|word| SaidToken::word(word)).collect(),
    });
    let written = BodyWriter {
        model: &model,
        text: &text,
        cut: cut || fault.stop == Some(SaidStop::Limit),
        refused: fault.stop == Some(SaidStop::Refusal),
        said,
        tokens: tokens_said.as_deref(),
    };
    SimulatedAnswer {
        body: written.body(dialect).to_string(),
        model,
        input,
        output,
    }
}

/// What is written, whatever its dialect.
#[derive(Clone, Copy)]
struct BodyWriter<'a> {
    model: &'a str,
    text: &'a str,
    cut: bool,
    refused: bool,
    said: Option<[u64; 2]>,
    tokens: Option<&'a [SaidToken]>,
}

/// A token that is said, with what was weighed in its place and how probable each was.
struct SaidToken {
    text: String,
    weighed: Vec<(String, f64)>,
}

impl SaidToken {
    /// About half the mass for the word that is said, a quarter for another.
    fn word(word: &str) -> Self {
        Self {
            text: word.to_owned(),
            weighed: vec![(word.to_owned(), -0.7), ("iris".to_owned(), -1.4)],
        }
    }

    /// Certain.
    fn sure(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            weighed: vec![(text.to_owned(), 0.0)],
        }
    }

    fn masses(&self) -> Vec<Value> {
        let each = self.weighed.iter();
        let each = each.map(|(token, logprob)| json!({"token": token, "logprob": logprob}));
        each.collect()
    }
}

/// Tokens of an answer with a score: four bytes each, and the score one of its own. Another level, which is drawn, has a part
/// of the probability, and so has the level with a space before it.
fn level_tokens(text: &str, level: i64, levels: &[i64], drawn: usize) -> Vec<SaidToken> {
    let (said, other) = (level.to_string(), levels[drawn % levels.len()].to_string());
    let Some(at) = text.rfind(&said) else {
        return vec![SaidToken::sure(text)];
    };
    let (before, after) = (&text[..at], &text[at + said.len()..]);
    let cut = |part: &str| -> Vec<SaidToken> {
        let chunks = part.as_bytes().chunks(TOKEN_BYTES);
        let texts = chunks.map(String::from_utf8_lossy);
        texts.map(|text| SaidToken::sure(&text)).collect()
    };
    let mut out = cut(before);
    // .62, .08 and .28 of the probability; the rest goes to no level.
    let mut weighed = vec![(said.clone(), -0.478_036), (format!(" {said}"), -2.525_729)];
    if other == said {
        weighed[0].1 = -0.105_361;
    } else {
        weighed.push((other, -1.272_966));
    }
    out.push(SaidToken {
        text: said,
        weighed,
    });
    out.extend(cut(after));
    out
}

impl BodyWriter<'_> {
    fn stop(&self, limit: &str, done: &str) -> String {
        if self.cut { limit } else { done }.to_owned()
    }

    /// As [`Self::stop`], where a dialect has a word for a model that declines.
    fn stop_or(&self, refused: &str, limit: &str, done: &str) -> String {
        if self.refused {
            return refused.to_owned();
        }
        self.stop(limit, done)
    }

    /// Each token with its alternatives, the first of which was said.
    fn masses(&self) -> Vec<Value> {
        let tokens = self.tokens.unwrap_or_default().iter();
        let each = tokens.map(|token| {
            json!({"token": token.text, "logprob": token.weighed[0].1, "bytes": token.text.as_bytes(),
                "top_logprobs": token.masses()})
        });
        each.collect()
    }

    fn usage(&self, [input, output]: [&str; 2], total: Option<&str>) -> Value {
        let Some([said_input, said_output]) = self.said else {
            return Value::Null;
        };
        let mut of = json!({input: said_input, output: said_output});
        if let Some(total) = total {
            of[total] = json!(said_input + said_output);
        }
        of
    }

    fn body(&self, dialect: Dialect) -> Value {
        match dialect {
            Dialect::OpenaiChat => json!({
                "id": "chatcmpl-1", "object": "chat.completion", "model": self.model,
                "system_fingerprint": "fp_double",
                "choices": [{"index": 0, "finish_reason": self.stop("length", "stop"),
                    "message": {"role": "assistant", "content": self.text,
                        "refusal": self.refused.then_some(self.text)},
                    "logprobs": self.tokens.map(|_| json!({"content": self.masses()}))}],
                "usage": self.usage(["prompt_tokens", "completion_tokens"], Some("total_tokens")),
            }),
            Dialect::OpenaiResponses => json!({
                "id": "resp_1", "object": "response", "model": self.model,
                "status": self.stop("incomplete", "completed"),
                "incomplete_details": self.cut.then(|| json!({"reason": "max_output_tokens"})),
                "output": [{"type": "message", "content": [
                    {"type": "output_text", "text": self.text, "logprobs": self.masses(),
                        "refusal": self.refused.then_some(self.text)}]}],
                "usage": self.usage(["input_tokens", "output_tokens"], Some("total_tokens")),
            }),
            Dialect::Anthropic => json!({
                "id": "msg_1", "type": "message", "model": self.model,
                "stop_reason": self.stop_or("refusal", "max_tokens", "end_turn"),
                "content": [{"type": "text", "text": self.text}],
                "usage": self.usage(["input_tokens", "output_tokens"], None),
            }),
            Dialect::Gemini => self.gemini(),
        }
    }

    fn gemini(&self) -> Value {
        let named =
            |(token, logprob): &(String, f64)| json!({"token": token, "logProbability": logprob});
        let words = self.tokens.map(|tokens| {
            let chosen = tokens.iter().map(|token| named(&token.weighed[0]));
            let top = tokens.iter().map(|token| {
                let each: Vec<_> = token.weighed.iter().map(named).collect();
                json!({"candidates": each})
            });
            json!({"chosenCandidates": chosen.collect::<Vec<_>>(), "topCandidates": top.collect::<Vec<_>>()})
        });
        let names = ["promptTokenCount", "candidatesTokenCount"];
        json!({
            "modelVersion": self.model,
            "candidates": [{"finishReason": self.stop_or("SAFETY", "MAX_TOKENS", "STOP"),
                "content": {"role": "model", "parts": [{"text": self.text}]},
                "logprobsResult": words}],
            "usageMetadata": self.usage(names, Some("totalTokenCount")),
        })
    }
}
