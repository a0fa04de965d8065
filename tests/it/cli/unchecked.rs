//! What nobody checked is not told apart, and labels that are all equal give no certainty: on the record and on none.

use std::fmt::Write as _;

use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::estimate::policy;

/// Responses of a policy to 60 prompts; `label` gives one where it wants one.
fn responses(
    desk: &Desk,
    policy: &str,
    score: impl Fn(u64) -> f64,
    label: impl Fn(u64) -> Option<f64>,
) {
    let mut lines = String::new();
    for at in 0..60 {
        let mut row = json!({"prompt_id": format!("p{at}"), "judge_score": score(at)});
        if let Some(label) = label(at) {
            row["oracle_label"] = label.into();
        }
        writeln!(lines, "{row}").unwrap();
    }
    desk.file(&format!("{policy}_responses.jsonl"), &lines);
}

fn desk(rulebook: &str) -> Desk {
    let mut desk = Desk::new();
    desk.ok(&format!(
        "init --origin ledger.example/cli --holder Ada --roles all{rulebook}"
    ));
    desk.ok("experiment register exp-1 --title One --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 0.5");
    desk
}

fn quality(at: u64) -> f64 {
    0.1 * (at % 10) as f64
}

/// Two policies that answer alike; the judge favours the second, of which nobody labelled anything.
fn favoured(desk: &Desk) {
    let label = |at: u64| 0.2 + 0.6 * quality(at) + 0.02 * (at * 7 % 5) as f64;
    responses(
        desk,
        "base",
        |at| 0.7 * quality(at),
        |at| (at % 6 != 5).then(|| label(at)),
    );
    responses(
        desk,
        "tuned",
        |at| (0.7 * quality(at) + 0.07).min(0.63),
        |_| None,
    );
}

/// The data of the newest event of a kind.
fn newest(desk: &mut Desk, kind: &str) -> Value {
    let log = desk.ok(&format!("log --kind {kind} --json")).json();
    let entries = log["data"]["entries"].as_array().unwrap().iter();
    let seq = entries.map(|of| of["seq"].as_u64().unwrap()).max().unwrap();
    let shown = desk.ok(&format!("show {seq} --json")).json();
    shown["data"]["body"]["data"].clone()
}

#[test]
fn a_judge_that_favours_an_unlabelled_policy_tells_nothing_apart() {
    let mut desk = desk("");
    favoured(&desk);
    desk.ok("import cje . --labels");
    let found = desk.ok("compare --all --json").json();
    let pair = &found["data"]["differences"][0];
    assert!(pair["p"].as_f64().unwrap() < 1e-3, "{pair}");
    assert_eq!(
        (&pair["reading"], &pair["told_apart"]),
        (&json!("unchecked"), &json!(false))
    );
    assert_eq!(pair["claims"], json!(["own_labels", "borrowed_unchecked"]));
    assert_eq!(found["data"]["ranking"][1]["rank"], Value::Null);
    let said = newest(&mut desk, "contrast.recorded");
    assert_eq!(
        (&said["reading"], &said["told_apart"]),
        (&json!("unchecked"), &json!(false))
    );
    let text = desk.ok("compare --all --dry-run").out;
    assert!(text.contains("  unchecked\n"), "{text}");
    let found = desk.ok("estimate --json").json();
    let tuned = policy(&found["data"], "tuned");
    assert_eq!(tuned["rank"], Value::Null);
    assert!(tuned["level"].is_null() && tuned["unchecked"]["estimate"].is_number());
    let text = desk.ok("estimate --dry-run").out;
    let line = text.lines().find(|line| line.starts_with("tuned")).unwrap();
    assert!(line.contains('?') && line.contains("NOT CHECKED"), "{text}");
    let file = desk.ok("analyze . --json").json();
    assert_eq!(file["data"]["differences"][0]["reading"], "unchecked");
    let replayed = desk.ok("replay --all --json").json();
    assert_eq!(replayed["verdict"], "reproduced", "{replayed}");
    desk.ok("verify --recompute");
}

