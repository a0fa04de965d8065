//! JSON Schemas in `schema/event/` and golden bodies in `fixtures/golden/`, one of each per kind and version,
//! and all schemas as one object in `schema/events.json`, are generated from the payload types; these tests
//! compare them, and write them when run with `UPDATE=1`.
#![expect(
    clippy::disallowed_methods,
    reason = "a test reads and writes the files themselves"
)]

use std::collections::BTreeMap;
use std::path::Path;

use clover_ground::canon;
use serde_json::Value;
use serde_json::json;

use crate::header;
use crate::registry;
use crate::registry::Kind;

/// The folder of the workspace.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The schema of every kind and version by file name.
fn schemas() -> BTreeMap<String, (&'static str, u32, Value)> {
    let schemas = registry::schemas().into_iter().map(|(kind, v, schema)| {
        let mut schema = serde_json::to_value(schema).unwrap();
        absent_is_never_null(&mut schema);
        let object = schema.as_object_mut().unwrap();
        object.insert("$id".to_owned(), format!("clover:event/{kind}.v{v}").into());
        object.insert("title".to_owned(), format!("data of {kind} v{v}").into());
        (format!("{kind}.v{v}.json"), (kind, v, schema))
    });
    schemas.collect()
}

/// An optional field is absent when there is nothing to say; null would be a second form of the same.
fn absent_is_never_null(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|of| of != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    fields.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(choices)) = fields.get_mut("anyOf") {
                choices.retain(|choice| choice["type"] != "null");
                if let [Value::Object(only)] = choices.as_slice() {
                    let only = only.clone();
                    fields.remove("anyOf");
                    fields.extend(only);
                }
            }
            fields.values_mut().for_each(absent_is_never_null);
        }
        Value::Array(items) => items.iter_mut().for_each(absent_is_never_null),
        _ => {}
    }
}

/// A value that a schema allows, with every field.
fn example(schema: &Value, root: &Value) -> Value {
    if let Some(name) = schema["$ref"].as_str() {
        let target = root.pointer(name.trim_start_matches('#'));
        return example(target.expect("a definition"), root);
    }
    if let Some(choices) = ["oneOf", "anyOf"]
        .iter()
        .find_map(|of| schema[of].as_array())
    {
        return example(&choices[0], root);
    }
    if let Some(word) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return word.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let fields = schema["properties"].as_object().unwrap();
            let fields = fields.iter();
            fields
                .map(|(name, field)| (name.clone(), example(field, root)))
                .collect()
        }
        Some("array") => json!([example(&schema["items"], root)]),
        Some("boolean") => json!(true),
        Some("integer") if schema["minimum"].as_i64() < Some(0) => json!(-250_000),
        Some("integer") => json!(1),
        Some("number") if schema["minimum"] == 0 => json!(0.25),
        Some("number") => json!(-14.726_269_679_999_916),
        Some("string") => example_text(schema).into(),
        other => panic!("no example for the type {other:?}: {schema}"),
    }
}

fn example_text(schema: &Value) -> String {
    let patterns = [
        (
            "^[0-9a-f]{64}$",
            "788de5096f8b530eef97a4015cffb7cfeb260c23795b846bf8112682a93b1101",
        ),
        (
            "^[A-Za-z0-9+/]{43}=$",
            "hxM55qLn+5O6kx5cjnCwzm1Y/QTmqeyFBtuXgS6QRME=",
        ),
        (
            "^[^+ ]+\\+[0-9a-f]{8}\\+[A-Za-z0-9+/]{44}$",
            "ledger.example/exp1+4fdfa565+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4",
        ),
        (
            "^age1[02-9ac-hj-np-z]{58}$",
            "age1vpd8yhf2ft07avdznct7m43pcxm4j0hgek7yftrvf2mw97q96g7qz68n63",
        ),
        (
            "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}Z$",
            "2026-11-20T10:00:00.000000Z",
        ),
        ("^[!-*,-@\\[-~]+$", "ledger.example/exp1"),
        ("^[!-~]+/[!-~]+$", "text/plain"),
    ];
    if let Some(pattern) = schema["pattern"].as_str() {
        let known = patterns.iter().find(|(known, _)| *known == pattern);
        return known
            .unwrap_or_else(|| panic!("give an example of {pattern} in src/event/schema.rs"))
            .1
            .to_owned();
    }
    // A base URL is the one text of this length: its form is more than a pattern says.
    if schema["maxLength"] == 2_000 {
        return "https://api.example.com/v1".to_owned();
    }
    if schema["contentEncoding"] == "base64" {
        // 32 bytes make 43 digits and one padding, 64 make 86 and two.
        return match schema["minLength"].as_u64() {
            Some(44) => format!("{}=", "A".repeat(43)),
            Some(88) => format!("{}==", "A".repeat(86)),
            None => "AAAA".to_owned(),
            other => {
                panic!("give an example of base64 of {other:?} characters in src/event/schema.rs")
            }
        };
    }
    "text-1".to_owned()
}

