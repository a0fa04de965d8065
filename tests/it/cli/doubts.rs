//! What stands against a claim of an estimate or a comparison: each case by itself, in the words of the answer.

use serde_json::Value;

use super::Desk;

/// Responses of a policy: a prompt, a score and a label each, the labels about `level` with a deviation of .1.
pub(super) fn responses(prompts: std::ops::Range<u64>, level: f64) -> String {
    let line = |n: u64| {
        let offset = ((n * 7 % 20) as f64 - 9.5) / 60.0;
        let (score, label) = (
            level + offset,
            level + offset * 0.9 + ((n % 3) as f64 - 1.0) / 50.0,
        );
        format!(
            "{{\"prompt_id\":\"p{n:03}\",\"judge_score\":{score:.6},\"oracle_label\":{label:.6}}}\n"
        )
    };
    prompts.map(line).collect()
}

/// A ledger with labels of these policies, drawn at a rate.
pub(super) fn desk(rate: &str, policies: &[(&str, std::ops::Range<u64>, f64)]) -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --holder Ada --roles all");
    desk.ok("experiment register arena --title One --purpose testing");
    desk.ok(&format!(
        "label design new calib --purpose calibrate --probability {rate}"
    ));
    for (name, prompts, level) in policies {
        let file = desk.file(
            &format!("{name}_responses.jsonl"),
            &responses(prompts.clone(), *level),
        );
        desk.ok(&format!("import cje {file} --labels"));
    }
    desk
}

fn answer(desk: &mut Desk, line: &str) -> (Value, String) {
    let data = desk.ok(&format!("{line} --json")).json()["data"].clone();
    let text = data["answer"]["text"].as_str().unwrap().to_owned();
    (data["answer"].clone(), text)
}

#[test]
fn an_order_is_claimed_by_the_first_comparison_on_record_alone() {
    let mut desk = desk(
        "1",
        &[("a", 0..80, 0.4), ("b", 0..80, 0.6), ("c", 0..80, 0.5)],
    );
    let (said, text) = answer(&mut desk, "estimate");
    assert!(
        text.contains("b has the highest value of 3 policies"),
        "{text}"
    );
    assert!(text.ends_with("once compare has recorded it."), "{text}");
    assert_eq!(said["best"], serde_json::json!([]));
    assert_eq!(said["claimable"], serde_json::json!(["a", "b", "c"]));
    let (said, text) = answer(&mut desk, "compare --all");
    assert!(text.starts_with("b is the best of 3 policies"), "{text}");
    assert_eq!(said["best"], serde_json::json!(["b"]));
    assert_eq!(said["may_be_claimed"], true);
    // The same again is the same; another family is asked by somebody who has seen the first.
    assert_eq!(
        answer(&mut desk, "compare --all").0["best"],
        serde_json::json!(["b"])
    );
    let (said, text) = answer(&mut desk, "compare a b");
    assert!(text.contains("so an order is exploratory now"), "{text}");
    assert!(
        text.contains("Their values may be claimed, and no order among them."),
        "{text}"
    );
    assert_eq!(said["best"], serde_json::json!([]));
}

#[test]
fn missing_scores_are_counted_as_the_worst_of_an_order() {
    let mut desk = desk("1", &[("a", 0..80, 0.45), ("b", 40..80, 0.55)]);
    let (said, text) = answer(&mut desk, "compare --all");
    assert!(
        text.contains("b has no score for 40 of 80 prompts"),
        "{text}"
    );
    assert!(
        text.contains("No policy is told apart as best among a and b"),
        "{text}"
    );
    assert_ne!(said["best"], serde_json::json!(["b"]));
}

