//! The one object of `--json`: `{ok,verdict,exit,events,checkpoint,data,warnings,next}`.

use std::fmt::Write as _;

use serde_json::Value;
use serde_json::json;

use crate::ground::name::is_unsafe;
use crate::view::Exit;
use crate::view::View;

/// Everything of the object but its facts.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'a> {
    /// How the run ends.
    pub exit: Exit,
    /// One word.
    pub verdict: &'a str,
    /// Ids of events.
    pub events: &'a [String],
    /// Size and root.
    pub checkpoint: Option<&'a (u64, String)>,
    /// Remarks that must not be missed.
    pub warnings: &'a [String],
    /// What to type next.
    pub next: &'a [String],
}

/// The object of a view.
pub fn json(view: &View, warnings: &[String]) -> String {
    let envelope = Envelope {
        exit: view.exit,
        verdict: view.verdict,
        events: &view.events,
        checkpoint: view.checkpoint.as_ref(),
        warnings,
        next: &view.next,
    };
    object(envelope, view.facts())
}

/// Facts in which no zero has a sign: it says nothing, and readers of JSON differ about it.
fn unsigned(facts: &Value) -> Value {
    match facts {
        Value::Number(number) if number.as_f64() == Some(0.0) && number.is_f64() => json!(0.0),
        Value::Array(items) => items.iter().map(unsigned).collect(),
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, value)| (name.clone(), unsigned(value)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

/// The object of an envelope and its facts, with a line break.
pub fn object(envelope: Envelope<'_>, facts: &Value) -> String {
    let facts = unsigned(facts);
    let checkpoint = envelope.checkpoint;
    let checkpoint = checkpoint.map(|(size, root)| json!({"size": size, "root": root}));
    let text = format!(
        "{{\"ok\":{},\"verdict\":{},\"exit\":{},\"events\":{},\"checkpoint\":{},\"data\":{facts},\"warnings\":{},\"next\":{}}}\n",
        envelope.exit == Exit::Done,
        json!(envelope.verdict),
        envelope.exit.code(),
        json!(envelope.events),
        json!(checkpoint),
        json!(envelope.warnings),
        json!(envelope.next),
    );
    escaped(&text)
}

/// JSON whose strings hold no raw control character that JSON itself allows.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && is_unsafe(c) {
            // Everything unsafe beyond ASCII lies in the basic plane: one \u escape.
            write!(out, "\\u{:04x}", u32::from(c)).expect("BUG: a String takes every write");
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_has_no_sign() {
        let facts = json!({"a": [-0.0, -0.5, 0, 7], "b": {"c": -0.0}});
        let text = unsigned(&facts).to_string();
        assert_eq!(text, r#"{"a":[0.0,-0.5,0,7],"b":{"c":0.0}}"#);
    }

    #[test]
    fn control_characters_never_stand_raw_in_a_string() {
        assert_eq!(escaped("\"\u{9b}\"\n"), "\"\\u009b\"\n");
    }
}
