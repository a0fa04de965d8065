//! What runs, held against rows that came after: guardrails, recalibrations and generators, from files to verdicts.

use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::iterate;
use super::says;

/// Rows of the simulated policy, by ascending score: those that call no tool, since nothing is known of calls for new prompts.
fn simulated(desk: &Desk) -> Vec<Value> {
    let path = desk.at.join("sim/responses/base_responses.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines();
    let mut rows: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    rows.sort_by(|a, b| {
        let score = |row: &Value| row["judge_score"].as_f64().unwrap();
        score(a).total_cmp(&score(b))
    });
    rows
}

/// White space that no other prompt ends with: what is asked and answered in the same words is scored once.
fn mark(name: &str, number: usize) -> String {
    let lines = "\n".repeat(name.bytes().map(usize::from).sum::<usize>() % 97);
    let bits = (0..12).map(|bit| if number >> bit & 1 == 1 { '\t' } else { ' ' });
    bits.fold(lines, |text, bit| format!("{text}{bit}"))
}

/// Writes rows as answers of a policy to new prompts, their labels moved by `shift`.
fn answers(desk: &Desk, folder: &str, policy: &str, rows: &[Value], (name, shift): (&str, f64)) {
    let at = desk.at.join(folder);
    std::fs::create_dir_all(&at).unwrap();
    let line = |(number, row): (usize, &Value)| {
        let mut row = row.clone();
        let label = row["oracle_label"].as_f64().unwrap_or(0.5);
        row["prompt_id"] = format!("{name}-{number:04}").into();
        row["target_policy"] = policy.into();
        let prompt = row["prompt"].as_str().unwrap();
        row["prompt"] = format!("{prompt}{}", mark(name, number)).into();
        row["oracle_label"] = json!((label + shift).clamp(0.0, 1.0));
        row.as_object_mut().unwrap().remove("sampled_at");
        format!("{row}\n")
    };
    let text: String = rows.iter().enumerate().map(line).collect();
    std::fs::write(at.join(format!("{policy}_responses.jsonl")), text).unwrap();
}

/// Scores answers, keeps their fields, and labels them under a design.
fn taken(desk: &mut Desk, folder: &str, design: &str) {
    desk.ok(&format!(
        "judge run --experiment sim --judge builtin --rows {folder} --known sim/known.json"
    ));
    let import = format!(
        "import cje {folder} --experiment sim --judge builtin --field domain --field level"
    );
    desk.ok(&format!("{import} --labels={design} --purpose audit"));
}

fn design(desk: &mut Desk, name: &str) {
    desk.ok(&format!(
        "label design new {name} --experiment sim --purpose audit --probability 1"
    ));
}

/// The first rubric runs, and an iteration has fitted its calibrator.
fn running() -> (Desk, Vec<Value>) {
    let mut desk = iterate::desk("--window 1000 --confirm 400");
    desk.ok("key new rel --role releaser");
    iterate::opened(&mut desk);
    desk.ok("iterate run it-1 --to audit");
    desk.ok("deploy activate sim@1.0 --judge builtin");
    let rows = simulated(&desk);
    (desk, rows)
}

/// The verdict of a guardrail.
fn guardrail<'a>(answer: &'a Value, name: &str) -> &'a str {
    answer["data"]["guardrails"][name].as_str().unwrap()
}

/// The data of the newest event of a kind, with its position.
fn newest(desk: &mut Desk, kind: &str) -> (Value, u64) {
    let list = desk.ok(&format!("log --kind {kind} --json")).json();
    let entries = list["data"]["entries"].as_array().unwrap();
    let seq = entries.iter().map(|of| of["seq"].as_u64().unwrap()).max();
    let seq = seq.unwrap();
    let body = desk.ok(&format!("show {seq} --body")).out;
    let body: Value = serde_json::from_str(&body).unwrap();
    (body["data"].clone(), seq)
}

