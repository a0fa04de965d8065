//! What somebody would try again under another name once they have seen it: a probe, a label. And what is claimed of an audit
//! that passed, in the same words by each command.

use serde_json::Value;

use super::Desk;
use super::estimate::policy;

/// Scores of a policy, about `level`.
fn scores(prompts: std::ops::Range<u64>, level: f64) -> String {
    let line = |n: u64| {
        let score = level + offset(n);
        format!("{{\"prompt_id\":\"p{n:03}\",\"judge_score\":{score:.6}}}\n")
    };
    prompts.map(line).collect()
}

fn offset(n: u64) -> f64 {
    ((n * 7 % 20) as f64 - 9.5) / 60.0
}

/// Labels of a policy, which follow its scores.
fn labels(policy: &str, prompts: std::ops::Range<u64>, level: f64) -> String {
    let line = |n: u64| {
        let label = level + offset(n) * 0.9 + ((n % 3) as f64 - 1.0) / 50.0;
        format!("p{n:03},{policy},{label:.6}\n")
    };
    "item,policy,label\n".to_owned() + &prompts.map(line).collect::<String>()
}

/// Two policies with scores; `base` has labels for calibration.
fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/seen --holder Ada --roles all");
    desk.ok("experiment register arena --title One --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 1");
    for (name, level) in [("base", 0.5), ("tuned", 0.5)] {
        let file = desk.file(&format!("{name}_responses.jsonl"), &scores(0..120, level));
        desk.ok(&format!("import cje {file}"));
    }
    let file = desk.file("base.csv", &labels("base", 0..120, 0.5));
    desk.ok(&format!("import labels {file}"));
    desk
}

fn answer(desk: &mut Desk, line: &str) -> Value {
    let ran = desk.run(&format!("{line} --json"));
    ran.json()["data"].clone()
}

fn text(data: &Value) -> &str {
    data["answer"]["text"].as_str().unwrap()
}

#[test]
fn a_draw_that_was_a_probe_is_none_of_another_design() {
    let mut desk = desk();
    for design in ["pr1", "pr3"] {
        desk.ok(&format!(
            "label design new {design} --purpose audit --probability 1"
        ));
    }
    // Given probes that were seen under one design.
    let file = desk.file("probes.csv", &labels("tuned", 0..40, 0.5));
    desk.ok(&format!(
        "import labels {file} --purpose audit --design pr1"
    ));
    // Others are a matter of their own.
    let other = desk.file("others.csv", &labels("tuned", 40..80, 0.5));
    desk.ok(&format!(
        "import labels {other} --purpose audit --design pr3"
    ));
    // When they are labelled under another one, by the same rater or by a second one, then they are refused.
    for rater in ["oracle", "ben"] {
        let line = format!("import labels {file} --purpose audit --design pr3 --rater {rater}");
        let words: Vec<&str> = line.split(' ').collect();
        desk.refused(&words, 11, &["a prompt that is a probe of one design"]);
    }
    desk.ok("verify --recompute");
}

#[test]
fn probes_are_drawn_alike() {
    let mut desk = desk();
    let line = "label design new pr1 --purpose audit --probability 0.01 --stratum easy=1";
    let words: Vec<&str> = line.split(' ').collect();
    let why = "a design for audits has no strata: an audit counts each of its probes alike";
    desk.refused(&words, 11, &[why]);
    let said = r#"{"design":"pr1","inclusion_micro":10000,"protocol":"sdp-1","purpose":"audit","strata":[{"inclusion_micro":1000000,"stratum":"easy"}]}"#;
    let words = [
        "record",
        "label.design_registered",
        "--experiment",
        "arena",
        "--data",
        said,
    ];
    desk.refused(&words, 11, &["a design for audits without strata"]);
    desk.ok("label design new pr1 --purpose audit --probability 0.01");
    desk.ok("label design new calib2 --purpose calibrate --probability 0.01 --stratum easy=1");
}

#[test]
fn a_rater_says_one_thing_of_a_draw_and_it_counts_once() {
    let mut desk = desk();
    let before = answer(&mut desk, "estimate --dry-run");
    desk.ok("label design new calib2 --purpose calibrate --probability 1");
    // Another value is refused, of the first row already.
    let file = desk.file("other.csv", &labels("base", 0..120, 0.6));
    let line = format!("import labels {file} --design calib2");
    let words: Vec<&str> = line.split(' ').collect();
    desk.refused(
        &words,
        11,
        &["as the same rater labelled the same draw under another design"],
    );
    // The same value is taken in, and changes no number.
    desk.ok("import labels base.csv --design calib2");
    let after = answer(&mut desk, "estimate --dry-run");
    let of = |data: &Value| policy(data, "base")["level"].clone();
    assert_eq!(of(&after), of(&before));
    assert_eq!(text(&after), text(&before));
    // Somebody else may see it otherwise.
    desk.ok(&format!("{line} --rater ben"));
    let both = answer(&mut desk, "estimate --dry-run");
    assert_ne!(of(&both), of(&before));
    desk.ok("estimate");
    desk.ok("verify --recompute");
}

#[test]
fn what_a_passed_audit_lets_claim_is_the_same_everywhere() {
    let mut desk = desk();
    desk.ok("label design new pr1 --purpose audit --probability 0.666667");
    let file = desk.file("probes.csv", &labels("tuned", 0..80, 0.5));
    desk.ok(&format!(
        "import labels {file} --purpose audit --design pr1"
    ));
    let audit = answer(&mut desk, "audit transport --yes");
    assert_eq!(audit["audits"][0]["state"], "pass", "{audit:#}");
    assert_eq!(audit["answer"]["may_be_claimed"], true, "{audit:#}");
    assert!(
        text(&audit).contains("This may be claimed."),
        "{}",
        text(&audit)
    );
    let values = answer(&mut desk, "estimate");
    assert_eq!(values["answer"]["may_be_claimed"], true);
    let level = policy(&values, "tuned")["level"].clone();
    let ends = |name: &str| {
        let of = &level[name];
        [0, 1].map(|at| of[at].as_f64().unwrap())
    };
    // The value is shown as wide as the margin leaves it.
    let ([low, high], [from, to]) = (ends("interval"), ends("conservative_interval"));
    assert!(
        (low - from - 0.05).abs() < 1e-9 && (to - high - 0.05).abs() < 1e-9,
        "{level:#}"
    );
    let page = desk.ok("estimate").out;
    assert!(
        page.contains("the interval is widened by the margin 0.05 of its audit"),
        "{page}"
    );
    assert!(
        policy(&values, "base")["level"]
            .get("conservative_interval")
            .is_none()
    );
    let order = answer(&mut desk, "compare --all");
    assert_eq!(order["answer"]["may_be_claimed"], true);
    assert_eq!(
        order["answer"]["claimable"],
        serde_json::json!(["base", "tuned"])
    );
}
