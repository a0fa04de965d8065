//! One patch, judged on two simulated data sets: on one it is accepted, on the other it moves anchors by more than the plan allows.
//!
//! Texts of dev rows alone are in the ledger, encrypted, since attacks are tried on them. Of all other rows the scorer gives
//! scores and evidence, as somebody does whose texts may not leave the house.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use serde_json::json;

use super::at;
use super::founded;
use super::run;
use super::say;
use super::stories::PEEKS;
use crate::cli::Desk;

const PEOPLE: [&str; 6] = [
    "scorer --role scorer --machine --holder runner",
    "lena --role labeler --holder Lena",
    "cem --role custodian --holder Cleo --seal",
    "bea --role arbiter --holder Bea",
    "opal --role optimizer --holder Opal",
    "mal --role adversary --holder Mal",
];
/// Rows of each set of anchors.
const ANCHORS: usize = 200;

const PROPOSE: &str = "iterate run it-1 --propose data/patch.yaml --yes";

/// A patch that passes every criterion, on dev and on confirm.
pub(super) fn accepted() -> Desk {
    let mut desk = ready("ledger.example/accepted-patch", 6);
    say(&mut desk, &[PROPOSE]);
    at(&desk, "2026-11-10T10:00");
    desk
}

/// A patch that cuts the squared error and moves an anchor set too far: it ends on dev, and no confirm label is opened.
pub(super) fn refused() -> Desk {
    let mut desk = ready("ledger.example/refused-patch", 10);
    let ran = run(&mut desk, PROPOSE);
    assert_eq!(ran.code, 10, "{}{}", ran.out, ran.err);
    at(&desk, "2026-11-10T10:00");
    desk
}

