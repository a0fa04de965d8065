//! Which facts each verb may answer with: one line a verb. `schema/cli/` holds a JSON Schema per verb, written from the
//! types; a debug build refuses an answer whose type its verb does not list.

use crate::view::analysis;
use crate::view::appended::Bodies;
use crate::view::appended::Stands;
use crate::view::appended::StandsAnd;
use crate::view::estimate;
use crate::view::family;
use crate::view::judge;
use crate::view::judge_drift;
use crate::view::ope;
use crate::view::qualify;
use crate::view::recalibrate;
use crate::view::replay;
use crate::view::score;
use crate::view::transport;
use crate::view::values::OnRecord;

/// Facts that a verb may answer with.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The verb as typed, without `clover`.
    pub verb: &'static str,
    /// Names of the types.
    pub types: fn() -> Vec<&'static str>,
    /// Their JSON Schemas.
    #[cfg(test)]
    schemas: fn(&mut schemars::SchemaGenerator) -> Vec<schemars::Schema>,
}

macro_rules! shapes {
    ($($verb:literal: $($facts:ty)|+;)*) => {
        /// Every verb, in the order of its name.
        pub const SHAPES: &[Shape] = &[$(Shape {
            verb: $verb,
            types: || vec![$(std::any::type_name::<$facts>()),+],
            #[cfg(test)]
            schemas: |generator| vec![$(generator.subschema_for::<$facts>()),+],
        }),*];
    };
}

shapes! {
    "analyze": analysis::AnalysisFacts;
    "audit transport": OnRecord<transport::AuditsFacts> | transport::Waiting;
    "compare": OnRecord<estimate::ContrastsFacts>;
    "deploy recalibrate": StandsAnd<recalibrate::RecalibrationFacts> | recalibrate::Rehearsed;
    "estimate": OnRecord<estimate::EstimatesFacts> | OnRecord<ope::OpeFacts>;
    "family close": StandsAnd<family::Holds> | Bodies;
    "family list": family::FamilyList;
    "family open": Stands | Bodies;
    "family show": family::FamilyShown;
    "judge drift": judge_drift::DriftFacts;
    "judge list": judge::JudgeList;
    "judge rescore-check": judge::Rescored;
    "judge run": judge::Scored;
    "qualify": qualify::QualifyFacts;
    "replay": replay::ReplayFacts;
    "score list": score::ScoreList;
    "score show": score::ScoreShown;
}

/// Whether a verb may answer with facts of this type.
pub fn is_answer(verb: &str, shape: &str) -> bool {
    // What no type describes yet is not held.
    if shape == std::any::type_name::<serde_json::Value>() {
        return true;
    }
    let found = SHAPES.iter().find(|of| of.verb == verb);
    found.is_none_or(|of| (of.types)().contains(&shape))
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "a test writes and reads the schemas"
)]
mod tests {
    use serde_json::Value;
    use serde_json::json;

    use super::*;

    /// The schema of everything that `--json` prints of a verb.
    fn schema(of: &Shape) -> Value {
        let mut generator = schemars::generate::SchemaSettings::draft2020_12().into_generator();
        let facts = (of.schemas)(&mut generator);
        let facts: Vec<Value> = facts.into_iter().map(Value::from).collect();
        let text = json!({"type": "string"});
        let texts = json!({"type": "array", "items": text});
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": format!("clover {} --json", of.verb),
            "description": "What the verb prints where it answers. A refusal has the same members: `ok` is false, `data` says why in `message`.",
            "type": "object",
            "additionalProperties": false,
            "required": ["ok", "verdict", "exit", "events", "checkpoint", "data", "warnings", "next"],
            "properties": {
                "ok": {"type": "boolean", "description": "Whether `exit` is 0."},
                "verdict": {"type": "string", "description": "How it ended, in one word."},
                "exit": {"type": "integer", "description": "The exit code."},
                "events": {"type": "array", "items": text, "description": "Ids of the events that it is about."},
                "checkpoint": {
                    "description": "The checkpoint after it.",
                    "anyOf": [
                        {"type": "null"},
                        {"type": "object", "required": ["size", "root"], "additionalProperties": false,
                         "properties": {"size": {"type": "integer"}, "root": text}}
                    ]
                },
                "data": if facts.len() == 1 { facts[0].clone() } else { json!({"anyOf": facts}) },
                "warnings": texts,
                "next": {"type": "array", "items": text, "description": "Commands to type next."}
            },
            "$defs": generator.take_definitions(true)
        })
    }

    #[test]
    fn the_schema_of_every_verb_stands_in_its_file() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/cli");
        let mut names = Vec::new();
        for of in SHAPES {
            let name = format!("{}.json", of.verb.replace(' ', "-"));
            let text = serde_json::to_string_pretty(&schema(of)).unwrap() + "\n";
            let path = format!("{folder}/{name}");
            if std::env::var_os("UPDATE").is_some() {
                std::fs::create_dir_all(folder).unwrap();
                std::fs::write(&path, &text).unwrap();
            }
            let kept = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(
                kept == text,
                "{path} differs from its types: UPDATE=1 cargo test --lib shapes"
            );
            names.push(name);
        }
        names.sort();
        let files = std::fs::read_dir(folder).unwrap();
        let mut files: Vec<_> = files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        assert_eq!(files, names);
    }

    #[test]
    fn verbs_stand_once_in_the_order_of_their_names() {
        let verbs: Vec<_> = SHAPES.iter().map(|of| of.verb).collect();
        assert!(verbs.is_sorted_by(|one, two| one < two), "{verbs:?}");
    }
}
