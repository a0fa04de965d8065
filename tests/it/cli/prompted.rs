//! What a judge is told, who may be told otherwise, fields that come later, patches to begin with, and scales of gates.

use clover::ground::digest::Digest;
use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::says;
use crate::support::verifiers;

const ROWS: usize = 40;

/// What the judge is told.
const TOLD: &str = "Padding earns nothing.\n";

/// Gives more to an ask that tells it about padding.
const JUDGE: &str = r#"import json, sys
for line in sys.stdin:
    ask = json.loads(line)
    told = ask.get("judge_prompt", "")
    score = 0.9 if "Padding earns nothing." in told else 0.5 if "judge_prompt" in ask else 0.1
    print(json.dumps({"id": ask["id"], "score": score}), flush=True)
"#;

/// A person with every role, an experiment with a rubric, and rows with a field beside each.
fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/told --holder Ada --roles all");
    desk.ok("key new cem --role custodian --seal");
    desk.ok("experiment register arena --title Arena --purpose testing");
    let line = |at: usize| {
        let row = json!({
            "prompt_id": format!("q{at:02}"), "prompt": format!("Why {at}?"), "response": format!("Stone {at}."),
            "padding": if at.is_multiple_of(3) { "much" } else { "none" },
        });
        format!("{row}\n")
    };
    desk.file(
        "base_responses.jsonl",
        &(0..ROWS).map(line).collect::<String>(),
    );
    desk.file("judge.py", JUDGE);
    desk.file("told.txt", TOLD);
    desk
}

fn entries(desk: &mut Desk, kind: &str) -> Vec<Value> {
    let list = desk.ok(&format!("log --kind {kind} --json")).json();
    list["data"]["entries"].as_array().unwrap().clone()
}

fn data(desk: &mut Desk, entry: &Value) -> Value {
    let body = desk.ok(&format!("show {} --body", entry["seq"])).out;
    serde_json::from_str::<Value>(&body).unwrap()["data"].clone()
}