#[test]
fn guardrails_are_computed_from_live_rows_and_a_breach_rolls_back() {
    let (mut desk, rows) = running();
    let words = ["deploy", "check", "sim"];
    desk.refused(&words, 11, &["nothing was recorded since"]);
    design(&mut desk, "live-1");
    let none = desk.ok("deploy check sim --json").json();
    assert_eq!(guardrail(&none, "environments"), "not_checked", "{none:#}");
    assert_eq!(guardrail(&none, "out_of_range"), "inconclusive");
    answers(&desk, "few", "base", &rows[..30], ("few", 0.0));
    taken(&mut desk, "few", "live-1");
    let few = desk.ok("deploy check sim --json").json();
    assert_eq!(guardrail(&few, "environments"), "inconclusive", "{few:#}");
    assert_eq!(guardrail(&few, "shift"), "inconclusive");
    // The same answers to other prompts, in their order of score: every other one.
    let half: Vec<Value> = rows.iter().step_by(2).cloned().collect();
    answers(&desk, "live", "base", &half, ("live", 0.0));
    taken(&mut desk, "live", "live-1");
    let held = desk.ok("deploy check sim --since-last --json").json();
    for name in ["abstention", "environments", "out_of_range", "shift"] {
        assert_eq!(guardrail(&held, name), "pass", "{name} {held:#}");
    }
    // Nothing ran before, no battery was run, no anchor was scored anew.
    for name in ["anchors", "greens", "reopened"] {
        assert_eq!(guardrail(&held, name), "not_checked", "{name} {held:#}");
    }
    let (said, _) = newest(&mut desk, "guardrail.checked");
    // Every number is independent arithmetic here: the rows are those that were written.
    assert_eq!(said["evidence"]["labels"], half.len());
    assert_eq!(said["evidence"]["rows"], half.len());
    let refused = |desk: &mut Desk, edit: &dyn Fn(&mut Value), parts: &[&str]| {
        let mut other = said.clone();
        let through = desk.head()["size"].as_u64().unwrap() - 1;
        let since = newest(desk, "deployment.activated").1 + 1;
        other["window"] = json!({"from_seq": since, "through_seq": through});
        other["inputs"]["through_seq"] = through.into();
        edit(&mut other);
        let text = other.to_string();
        let words = [
            "record",
            "guardrail.checked",
            "--experiment",
            "sim",
            "--data",
            &text,
        ];
        desk.refused(&words, 11, parts);
    };
    refused(
        &mut desk,
        &|other| other["evidence"]["labels"] = 9_999.into(),
        &["recompute: expected "],
    );
    refused(
        &mut desk,
        &|other| other["by_hand"] = "both".into(),
        &["evidence from rows or by hand"],
    );
    // People now find the same answers much worse.
    answers(&desk, "worse", "base", &half, ("worse", -0.2));
    taken(&mut desk, "worse", "live-1");
    let broken = desk.run("deploy check sim --since-last");
    assert_eq!(broken.code, 10, "{}{}", broken.out, broken.err);
    for part in ["environments  fail", "deployment.rolled_back"] {
        assert!(broken.out.contains(part), "{}", broken.out);
    }
    desk.ok("verify");
    desk.replayed("");
}

#[test]
fn a_calibrator_is_verified_or_fitted_anew_on_fresh_labels() {
    let (mut desk, rows) = running();
    design(&mut desk, "fresh-1");
    answers(&desk, "fresh", "base", &rows[..90], ("fresh", 0.0));
    taken(&mut desk, "fresh", "fresh-1");
    let words = "deploy recalibrate sim@1.0 --judge builtin --design fresh-1";
    let thin = desk.run(words);
    assert_eq!(thin.code, 11, "{}{}", thin.out, thin.err);
    let scored = "next: clover judge run --judge builtin --builtin";
    says(&thin, &["fresh labels", "that the judge scored", scored]);
    let half: Vec<Value> = rows.iter().step_by(2).cloned().collect();
    answers(&desk, "more", "base", &half, ("more", 0.0));
    taken(&mut desk, "more", "fresh-1");
    let verified = desk.ok(&format!("{words} --json")).json();
    let found = &verified["data"]["recalibration"];
    assert_eq!(found["computed"]["mode"], "verified", "{verified:#}");
    assert_eq!(found["labels"], 90 + half.len());
    // The same calibrator on the same anchors moves nothing.
    for anchor in found["anchors"]["anchors"].as_array().unwrap() {
        assert_eq!(anchor["drift"], json!(0.0), "{anchor}");
    }
    let mean = found["computed"]["transport"]["environments"][0]["mean"]
        .as_f64()
        .unwrap();
    assert!(mean.abs() < 0.02, "{mean}");
    let refitted = desk.ok(&format!("{words} --refit --json")).json();
    let anew = &refitted["data"]["recalibration"];
    assert_eq!(anew["computed"]["mode"], "refitted");
    assert_ne!(anew["calibrator"], found["calibrator"]);
    // Labels that say otherwise: nothing is recorded.
    design(&mut desk, "fresh-2");
    answers(&desk, "worse", "base", &half, ("worse", -0.2));
    taken(&mut desk, "worse", "fresh-2");
    let words = "deploy recalibrate sim@1.0 --judge builtin --design fresh-2";
    let words: Vec<&str> = words.split(' ').collect();
    desk.refused(&words, 11, &["residuals on fresh labels that pass", "fail"]);
    desk.replayed("");
}

