//! Files of other tools that hold less than they seem to: failed samples, runs that ended early, one page of several.

use super::Desk;
use super::tools;

/// The text of a fixture.
fn fixture(name: &str) -> String {
    let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/imports");
    std::fs::read_to_string(from.join(name)).unwrap()
}

/// A fixture in which one part reads otherwise, in the working folder.
fn put(desk: &Desk, name: &str, part: &str, other: &str) {
    let text = fixture(name);
    assert!(text.contains(part), "{part} is not in {name}");
    desk.file(name, &text.replacen(part, other, 1));
}

/// How many scores an import recorded, and what it said beside.
fn taken(desk: &mut Desk, line: &str) -> (u64, String) {
    let ran = desk.ok(&format!("{line} --json"));
    let new = ran.json()["data"]["recorded"]["scores"]["new"].as_u64();
    (new.unwrap(), ran.err)
}

#[test]
fn a_score_beside_an_error_is_none() {
    let mut desk = tools::desk();
    let failed = "failed: 1 rows have an error beside a score";
    // Given three evaluations of which one failed without a value; when another has an error beside its value.
    let error = r#"{"key":"error.type","value":{"stringValue":"timeout"}},"#;
    let part = r#"{"key":"gen_ai.evaluation.score.value","value":{"doubleValue":0.85}},"#;
    put(&desk, "otel.json", part, &format!("{error}{part}"));
    let (scores, said) = taken(&mut desk, "import otel otel.json");
    assert_eq!(scores, 1);
    for part in [failed, "declined: 2 rows have no score"] {
        assert!(said.contains(part), "{said}");
    }
    // Of OpenAI evals the error is an event of its own.
    let event = r#"{"run_id": "25112010000AAAA", "event_id": 9, "sample_id": "m.dev.4", "type": "error", "data": {"type": "Timeout", "message": "no answer"}}"#;
    put(
        &desk,
        "openai-evals.jsonl",
        "{\"final_report\"",
        &format!("{event}\n{{\"final_report\""),
    );
    let (scores, said) = taken(
        &mut desk,
        "import openai-evals openai-evals.jsonl --score correct",
    );
    assert_eq!(scores, 1);
    assert!(said.contains(failed), "{said}");
    // And of Inspect a member of the sample.
    let log = r#"{"version":2,"status":"success","invalidated":true,"eval":{"task":"t","model":"m"},"samples":[
        {"id":1,"epoch":1,"input":"Why?","scores":{"acc":{"value":0}},"error":{"message":"out of memory"}},
        {"id":2,"epoch":1,"input":"Why?","scores":{"acc":{"value":1}}}]}"#;
    desk.file("log.json", log);
    let (scores, said) = taken(&mut desk, "import inspect log.json");
    assert_eq!(scores, 1);
    for part in [failed, "people marked samples of this log as invalid"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_run_that_was_never_scored_says_its_status() {
    let mut desk = tools::desk();
    let log = r#"{"version":2,"status":"error","eval":{"task":"t","model":"m"},"samples":[{"id":1,"epoch":1,"input":"Why?"}]}"#;
    desk.file("log.json", log);
    desk.refused(
        &["import", "inspect", "log.json", "--score", "acc"],
        4,
        &["the status of this run is error"],
    );
    desk.file("log.json", &log.replace("\"error\"", "\"success\""));
    let ran = desk.refused(
        &["import", "inspect", "log.json", "--score", "acc"],
        4,
        &["expected a score \"acc\", found no score at all"],
    );
    assert!(!ran.err.contains("one of ,"), "{}", ran.err);
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    let mut desk = tools::desk();
    let part = r#"{"key":"gen_ai.evaluation.score.value","value":{"doubleValue":0.85}},"#;
    let other = part.replace("0.85", "0.1");
    put(&desk, "otel.json", part, &format!("{part}{other}"));
    desk.refused(
        &["import", "otel", "otel.json"],
        4,
        &["found gen_ai.evaluation.score.value twice"],
    );
    let event = "{\"run_id\": \"25112010000AAAA\", \"event_id\": 3";
    put(
        &desk,
        "openai-evals.jsonl",
        event,
        &event.replace("AAAA", "BBBB"),
    );
    desk.refused(
        &[
            "import",
            "openai-evals",
            "openai-evals.jsonl",
            "--score",
            "correct",
        ],
        4,
        &[
            "openai-evals.jsonl:5: run_id",
            "found \"25112010000BBBB\"",
            "each run is a file",
        ],
    );
}

#[test]
fn a_page_of_several_is_said() {
    let mut desk = tools::desk();
    let text = fixture("langfuse-page.json");
    let mut page: serde_json::Value = serde_json::from_str(&text).unwrap();
    page["meta"] = serde_json::json!({"limit": 6, "page": 1, "totalItems": 17, "totalPages": 3});
    desk.file("page.json", &page.to_string());
    let line = "import langfuse page.json --policy base --as judge --score helpful --dry-run";
    let of_three = desk.run(line);
    let said = "this file has 6 of 17 scores";
    assert!(of_three.err.contains(said), "{}", of_three.err);
    page["meta"] = serde_json::json!({"limit": 6, "page": 1, "totalItems": 6, "totalPages": 1});
    desk.file("page.json", &page.to_string());
    let of_one = desk.run(line);
    assert!(!of_one.err.contains("every page"), "{}", of_one.err);
}
