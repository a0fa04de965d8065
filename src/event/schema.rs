//! JSON Schemas in `schema/event/`, and all of them as one object in `schema/events.json`, are generated
//! from the payload types; this test compares them, and writes them when run with `UPDATE=1`.
#![expect(
    clippy::disallowed_methods,
    reason = "a test reads and writes the files themselves"
)]

use std::path::Path;

use crate::event::registry;

#[test]
fn schemas_on_disk_are_those_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/event");
    let update = std::env::var_os("UPDATE").is_some();
    std::fs::create_dir_all(&folder).unwrap();
    let mut expected = std::collections::BTreeMap::new();
    let mut all = serde_json::Map::new();
    for (kind, v, schema) in registry::schemas() {
        let mut schema = serde_json::to_value(schema).unwrap();
        let object = schema.as_object_mut().unwrap();
        object.insert("$id".to_owned(), format!("clover:event/{kind}.v{v}").into());
        object.insert("title".to_owned(), format!("data of {kind} v{v}").into());
        all.insert(format!("{kind}.v{v}"), schema.clone());
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        expected.insert(format!("{kind}.v{v}.json"), text);
    }
    for (name, text) in &expected {
        let path = folder.join(name);
        if update {
            std::fs::write(&path, text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            &found, text,
            "{name} differs from its type; run UPDATE=1 cargo nextest run schema"
        );
    }
    let (path, text) = (
        folder.with_file_name("events.json"),
        serde_json::to_string(&all).unwrap() + "\n",
    );
    if update {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        found, text,
        "schema/events.json differs from the types; run UPDATE=1 cargo nextest run schema"
    );
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            expected.contains_key(&name),
            "schema/event/{name} belongs to no kind"
        );
    }
}