/// The first sentence, the table, the ranks and the record say one thing, and it is computed again from the rows.
#[test]
fn a_comparison_says_one_thing_of_policies_that_lack_prompts() {
    let mut desk = desk("1", &[("a", 0..80, 0.45), ("b", 40..80, 0.55)]);
    let shown = desk.ok("compare --all").out;
    assert!(shown.contains("No policy is told apart"), "{shown}");
    assert!(shown.contains("not told apart"), "{shown}");
    let data = desk.ok("compare --all --dry-run --json").json()["data"].clone();
    let pair = &data["differences"][0];
    assert!(pair["p_adjusted"].as_f64().unwrap() < 0.05, "{pair}");
    assert_eq!(
        (&pair["told_apart"], &pair["reading"]),
        (&false.into(), &"not told apart".into())
    );
    assert_eq!(data["ranking"][0]["rank"], Value::Null);
    let log = desk.ok("log --kind contrast.recorded --json").json();
    let seq = log["data"]["entries"][0]["seq"].as_u64().unwrap();
    let said = desk.ok(&format!("show {seq} --body")).json()["data"].clone();
    assert_eq!(
        (&said["told_apart"], &said["reading"]),
        (&false.into(), &"not_told_apart".into())
    );
    let prompts = serde_json::json!({"both": 40, "first_only": 40, "second_only": 0, "uneven": 0, "worst": 0.5});
    assert_eq!(said["prompts"]["both"], prompts["both"]);
    assert_eq!(said["prompts"]["first_only"], prompts["first_only"]);
    desk.ok("verify --recompute");
    // Ten of eighty prompts cannot undo a difference of .4.
    let mut desk = self::desk("1", &[("a", 0..80, 0.3), ("b", 10..80, 0.7)]);
    let data = desk.ok("compare --all --json").json()["data"].clone();
    assert_eq!(data["differences"][0]["told_apart"], true);
    assert_eq!(data["answer"]["best"], serde_json::json!(["b"]));
    desk.ok("verify --recompute");
}

/// One policy answers easy prompts and the other hard ones: what sets them apart may be the prompts.
#[test]
fn policies_without_a_common_prompt_have_no_order() {
    let mut desk = desk("1", &[("a", 0..80, 0.3), ("b", 80..160, 0.7)]);
    let (_, text) = answer(&mut desk, "estimate");
    assert!(
        text.contains("Their values may be claimed, and no order among them."),
        "{text}"
    );
    let data = desk.ok("compare --all --json").json()["data"].clone();
    let pair = &data["differences"][0];
    assert!(pair["p_adjusted"].as_f64().unwrap() < 0.05, "{pair}");
    assert_eq!(
        (&pair["told_apart"], &pair["prompts"]["both"]),
        (&false.into(), &0.into())
    );
    let text = data["answer"]["text"].as_str().unwrap();
    assert!(
        text.contains("a and b have scores of 0 prompts in common"),
        "{text}"
    );
    assert!(
        text.contains("Their values may be claimed, and no order among them."),
        "{text}"
    );
    assert_eq!(data["ranking"][0]["rank"], Value::Null);
    desk.ok("verify --recompute");
    desk.replayed("");
}

/// Two policies answer each prompt alike; one was only asked more often where prompts are easy.
#[test]
fn uneven_draws_tell_nothing_apart() {
    let mut desk = desk("1", &[]);
    let rows = |often: u64| -> String {
        let draws =
            (0..80).flat_map(|n| (0..if n < 40 { 2 } else { often }).map(move |draw| (n, draw)));
        let line = |(n, draw): (u64, u64)| {
            let level = if n < 40 { 20 + n % 10 } else { 70 + n % 10 };
            format!(
                "{{\"prompt_id\":\"p{n}\",\"draw_idx\":{draw},\"judge_score\":0.{level},\"oracle_label\":0.{level}}}\n"
            )
        };
        draws.map(line).collect()
    };
    desk.file("a_responses.jsonl", &rows(2));
    desk.file("b_responses.jsonl", &rows(6));
    for file in ["a_responses.jsonl", "b_responses.jsonl"] {
        desk.ok(&format!("import cje {file} --labels=calib"));
    }
    let (said, text) = answer(&mut desk, "compare --all");
    assert!(
        text.contains("a and b are not told apart: their draws are uneven on 80 of 80 prompts"),
        "{text}"
    );
    assert_ne!(said["best"], serde_json::json!(["b"]));
    let pair = &desk.ok("compare --all --dry-run --json").json()["data"]["differences"][0];
    assert_eq!(pair["told_apart"], false, "{pair}");
    desk.ok("verify --recompute");
}

