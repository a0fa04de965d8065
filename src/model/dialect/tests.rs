//! Bodies as providers document them, and what is read of them.

use clover_event::id::EndpointId;
use clover_workflow::ask::AskDecoding;
use clover_workflow::ask::Message;
use clover_workflow::ask::reading::ReplyReading;
use clover_workflow::ask::reading::StopCause;

use super::*;

fn ask(format: AnswerFormat) -> ModelAsk {
    let say = |role, text: &str| Message {
        role,
        text: text.to_owned(),
    };
    let decoding = AskDecoding {
        max_output_tokens: 60,
        seed: Some(7),
        temperature_micro: Some(700_000),
    };
    let to = (EndpointId::new("e").unwrap(), "m/1".to_owned());
    let said = vec![say(Speaker::System, "Judge."), say(Speaker::User, "Hi")];
    ModelAsk::new(to, (said, format), decoding, "score".to_owned())
}

fn request(dialect: Dialect, format: AnswerFormat) -> (String, Value) {
    let (path, body) = wire(dialect).request(&ask(format));
    (path, serde_json::from_slice(&body).unwrap())
}

fn choice() -> AnswerFormat {
    AnswerFormat::Choice {
        choices: vec!["a".to_owned(), "b".to_owned()],
    }
}

#[test]
fn each_dialect_writes_what_its_page_says() {
    let schema = json!({
        "type": "object", "properties": {"choice": {"type": "string", "enum": ["a", "b"]}},
        "required": ["choice"], "additionalProperties": false,
    });
    let (path, body) = request(Dialect::OpenaiChat, choice());
    assert_eq!(path, "/chat/completions");
    let expected = json!({
        "model": "m/1", "n": 1, "max_completion_tokens": 60, "temperature": 0.7, "seed": 7,
        "messages": [{"role": "system", "content": "Judge."}, {"role": "user", "content": "Hi"}],
        "response_format": {"type": "json_schema", "json_schema": {
            "name": "answer", "strict": true, "schema": schema}},
    });
    assert_eq!(body, expected);
    let (path, body) = request(Dialect::OpenaiResponses, choice());
    assert_eq!(path, "/responses");
    let expected = json!({
        "model": "m/1", "instructions": "Judge.", "input": "Hi", "store": false,
        "max_output_tokens": 60, "temperature": 0.7,
        "text": {"format": {"type": "json_schema", "name": "answer", "strict": true, "schema": schema}},
    });
    assert_eq!(body, expected);
    let (path, body) = request(Dialect::Anthropic, choice());
    assert_eq!(path, "/v1/messages");
    let expected = json!({
        "model": "m/1", "system": "Judge.", "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 60, "temperature": 0.7,
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    });
    assert_eq!(body, expected);
    let (path, body) = request(Dialect::Gemini, choice());
    assert_eq!(path, "/v1beta/models/m%2F1:generateContent");
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "Judge."}]},
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "generationConfig": {"maxOutputTokens": 60, "temperature": 0.7, "seed": 7,
            "responseMimeType": "application/json", "responseJsonSchema": schema},
    });
    assert_eq!(body, expected);
}

#[test]
fn log_probabilities_are_asked_for_where_there_are_any() {
    let (_, body) = request(Dialect::OpenaiChat, AnswerFormat::Logprobs);
    assert_eq!(
        (&body["logprobs"], &body["top_logprobs"]),
        (&json!(true), &json!(5))
    );
    let (_, body) = request(Dialect::OpenaiResponses, AnswerFormat::Logprobs);
    assert_eq!(body["include"], json!(["message.output_text.logprobs"]));
    let (_, body) = request(Dialect::Gemini, AnswerFormat::Logprobs);
    assert_eq!(body["generationConfig"]["responseLogprobs"], json!(true));
}

fn read(dialect: Dialect, body: &Value) -> ReplyReading {
    wire(dialect).read(body.to_string().as_bytes()).unwrap()
}

