//! `clover export` in the formats of other tools: what events say, and nothing that a reader would run.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Desk;
use super::release;
use super::says;

/// A ledger with an iteration to an accepted patch, and its entry lines in `whole`.
fn desk() -> Desk {
    let (mut desk, _) = release::accepted();
    desk.ok("export jsonl -o whole");
    desk
}

/// Events of the ledger by kind, read from its entry lines alone.
fn kinds(desk: &Desk) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for line in read(desk, "whole/ledger.jsonl").lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        let payload = entry["envelope"]["payload"].as_str().unwrap();
        let body = clover::ground::base64::decode(payload.as_bytes()).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let kind = body["kind"].as_str().unwrap().to_owned();
        *kinds.entry(kind).or_default() += 1;
    }
    kinds
}

fn read(desk: &Desk, path: &str) -> String {
    std::fs::read_to_string(desk.at.join(path)).unwrap()
}

fn rows(desk: &Desk, table: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(desk.at.join("tables").join(table)).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

#[test]
fn every_event_of_a_kind_is_a_row_of_its_table() {
    let mut desk = desk();
    desk.ok("export csv -o tables");
    let kinds = kinds(&desk);
    assert_eq!(
        rows(&desk, "events.csv").len(),
        kinds.values().sum::<usize>()
    );
    let criteria = rows(&desk, "criteria.csv");
    assert_eq!(criteria.len(), kinds["gate.evaluated"]);
    assert!(
        criteria
            .iter()
            .all(|row| row["verdicts_recommended"] == "pass"),
        "{criteria:?}"
    );
    assert!(criteria.iter().all(|row| row["event"].len() == 64));
    let metadata: Value = serde_json::from_str(&read(&desk, "tables/csv-metadata.json")).unwrap();
    assert_eq!(metadata["tables"].as_array().unwrap().len(), 15);
}

#[test]
fn a_spreadsheet_runs_nothing_of_a_table() {
    let mut desk = Desk::with_ledger();
    let account = r#"{"account":"calls","amount":9,"period":"quarter","purpose":"judge calls","spenders":["owner"],"unit":"judge_call"}"#;
    desk.ok_words(&["record", "budget.opened", "--data", account]);
    let charge = r#"{"account":"calls","amount":1,"for":"=HYPERLINK(\"http://x\",\"y\")"}"#;
    desk.ok_words(&["record", "budget.charged", "--data", charge]);
    desk.ok("export csv -o tables");
    let charges = rows(&desk, "charges.csv");
    assert_eq!(charges[0]["for"], "'=HYPERLINK(\"http://x\",\"y\")");
}

#[test]
fn decisions_are_statements_and_cases() {
    let mut desk = desk();
    let kinds = kinds(&desk);
    let statements = desk.ok("export intoto -o -").out;
    let statements: Vec<Value> = statements
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(statements.len(), 1);
    assert_eq!(statements[0]["predicate"]["result"], "PASSED");
    let passed = statements[0]["predicate"]["passedTests"]
        .as_array()
        .unwrap();
    assert_eq!(passed.len(), kinds["gate.evaluated"]);
    let report = desk.ok("export junit -o -").out;
    assert_eq!(
        report.matches("<testcase ").count(),
        kinds["gate.evaluated"]
    );
    assert!(!report.contains("<failure"), "{report}");
    for format in ["cyclonedx", "spdx", "prov"] {
        let document: Value =
            serde_json::from_str(&desk.ok(&format!("export {format} -o -")).out).unwrap();
        assert!(document.is_object(), "{format}");
    }
}

/// What was signed stands in each envelope, as in the entry lines.
#[test]
fn envelopes_are_those_of_the_log() {
    let mut desk = desk();
    desk.ok("export dsse -o events.dsse");
    let lines = read(&desk, "whole/ledger.jsonl");
    let theirs = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["envelope"].clone());
    let ours = read(&desk, "events.dsse");
    let ours = ours
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert!(ours.eq(theirs));
}