/// Compares a file with what it should be, after writing it where `UPDATE` is set.
fn compare_file(path: &Path, bytes: &[u8]) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, bytes).unwrap();
    }
    assert!(
        std::fs::read(path).unwrap_or_default() == bytes,
        "{} differs from its type; run UPDATE=1 cargo test schema",
        path.display()
    );
}

/// Compares a folder with what its files should be.
fn compare(folder: &str, expected: &BTreeMap<String, Vec<u8>>) {
    let path = Path::new(ROOT).join(folder);
    std::fs::create_dir_all(&path).unwrap();
    for (name, bytes) in expected {
        compare_file(&path.join(name), bytes);
    }
    for entry in std::fs::read_dir(&path).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            expected.contains_key(&name),
            "{folder}/{name} belongs to no kind"
        );
    }
}

#[test]
fn schemas_on_disk_are_those_of_the_types() {
    let text = |schema| (serde_json::to_string_pretty(schema).unwrap() + "\n").into_bytes();
    let expected = schemas();
    let files = expected.iter();
    let files = files.map(|(name, (_, _, schema))| (name.clone(), text(schema)));
    compare("schema/event", &files.collect());
    let all = expected.iter();
    let all = all.map(|(name, (_, _, schema))| (name.trim_end_matches(".json").to_owned(), schema));
    let all = serde_json::to_string(&all.collect::<BTreeMap<_, _>>()).unwrap() + "\n";
    let path = Path::new(ROOT).join("schema/events.json");
    compare_file(&path, all.as_bytes());
}

#[test]
fn golden_bodies_of_every_schema_decode_and_stay_as_they_are() {
    let mut expected = BTreeMap::new();
    for (name, (kind, v, schema)) in schemas() {
        let body = canon::to_bytes(&json!({
            "at": "2026-11-20T10:00:00.000000Z",
            "author": "788de5096f8b530eef97a4015cffb7cfeb260c23795b846bf8112682a93b1101",
            "author_seq": 7, "data": example(&schema, &schema), "experiment": "exp-1", "kind": kind,
            "ledger": "ledger.example/exp1", "refs": [],
            "seen": {"root": "hxM55qLn+5O6kx5cjnCwzm1Y/QTmqeyFBtuXgS6QRME=", "size": 4}, "v": v,
        }));
        let body = body.unwrap();
        let decoded = header::decode(&body).unwrap();
        let payload = decoded
            .payload
            .as_ref()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((payload.kind().as_str(), decoded.v), (kind, v));
        expected.insert(name, body);
    }
    compare("fixtures/golden", &expected);
}

/// The type of a property, by the name of its definition.
fn defined(property: &Value) -> &str {
    let path = property["$ref"].as_str().unwrap_or_default();
    path.trim_start_matches("#/$defs/")
}

/// Kinds whose terms may name an iteration's scores, and that belong to the experiment all the same.
const OF_THE_EXPERIMENT: [Kind; 5] = [
    Kind::ContrastRecorded,
    Kind::EnvironmentsTested,
    Kind::EstimateRecorded,
    Kind::PlanRecorded,
    Kind::TransportTested,
];

/// Properties that name an iteration, a gate and rows, as far as a schema shows them.
fn fields_of(kind: Kind, schema: &Value) -> [Vec<&str>; 3] {
    let properties = schema["properties"].as_object().unwrap();
    let all = |wanted: &dyn Fn(&str, &Value) -> bool| {
        let found = properties.iter().filter(|(name, of)| wanted(name, of));
        found.map(|(name, _)| name.as_str()).collect()
    };
    let is_rows = |of: &Value| {
        let inner = &schema["$defs"][defined(of)]["properties"]["inputs"];
        [of, inner].iter().any(|of| defined(of) == "RowsRead")
    };
    [
        all(&|_, of| match defined(of) {
            "EstimateTerms" => !OF_THE_EXPERIMENT.contains(&kind),
            name => name == "IterationId",
        }),
        all(&|name, of| name == "gate" && defined(of) == "ManifestId"),
        all(&|_, of| is_rows(of)),
    ]
}

#[test]
fn the_registry_names_every_field_that_kinds_share() {
    for (kind, v, schema) in schemas().values() {
        let kind: Kind = kind.parse().unwrap();
        if kind.version() != *v {
            continue;
        }
        let fields = kind.fields();
        let named = [fields.iteration, fields.gate, fields.inputs];
        let named = named.map(Vec::from_iter);
        assert_eq!(named, fields_of(kind, schema), "{kind}");
    }
}