fn counts(of: &ReplyReading) -> [u64; 5] {
    let of = of.tokens.unwrap();
    [
        of.input,
        of.cache_read,
        of.cache_write,
        of.output,
        of.reasoning,
    ]
    .map(Count::value)
}

#[test]
fn tokens_are_counted_once_whatever_a_dialect_counts_twice() {
    let of = read(
        Dialect::OpenaiChat,
        &json!({
            "model": "m-1", "system_fingerprint": "fp", "choices": [{"finish_reason": "stop",
                "message": {"content": "x", "refusal": null}, "logprobs": null}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130,
                "prompt_tokens_details": {"cached_tokens": 60},
                "completion_tokens_details": {"reasoning_tokens": 20}},
        }),
    );
    assert_eq!((counts(&of), of.tokens_fit), ([40, 60, 0, 30, 20], true));
    assert_eq!(
        (of.stop, of.model.as_deref()),
        (StopCause::Done, Some("m-1"))
    );
    let of = read(
        Dialect::OpenaiResponses,
        &json!({
            "model": "m-1", "status": "completed",
            "output": [{"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": "x"}]}],
            "usage": {"input_tokens": 100, "output_tokens": 30, "total_tokens": 131,
                "input_tokens_details": {"cached_tokens": 60}},
        }),
    );
    assert_eq!((counts(&of), of.tokens_fit), ([40, 60, 0, 30, 0], false));
    let of = read(
        Dialect::Anthropic,
        &json!({
            "model": "m-1", "stop_reason": "end_turn", "content": [{"type": "text", "text": "x"}],
            "usage": {"input_tokens": 40, "output_tokens": 30, "cache_read_input_tokens": 50,
                "cache_creation_input_tokens": 10},
        }),
    );
    assert_eq!((counts(&of), of.tokens_fit), ([40, 50, 10, 30, 0], true));
    let of = read(
        Dialect::Gemini,
        &json!({
            "modelVersion": "m-1", "candidates": [{"finishReason": "STOP",
                "content": {"parts": [{"text": "hm", "thought": true}, {"text": "x"}]}}],
            "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10,
                "thoughtsTokenCount": 20, "cachedContentTokenCount": 60, "totalTokenCount": 130},
        }),
    );
    assert_eq!((counts(&of), of.tokens_fit), ([40, 60, 0, 30, 20], true));
    assert_eq!(of.text, "x");
}

#[test]
fn a_model_that_declines_or_stops_early_is_heard_in_each_dialect() {
    let chat = |finish: &str, refusal: Value| {
        read(
            Dialect::OpenaiChat,
            &json!({"choices": [{"finish_reason": finish,
            "message": {"content": null, "refusal": refusal}}]}),
        )
        .stop
    };
    assert_eq!(chat("stop", json!("no")), StopCause::Refusal);
    assert_eq!(chat("length", Value::Null), StopCause::Limit);
    assert_eq!(chat("content_filter", Value::Null), StopCause::Filter);
    let said = json!({"stop_reason": "refusal", "content": []});
    assert_eq!(read(Dialect::Anthropic, &said).stop, StopCause::Refusal);
    let said = json!({"status": "incomplete", "output": [],
        "incomplete_details": {"reason": "max_output_tokens"}});
    assert_eq!(read(Dialect::OpenaiResponses, &said).stop, StopCause::Limit);
    let said = json!({"promptFeedback": {"blockReason": "SAFETY"}});
    assert_eq!(read(Dialect::Gemini, &said).stop, StopCause::Filter);
}

#[test]
fn what_is_no_answer_is_not_read() {
    for dialect in Dialect::ALL {
        for body in [&b"<html>"[..], b"", b"[]", b"{}", b"\xff\xfe", b"null"] {
            assert_eq!(wire(*dialect).read(body), None, "{dialect}");
        }
    }
}