/// A judge that was stopped has scored the rows that came first, whatever they are.
#[test]
fn rows_on_record_without_a_score_are_named() {
    let mut desk = desk("1", &[("a", 0..80, 0.45), ("b", 0..80, 0.55)]);
    let (said, _) = answer(&mut desk, "estimate");
    assert_eq!(said["may_be_claimed"], true);
    let more =
        |n: u64| format!("{{\"prompt_id\":\"more-{n}\",\"prompt\":\"q\",\"response\":\"r\"}}\n");
    desk.file("rows.jsonl", &(0..20).map(more).collect::<String>());
    desk.ok("import rows rows.jsonl --policy a");
    let (said, text) = answer(&mut desk, "estimate");
    assert!(
        text.contains("80 of 100 rows of a on record are scored by this judge"),
        "{text}"
    );
    assert!(text.contains("Nothing of it may be claimed."), "{text}");
    assert_eq!(said["may_be_claimed"], false);
    assert_eq!(
        answer(&mut desk, "compare --all").0["best"],
        serde_json::json!([])
    );
}

/// A design that draws prompts labels every draw of one: its labels are as many as it draws prompts.
#[test]
fn labels_by_prompt_are_counted_by_prompt() {
    let mut desk = desk("0.4", &[]);
    let rows: String = (0..100)
        .flat_map(|n| (0..10).map(move |draw| (n, draw)))
        .map(|(n, draw)| {
            let score = 30 + (n * 7 + draw) % 40;
            // 48 of 100 prompts where 40 are expected: 1.6 standard deviations of prompts, 5.2 of rows.
            let label = if n % 100 < 48 {
                format!(",\"oracle_label\":0.{score}")
            } else {
                String::new()
            };
            format!(
                "{{\"prompt_id\":\"p{n}\",\"draw_idx\":{draw},\"judge_score\":0.{score}{label}}}\n"
            )
        })
        .collect();
    desk.file("a_responses.jsonl", &rows);
    desk.ok("import cje a_responses.jsonl --labels=calib");
    let (said, text) = answer(&mut desk, "estimate");
    assert!(!text.contains("somebody chose"), "{text}");
    assert_eq!(said["may_be_claimed"], true, "{text}");
}

#[test]
fn more_labels_than_the_design_draws_are_named() {
    let mut desk = desk("0.1", &[("a", 0..80, 0.4), ("b", 0..80, 0.6)]);
    let (said, text) = answer(&mut desk, "estimate");
    assert!(
        text.contains("80 of 80 rows of a are labelled by calib, which draws about 8"),
        "{text}"
    );
    assert!(text.contains("Nothing of it may be claimed."), "{text}");
    assert_eq!(said["may_be_claimed"], false);
    assert_eq!(said["claimable"], serde_json::json!([]));
}

/// A design that nobody labels by draws nothing, whatever its probability is.
#[test]
fn a_spare_design_excuses_no_labels_of_another() {
    let mut desk = desk("0.1", &[("a", 0..80, 0.4), ("b", 0..80, 0.6)]);
    desk.ok("label design new spare --purpose calibrate --probability 0.9");
    let (said, text) = answer(&mut desk, "estimate");
    let chosen =
        "80 of 80 rows of a are labelled by calib, which draws about 8: somebody chose among them.";
    assert!(text.contains(chosen), "{text}");
    assert_eq!(said["may_be_claimed"], false);
}

/// Labels of two designs, each by its own probability.
#[test]
fn labels_count_for_the_design_that_they_name() {
    let mut desk = desk("0.5", &[]);
    desk.ok("label design new more --purpose calibrate --probability 0.5");
    let rows = responses(0..80, 0.4);
    let bare: String = rows
        .lines()
        .map(|line| line.split(",\"oracle_label\"").next().unwrap().to_owned() + "}\n")
        .collect();
    desk.file("a_responses.jsonl", &bare);
    desk.ok("import cje a_responses.jsonl");
    for (design, from) in [("calib", 0), ("more", 40)] {
        let lines = (from..from + 40).map(|n| format!("p{n:03},a,0.{}\n", 30 + n % 20));
        let file = desk.file(
            "labels.csv",
            &("item,policy,label\n".to_owned() + &lines.collect::<String>()),
        );
        desk.ok(&format!("import labels {file} --design {design}"));
    }
    let (said, text) = answer(&mut desk, "estimate");
    assert!(!text.contains("somebody chose"), "{text}");
    assert_eq!(said["may_be_claimed"], true, "{text}");
}

