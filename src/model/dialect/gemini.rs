//! `generateContent` of Gemini: `POST /v1beta/models/MODEL:generateContent`. The key never stands in the address.

use clover_workflow::ask::ModelAsk;
use clover_workflow::ask::Speaker;
use clover_workflow::ask::WireForm;
use clover_workflow::ask::reading::ReplyReading;
use clover_workflow::ask::reading::ReplyToken;
use clover_workflow::ask::reading::StopCause;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::RequestBody;

/// The dialect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gemini;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContentBody {
    model_version: Option<String>,
    #[serde(default)]
    candidates: Vec<Candidate>,
    prompt_feedback: Option<Feedback>,
    #[serde(default, deserialize_with = "super::usage")]
    usage_metadata: Option<ContentUsage>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Option<CandidateContent>,
    finish_reason: Option<String>,
    logprobs_result: Option<LogprobsResult>,
}

#[derive(Debug, Deserialize)]
struct CandidateContent {
    #[serde(default)]
    parts: Vec<CandidatePart>,
}

#[derive(Debug, Deserialize)]
struct CandidatePart {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogprobsResult {
    #[serde(default)]
    chosen_candidates: Vec<TopCandidate>,
    #[serde(default)]
    top_candidates: Vec<TopCandidates>,
}

#[derive(Debug, Deserialize)]
struct TopCandidates {
    #[serde(default)]
    candidates: Vec<TopCandidate>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TopCandidate {
    token: String,
    log_probability: Box<RawValue>,
}

#[expect(clippy::struct_field_names, reason = "they are the provider's names")]
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContentUsage {
    prompt_token_count: u64,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    total_token_count: Option<u64>,
}

impl WireForm for Gemini {
    fn has_logprobs(&self) -> bool {
        true
    }

    fn has_seed(&self) -> bool {
        true
    }

    fn request(&self, ask: &ModelAsk) -> (String, Vec<u8>) {
        let text = |text: String| json!({"parts": [{"text": text}]});
        let mut body = RequestBody::default();
        let system = super::said(ask, Speaker::System);
        if !system.is_empty() {
            body.insert("systemInstruction", text(system));
        }
        let user = json!({"role": "user", "parts": [{"text": super::said(ask, Speaker::User)}]});
        body.insert("contents", json!([user]));
        let mut how = RequestBody::default();
        let limit = json!(ask.decoding.max_output_tokens);
        how.insert("maxOutputTokens", limit);
        if let Some(micro) = ask.decoding.temperature_micro {
            how.insert("temperature", super::temperature(micro));
        }
        if let Some(seed) = ask.decoding.seed {
            how.insert("seed", json!(seed));
        }
        if let Some(schema) = super::schema(&ask.format) {
            how.insert("responseMimeType", json!("application/json"));
            how.insert("responseJsonSchema", schema);
        }
        let alternatives = ask.format.alternatives();
        if alternatives > 0 {
            how.insert("responseLogprobs", json!(true));
            how.insert("logprobs", json!(alternatives));
        }
        body.insert("generationConfig", how);
        // A model's name stands in the path: what is not plain there is escaped.
        let model = ask.model.bytes().map(|byte| {
            if byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        });
        let path = format!(
            "/v1beta/models/{}:generateContent",
            model.collect::<String>()
        );
        (path, body.bytes())
    }

    fn read(&self, body: &[u8]) -> Option<ReplyReading> {
        let body: ContentBody = serde_json::from_slice(body).ok()?;
        let blocked = body.prompt_feedback.and_then(|of| of.block_reason);
        let candidate = body.candidates.into_iter().next();
        if candidate.is_none() && blocked.is_none() {
            return None;
        }
        let finish = candidate.as_ref().and_then(|of| of.finish_reason.clone());
        let finish = blocked.clone().or(finish);
        let stop = match finish.as_deref() {
            _ if blocked.is_some() => StopCause::Filter,
            Some("STOP") => StopCause::Done,
            Some("MAX_TOKENS") => StopCause::Limit,
            Some("SAFETY" | "PROHIBITED_CONTENT" | "BLOCKLIST" | "RECITATION") => StopCause::Filter,
            _ => StopCause::Other,
        };
        let usage = body.usage_metadata.as_ref();
        let says_cache = usage.is_some_and(|of| of.cached_content_token_count.is_some());
        let tokens = body.usage_metadata.map(|of| {
            let read = of.cached_content_token_count.unwrap_or(0);
            let thoughts = of.thoughts_token_count.unwrap_or(0);
            let output = of.candidates_token_count.unwrap_or(0);
            let output = output.saturating_add(thoughts);
            let input = [of.prompt_token_count, read, 0];
            super::tokens(input, [output, thoughts], of.total_token_count)
        });
        let (content, logprobs) = match candidate {
            Some(of) => (of.content, of.logprobs_result),
            None => (None, None),
        };
        let parts = content.map(|of| of.parts).unwrap_or_default();
        let spoken = parts.iter().filter(|part| !part.thought);
        let texts = spoken.filter_map(|part| part.text.as_deref());
        Some(ReplyReading {
            text: texts.collect(),
            model: body
                .model_version
                .map(|name| match name.strip_prefix("models/") {
                    Some(bare) => bare.to_owned(),
                    None => name,
                }),
            fingerprint: None,
            finish,
            stop,
            tokens: tokens.map(|(tokens, _)| tokens),
            tokens_fit: tokens.is_none_or(|(_, fit)| fit),
            says_cache,
            tokens_said: logprobs.map(|of| of.tokens()).unwrap_or_default(),
        })
    }

    fn complaint(&self, body: &[u8]) -> String {
        super::complaint(body)
    }
}

impl LogprobsResult {
    /// The tokens that were said, each with the alternatives at its place.
    fn tokens(&self) -> Vec<ReplyToken> {
        let mass = |of: &TopCandidate| super::token_mass(&of.token, &of.log_probability);
        let said = self.chosen_candidates.iter().enumerate();
        let each = said.map(|(at, of)| {
            let others = self.top_candidates.get(at);
            let others = others.map(|others| others.candidates.iter().map(mass).collect());
            super::reply_token(
                of.token.clone().into_bytes(),
                mass(of),
                others.unwrap_or_default(),
            )
        });
        each.collect()
    }
}
