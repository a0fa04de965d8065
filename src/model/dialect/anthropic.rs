//! Messages of Anthropic: `POST /v1/messages`. It has no seed and no log-probabilities.

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

/// The dialect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Anthropic;

#[derive(Debug, Deserialize)]
struct MessageBody {
    model: Option<String>,
    stop_reason: Option<String>,
    content: Vec<MessagePart>,
    #[serde(default, deserialize_with = "super::usage")]
    usage: Option<MessageUsage>,
}

#[derive(Debug, Deserialize)]
struct MessagePart {
    text: Option<String>,
}

#[expect(clippy::struct_field_names, reason = "they are the provider's names")]
#[derive(Debug, Deserialize)]
struct MessageUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

impl WireForm for Anthropic {
    fn has_logprobs(&self) -> bool {
        false
    }

    fn has_seed(&self) -> bool {
        false
    }

    fn request(&self, ask: &ModelAsk) -> (String, Vec<u8>) {
        let mut body = RequestBody::default();
        body.insert("model", json!(ask.model));
        let system = super::said(ask, Speaker::System);
        if !system.is_empty() {
            body.insert("system", json!(system));
        }
        let user = json!([{"role": "user", "content": super::said(ask, Speaker::User)}]);
        body.insert("messages", user);
        let limit = json!(ask.decoding.max_output_tokens);
        body.insert("max_tokens", limit);
        if let Some(micro) = ask.decoding.temperature_micro {
            body.insert("temperature", super::temperature(micro));
        }
        if let Some(schema) = super::schema(&ask.format) {
            let format = SchemaFormat::new(schema, false, Some(JSON_SCHEMA));
            body.insert("output_config", BTreeMap::from([("format", format)]));
        }
        ("/v1/messages".to_owned(), body.bytes())
    }

    fn read(&self, body: &[u8]) -> Option<ReplyReading> {
        let body: MessageBody = serde_json::from_slice(body).ok()?;
        let stop = match body.stop_reason.as_deref() {
            Some("end_turn" | "stop_sequence") => StopCause::Done,
            Some("max_tokens") => StopCause::Limit,
            Some("refusal") => StopCause::Refusal,
            _ => StopCause::Other,
        };
        let usage = body.usage.as_ref();
        let says_cache = usage.is_some_and(|of| of.cache_read_input_tokens.is_some());
        let tokens = body.usage.map(|of| {
            let read = of.cache_read_input_tokens.unwrap_or(0);
            let written = of.cache_creation_input_tokens.unwrap_or(0);
            // Its input counts neither what was read from a cache nor what was written to one.
            let input = of.input_tokens.saturating_add(read).saturating_add(written);
            super::tokens([input, read, written], [of.output_tokens, 0], None)
        });
        let texts = body.content.iter().filter_map(|part| part.text.as_deref());
        Some(ReplyReading {
            text: texts.collect(),
            model: body.model,
            fingerprint: None,
            finish: body.stop_reason,
            stop,
            tokens: tokens.map(|(tokens, _)| tokens),
            tokens_fit: tokens.is_none_or(|(_, fit)| fit),
            says_cache,
            tokens_said: Vec::new(),
        })
    }

    fn complaint(&self, body: &[u8]) -> String {
        super::complaint(body)
    }
}
