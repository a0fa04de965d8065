//! Words of rows in what a run took in: `clover verify --recompute` looks again, beside the vault.

use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::sgd::desk;

/// A desk with a run whose agents are a program that gives nothing: a gradient is due. With the response of a row of the run.
fn waiting() -> (Desk, String) {
    let mut desk = desk(60, 3);
    desk.ok("sgd open one --judge sim --simulated --prompt judge.md --steps 2 --agents false");
    assert_eq!(desk.run("sgd run one --agents false").code, 11);
    let rows = std::fs::read_to_string(desk.folder.path().join("work/rows.jsonl")).unwrap();
    let row: Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    (desk, row["response"].as_str().unwrap().to_owned())
}

fn gradient(attribution: &str) -> String {
    let item = json!({"attribution": attribution, "class": "A", "confidence": 700_000, "direction": "tighten",
        "target_section": "bias"});
    let gradient = json!({"anchors": [], "items": [item], "step": 0}).to_string();
    json!({"gradient": gradient, "run": "one", "step": 0}).to_string()
}

/// Given agents that repeat a row, recorded past the program that looks; when the ledger is verified beside the vault; then the
/// gradient is named, and without texts nothing is said against it.
#[test]
fn a_gradient_with_words_of_a_row_is_found_beside_the_vault() {
    let (mut desk, response) = waiting();
    let words: String = response.chars().take(60).collect();
    let data = gradient(&words);
    desk.ok_words(&[
        "record",
        "sgd.gradient_returned",
        "--experiment",
        "tune",
        "--data",
        &data,
    ]);
    assert_eq!(desk.run("verify").code, 0);
    let again = desk.run("verify --recompute");
    assert_eq!(again.code, 3, "{}{}", again.out, again.err);
    assert!(
        again.out.contains("without words of its rows"),
        "{}",
        again.out
    );
}

/// Given an honest patch that is rejected for words of a row; when the ledger is verified beside the vault; then the rejection is
/// named.
#[test]
fn a_rejection_for_words_that_are_not_there_is_found_beside_the_vault() {
    let (mut desk, _) = waiting();
    let data = gradient("Long answers are scored too high.");
    desk.ok_words(&[
        "record",
        "sgd.gradient_returned",
        "--experiment",
        "tune",
        "--data",
        &data,
    ]);
    let run = desk.ok("sgd show one --prompt 0 --json").json()["data"].clone();
    let parent = run["prompt_digest"].as_str().unwrap().to_owned();
    let diff = "--- a/sections/bias.md\n+++ b/sections/bias.md\n@@ -1 +1,2 @@\n Treat every answer alike, whoever wrote it.\n\
                +Length is no merit.\n";
    let patch = json!({"addresses": [0], "patch": {"diff": diff, "parent": parent, "section": "bias"},
        "rationale": "Say that length is no merit."});
    let data = json!({"attempt": 0, "parent_digest": parent, "patch": patch.to_string(), "run": "one", "step": 0});
    desk.ok_words(&[
        "record",
        "sgd.patch_proposed",
        "--experiment",
        "tune",
        "--data",
        &data.to_string(),
    ]);
    let violations = json!([{"bound": "0", "found": "1", "rule": "leak"}]);
    let data = json!({"attempt": 0, "run": "one", "step": 0, "violations": violations});
    desk.ok_words(&[
        "record",
        "sgd.patch_rejected",
        "--experiment",
        "tune",
        "--data",
        &data.to_string(),
    ]);
    assert_eq!(desk.run("verify").code, 0);
    let again = desk.run("verify --recompute");
    assert_eq!(again.code, 3, "{}{}", again.out, again.err);
    assert!(
        again.out.contains("that was rejected for them"),
        "{}",
        again.out
    );
}
