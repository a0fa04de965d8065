//! The JSON Schema of the language, for editors and other tools.
//!
//! A schema cannot say that a path is written before it is read: what it takes, the checker may still refuse.

use serde_json::Value;
use serde_json::json;

use crate::number::DECIMALS_MAX;
use crate::workflow::INPUTS_MAX;
use crate::workflow::LANGUAGE;
use crate::workflow::PROMPT_MAX;
use crate::workflow::STEPS_MAX;
use crate::workflow::TRIES_MAX;

/// An object that has these members and no others.
#[expect(
    clippy::needless_pass_by_value,
    reason = "schemas are put together of values"
)]
fn closed(required: &[&str], properties: Value) -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    })
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

/// The JSON Schema (2020-12) of a workflow.
pub fn json_schema() -> Value {
    let mut root = closed(
        &["ir", "inputs", "steps", "return"],
        json!({
            "ir": {"const": LANGUAGE},
            "inputs": {"type": "array", "maxItems": INPUTS_MAX, "uniqueItems": true, "items": reference("name")},
            "defaults": closed(&[], settings()),
            "steps": {"type": "array", "minItems": 1, "maxItems": STEPS_MAX, "items": reference("step")},
            "return": reference("path"),
        }),
    );
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("A workflow of model calls, wf/1");
    root["$defs"] = json!({
        "name": {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,31}$", "not": {"const": "flags"}},
        "path": {"type": "string", "pattern": r"^[a-z][a-z0-9_]{0,31}(\.[A-Za-z0-9_-]{1,64}){0,11}$"},
        "pattern": {"type": "string", "minLength": 1, "maxLength": 200},
        "schema": shape(),
        "step": {"oneOf": [llm(), check(), guard(), map(), ending()]},
        "expression": {"oneOf": expressions()},
        "operand": {"oneOf": [
            closed(&["path"], json!({"path": reference("path")})),
            closed(&["const"], json!({"const": true})),
            closed(&["op", "path"], json!({"op": {"const": "len"}, "path": reference("path")})),
        ]},
    });
    root
}

fn settings() -> Value {
    json!({
        "model": {"type": "string", "minLength": 1, "maxLength": 200},
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "max_tokens": {"type": "integer", "minimum": 1, "maximum": 32_768},
        "seed": {"type": "integer", "minimum": 0, "maximum": clover_num::INTEGER_MAX},
    })
}

fn llm() -> Value {
    let prompt = json!({"type": "string", "minLength": 1, "maxLength": PROMPT_MAX});
    let mut step = closed(
        &["id", "kind", "prompt", "reads", "writes"],
        json!({
            "id": reference("name"),
            "kind": {"const": "llm"},
            "prompt": closed(&["user"], json!({"system": prompt, "user": prompt})),
            "reads": {"type": "array", "maxItems": 16, "items": reference("path")},
            "out": closed(&["as"], json!({"as": {"enum": ["json", "text"]}, "schema": reference("schema")})),
            "writes": reference("name"),
        }),
    );
    if let (Some(all), Value::Object(more)) = (step["properties"].as_object_mut(), settings()) {
        all.extend(more);
    }
    step
}

fn check() -> Value {
    closed(
        &["id", "kind", "expr", "hard"],
        json!({
            "id": reference("name"),
            "kind": {"const": "check"},
            "expr": reference("expression"),
            "hard": {"type": "boolean"},
            "flag": reference("name"),
        }),
    )
}

fn guard() -> Value {
    closed(
        &["id", "kind", "target", "when", "max_tries"],
        json!({
            "id": reference("name"),
            "kind": {"const": "guard"},
            "target": reference("name"),
            "when": reference("expression"),
            "max_tries": {"type": "integer", "minimum": 1, "maximum": TRIES_MAX},
            "note": {"type": "string", "minLength": 1, "maxLength": 400},
        }),
    )
}

fn ending() -> Value {
    closed(
        &["id", "kind", "path"],
        json!({
            "id": reference("name"),
            "kind": {"const": "return"},
            "path": reference("path"),
            "when": reference("expression"),
        }),
    )
}

