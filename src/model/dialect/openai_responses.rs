//! Responses of OpenAI: `POST /responses`. Nothing is stored there.

use std::collections::BTreeMap;

use clover_workflow::ask::ModelAsk;
use clover_workflow::ask::Speaker;
use clover_workflow::ask::WireForm;
use clover_workflow::ask::reading::ReplyReading;
use clover_workflow::ask::reading::StopCause;
use serde::Deserialize;
use serde_json::json;

use super::JSON_SCHEMA;
use super::RequestBody;
use super::SchemaFormat;
use super::TokenLogprobs;

/// The dialect.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenaiResponses;

#[derive(Debug, Deserialize)]
struct ResponseBody {
    model: Option<String>,
    status: Option<String>,
    incomplete_details: Option<Incomplete>,
    output: Vec<OutputItem>,
    #[serde(default, deserialize_with = "super::usage")]
    usage: Option<ResponseUsage>,
}

#[derive(Debug, Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct OutputItem {
    #[serde(default)]
    content: Vec<OutputPart>,
}

#[derive(Debug, Deserialize)]
struct OutputPart {
    text: Option<String>,
    refusal: Option<String>,
    #[serde(default)]
    logprobs: Vec<TokenLogprobs>,
}

#[derive(Debug, Deserialize)]
struct ResponseUsage {
    input_tokens: u64,
    output_tokens: u64,
    total_tokens: Option<u64>,
    input_tokens_details: Option<ResponseInput>,
    output_tokens_details: Option<ResponseOutput>,
}

#[derive(Debug, Deserialize)]
struct ResponseInput {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct ResponseOutput {
    reasoning_tokens: Option<u64>,
}

impl WireForm for OpenaiResponses {
    fn has_logprobs(&self) -> bool {
        true
    }

    fn has_seed(&self) -> bool {
        false
    }

    fn request(&self, ask: &ModelAsk) -> (String, Vec<u8>) {
        let mut body = RequestBody::default();
        body.insert("model", json!(ask.model));
        let instructions = super::said(ask, Speaker::System);
        if !instructions.is_empty() {
            body.insert("instructions", json!(instructions));
        }
        body.insert("input", json!(super::said(ask, Speaker::User)));
        body.insert("store", json!(false));
        let limit = json!(ask.decoding.max_output_tokens);
        body.insert("max_output_tokens", limit);
        if let Some(micro) = ask.decoding.temperature_micro {
            body.insert("temperature", super::temperature(micro));
        }
        if let Some(schema) = super::schema(&ask.format) {
            let format = SchemaFormat::new(schema, true, Some(JSON_SCHEMA));
            body.insert("text", BTreeMap::from([("format", format)]));
        }
        let alternatives = ask.format.alternatives();
        if alternatives > 0 {
            let include = json!(["message.output_text.logprobs"]);
            body.insert("include", include);
            body.insert("top_logprobs", json!(alternatives));
        }
        ("/responses".to_owned(), body.bytes())
    }

    fn read(&self, body: &[u8]) -> Option<ReplyReading> {
        let body: ResponseBody = serde_json::from_slice(body).ok()?;
        let parts: Vec<_> = body.output.into_iter().flat_map(|of| of.content).collect();
        let refused = parts.iter().any(|part| part.refusal.is_some());
        let reason = body.incomplete_details.and_then(|of| of.reason);
        let stop = match (body.status.as_deref(), reason.as_deref()) {
            _ if refused => StopCause::Refusal,
            (_, Some("max_output_tokens")) => StopCause::Limit,
            (_, Some("content_filter")) => StopCause::Filter,
            (Some("completed"), _) => StopCause::Done,
            (Some("failed" | "cancelled" | "in_progress" | "queued"), _) => StopCause::Failed,
            _ => StopCause::Other,
        };
        let usage = body.usage.as_ref();
        let says_cache = usage.is_some_and(|of| {
            let details = of.input_tokens_details.as_ref();
            details.is_some_and(|of| of.cached_tokens.is_some())
        });
        let tokens = body.usage.map(|of| {
            let input = of.input_tokens_details.as_ref();
            let read = input.and_then(|of| of.cached_tokens).unwrap_or(0);
            let written = input.and_then(|of| of.cache_write_tokens).unwrap_or(0);
            let output = of.output_tokens_details.as_ref();
            let reasoning = output.and_then(|of| of.reasoning_tokens).unwrap_or(0);
            let input = [of.input_tokens, read, written];
            super::tokens(input, [of.output_tokens, reasoning], of.total_tokens)
        });
        let texts = parts.iter().filter_map(|part| part.text.as_deref());
        let text = texts.collect();
        let given = parts.iter().flat_map(|part| &part.logprobs);
        Some(ReplyReading {
            model: body.model,
            fingerprint: None,
            finish: reason.or(body.status),
            stop,
            text,
            tokens: tokens.map(|(tokens, _)| tokens),
            tokens_fit: tokens.is_none_or(|(_, fit)| fit),
            says_cache,
            tokens_said: given.map(TokenLogprobs::read).collect(),
        })
    }

    fn complaint(&self, body: &[u8]) -> String {
        super::complaint(body)
    }
}
