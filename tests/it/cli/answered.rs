//! What an audit of transport is worth: what answers a failed one, how wide its margin is, and which probes, fit and family it
//! takes. Each is told as whoever works at a desk would try it.

use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::estimate::policy;

fn offset(n: u64) -> f64 {
    ((n * 7 % 20) as f64 - 9.5) / 60.0
}

/// Scores of 120 prompts.
fn scores() -> String {
    let line = |n: u64| {
        let score = 0.5 + offset(n);
        format!("{{\"prompt_id\":\"p{n:03}\",\"judge_score\":{score:.6}}}\n")
    };
    (0..120).map(line).collect()
}

/// Labels of some prompts on a scale, which follow scores but for a shift.
fn labels(
    policy: &str,
    prompts: std::ops::Range<u64>,
    (shift, (low, high)): (f64, (f64, f64)),
) -> String {
    let line = |n: u64| {
        let label = 0.5 + shift + offset(n) * 0.9 + ((n % 3) as f64 - 1.0) / 50.0;
        format!("p{n:03},{policy},{:.6}\n", low + label * (high - low))
    };
    "item,policy,label\n".to_owned() + &prompts.map(line).collect::<String>()
}

const UNIT: (f64, f64) = (0.0, 1.0);

/// `base` with labels for calibration on a scale, and others with scores alone; a design `pr1` for audits draws a third.
fn desk(others: &[&str], scale: (f64, f64)) -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/answered --holder Ada --roles all");
    desk.ok("experiment register arena --title One --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 1");
    for name in others.iter().chain(&["base"]) {
        let file = desk.file(&format!("{name}_responses.jsonl"), &scores());
        desk.ok(&format!("import cje {file}"));
    }
    let file = desk.file("base.csv", &labels("base", 0..120, (0.0, scale)));
    let said = match scale {
        UNIT => String::new(),
        (low, high) => format!(" --scale {low}:{high}"),
    };
    desk.ok(&format!("import labels {file}{said}"));
    desk.ok("label design new pr1 --purpose audit --probability 0.333333");
    desk
}

/// Probes of a policy under `pr1`.
fn probe(desk: &mut Desk, policy: &str, prompts: std::ops::Range<u64>, of: (f64, (f64, f64))) {
    let file = desk.file("probes.csv", &labels(policy, prompts, of));
    desk.ok(&format!(
        "import labels {file} --purpose audit --design pr1"
    ));
}

fn answer(desk: &mut Desk, line: &str) -> (Value, String) {
    let ran = desk.run(&format!("{line} --json"));
    let data = ran.json()["data"].clone();
    let text = data["answer"]["text"].as_str().unwrap_or_default();
    let text = text.to_owned();
    (data, text)
}

fn state(data: &Value) -> (&Value, &Value) {
    let of = &data["audits"][0];
    (&of["state"], &of["obstacles"])
}

#[test]
fn a_failed_audit_is_answered_by_as_many_new_labels_and_still_said() {
    let mut desk = desk(&["tuned"], UNIT);
    probe(&mut desk, "tuned", 0..40, (0.3, UNIT));
    let ran = desk.run("audit transport");
    assert_eq!(ran.code, 10, "{}{}", ran.out, ran.err);
    let advice = "calibrated on 40 new labels of it (clover label design new NAME --purpose";
    let page = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(advice), "{page}");
    // Given one label of the policy, then the failure stands.
    desk.ok("label design new again --purpose calibrate --probability 0.333333");
    let one = desk.file("one.csv", &labels("tuned", 50..51, (0.3, UNIT)));
    desk.ok(&format!("import labels {one} --design again"));
    let (values, _) = answer(&mut desk, "estimate");
    assert_eq!(policy(&values, "tuned")["claim"], "refused", "{values:#}");
    let warned = desk
        .run("estimate")
        .err
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        warned.contains("calibrated on 39 new labels of it"),
        "{warned}"
    );
    // Given as many as it had prompts, then it does not, and is said once.
    let rest = desk.file("rest.csv", &labels("tuned", 51..90, (0.3, UNIT)));
    desk.ok(&format!("import labels {rest} --design again"));
    for line in ["estimate", "compare --all"] {
        let (_, text) = answer(&mut desk, line);
        let said = "An audit of tuned failed at seq ";
        assert_eq!(text.matches(said).count(), 1, "{line}: {text}");
        let end = "; it was calibrated anew on 40 new labels of it, not audited since.";
        assert!(text.contains(end), "{line}: {text}");
    }
    let (values, _) = answer(&mut desk, "estimate");
    assert_eq!(
        policy(&values, "tuned")["claim"],
        "own_labels",
        "{values:#}"
    );
    desk.ok("verify --recompute");
}

#[test]
fn the_usual_margin_is_a_twentieth_of_the_scale() {
    let scale = (1.0, 5.0);
    let mut desk = desk(&["tuned"], scale);
    probe(&mut desk, "tuned", 0..40, (0.0, scale));
    let words = ["audit", "transport", "--margin", "0.3"];
    let why = "--margin 0.3 is above the usual 0.2 of labels from 1 to 5";
    desk.refused(&words, 11, &[why]);
    let (data, text) = answer(&mut desk, "audit transport");
    assert_eq!(data["margin_micro"], 200_000, "{data:#}");
    assert_eq!(state(&data).0, "pass", "{text}");
    let margin = "within the margin 0.2 of labels from 1 to 5";
    assert!(text.contains(margin), "{text}");
    desk.ok("verify --recompute");
}