fn map() -> Value {
    let path = reference("path");
    let only = closed(&["path"], json!({"path": path}));
    let functions = [
        ("select", only.clone()),
        ("parse_json", only.clone()),
        ("lower", only),
        (
            "merge",
            closed(
                &["paths"],
                json!({"paths": {"type": "array", "maxItems": 16, "items": path}}),
            ),
        ),
        (
            "regex",
            closed(
                &["path", "pattern"],
                json!({
                    "path": path,
                    "pattern": reference("pattern"),
                    "group": {"type": "integer", "minimum": 0, "maximum": 50},
                    "else": true,
                }),
            ),
        ),
        (
            "round",
            closed(
                &["path", "decimals"],
                json!({
                    "path": path,
                    "decimals": {"type": "integer", "minimum": 0, "maximum": DECIMALS_MAX},
                    "ties": {"enum": ["even", "away"]},
                }),
            ),
        ),
        (
            "lookup",
            closed(
                &["path", "table"],
                json!({"path": path, "table": {"type": "object", "maxProperties": 256}, "else": true}),
            ),
        ),
        (
            "concat",
            closed(
                &["template"],
                json!({"template": {"type": "string", "minLength": 1, "maxLength": PROMPT_MAX}}),
            ),
        ),
        ("const", closed(&["value"], json!({"value": true}))),
    ];
    let function = |(word, args): (&str, Value)| {
        closed(
            &["id", "kind", "fn", "args", "writes"],
            json!({
                "id": reference("name"),
                "kind": {"const": "map"},
                "fn": {"const": word},
                "args": args,
                "writes": reference("name"),
            }),
        )
    };
    json!({"oneOf": functions.into_iter().map(function).collect::<Vec<_>>()})
}

fn expressions() -> Vec<Value> {
    let (path, expression, operand) = (
        reference("path"),
        reference("expression"),
        reference("operand"),
    );
    let of = |required: &[&str], properties: Value| closed(required, properties);
    vec![
        of(
            &["op", "of"],
            json!({"op": {"enum": ["and", "or"]}, "of": {"type": "array", "maxItems": 16, "items": expression}}),
        ),
        of(
            &["op", "of"],
            json!({"op": {"const": "not"}, "of": expression}),
        ),
        of(
            &["op", "a", "b"],
            json!({"op": {"enum": ["eq", "ne", "lt", "le", "gt", "ge", "in"]}, "a": operand, "b": operand}),
        ),
        of(
            &["op", "path", "pattern"],
            json!({"op": {"const": "regex"}, "path": path, "pattern": reference("pattern")}),
        ),
        of(
            &["op", "path", "schema"],
            json!({"op": {"const": "schema"}, "path": path, "schema": reference("schema")}),
        ),
        of(
            &["op", "path"],
            json!({"op": {"const": "exists"}, "path": path}),
        ),
        of(
            &["op", "id"],
            json!({"op": {"const": "flag"}, "id": {"type": "string"}}),
        ),
    ]
}

fn shape() -> Value {
    let types = [
        "null", "boolean", "integer", "number", "string", "array", "object",
    ];
    let count = json!({"type": "integer", "minimum": 0, "maximum": 1_000_000});
    let text = json!({"type": "string", "minLength": 1, "maxLength": 400});
    closed(
        &[],
        json!({
            "type": {"anyOf": [
                {"enum": types},
                {"type": "array", "maxItems": types.len(), "items": {"enum": types}},
            ]},
            "title": text,
            "description": text,
            "enum": {"type": "array", "maxItems": 64},
            "const": true,
            "properties": {"type": "object", "maxProperties": 64, "additionalProperties": reference("schema")},
            "required": {"type": "array", "maxItems": 64, "items": text},
            "additionalProperties": {"type": "boolean"},
            "items": reference("schema"),
            "minItems": count,
            "maxItems": count,
            "minLength": count,
            "maxLength": count,
            "pattern": reference("pattern"),
            "minimum": {"type": "number"},
            "maximum": {"type": "number"},
        }),
    )
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "a test writes and reads the schema"
)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_stands_in_its_file() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/workflow.json");
        let text = serde_json::to_string_pretty(&json_schema()).unwrap() + "\n";
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            kept == text,
            "{path}: UPDATE=1 cargo test -p clover-flow --lib language"
        );
    }
}
