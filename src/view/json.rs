//! The one object of `--json`: `{ok,verdict,exit,events,checkpoint,data,warnings,next}`.

use std::fmt::Write as _;

use serde_json::Value;
use serde_json::json;

use crate::view::Exit;
use crate::view::View;
use crate::view::text::is_unsafe;

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

/// The object of an envelope and its facts, with a line break.
pub fn object(envelope: Envelope<'_>, facts: &Value) -> String {
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
    fn control_characters_never_stand_raw_in_a_string() {
        assert_eq!(escaped("\"\u{9b}\"\n"), "\"\\u009b\"\n");
    }
}