#[test]
fn an_older_rulebook_records_as_older_programs_read() {
    let mut desk = desk(" --rulebook 17");
    favoured(&desk);
    desk.ok("import cje . --labels");
    // What is shown holds under every rulebook.
    let found = desk.ok("compare --all --json").json();
    assert_eq!(found["data"]["differences"][0]["reading"], "unchecked");
    let said = newest(&mut desk, "contrast.recorded");
    assert_eq!(
        (&said["reading"], &said["told_apart"]),
        (&Value::Null, &json!(true))
    );
    desk.ok("estimate");
    assert_eq!(
        newest(&mut desk, "estimate.recorded")["off_mode"],
        Value::Null
    );
    let replayed = desk.ok("replay --all --json").json();
    assert_eq!(replayed["verdict"], "reproduced", "{replayed}");
    desk.ok("verify --recompute");
}

#[test]
fn equal_labels_have_the_bound_of_clopper_and_pearson() {
    let mut desk = desk("");
    responses(&desk, "base", quality, |at| (at < 20).then_some(0.0));
    desk.ok("import cje . --labels");
    let found = desk.ok("estimate --json").json();
    let base = policy(&found["data"], "base");
    assert_eq!(base["level"]["interval_method"], "bounded");
    // source: 1 - 0.025^(1 / 20), none of 20.
    for interval in [&base["level"]["interval"], &base["labels_only"]["interval"]] {
        assert_eq!(interval[0], 0.0);
        assert!((interval[1].as_f64().unwrap() - 0.168_433_470_983_085_3).abs() < 1e-12);
    }
    let said = newest(&mut desk, "estimate.recorded");
    assert_eq!(
        (&said["off_mode"], &said["interval_method"]),
        (&json!(0), &json!("bounded"))
    );
    let text = desk.ok("estimate --dry-run").out;
    let text = text.replace("\n    ", " ");
    assert!(text.contains("widened by an exact bound"), "{text}");
    let file = desk.ok("analyze . --json").json();
    let of = &file["data"]["policies"][0];
    assert_eq!(of["interval_method"], "bounded");
    assert_eq!(of["interval"][1], base["level"]["interval"][1]);
    let replayed = desk.ok("replay --all --json").json();
    assert_eq!(replayed["verdict"], "reproduced", "{replayed}");
}

#[test]
fn equal_labels_on_a_scale_that_nobody_declared_have_no_interval() {
    let mut desk = Desk::new();
    responses(&desk, "base", quality, |at| (at < 20).then_some(3.0));
    let found = desk.ok("analyze . --json").json();
    let base = &found["data"]["policies"][0];
    assert_eq!(base["no_interval"], "equal_labels_on_undeclared_scale");
    assert_eq!(base["interval"], Value::Null);
    let found = desk.ok("analyze . --label-scale 1:5 --json").json();
    // By hand: 3 less and more 2 of the upper bound of none of 20.
    let interval = &found["data"]["policies"][0]["interval"];
    let reach = 2.0 * 0.168_433_470_983_085_3;
    for (end, expected) in [(0, 3.0 - reach), (1, 3.0 + reach)] {
        assert!(
            (interval[end].as_f64().unwrap() - expected).abs() < 1e-12,
            "{interval}"
        );
    }
}

#[test]
fn the_status_of_a_file_says_what_supports_it() {
    let mut desk = Desk::new();
    responses(&desk, "base", quality, |_| None);
    let found = desk.ok("analyze . --json").json();
    let of = &found["data"]["policies"][0];
    assert_eq!(
        (&of["route"], &of["status"]),
        (&json!("naive"), &json!("WARNING"))
    );
    // Every row is labelled, nine of ten near an end of the rewards: nothing rests on a calibrator.
    responses(&desk, "base", quality, |at| {
        Some(if at % 10 == 0 {
            0.5
        } else {
            f64::from(u8::from(at % 10 > 4))
        })
    });
    let found = desk.ok("analyze . --json").json();
    let of = &found["data"]["policies"][0];
    assert_eq!(
        (&of["route"], &of["status"]),
        (&json!("direct_oracle"), &json!("GOOD"))
    );
    assert_eq!(of["boundary"]["status"], "CAUTION");
}