#[test]
fn a_generator_is_told_lower_bounds_and_validated_on_fresh_labels() {
    let (mut desk, rows) = running();
    desk.ok("generator open tune-1 --experiment sim --old base --new tuned --steps 2");
    let (opened, _) = newest(&mut desk, "generator.run_opened");
    assert_eq!(
        opened["frozen"], opened["calibrator"],
        "what is evaluated is what runs"
    );
    let third = rows.len() / 3;
    // Better answers by the judge's own score: the upper third as tuned, the middle one as before.
    answers(
        &desk,
        "ab",
        "tuned",
        &rows[2 * third..3 * third],
        ("ab", 0.0),
    );
    answers(&desk, "ab", "base", &rows[third..2 * third], ("ab", 0.0));
    // What is judged brings its fields along: nothing is imported.
    desk.ok(
        "judge run --experiment sim --judge builtin --rows ab --known sim/known.json --field domain --field level",
    );
    let first = desk.ok("generator objective tune-1 --json").json();
    let bounds = first["data"]["bounds"].as_array().unwrap();
    assert_eq!(bounds.len(), third);
    let mean: f64 = bounds
        .iter()
        .map(|of| of["lower_micro"].as_f64().unwrap() / 1e6)
        .sum::<f64>()
        / third as f64;
    let told = first["data"]["lower_mean"].as_f64().unwrap();
    assert!((mean - told).abs() < 1e-5, "{mean} {told}");
    desk.ok("generator objective tune-1");
    let words = ["generator", "objective", "tune-1"];
    desk.refused(&words, 11, &["all 2 steps were asked"]);
    let early: Vec<&str> = "generator validate tune-1 --design calib"
        .split(' ')
        .collect();
    let refused = desk.words(&early);
    assert_eq!(refused.code, 11, "{}{}", refused.out, refused.err);
    design(&mut desk, "ab-1");
    for policy in ["base", "tuned"] {
        desk.ok(&format!(
            "import labels ab/{policy}_responses.jsonl --experiment sim --design ab-1 --purpose audit"
        ));
    }
    let done = desk.run("generator validate tune-1 --design ab-1 --json");
    // The rubric that runs pays for citations: attacks on the new answers earn too much, whatever the gain.
    assert_eq!(done.code, 10, "{}{}", done.out, done.err);
    let found = done.json()["data"]["validation"].clone();
    assert_eq!(found["verdicts"]["gain"], "pass", "{found:#}");
    assert_eq!(found["verdicts"]["battery"], "fail", "{found:#}");
    assert_eq!(found["compared"]["shared"], third);
    let label = |row: &Value| row["oracle_label"].as_f64().unwrap();
    let mean = |rows: &[Value]| rows.iter().map(label).sum::<f64>() / rows.len() as f64;
    let gain = mean(&rows[2 * third..3 * third]) - mean(&rows[third..2 * third]);
    let said = found["compared"]["difference"].as_f64().unwrap();
    assert!((said - gain).abs() < 1e-6, "{said} {gain}");
    let again = "generator open tune-2 --experiment sim --old base --new tuned --steps 2";
    let again: Vec<&str> = again.split(' ').collect();
    desk.refused(
        &again,
        11,
        &["every run before to be validated or rolled back"],
    );
    let words = [
        "generator",
        "rollback",
        "tune-1",
        "--reason",
        "attacks earn too much",
    ];
    desk.ok_words(&words);
    desk.ok_words(&again);
    let list = desk.ok("generator list sim --json").json();
    let states: Vec<&str> = list["data"]["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["rolled back", "open"]);
    let shown = desk.ok("generator show tune-1").out;
    for part in ["rolled back", "lower bound"] {
        assert!(shown.contains(part), "{shown}");
    }
    desk.ok("verify");
    desk.replayed("");
}
