//! Rows that are scored once labels of their policy can be read count in no value and no rank, and the honest ways stay open.

use serde_json::Value;
use serde_json::json;

use super::Desk;

/// A row's score by its number, and its label.
fn of(at: usize) -> (f64, f64) {
    let score = 0.1 + 0.8 * ((at * 37 % 101) as f64 / 101.0);
    let label = 0.05 + 0.85 * score + ((at % 5) as f64 - 2.0) / 50.0;
    let rounded = |value: f64| (value * 1e6).round() / 1e6;
    (rounded(score), rounded(label))
}

/// Writes a file of rows by their numbers, with labels or without.
fn file(desk: &Desk, name: &str, range: std::ops::Range<usize>, labelled: bool) -> String {
    let row = |at: usize| {
        let (score, label) = of(at);
        let mut row = json!({
            "judge_score": score, "prompt": format!("q{at}"), "prompt_id": format!("p{at:03}"), "response": format!("a{at}"),
        });
        if labelled {
            row["oracle_label"] = json!(label);
        }
        row.to_string() + "\n"
    };
    desk.file(name, &range.map(row).collect::<String>())
}

/// Two policies, of which every row of `base` was labelled.
fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --holder Ada --roles all --custodian cem");
    desk.ok("experiment register arena --title One --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 1");
    let base = file(&desk, "base.jsonl", 0..80, true);
    desk.ok(&format!("import cje {base} --policy base --labels=calib"));
    desk
}

/// What is said of a policy, and the answer.
fn estimated(desk: &mut Desk, line: &str, policy: &str) -> (Value, String) {
    let data = desk.ok(&format!("{line} --json")).json()["data"].clone();
    let policies = data["policies"].as_array().unwrap();
    let found = policies.iter().find(|of| of["policy"] == policy).unwrap();
    let text = data["answer"]["text"].as_str().unwrap().to_owned();
    (found.clone(), text)
}

#[test]
fn further_draws_that_are_scored_after_labels_do_not_count() {
    let mut desk = desk();
    let (before, _) = estimated(&mut desk, "estimate", "base");
    // The scorer knows which answers were labelled high, and adds them once more.
    let draw = |at: usize| {
        let (score, _) = of(at);
        let micro: i64 = format!("{:.0}", score * 1e6).parse().unwrap();
        let data = json!({
            "draw": 1, "item": format!("p{at:03}"), "judge": "judge", "policy": "base", "score_micro": micro,
        });
        json!({"data": data, "experiment": "arena", "kind": "score.recorded"}).to_string() + "\n"
    };
    let good = (0..80).filter(|at| of(*at).1 > 0.6);
    let lines: Vec<String> = good.map(draw).collect();
    let bulk = desk.file("bulk.jsonl", &lines.concat());
    desk.ok(&format!("append --bulk {bulk}"));
    let (after, text) = estimated(&mut desk, "estimate", "base");
    assert_eq!(after["level"]["estimate"], before["level"]["estimate"]);
    assert_eq!(
        (&after["rows"], &after["late"]),
        (&json!(80), &json!(lines.len()))
    );
    let said = format!(
        "{} rows of base were scored after its labels could be read: they do not count.",
        lines.len()
    );
    assert!(text.contains(&said), "{text}");
    desk.ok("verify --recompute");
}

#[test]
fn a_policy_that_is_scored_after_labels_of_others_counts() {
    let mut desk = desk();
    let tuned = file(&desk, "tuned.jsonl", 0..60, false);
    desk.ok(&format!("import cje {tuned} --policy tuned"));
    let (of, text) = estimated(&mut desk, "estimate", "tuned");
    assert_eq!((&of["rows"], &of["late"]), (&json!(60), &json!(0)));
    assert!(!text.contains("do not count"), "{text}");
    let compared = desk.ok("compare --all --json").json();
    assert!(compared["data"]["differences"][0].is_object());
    desk.ok("verify --recompute");
}

#[test]
fn a_second_batch_counts_by_a_design_of_its_own() {
    let mut desk = desk();
    let more = file(&desk, "more.jsonl", 80..120, false);
    desk.ok(&format!("import cje {more} --policy base"));
    let (of, _) = estimated(&mut desk, "estimate --dry-run", "base");
    assert_eq!((&of["rows"], &of["late"]), (&json!(80), &json!(40)));
    // Labels of the older design leave them out; a design that is registered after their scores takes them in.
    desk.ok("label design new calib-2 --purpose calibrate --probability 1");
    let labelled = file(&desk, "labelled.jsonl", 80..120, true);
    desk.ok(&format!(
        "import cje {labelled} --policy base --labels=calib-2"
    ));
    let (of, text) = estimated(&mut desk, "estimate", "base");
    assert_eq!(
        (&of["rows"], &of["late"]),
        (&json!(120), &json!(0)),
        "{text}"
    );
    desk.ok("verify --recompute");
}

#[test]
fn a_judge_that_scores_only_after_labels_gives_no_value() {
    let mut desk = desk();
    let again = file(&desk, "again.jsonl", 0..80, false);
    desk.ok(&format!("import cje {again} --policy base --judge late"));
    let ran = desk.run("estimate --judge late");
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    assert!(
        ran.err
            .contains("each was scored after a label of its policy could be read"),
        "{}",
        ran.err
    );
}
