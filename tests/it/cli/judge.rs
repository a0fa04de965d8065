//! Judges at work: simulated rows are scored once, labels come beside them, a re-score finds nothing, and a judge that
//! changes its mind is found out.

use serde_json::Value;

use super::Desk;
use super::Ran;
use super::says;

/// A person with every role, an experiment, and a small simulated data set.
fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/judge --holder Ada --roles all");
    desk.ok("key new cem --role custodian --seal");
    desk.ok("experiment register sim --title Simulation --purpose testing");
    desk.ok("simulate dataset --truth citations --seed 7 --slices 4 --window 60 --confirm 20 --fresh 1000 -o sim");
    desk
}

fn fails(desk: &mut Desk, code: u8, line: &str) -> Ran {
    let ran = desk.run(line);
    assert_eq!(ran.code, code, "{line}\n{}{}", ran.out, ran.err);
    ran
}

fn entries(desk: &mut Desk, kind: &str) -> Vec<Value> {
    let answer = desk
        .ok(&format!("log --kind {kind} --limit 10000 --json"))
        .json();
    answer["data"]["entries"].as_array().unwrap().clone()
}

const RUN: &str = "judge run --judge builtin --rows sim/responses --rows sim/anchors --known sim/known.json --json";

#[test]
fn rows_are_scored_once_and_labels_come_beside() {
    let mut desk = desk();
    let first = desk.ok(RUN).json();
    assert_eq!(first["data"]["scored"], 1080);
    assert_eq!(entries(&mut desk, "score.recorded").len(), 1080);
    let head = desk.head();
    let second = desk.ok(RUN).json();
    assert_eq!(
        (&second["verdict"], &second["data"]["already"]),
        (&"already_recorded".into(), &1080.into())
    );
    assert_eq!(desk.head(), head);
    // The file says the same scores, so that its labels are all that an import adds.
    desk.ok("label design new calib --purpose calibrate --probability 1");
    let labels = desk
        .ok("import cje sim/responses --judge builtin --labels --json")
        .json();
    assert_eq!(labels["data"]["recorded"]["scores"]["already"], 80);
    assert_eq!(labels["data"]["recorded"]["labels"]["new"], 80);
    let check = desk.ok("judge rescore-check --judge builtin --rows sim/responses --known sim/known.json --json").json();
    assert_eq!(
        (&check["data"]["keys"], &check["data"]["mismatches"]),
        (&30.into(), &0.into())
    );
    let list = desk.ok("judge list --json").json();
    let judge = &list["data"]["judges"][0];
    assert_eq!(
        (&judge["rows"], &judge["port"], &judge["replayed"]["keys"]),
        (&1080.into(), &"builtin".into(), &30.into())
    );
    assert!(desk.ok("judge list").out.contains("0 of 30 differ"));
    desk.ok("verify");
    // One name, one meaning.
    says(
        &fails(
            &mut desk,
            11,
            "judge run --judge builtin --rows sim/responses",
        ),
        &["is registered at seq"],
    );
}

/// A judge that gives every response the same score, and ends after `$1` answers.
const FLAT: &str = r#"n=0
while read -r line; do
  n=$((n+1)); id=${line#*\"id\":}
  echo "{\"id\":${id%%,*},\"score\":$1}"
done
"#;

#[test]
fn a_command_judges_resumes_and_is_found_out() {
    let mut desk = desk();
    desk.file("flat.sh", FLAT);
    let run = |score: &str| {
        format!(
            "judge run --judge flat --model flat-1 --rows sim/responses -j 2 --json -- sh flat.sh {score}"
        )
    };
    // A judge that never gets to an answer: nothing is recorded, and the way on is named.
    desk.file("dead.sh", "exit 3\n");
    let dead = fails(
        &mut desk,
        75,
        "judge run --judge flat --model flat-1 --rows sim/responses -- sh dead.sh",
    );
    says(&dead, &["exit status: 3", "0 rows were recorded"]);
    says(
        &fails(&mut desk, 4, &run("7")),
        &["expected a score from 0 to 1"],
    );
    let scored = desk.ok(&run("0.25")).json();
    assert_eq!(scored["data"]["scored"], 80);
    assert_eq!(desk.ok(&run("0.25")).json()["verdict"], "already_recorded");
    let again =
        "judge rescore-check --judge flat --model flat-1 --rows sim/responses --json -- sh flat.sh";
    assert_eq!(desk.ok(&format!("{again} 0.25")).json()["verdict"], "pass");
    says(
        &fails(&mut desk, 11, &format!("{again} 0.26")),
        &["30 of 30 rows were scored differently"],
    );
    assert_eq!(entries(&mut desk, "score.conflict").len(), 30);
    assert_eq!(entries(&mut desk, "score.replayed").len(), 2);
    desk.ok("verify");
}

#[test]
fn imported_scores_and_conflicting_ones() {
    let mut desk = desk();
    desk.ok("import cje sim/responses --judge human-like");
    let recorded = "judge run --judge human-like --recorded --rows sim/responses --known sim/known.json --json";
    assert_eq!(desk.ok(recorded).json()["data"]["scored"], 80);
    // Rows that nobody imported have no recorded score.
    says(
        &fails(
            &mut desk,
            4,
            &recorded.replace("sim/responses", "sim/anchors"),
        ),
        &["no score of this draw"],
    );
    desk.ok("import cje sim/responses --judge other");
    desk.file("flat.sh", FLAT);
    let differs = fails(
        &mut desk,
        11,
        "judge run --judge other --rows sim/responses -- sh flat.sh 0.123456",
    );
    says(&differs, &["score_once", "the first stands"]);
    assert_eq!(entries(&mut desk, "score.conflict").len(), 80);
    desk.ok("verify");
}
