//! Whole iterations from files to a verdict, on the command line.

use clover::ground::digest::Digest;
use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::says;

const PEEKS: &str = r#"{"account":"confirm-peeks","amount":3,"period":"quarter","purpose":"peeks","spenders":["custodian"],"unit":"peek"}"#;
const LATER: &str = "2027-06-01T00:00:00.000000Z";

/// One person for everything but the sealed labels, and a simulated data set with four slices.
fn desk(sizes: &str) -> Desk {
    let mut desk = Desk::new();
    let roles = "owner,registrar,scorer,labeler,arbiter,optimizer";
    desk.ok(&format!(
        "init --origin ledger.example/it --holder Ada --roles {roles}"
    ));
    desk.ok("key new cem --role custodian --seal");
    desk.ok("experiment register sim --title Simulation --purpose testing");
    desk.ok_words(&["record", "budget.opened", "--data", PEEKS]);
    desk.ok(&format!(
        "simulate dataset --truth citations --seed 7 --slices 4 {sizes} --fresh 1000 -o sim"
    ));
    desk.ok("rubric register sim/rubric.yaml --experiment sim");
    desk.ok(
        "judge run --judge builtin --rows sim/responses --rows sim/anchors --known sim/known.json",
    );
    desk.ok("label design new calib --purpose calibrate --probability 1");
    desk.ok("label design new hold --purpose confirm --probability 1");
    desk.ok("import cje sim/responses --judge builtin --field domain --field level");
    let truth: Value =
        serde_json::from_slice(&std::fs::read(desk.at.join("sim/truth.json")).unwrap()).unwrap();
    let window = |name: &str| truth["windows"][name].as_str().unwrap().to_owned();
    let (t1, t2) = (window("t1"), window("t2"));
    desk.ok(&format!(
        "experiment split sim --seed 1 --t1 {t1} --t2 {t2}"
    ));
    desk.ok(&format!(
        "import cje sim/responses --judge builtin --field domain --field level --labels=calib --seal hold --reveal-by {LATER}"
    ));
    desk.ok("confirm seal hold --experiment sim");
    desk.ok("iterate anchors a-1 --low anchor_low --high anchor_high");
    desk
}

/// The plan of an iteration over the cells of a simulated data set.
fn plan(desk: &mut Desk) -> Value {
    let list = desk.ok("log --kind rubric.registered --json").json();
    let seq = list["data"]["entries"][0]["seq"].as_u64().unwrap();
    let shown = desk.ok(&format!("show {seq} --json")).json();
    let text = shown.to_string();
    let at = text.find("\"rubric_hash\":\"").unwrap() + 15;
    let hash = text[at..at + 64].to_owned();
    let cell = |domain: &str, level: &str| {
        json!({
            "conditions": [{"any_of": [domain], "field": "domain"}, {"any_of": [level], "field": "level"}],
            "must_not_regress": false, "slice": format!("{domain}-{level}"), "stakes_micro": 500_000,
        })
    };
    let domains: Vec<String> = std::fs::read_to_string(desk.at.join("sim/slices.jsonl"))
        .unwrap()
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["domain"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    let cells: Vec<Value> = domains
        .iter()
        .flat_map(|domain| ["basic", "common"].map(|level| cell(domain, level)))
        .collect();
    let mut plan = crate::support::iterated::plan("sim", "m-it");
    plan["iteration"]["confirm_separation"] = "time".into();
    plan["iteration"]["eta_micro"] = 500.into();
    plan["iteration"]["design"] = json!({
        "anchors": "a-1", "calibrator": "monotone", "covariates": [], "dev_calls_max": 10,
        "environments": [{"environment": "base", "family": "policy", "required": true}],
        "judge": "builtin", "must_not_regress": "guard", "peek_account": "confirm-peeks", "rubric_hash": hash,
        "seed": Digest::sha256(b"seed").to_hex(), "slices": [{"cells": cells, "family": "cell"}], "topics": [],
    });
    plan
}

fn opened(desk: &mut Desk) {
    let plan = plan(desk);
    let file = desk.file("it.yaml", &plan.to_string());
    desk.ok(&format!("prereg sign {file}"));
    desk.ok("iterate open it-1 --manifest m-it");
}

#[test]
fn a_simulated_iteration_runs_to_its_verdict_with_every_gate_live() {
    let mut desk = desk("--window 1000 --confirm 400");
    opened(&mut desk);
    // Out of order is refused, and the step that is due is named.
    let refused = desk.run("iterate seal it-1");
    assert_eq!(refused.code, 11, "{}", refused.err);
    says(
        &refused,
        &["score is due, not seal", "clover iterate score it-1"],
    );
    let ran = desk.ok("iterate run it-1");
    println!("{}", ran.out);
    assert!(ran.out.contains("waits for patches"), "{}", ran.out);
    let idle = desk.ok("iterate run it-1 --json").json();
    assert_eq!(
        (&idle["data"]["due"], &idle["data"]["steps"]),
        (&"propose".into(), &json!([]))
    );
    desk.ok("iterate propose it-1 sim/patch.yaml");
    let ran = desk.ok("iterate run it-1 --to gate");
    println!("{}", ran.out);
    let shown = desk.ok("iterate show it-1 --json").json();
    let gates = shown["data"]["candidates"][0]["dev"].as_array().unwrap();
    assert_eq!(gates.len(), 8, "{shown:#}");
    for gate in gates {
        assert_ne!(gate["recommended"], "not_checked", "{gate:#}");
    }
    let ran = desk.ok("iterate run it-1 --yes");
    println!("{}", ran.out);
    let shown = desk.ok("iterate show it-1");
    println!("{}", shown.out);
    for line in shown.out.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    desk.ok("verify");
}
