//! The body that an llm step sends, as OpenAI-compatible endpoints take it.

use crate::number::Number;
use crate::value::Data;
use crate::workflow::LlmStep;

/// The body of a request.
pub(crate) fn body(step: &str, llm: &LlmStep, system: Option<String>, user: String) -> Data {
    let message = |role: &str, text: String| {
        Data::object([("role", role.into()), ("content", Data::Text(text))])
    };
    let system = system.map(|text| message("system", text));
    let messages = system.into_iter().chain([message("user", user)]);
    let count = |count: u64| {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Data::Number(Number::of_count(count))
    };
    let mut body = Data::object([
        ("model", llm.settings.model.as_str().into()),
        ("temperature", llm.settings.temperature.into()),
        ("max_tokens", count(llm.settings.max_tokens)),
        ("seed", count(llm.settings.seed)),
        ("messages", Data::List(messages.collect())),
    ]);
    if let (Data::Object(members), true) = (&mut body, llm.is_json) {
        members.insert("response_format".to_owned(), format(step, llm));
    }
    body
}

fn format(step: &str, llm: &LlmStep) -> Data {
    let Some(shape) = &llm.shape else {
        return Data::object([("type", "json_object".into())]);
    };
    let schema = Data::object([
        ("name", step.into()),
        ("schema", shape.document().clone()),
        ("strict", true.into()),
    ]);
    Data::object([("type", "json_schema".into()), ("json_schema", schema)])
}