#[test]
fn nothing_is_claimed_of_a_judge_that_contradicted_itself() {
    let mut desk = desk("1", &[("a", 0..80, 0.4), ("b", 0..80, 0.6)]);
    assert_eq!(answer(&mut desk, "estimate").0["may_be_claimed"], true);
    let other = responses(0..80, 0.4).replacen("\"judge_score\":0.", "\"judge_score\":0.9", 1);
    desk.file("a_responses.jsonl", &other);
    assert_eq!(
        desk.run("import cje a_responses.jsonl --labels --yes").code,
        11
    );
    for line in ["estimate", "compare --all"] {
        let (said, text) = answer(&mut desk, line);
        assert!(text.contains("CLOVER.J2 fails since seq"), "{text}");
        assert_eq!(said["may_be_claimed"], false);
    }
}

/// A re-score without a mismatch takes none back that was recorded before it, and one judge's says nothing of another.
#[test]
fn a_contradiction_is_not_taken_back_by_hand() {
    let mut desk = desk("1", &[("a", 0..80, 0.4), ("b", 0..80, 0.6)]);
    let hash = "0".repeat(64);
    let record = |desk: &mut Desk, kind: &str, data: &Value| {
        let data = data.to_string();
        desk.ok_words(&["record", kind, "--experiment", "arena", "--data", &data]);
    };
    for judge in ["other", "judge"] {
        let data = serde_json::json!({
            "decoding": {"temperature_micro": 0}, "evidence_schema": "text-1", "extractor": "text-1", "judge": judge,
            "model": "m-1", "port": "recorded", "prompt_hash": hash, "tool_snapshot": hash,
        });
        record(&mut desk, "judge.registered", &data);
    }
    for (judge, mismatches) in [("other", 3), ("judge", 3), ("judge", 0)] {
        let data = serde_json::json!({
            "judge": judge, "keys": 30, "keys_root": "hxM55qLn+5O6kx5cjnCwzm1Y/QTmqeyFBtuXgS6QRME=",
            "mismatches": mismatches, "seed": 1,
        });
        record(&mut desk, "score.replayed", &data);
        let (said, text) = answer(&mut desk, "estimate");
        let is_tainted = judge == "judge";
        let words = "Judge judge gave the same answer different scores (CLOVER.J2 fails since seq";
        assert_eq!(
            text.contains(words),
            is_tainted,
            "{judge} {mismatches}: {text}"
        );
        assert!(!text.contains("Judge other"), "{text}");
        assert_eq!(said["may_be_claimed"], !is_tainted, "{judge} {mismatches}");
    }
}

/// Labels that are nearly all the same, as where a rare one was not drawn: no interval of a few covers it.
#[test]
fn labels_that_are_nearly_all_the_same_claim_nothing() {
    let mut desk = Desk::new();
    desk.ok("init --holder Ada --roles all");
    desk.ok("experiment register arena --title One --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 1");
    let line = |n: u64| {
        let (score, label) = (0.2 + (n % 20) as f64 / 100.0, (n % 10) as f64 / 1e6);
        format!(
            "{{\"prompt_id\":\"p{n:03}\",\"judge_score\":{score},\"oracle_label\":{label:.6}}}\n"
        )
    };
    let text: String = (0..60).map(line).collect();
    let file = desk.file("a_responses.jsonl", &text);
    desk.ok(&format!("import cje {file} --labels"));
    let (said, text) = answer(&mut desk, "estimate");
    assert!(
        text.contains("The 60 labels of a are nearly all the same"),
        "{text}"
    );
    assert_eq!(said["may_be_claimed"], false);
}
