//! An iteration that pauses for labels: undecided in every answer, and told whether its rows can ever lift the pause.

use clover::stats::folds;
use serde_json::Value;

use super::Desk;
use super::iterate;

/// Labels that have nothing to do with scores: nothing is in sight, and all that varies is the calibrator.
fn unrelated(desk: &Desk) {
    let path = desk.at.join("sim/responses/base_responses.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let lines = text.lines().map(|line| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        let item = row["prompt_id"].as_str().unwrap();
        let label = folds::hash_mod(item, 1_000, 9) as f64 / 1_000.0;
        row["oracle_label"] = label.into();
        row.to_string() + "\n"
    });
    let text: String = lines.collect();
    std::fs::write(&path, text).unwrap();
}

/// Runs a command that ends undecided for people, and says these words, wherever its lines end.
fn tells(desk: &mut Desk, words: &str, parts: &[&str]) {
    let ran = desk.run(words);
    assert_eq!(ran.code, 12, "{words}: {}{}", ran.out, ran.err);
    let told: Vec<&str> = ran.out.split_whitespace().collect();
    let told = told.join(" ");
    for part in parts {
        assert!(told.contains(part), "{part:?} is not in:\n{}", ran.out);
    }
}

/// Runs a command that ends undecided, and gives its facts.
fn undecided(desk: &mut Desk, words: &str) -> Value {
    let ran = desk.run(&format!("{words} --json"));
    assert_eq!(ran.code, 12, "{words}: {}{}", ran.out, ran.err);
    let found = ran.json();
    assert_eq!(found["verdict"], "paused", "{words}: {found:#}");
    assert_eq!(found["exit"], 12, "{words}: {found:#}");
    found
}

#[test]
fn a_pause_is_undecided_in_every_answer_and_says_what_would_lift_it() {
    let mut desk = iterate::desk_of("--window 240 --confirm 60", unrelated);
    iterate::opened(&mut desk);
    desk.ok("iterate run it-1 --to fit");
    let audited = undecided(&mut desk, "iterate audit it-1");
    assert_eq!(audited["data"]["paused"], true, "{audited:#}");
    assert_eq!(audited["data"]["due"], "close");
    // Every row of the fit part has its label already: no label is left that could lift it.
    let never = "the calibrator would still cause";
    let open = "Not decided: it paused for labels";
    tells(
        &mut desk,
        "iterate show it-1",
        &[open, "These rows cannot lift it", never],
    );
    let ended = "it-1 paused_for_labels";
    tells(
        &mut desk,
        "iterate close it-1",
        &[ended, "These rows cannot lift it", never],
    );
    // What is closed stays undecided, and nothing more is due.
    let head = desk.head();
    undecided(&mut desk, "iterate show it-1");
    undecided(&mut desk, "iterate run it-1");
    assert_eq!(desk.head(), head);
}