/// Scores and labels that were exported are the same when they are imported again.
#[test]
fn scores_and_labels_come_back() {
    let mut desk = Desk::new();
    desk.ok("init --holder Ada --roles all");
    let rows: String = (0..20)
        .map(|n| format!("{{\"prompt_id\":\"p{n}\",\"judge_score\":0.{:02},\"oracle_label\":0.{:02},\"draw_idx\":0}}\n", n + 10, n + 30))
        .collect();
    std::fs::create_dir(desk.at.join("in")).unwrap();
    desk.file("in/base_responses.jsonl", &rows);
    desk.ok("experiment register arena --title Arena --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 1");
    desk.ok("import cje in --labels=calib");
    desk.ok("export cje -o out");
    let judge = std::fs::read_dir(desk.at.join("out/arena"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let back = std::fs::read_to_string(judge.path().join("base_responses.jsonl")).unwrap();
    let draw = |line: &str| -> (String, f64, f64) {
        let row: Value = serde_json::from_str(line).unwrap();
        let number = |name: &str| row[name].as_f64().unwrap();
        (
            row["prompt_id"].as_str().unwrap().to_owned(),
            number("judge_score"),
            number("oracle_label"),
        )
    };
    let mut ours: Vec<_> = back.lines().map(draw).collect();
    let mut theirs: Vec<_> = rows.lines().map(draw).collect();
    ours.sort_by(|a, b| a.0.cmp(&b.0));
    theirs.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(ours, theirs);
    desk.ok("export csv -o tables");
    let score = &self::rows(&desk, "scores.csv")[0];
    assert_eq!(score["score"], "0.1");
    desk.ok("export inspect -o ratings --experiment arena");
}

/// A model is named with a slash, and a name may be anything: its file lies where it was asked for.
#[test]
fn names_lead_to_no_other_folder() {
    let mut desk = Desk::new();
    desk.ok("init --holder Ada --roles all");
    desk.ok("experiment register ../../out --title Arena --purpose testing");
    desk.file(
        "rows.jsonl",
        "{\"prompt_id\":\"p1\",\"judge_score\":0.5,\"target_policy\":\"openai/gpt-4o\"}\n",
    );
    desk.ok("import cje rows.jsonl --judge ../judge");
    desk.ok("export inspect -o ratings");
    desk.ok("export cje -o rows");
    let folder = "%2E.%2F..%2Fout/%2E.%2Fjudge";
    read(&desk, &format!("ratings/{folder}/openai%2Fgpt-4o.jsonl"));
    let file = format!("rows/{folder}/openai%2Fgpt-4o_responses.jsonl");
    let again = desk.ok(&format!("import cje {file} --judge ../judge --json"));
    assert_eq!(again.json()["verdict"], "already_recorded");
}

#[test]
fn a_crate_verifies_as_the_log_that_it_is() {
    let mut desk = desk();
    desk.ok("export ro-crate -o crate");
    let metadata: Value =
        serde_json::from_str(&read(&desk, "crate/ro-crate-metadata.json")).unwrap();
    let graph = metadata["@graph"].as_array().unwrap();
    assert!(
        graph.iter().any(|node| node["@id"] == "ledger.jsonl"),
        "{metadata}"
    );
    let ran = desk.ok("verify crate --no-pin");
    assert!(ran.out.contains("VERIFIED"), "{}", ran.out);
}

#[test]
fn nothing_is_written_over_and_nothing_left_where_it_is_refused() {
    let mut desk = desk();
    desk.file("taken", "mine");
    let ran = desk.run("export junit -o taken");
    assert_ne!(ran.code, 0);
    assert_eq!(read(&desk, "taken"), "mine");
    let ran = desk.run("export csv -o -");
    assert_ne!(ran.code, 0);
    says(&ran, &["csv is a folder of files"]);
    let ran = desk.run("export junit -o fine --experiment nowhere");
    says(&ran, &["--experiment names nowhere: no such experiment"]);
    let ran = desk.run("export jsonl -o fine --experiment arena");
    says(&ran, &["--experiment does not go with jsonl"]);
    let ran = desk.run("export csv -o fine --blobs");
    says(&ran, &["--blobs does not go with csv"]);
    let names: Vec<_> = std::fs::read_dir(&desk.at)
        .unwrap()
        .map(|of| of.unwrap().file_name())
        .collect();
    assert!(!names.iter().any(|name| name == "fine"), "{names:?}");
}

/// An id may hold any character; what is written stays in the folder.
#[test]
fn no_id_leads_out_of_the_folder() {
    let mut desk = Desk::new();
    desk.ok("init --holder Ada --roles all");
    std::fs::create_dir(desk.at.join("kept")).unwrap();
    desk.file("kept/mine_responses.jsonl", "mine");
    desk.ok("experiment register e --title E --purpose testing");
    let absolute = desk.at.join("kept/mine").display().to_string();
    for policy in ["../../../kept/mine", &absolute, "meta-llama/Llama-3", ".."] {
        let said = serde_json::json!({"draw": 0, "item": "a", "judge": "j/../k", "policy": policy, "score_micro": 1});
        desk.ok_words(&[
            "record",
            "score.recorded",
            "--experiment",
            "e",
            "--data",
            &said.to_string(),
        ]);
    }
    for (format, ending) in [("cje", "_responses.jsonl"), ("inspect", ".jsonl")] {
        desk.ok(&format!("export {format} -o {format}"));
        let folder = desk.at.join(format).join("e/j%2F..%2Fk");
        let files = std::fs::read_dir(&folder).unwrap().count();
        assert_eq!(files, 4, "{format}");
        let name = format!("meta-llama%2FLlama-3{ending}");
        assert!(folder.join(&name).is_file(), "{name}");
    }
    assert_eq!(read(&desk, "kept/mine_responses.jsonl"), "mine");
    assert_eq!(std::fs::read_dir(desk.at.join("kept")).unwrap().count(), 1);
}

/// Two judges whose experiment and name are alike when they are put together have two references.
#[test]
fn judges_of_two_experiments_are_told_apart() {
    let mut desk = Desk::new();
    desk.ok("init --holder Ada --roles all");
    for (experiment, judge) in [("x", "a/b"), ("x/a", "b")] {
        desk.ok_words(&[
            "experiment",
            "register",
            experiment,
            "--title",
            "E",
            "--purpose",
            "testing",
        ]);
        let said = serde_json::json!({"decoding": {"temperature_micro": 0}, "evidence_schema": "evidence/1", "extractor": "clover-text/1", "judge": judge, "model": "m", "port": "recorded", "prompt_hash": "0".repeat(64), "tool_snapshot": "0".repeat(64)});
        desk.ok_words(&[
            "record",
            "judge.registered",
            "--experiment",
            experiment,
            "--data",
            &said.to_string(),
        ]);
    }
    let text = desk.ok("export cyclonedx -o -").out;
    let bill: Value = serde_json::from_str(&text).unwrap();
    let references: std::collections::BTreeSet<&str> = bill["components"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["bom-ref"].as_str().unwrap())
        .collect();
    assert_eq!(
        references.into_iter().collect::<Vec<_>>(),
        ["judge/x%2Fa/b", "judge/x/a%2Fb"]
    );
}

/// A gate that passed is green while it may be claimed, and no longer.
#[test]
fn a_gate_that_may_not_be_claimed_is_not_green() {
    let mut desk = super::gate::scored();
    desk.ok("gate observe m-1 --all");
    desk.ok("gate decide m-1");
    let ends = |desk: &mut Desk| {
        let statement = desk.ok("export intoto -o -").out;
        let statement: Value = serde_json::from_str(statement.trim()).unwrap();
        let report = desk.ok("export junit -o -").out;
        let skipped = report.matches("<skipped").count();
        (
            statement["predicate"]["result"]
                .as_str()
                .unwrap()
                .to_owned(),
            skipped,
        )
    };
    assert_eq!(ends(&mut desk), ("PASSED".to_owned(), 0));
    desk.ok_words(&[
        "prereg",
        "deviation",
        "m-1",
        "--rule-path",
        "test.n_max",
        "--what",
        "stopped",
        "--why",
        "no budget",
        "--impact",
        "less power",
        "--outcome-seen",
        "--key",
        "owner",
    ]);
    assert_eq!(ends(&mut desk), ("WARNED".to_owned(), 1));
}

/// What stands in the place of an export is kept, whatever it is.
#[test]
fn an_export_takes_no_place_of_others() {
    let mut desk = Desk::with_ledger();
    desk.ok("export csv -o tables");
    std::os::unix::fs::symlink("nowhere", desk.at.join("link")).unwrap();
    std::fs::create_dir(desk.at.join("empty")).unwrap();
    for line in [
        "export jsonl -o tables",
        "export tiles -o tables",
        "export bundle -o tables",
        "export junit -o link",
        "export jsonl -o link",
    ] {
        let ran = desk.run(line);
        assert_eq!(ran.code, 2, "{line}: {}{}", ran.out, ran.err);
        says(&ran, &["exists already"]);
    }
    desk.ok("export jsonl -o empty/");
    assert!(desk.at.join("empty/checkpoint").is_file());
    let ran = desk.run("export ro-crate -o crate --experiment exp-1");
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    assert!(!desk.at.join("crate").exists());
}