#[test]
fn a_log_probability_that_cannot_be_is_none() {
    let said = |logprob: &str| {
        let body = format!(
            r#"{{"choices":[{{"finish_reason":"stop","message":{{"content":"x"}},"logprobs":{{"content":[
            {{"token":"x","logprob":{logprob},"top_logprobs":[]}}]}}}}]}}"#
        );
        let read = wire(Dialect::OpenaiChat).read(body.as_bytes())?;
        read.tokens_said[0].masses[0].logprob_micro
    };
    assert_eq!(said("-0.25"), Some(-250_000));
    for text in ["0.5", "\"NaN\"", "null", "-1e400"] {
        assert_eq!(said(text), None, "{text}");
    }
}

#[test]
fn an_error_says_its_words_and_its_message() {
    let of = |body: Value| wire(Dialect::OpenaiChat).complaint(body.to_string().as_bytes());
    let body = json!({"error": {"code": "insufficient_quota", "type": "x", "message": "No."}});
    assert_eq!(of(body), "insufficient_quota: x: No.");
    assert_eq!(of(json!({"error": "model not found"})), "model not found");
    let plain = wire(Dialect::OpenaiChat).complaint(b"Bad Gateway");
    assert_eq!(plain, "Bad Gateway");
}

/// Servers that hold a model to a schema have it write the members in the order in which the schema names them, and that order
/// is the one that an answer has to have.
#[test]
fn a_schema_names_the_members_in_the_order_of_the_answer() {
    for dialect in Dialect::ALL.iter().copied() {
        let format = AnswerFormat::Json {
            form: "answer/1".into(),
            levels: vec![1, 2],
            reasoning: "before".into(),
            weighed: false,
        };
        let (_, body) = wire(dialect).request(&ask(format));
        let body = String::from_utf8(body).unwrap();
        let ordered = r#""properties":{"ticket":{"type":"string"},"reasoning":{"type":"string"},"score":{"enum":[1,2],"type":"integer"}}"#;
        assert!(body.contains(ordered), "{dialect}: {body}");
        let required = r#""required":["ticket","reasoning","score"]"#;
        assert!(body.contains(required), "{dialect}: {body}");
    }
}

/// No request is without tokens, and what was reasoned is said: tokens that cannot be do not fit. What has another form is no
/// usage, and the answer still counts.
#[test]
fn tokens_that_cannot_be_do_not_fit() {
    let chat = |usage: &str| {
        let body = format!(
            r#"{{"model":"m","choices":[{{"finish_reason":"stop","message":{{"content":"hi"}}}}],"usage":{usage}}}"#
        );
        wire(Dialect::OpenaiChat).read(body.as_bytes()).unwrap()
    };
    let fits = chat(r#"{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}"#);
    assert!(fits.tokens_fit && fits.tokens.is_some());
    let zero = chat(r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#);
    assert!(!zero.tokens_fit);
    let over = chat(
        r#"{"prompt_tokens":9,"completion_tokens":2,"completion_tokens_details":{"reasoning_tokens":6}}"#,
    );
    assert!(!over.tokens_fit);
    let hit = chat(r#"{"prompt_tokens":9,"completion_tokens":2,"prompt_cache_hit_tokens":4}"#);
    assert_eq!(hit.tokens.unwrap().cache_read, Count::new(4).unwrap());
    for odd in [
        r#"{"prompt_tokens":"9"}"#,
        r#"{"input_tokens":9,"output_tokens":2}"#,
        "null",
        "7",
    ] {
        let of = chat(odd);
        assert!(of.tokens.is_none() && of.text == "hi", "{odd}");
    }
}

#[test]
fn a_response_that_failed_is_no_answer_and_a_name_has_no_prefix() {
    for status in ["failed", "in_progress"] {
        let body = format!(r#"{{"model":"m","status":"{status}","output":[]}}"#);
        let read = wire(Dialect::OpenaiResponses).read(body.as_bytes());
        assert_eq!(read.unwrap().stop, StopCause::Failed, "{status}");
    }
    let body = r#"{"modelVersion":"models/m-1","candidates":[{"finishReason":"STOP","content":{"parts":[{"text":"a"}]}}]}"#;
    let read = wire(Dialect::Gemini).read(body.as_bytes()).unwrap();
    assert_eq!(read.model.as_deref(), Some("m-1"));
}
