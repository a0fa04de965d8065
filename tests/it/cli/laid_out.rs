//! Answers in terminals of 60, 80 and 120 columns, and in pipes.

use super::Desk;
use super::same;
use super::score_line;

fn ledger() -> Desk {
    let mut desk = Desk::with_ledger();
    desk.ok("key new lab --role labeler");
    desk.ok("label design new calib --purpose calibrate --probability 0.5 --experiment exp-1");
    let lines: String = (0..3)
        .map(|item| score_line(&format!("item-{item}")))
        .collect();
    desk.file("scores.jsonl", &lines);
    desk.ok("append --bulk scores.jsonl --key scorer");
    desk
}

const READING: [&str; 8] = [
    "score list",
    "score show item-1",
    "experiment list",
    "key list",
    "label design list",
    "assume list",
    "status",
    "log",
];

/// The longest line that may not be broken: a label with a path, a key or a root.
fn may_be_long(line: &str) -> bool {
    line.split(' ').any(|word| word.chars().count() > 30)
}

#[test]
fn every_line_fits_the_terminal() {
    let mut desk = ledger();
    for columns in [60, 80, 120] {
        desk.columns = Some(columns);
        for verb in READING {
            let out = desk.ok(verb).out;
            for line in out.lines().filter(|line| !may_be_long(line)) {
                let width = line.chars().count();
                // Labels with values that may be copied are never broken.
                let fits = width <= columns.into() || verb == "status";
                assert!(fits, "{verb} at {columns} columns, {width}: {line}");
            }
        }
    }
}

#[test]
fn words_are_the_same_at_every_width_and_none_is_cut_in_a_pipe() {
    let mut desk = ledger();
    for verb in READING.into_iter().filter(|verb| *verb != "log") {
        let words = |out: &str| -> Vec<String> {
            let mut words: Vec<_> = out.split_whitespace().map(str::to_owned).collect();
            words.sort();
            words.dedup();
            words
        };
        desk.columns = None;
        let piped = desk.ok(verb).out;
        assert!(!piped.contains('…'), "{verb}: {piped}");
        for columns in [60, 80, 120] {
            desk.columns = Some(columns);
            assert_eq!(
                words(&desk.ok(verb).out),
                words(&piped),
                "{verb} at {columns}"
            );
        }
    }
    // A line of the log is whole where a program reads it.
    desk.columns = None;
    let piped = desk.ok("log --kind experiment.registered").out;
    assert!(piped.contains("\"title\":\"One\"}"), "{piped}");
    desk.columns = Some(60);
    let shown = desk.ok("log --kind experiment.registered").out;
    assert!(
        shown.lines().all(|line| line.chars().count() <= 60),
        "{shown}"
    );
    assert!(shown.trim_end().ends_with('…'), "{shown}");
}

#[test]
fn scores_are_listed_at_60_80_and_120_columns() {
    let mut desk = ledger();
    let wide = "
experiment  judge  policy  items  scores  several draws  most
exp-1       j      p       3      3       0              1
";
    for columns in [80, 120] {
        desk.columns = Some(columns);
        same(&desk.ok("score list").out, wide);
    }
    desk.columns = Some(60);
    let narrow = desk.ok("score list").out;
    let lines: Vec<Vec<&str>> = narrow
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let head = [
        "experiment",
        "judge",
        "policy",
        "items",
        "scores",
        "several",
        "most",
    ];
    let row = ["exp-1", "j", "p", "3", "3", "0", "1"];
    assert_eq!(lines, [&head[..], &["draws"], &row], "{narrow}");
    let apart = "
experiment     exp-1
judge          j
policy         p
items          3
scores         3
several draws  0
most           1
";
    desk.columns = Some(50);
    same(&desk.ok("score list").out, apart);
}