#[test]
fn an_answer_that_was_a_probe_is_none_under_another_draw() {
    let mut desk = desk(&["tuned"], UNIT);
    probe(&mut desk, "tuned", 0..40, (0.0, UNIT));
    desk.ok("label design new pr2 --purpose audit --probability 0.333333");
    let again: String = scores()
        .lines()
        .take(10)
        .map(|line| line.replace('}', ",\"draw_idx\":1,\"oracle_label\":0.5}") + "\n")
        .collect();
    let file = desk.file("tuned_responses.jsonl", &again);
    let line = format!("import cje {file} --labels=pr2 --purpose audit");
    let words: Vec<&str> = line.split(' ').collect();
    let ran = desk.words(&words);
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("a probe of one design"), "{}", ran.err);
}

#[test]
fn an_audit_takes_every_probe_that_its_design_draws() {
    let mut desk = desk(&["tuned"], UNIT);
    probe(&mut desk, "tuned", 0..22, (0.0, UNIT));
    // 120 rows at a third are 40, and 22 lie more than three deviations of 5.2 below.
    let words = ["audit", "transport"];
    let why = "Of tuned 22 rows are probes of pr1, which draws about 40";
    desk.refused(&words, 11, &[why]);
    let (data, text) = answer(&mut desk, "audit transport --yes");
    let found = (&json!("inconclusive"), &json!(["fewer_probes"]));
    assert_eq!(state(&data), found, "{text}");
    assert!(text.contains(why), "{text}");
    // Whoever knows what it found adds none.
    let rest = desk.file("rest.csv", &labels("tuned", 22..40, (0.0, UNIT)));
    let line = format!("import labels {rest} --purpose audit --design pr1");
    let words: Vec<&str> = line.split(' ').collect();
    let ran = desk.words(&words);
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    desk.ok("verify --recompute");
}

#[test]
fn a_calibrator_is_fitted_before_its_probes_are_read() {
    for (late, obstacle) in [(true, "fitted_late"), (false, "other_terms")] {
        let mut desk = desk(&["tuned"], UNIT);
        probe(&mut desk, "tuned", 0..40, (0.0, UNIT));
        if late {
            desk.ok("label design new more --purpose calibrate --probability 1");
            let more = desk.file("more.csv", &labels("base", 0..9, (0.0, UNIT)));
            desk.ok(&format!("import labels {more} --design more --rater ben"));
        }
        let mode = if late { "" } else { " --mode two-stage" };
        let (data, text) = answer(&mut desk, &format!("audit transport{mode}"));
        let found = (&json!("inconclusive"), &json!([obstacle]));
        assert_eq!(state(&data), found, "{text}");
        desk.ok("verify --recompute");
    }
    // Given terms that an estimate named before, then they are taken.
    let mut desk = desk(&["tuned"], UNIT);
    desk.ok("estimate --mode two-stage");
    probe(&mut desk, "tuned", 0..40, (0.0, UNIT));
    let (data, text) = answer(&mut desk, "audit transport --mode two-stage");
    assert_eq!(state(&data).0, "pass", "{text}");
}

#[test]
fn a_family_does_not_grow_with_who_is_labelled_next() {
    let mut desk = desk(&["tuned", "other", "third"], UNIT);
    for name in ["tuned", "other"] {
        probe(&mut desk, name, 0..40, (0.0, UNIT));
        let (data, text) = answer(&mut desk, &format!("audit transport --policy {name}"));
        assert_eq!(data["family_size"], 4, "{text}");
    }
    desk.ok("verify --recompute");
}

#[test]
fn labels_beyond_the_draw_are_said_before_they_are_recorded() {
    let mut desk = desk(&["tuned"], UNIT);
    desk.ok("label design new few --purpose calibrate --probability 0.1");
    let many = desk.file("many.csv", &labels("tuned", 0..60, (0.0, UNIT)));
    let ran = desk.ok(&format!("import labels {many} --design few"));
    let said = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("60 of 120 rows of tuned are then labelled by few, which draws about 12"),
        "{said}"
    );
    // Rows that come with their labels are held against the same draw.
    let rows = (0..60).map(|n| format!("f{n},fresh,0.{n:02},{}\n", n % 2));
    let rows: String = rows.collect();
    let text = format!("prompt_id,target_policy,judge_score,oracle_label\n{rows}");
    let fresh = desk.file("fresh.csv", &text);
    let ran = desk.ok(&format!("import csv {fresh} --labels=few"));
    let said = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("60 of 60 rows of fresh are then labelled by few, which draws about 6"),
        "{said}"
    );
    // A second rater of rows that are labelled adds labels and no rows.
    desk.ok("label design new half --purpose calibrate --probability 0.5");
    let first = desk.file("first.csv", &labels("tuned", 60..115, (0.0, UNIT)));
    desk.ok(&format!("import labels {first} --design half --rater ann"));
    let ran = desk.ok(&format!("import labels {first} --design half --rater bea"));
    assert!(!ran.err.contains("are then labelled"), "{}", ran.err);
}
