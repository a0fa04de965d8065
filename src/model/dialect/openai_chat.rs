//! Chat completions of OpenAI, and of what is compatible with them: `POST /chat/completions`.

use clover_workflow::ask::AnswerFormat;
use clover_workflow::ask::ModelAsk;
use clover_workflow::ask::Speaker;
use clover_workflow::ask::WireForm;
use clover_workflow::ask::reading::ReplyReading;
use clover_workflow::ask::reading::StopCause;
use serde::Deserialize;
use serde_json::Map;
use serde_json::json;

use super::ALTERNATIVES;
use super::TokenLogprobs;

/// The dialect.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenaiChat;

#[derive(Debug, Deserialize)]
struct ChatBody {
    model: Option<String>,
    system_fingerprint: Option<String>,
    choices: Vec<ChatChoice>,
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
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(ask.model));
        body.insert("messages".to_owned(), messages.collect());
        body.insert("n".to_owned(), json!(1));
        let limit = json!(ask.decoding.max_output_tokens);
        body.insert("max_completion_tokens".to_owned(), limit);
        if let Some(micro) = ask.decoding.temperature_micro {
            body.insert("temperature".to_owned(), super::temperature(micro));
        }
        if let Some(seed) = ask.decoding.seed {
            body.insert("seed".to_owned(), json!(seed));
        }
        if let Some(schema) = super::schema(&ask.format) {
            let of = json!({"name": "answer", "strict": true, "schema": schema});
            let format = json!({"type": "json_schema", "json_schema": of});
            body.insert("response_format".to_owned(), format);
        }
        if ask.format == AnswerFormat::Logprobs {
            body.insert("logprobs".to_owned(), json!(true));
            body.insert("top_logprobs".to_owned(), json!(ALTERNATIVES));
        }
        ("/chat/completions".to_owned(), super::bytes(body))
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
            details.is_some_and(|of| of.cached_tokens.is_some())
        });
        let tokens = body.usage.map(|of| {
            let input = of.prompt_tokens_details.as_ref();
            let read = input.and_then(|of| of.cached_tokens).unwrap_or(0);
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
            logprobs: given
                .unwrap_or_default()
                .iter()
                .map(TokenLogprobs::masses)
                .collect(),
        })
    }

    fn complaint(&self, body: &[u8]) -> String {
        super::complaint(body)
    }
}
