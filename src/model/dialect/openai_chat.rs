//! Chat completions of OpenAI, and of what is compatible with them: `POST /chat/completions`.

use clover_workflow::ask::ModelAsk;
use clover_workflow::ask::Speaker;
use clover_workflow::ask::WireForm;
use clover_workflow::ask::reading::ReplyReading;
use clover_workflow::ask::reading::StopCause;
use serde::Deserialize;
use serde::Serialize;
use serde_json::json;

use super::JSON_SCHEMA;
use super::RequestBody;
use super::SchemaFormat;
use super::TokenLogprobs;

/// The dialect.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenaiChat;

#[derive(Debug, Deserialize)]
struct ChatBody {
    model: Option<String>,
    system_fingerprint: Option<String>,
    choices: Vec<ChatChoice>,
    #[serde(default, deserialize_with = "super::usage")]
    usage: Option<ChatUsage>,
}

#[derive(Debug, Deserialize)]
struct ChatChoice {
    finish_reason: Option<String>,
    message: ChatMessage,
    logprobs: Option<ChatLogprobs>,
}

#[derive(Debug, Deserialize)]
struct ChatMessage {
    content: Option<String>,
    refusal: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ChatLogprobs {
    content: Option<Vec<TokenLogprobs>>,
}

#[derive(Debug, Deserialize)]
struct ChatUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: Option<u64>,
    /// Where a provider says beside the details what came from a cache.
    prompt_cache_hit_tokens: Option<u64>,
    prompt_tokens_details: Option<InputDetails>,
    completion_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

#[derive(Debug, Serialize)]
struct ChatFormat<'a> {
    json_schema: SchemaFormat<'a>,
    #[serde(rename = "type")]
    kind: &'static str,
}

impl WireForm for OpenaiChat {
    fn has_logprobs(&self) -> bool {
        true
    }

    fn has_seed(&self) -> bool {
        true
    }

    fn request(&self, ask: &ModelAsk) -> (String, Vec<u8>) {
        let messages = ask.messages.iter().map(|message| {
            let role = match message.role {
                Speaker::System => "system",
                Speaker::User => "user",
            };
            json!({"role": role, "content": message.text})
        });
        let mut body = RequestBody::default();
        body.insert("model", json!(ask.model));
        body.insert("messages", messages.collect::<Vec<_>>());
        body.insert("n", json!(1));
        let limit = json!(ask.decoding.max_output_tokens);
        body.insert("max_completion_tokens", limit);
        if let Some(micro) = ask.decoding.temperature_micro {
            body.insert("temperature", super::temperature(micro));
        }
        if let Some(seed) = ask.decoding.seed {
            body.insert("seed", json!(seed));
        }
        if let Some(schema) = super::schema(&ask.format) {
            let format = ChatFormat {
                json_schema: SchemaFormat::new(schema, true, None),
                kind: JSON_SCHEMA,
            };
            body.insert("response_format", format);
        }
        let alternatives = ask.format.alternatives();
        if alternatives > 0 {
            body.insert("logprobs", json!(true));
            body.insert("top_logprobs", json!(alternatives));
        }
        ("/chat/completions".to_owned(), body.bytes())
    }

    fn read(&self, body: &[u8]) -> Option<ReplyReading> {
        let body: ChatBody = serde_json::from_slice(body).ok()?;
        let choice = body.choices.into_iter().next()?;
        let refused = choice.message.refusal.is_some();
        let stop = match choice.finish_reason.as_deref() {
            _ if refused => StopCause::Refusal,
            Some("stop") => StopCause::Done,
            Some("length") => StopCause::Limit,
            Some("content_filter") => StopCause::Filter,
            _ => StopCause::Other,
        };
        let usage = body.usage.as_ref();
        let says_cache = usage.is_some_and(|of| {
            let details = of.prompt_tokens_details.as_ref();
            of.prompt_cache_hit_tokens.is_some()
                || details.is_some_and(|of| of.cached_tokens.is_some())
        });
        let tokens = body.usage.map(|of| {
            let input = of.prompt_tokens_details.as_ref();
            let read = input.and_then(|of| of.cached_tokens);
            let read = read.or(of.prompt_cache_hit_tokens).unwrap_or(0);
            let written = input.and_then(|of| of.cache_write_tokens).unwrap_or(0);
            let output = of.completion_tokens_details.as_ref();
            let reasoning = output.and_then(|of| of.reasoning_tokens).unwrap_or(0);
            let input = [of.prompt_tokens, read, written];
            super::tokens(input, [of.completion_tokens, reasoning], of.total_tokens)
        });
        let given = choice.logprobs.and_then(|of| of.content);
        Some(ReplyReading {
            model: body.model,
            fingerprint: body.system_fingerprint,
            finish: choice.finish_reason,
            stop,
            text: choice.message.content.unwrap_or_default(),
            tokens: tokens.map(|(tokens, _)| tokens),
            tokens_fit: tokens.is_none_or(|(_, fit)| fit),
            says_cache,
            tokens_said: given
                .unwrap_or_default()
                .iter()
                .map(TokenLogprobs::read)
                .collect(),
        })
    }

    fn complaint(&self, body: &[u8]) -> String {
        super::complaint(body)
    }
}
