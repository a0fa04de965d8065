//! Tables as Parquet, read by pyarrow: the same rows as the tables of CSV. A Python with pyarrow is `CLOVER_PYARROW`, else
//! `python3`; without one the test says that it skipped.

use serde_json::Value;

use super::Desk;
use super::score_line;
use crate::support::verifiers;

/// Prints every table as JSON: its columns with their types, its rows, and the checkpoint that it names.
const READ: &str = r#"
import json, os, sys
import pyarrow.parquet as pq
out = {}
for name in sorted(os.listdir(sys.argv[1])):
    table = pq.read_table(os.path.join(sys.argv[1], name))
    rows = table.to_pylist()
    for row in rows:
        row["recorded_at"] = row["recorded_at"].isoformat()
    checkpoint = json.loads(table.schema.metadata[b"clover.checkpoint"])
    columns = {field.name: str(field.type) for field in table.schema}
    out[name] = {"checkpoint": checkpoint, "columns": columns, "rows": rows}
print(json.dumps(out))
"#;

fn reader() -> Option<std::process::Command> {
    let mut found = verifiers::python3();
    if let Some(path) = std::env::var_os("CLOVER_PYARROW") {
        found = std::process::Command::new(path);
    }
    let has = found.args(["-c", "import pyarrow"]).output();
    let has = has.is_ok_and(|ran| ran.status.success());
    let program = found.get_program().to_owned();
    has.then(|| std::process::Command::new(program))
}

#[test]
fn tables_as_parquet_are_those_of_csv() {
    let mut desk = Desk::with_ledger();
    let file = desk.file("s.jsonl", &[score_line("=a"), score_line("b")].concat());
    desk.ok(&format!("append --bulk {file}"));
    desk.ok("export csv -o tables");
    desk.ok("export parquet -o columns");
    let names = |folder: &str| {
        let read = std::fs::read_dir(desk.at.join(folder)).unwrap();
        let names = read.map(|file| file.unwrap().file_name().into_string().unwrap());
        let stems = names.filter_map(|name| name.split_once('.').map(|(stem, _)| stem.to_owned()));
        let mut stems: Vec<_> = stems.filter(|stem| stem != "csv-metadata").collect();
        stems.sort();
        stems
    };
    assert_eq!(names("columns"), names("tables"));
    let Some(mut python) = reader() else {
        println!("skipped: no Python with pyarrow; CLOVER_PYARROW names one");
        return;
    };
    let ran = python
        .args(["-c", READ])
        .arg(desk.at.join("columns"))
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let found: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let size = found["events.parquet"]["checkpoint"]["size"]
        .as_u64()
        .unwrap();
    assert_eq!(
        found["events.parquet"]["rows"].as_array().unwrap().len() as u64,
        size
    );
    let scores = &found["scores.parquet"];
    assert_eq!(scores["columns"]["score"], "string");
    assert_eq!(scores["columns"]["score_float"], "double");
    assert_eq!(scores["columns"]["recorded_at"], "timestamp[us, tz=UTC]");
    let rows = scores["rows"].as_array().unwrap();
    let mut csv = csv::Reader::from_path(desk.at.join("tables/scores.csv")).unwrap();
    let headers = csv.headers().unwrap().clone();
    let written: Vec<_> = csv.records().map(Result::unwrap).collect();
    assert_eq!((rows.len(), written.len()), (2, 2));
    for (row, csv) in rows.iter().zip(&written) {
        for (name, text) in headers.iter().zip(csv) {
            let value = match &row[name] {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            };
            match name {
                // A spreadsheet gets an apostrophe, and other readers the text as it is.
                "item" => assert_eq!(value, text.trim_start_matches('\'')),
                "recorded_at" => assert_eq!(value[..19], text[..19]),
                _ => assert_eq!(value, text, "{name}"),
            }
        }
        assert_eq!(row["score_float"].as_f64().unwrap(), 5e-6);
    }
}