/// The scores of a judge, each once.
fn scores(desk: &mut Desk, judge: &str) -> Vec<i64> {
    let mut found = Vec::new();
    for entry in entries(desk, "score.recorded") {
        let said = data(desk, &entry);
        if said["judge"] == judge {
            found.push(said["score_micro"].as_i64().unwrap());
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
fn a_judge_is_told_its_prompt_in_every_ask() {
    if !verifiers::python() {
        return;
    }
    let mut desk = desk();
    desk.ok("import rows base_responses.jsonl");
    // Given a judge without a prompt, when it is asked, then nothing is sent.
    desk.ok("judge run --judge silent -- python3 judge.py");
    // Given one with a prompt, then its text is in every ask, and is kept under its hash.
    let run = "judge run --judge told --prompt told.txt -- python3 judge.py";
    desk.ok(run);
    assert_eq!(scores(&mut desk, "silent"), [100_000]);
    assert_eq!(scores(&mut desk, "told"), [900_000]);
    let judges = entries(&mut desk, "judge.registered");
    let [silent, told] = [&judges[0], &judges[1]].map(|of| data(&mut desk, of));
    assert_eq!(silent["prompt"], Value::Null);
    let hash = Digest::sha256(TOLD.as_bytes()).to_hex();
    assert_eq!(told["prompt_hash"], json!(hash));
    let blob = told["prompt"]["blake3"].as_str().unwrap().to_owned();
    assert_eq!(desk.ok(&format!("blob get {blob}")).out, TOLD);
    // It is asked as it was registered, whoever asks again, without the file.
    std::fs::remove_file(desk.at.join("told.txt")).unwrap();
    let again = desk
        .ok("judge run --judge told --json -- python3 judge.py")
        .json();
    assert_eq!(again["verdict"], "already_recorded", "{again:#}");
    let check = desk.ok(
        "judge rescore-check --judge told --rows base_responses.jsonl --json -- python3 judge.py",
    );
    assert_eq!(check.json()["data"]["mismatches"], 0);
    // Another text is another judge.
    desk.file("other.txt", "Length is fine.\n");
    let other = desk.run("judge run --judge told --prompt other.txt -- python3 judge.py");
    assert_eq!(other.code, 11, "{}{}", other.out, other.err);
    desk.ok("verify");
}

#[test]
fn a_prompt_is_a_text() {
    let mut desk = desk();
    desk.file("bytes.txt", "");
    desk.ok("import rows base_responses.jsonl");
    let empty = desk.run("judge run --judge told --prompt bytes.txt -- python3 judge.py");
    assert_eq!(empty.code, 4, "{}{}", empty.out, empty.err);
    says(&empty, &["bytes.txt: expected a text in UTF-8"]);
}

#[test]
fn a_field_is_taken_in_later_and_not_after_a_label() {
    let mut desk = desk();
    desk.ok("import rows base_responses.jsonl");
    let later = "import rows base_responses.jsonl --field padding --json";
    let taken = desk.ok(later).json();
    let (rows, fielded) = (&taken["data"]["rows"], &taken["data"]["fielded"]);
    assert_eq!((&rows["new"], &rows["already"]), (&json!(0), &json!(ROWS)));
    assert_eq!(fielded, &json!(ROWS), "{taken:#}");
    assert_eq!(taken["data"]["fields"], json!(["padding"]));
    // What was said once is not said again.
    let again = desk.ok(later).json();
    assert_eq!(again["verdict"], "already_recorded", "{again:#}");
    // Each row is judged once, whichever import named it.
    desk.file("judge.sh", "while read -r l; do id=${l#*\\\"id\\\":}; echo \"{\\\"id\\\":${id%%,*},\\\"score\\\":0.5}\"; done");
    let judged = desk
        .ok("judge run --judge llm --json -- sh judge.sh")
        .json();
    assert_eq!(judged["data"]["scored"], json!(ROWS), "{judged:#}");
    // Once a label can be read, a field could be chosen by it.
    desk.ok("label design new calib --purpose calibrate --probability 1");
    desk.file("labels.csv", "item,policy,label\nq00,base,0.5\n");
    desk.ok("import labels labels.csv");
    let text = std::fs::read_to_string(desk.at.join("base_responses.jsonl")).unwrap();
    desk.file(
        "base_responses.jsonl",
        &text.replace("\"padding\"", "\"topic\""),
    );
    let head = desk.head();
    let late = desk.run("import rows base_responses.jsonl --field topic");
    assert_eq!(late.code, 11, "{}{}", late.out, late.err);
    says(
        &late,
        &[
            "field topic",
            "where a label could be read",
            "without --field",
        ],
    );
    assert_eq!(desk.head(), head);
    desk.ok("verify");
}

#[test]
fn a_draft_asks_which_of_two_judges() {
    let mut desk = desk();
    desk.ok("rubric new -o rubric.yaml");
    let rubric = std::fs::read_to_string(desk.at.join("rubric.yaml")).unwrap();
    desk.file("rubric.yaml", &rubric.replace("# FILL: ", "# "));
    desk.ok("rubric register rubric.yaml --experiment arena");
    desk.ok("import rows base_responses.jsonl");
    desk.file("judge.sh", "while read -r l; do id=${l#*\\\"id\\\":}; echo \"{\\\"id\\\":${id%%,*},\\\"score\\\":0.5}\"; done");
    for judge in ["one", "two"] {
        desk.ok(&format!("judge run --judge {judge} -- sh judge.sh"));
    }
    let draft = "prereg new --template iteration --from-data -o plan.yaml";
    let several = desk.run(draft);
    assert_eq!(several.code, 2, "{}{}", several.out, several.err);
    says(&several, &["one and two among them", "--judge one"]);
    // Whose scores are read is said; what lacks then is another thing.
    let named = desk.run(&format!("{draft} --judge two"));
    assert!(!named.err.contains("several judges"), "{}", named.err);
}

#[test]
fn a_patch_begins_with_the_rubric_and_names_what_it_lacks() {
    let mut desk = desk();
    desk.ok("rubric new -o rubric.yaml");
    desk.ok("patch new guards.length_bias_cap.max_raw_score --rubric rubric.yaml -o patch.yaml");
    let text = std::fs::read_to_string(desk.at.join("patch.yaml")).unwrap();
    let unedited = desk.run("patch check patch.yaml --rubric rubric.yaml");
    assert_ne!(unedited.code, 0, "{}", unedited.out);
    let edited: String = text
        .lines()
        .map(|line| match line.split_once(": ") {
            Some((path, _)) if line.contains("# FILL") && line.starts_with("    ") => {
                let value = if path.ends_with("_gt") { "700" } else { "0.11" };
                format!("{path}: {value}\n")
            }
            _ => format!("{line}\n"),
        })
        .collect();
    desk.file("patch.yaml", &edited);
    desk.ok("patch check patch.yaml --rubric rubric.yaml");
    // What is neither a family nor a leaf is told which there are.
    let other = desk.run("patch new length --rubric rubric.yaml");
    assert_eq!(other.code, 2, "{}{}", other.out, other.err);
    says(&other, &["length_bias_cap", "abstention"]);
    // Every key that lacks is named at once.
    desk.file(
        "bare.yaml",
        "patch:\n  family: abstention\n  constraints: {max_tokens_added: 9}\n",
    );
    let bare = desk.run("patch check bare.yaml --rubric rubric.yaml");
    says(
        &bare,
        &[
            "id, rationale, changes, constraints.affects_rescore",
            "clover patch new",
        ],
    );
}

/// A template with its lines filled, and the caps of the shift as given.
fn filled(desk: &Desk, ks_max: u64) {
    let text = std::fs::read_to_string(desk.at.join("template.yaml")).unwrap();
    let line = |line: &str| {
        let key = line.split(':').next().unwrap();
        let value = match key.trim_start() {
            "manifest" => "plan-1".to_owned(),
            "experiment" => "arena".to_owned(),
            "title" => "A better judge".to_owned(),
            "claim" => "the judge errs less".to_owned(),
            "rubric_hash" | "seed" => "ab".repeat(32),
            "patch_families" => "[evidence_verification]".to_owned(),
            "ks_max_micro" => ks_max.to_string(),
            _ => return format!("{line}\n"),
        };
        format!("{key}: {value}\n")
    };
    desk.file("plan.yaml", &text.lines().map(line).collect::<String>());
}

#[test]
fn a_plan_says_what_its_caps_mean_and_which_are_wide() {
    let mut desk = desk();
    desk.ok("prereg new --template iteration --labels 4000 -o template.yaml");
    let mut notes = |ks_max: u64| {
        filled(&desk, ks_max);
        let ran = desk.run("prereg check plan.yaml --json");
        ran.json()["data"]["notes"].to_string()
    };
    let usual = notes(50_000);
    assert!(
        usual.contains("p4 refuses it where KS is above 0.05"),
        "{usual}"
    );
    assert!(!usual.contains("wider than usual"), "{usual}");
    let wide = notes(900_000);
    assert!(wide.contains("KS is above 0.9 and W1 above 0.02"), "{wide}");
    assert!(
        wide.contains("wider than usual for so many labels: ks_max 0.9 (usual 0.05)"),
        "{wide}"
    );
}

#[test]
fn the_plan_of_a_gate_has_the_scale_of_its_outcomes() {
    let mut desk = desk();
    desk.ok("family open quarter --method spend --alpha 0.05 --members 2 --membership gates");
    desk.file(
        "units.txt",
        &(0..30).map(|at| format!("u{at}\n")).collect::<String>(),
    );
    desk.file("new.txt", "rate it anew");
    let plan = "gate plan m-1 --units units.txt --baseline told.txt --candidate new.txt --judge judge.py --claim better -o gate.yaml";
    let ran = desk.ok(&format!("{plan} --scale 0:100"));
    assert!(ran.out.contains("outcomes from 0 to 100"), "{}", ran.out);
    let text = std::fs::read_to_string(desk.at.join("gate.yaml")).unwrap();
    assert!(text.contains("scale_hi_micro: 100000000"), "{text}");
    desk.ok("prereg check gate.yaml");
}