fn read(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn write(path: &Path, rows: impl IntoIterator<Item = Value>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let lines = rows.into_iter().map(|row| format!("{row}\n"));
    std::fs::write(path, lines.collect::<String>()).unwrap();
}

/// A row without its texts, as `import` needs it.
fn bare(row: &Value) -> Value {
    let kept = [
        "prompt_id",
        "judge_score",
        "oracle_label",
        "sampled_at",
        "metadata",
    ];
    let fields = kept
        .iter()
        .map(|name| ((*name).to_owned(), row[name].clone()));
    Value::Object(fields.collect())
}

/// Data with a known fault; rows of `dev` apart from the others.
fn lay_out(desk: &mut Desk, seed: u32) {
    say(
        desk,
        &[&format!(
            "simulate dataset --truth citations --seed {seed} --slices 4 --window 250 --confirm 125 --share 0.2 --fresh 1000 -o data"
        )],
    );
    let data = desk.at.join("data");
    for name in ["anchor_high", "anchor_low"] {
        let file = format!("{name}_responses.jsonl");
        let rows = read(&data.join("anchors").join(&file));
        write(
            &data.join("rest").join(&file),
            rows.into_iter().take(ANCHORS),
        );
    }
    let rows = read(&data.join("responses/base_responses.jsonl"));
    write(
        &data.join("bare/base_responses.jsonl"),
        rows.iter().map(bare),
    );
    say(
        desk,
        &[
            "import rows data/bare/base_responses.jsonl --without-texts --field domain --field level",
            "experiment split arena --seed 1 --t1 2026-03-15 --t2 2026-04-01",
        ],
    );
    let listed = desk.ok("log --kind splits.listed --json").json();
    let parts = listed["data"]["entries"].as_array().unwrap().iter();
    let dev: BTreeSet<&str> = parts
        .map(|entry| &entry["body"]["data"])
        .filter(|part| part["part"] == "dev")
        .flat_map(|part| part["clusters"].as_array().unwrap())
        .map(|cluster| cluster.as_str().unwrap())
        .collect();
    let is_dev = |row: &Value| dev.contains(row["prompt_id"].as_str().unwrap());
    let (own, rest): (Vec<Value>, Vec<Value>) = rows.into_iter().partition(is_dev);
    write(&data.join("dev/base_responses.jsonl"), own);
    write(&data.join("rest/base_responses.jsonl"), rest);
}

/// Scores of rows whose texts stay where they are; the last line is of the sample that was scored again.
fn scored_elsewhere(desk: &mut Desk) -> (String, String) {
    let mut other = Desk::new();
    say(
        &mut other,
        &[
            "init --holder runner --roles all",
            "experiment register arena --title Elsewhere --purpose 'to score where the texts are'",
        ],
    );
    let data = desk.at.join("data");
    for verb in ["run", "rescore-check"] {
        let line = format!(
            "judge {verb} --judge builtin --rows {0}/rest --known {0}/known.json",
            data.display()
        );
        say(&mut other, &[&line]);
    }
    let log = other.ok("log --limit 5000 --json").json();
    let registered = desk.ok("log --kind judge.registered --json").json();
    let refs = json!([registered["data"]["entries"][0]["id"]]);
    let (mut scores, mut again) = (String::new(), String::new());
    let mut known = BTreeSet::new();
    for entry in log["data"]["entries"].as_array().unwrap() {
        let (kind, mut data) = (&entry["body"]["kind"], entry["body"]["data"].clone());
        let mut line = json!({"experiment": "arena", "kind": kind, "refs": refs});
        match kind.as_str().unwrap() {
            "score.recorded" => {
                // Rows that were scored again come twice.
                if !known.insert((data["policy"].to_string(), data["item"].to_string())) {
                    continue;
                }
                let fields = data.as_object_mut().unwrap();
                fields.remove("prompt");
                fields.remove("response");
            }
            "evidence.recorded" => {
                let digest = data["records"]["blake3"].as_str().unwrap();
                let media = data["records"]["media"].as_str().unwrap();
                let file = desk.at.join("evidence.jsonl");
                let file = file.display();
                say(&mut other, &[&format!("blob get {digest} -o {file}")]);
                say(desk, &[&format!("blob put evidence.jsonl --media {media}")]);
            }
            "score.replayed" => {
                line["data"] = data;
                again = format!("{line}\n");
                continue;
            }
            _ => continue,
        }
        line["data"] = data;
        scores += &format!("{line}\n");
    }
    (scores, again)
}

/// An iteration that waits for its patches: rows, labels and anchors are in, and the plan is in force.
fn ready(origin: &str, seed: u32) -> Desk {
    let mut desk = founded(origin, &PEOPLE);
    std::fs::create_dir_all(desk.at.join("data")).unwrap();
    // The rubric is written with the data.
    say(
        &mut desk,
        &["experiment register arena --title 'Mend a judge' --purpose 'false sources'"],
    );
    lay_out(&mut desk, seed);
    at(&desk, "2026-11-03T09:00");
    say(
        &mut desk,
        &[
            "rubric register data/rubric.yaml --experiment arena",
            "judge run --judge builtin --rows data/dev --known data/known.json",
        ],
    );
    let (scores, again) = scored_elsewhere(&mut desk);
    desk.file("scores.jsonl", &scores);
    desk.file("again.jsonl", &again);
    say(&mut desk, &["append --bulk scores.jsonl --key scorer"]);
    at(&desk, "2026-11-04T09:00");
    let import = "import cje data/bare/base_responses.jsonl --judge builtin --field domain --field level \
                  --labels=calib --seal hold --reveal-by 2027-06-01 --yes";
    say(
        &mut desk,
        &[
            "label design new calib --purpose calibrate --probability 1",
            "label design new hold --purpose confirm --probability 1",
            import,
            "confirm seal hold",
            "iterate anchors anchors-1 --low anchor_low --high anchor_high",
            PEEKS,
        ],
    );
    at(&desk, "2026-11-05T09:00");
    planned(&mut desk);
    say(
        &mut desk,
        &[
            "blob put draft.basis.json --media application/json",
            "prereg sign plan.yaml",
            "iterate open it-1 --manifest plan-1",
            "append --bulk again.jsonl --key scorer",
        ],
    );
    at(&desk, "2026-11-06T09:00");
    say(&mut desk, &["iterate run it-1"]);
    at(&desk, "2026-11-09T09:00");
    desk
}

/// The plan that is drafted from labels of fit alone, with what only people know.
fn planned(desk: &mut Desk) {
    say(
        desk,
        &["prereg new --template iteration --from-data --experiment arena -o draft.yaml"],
    );
    let draft = std::fs::read_to_string(desk.at.join("draft.yaml")).unwrap();
    let said = [
        ("manifest:", "plan-1"),
        ("title:", "Mend the judge"),
        (
            "  claim:",
            "subtracting what false sources earn makes scores better",
        ),
        ("  patch_families:", "[evidence_verification]"),
    ];
    let mut plan = String::new();
    for line in draft.lines() {
        let own = said.iter().find(|(name, _)| line.starts_with(name));
        match own {
            Some((name, value)) => plan += &format!("{name} {value}\n"),
            None => plan += &format!("{line}\n"),
        }
    }
    desk.file("plan.yaml", &plan);
}
