//! Whole iterations from files to a verdict, on the command line.

use clover::ground::digest::Digest;
use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::says;

pub(super) const PEEKS: &str = r#"{"account":"confirm-peeks","amount":3,"period":"quarter","purpose":"peeks","spenders":["custodian"],"unit":"peek"}"#;
const LATER: &str = "2027-06-01T00:00:00.000000Z";

/// One person for everything but the sealed labels, and a simulated data set with four slices.
pub fn desk(sizes: &str) -> Desk {
    desk_of(sizes, |_| ())
}

/// The same, with something done to the data set before any of it is taken in.
pub(super) fn desk_of(sizes: &str, change: impl Fn(&Desk)) -> Desk {
    let mut desk = Desk::new();
    let roles = "owner,registrar,scorer,labeler,arbiter,optimizer";
    desk.ok(&format!(
        "init --origin ledger.example/it --holder Ada --roles {roles}"
    ));
    desk.ok("key new cem --role custodian --seal");
    desk.ok("key new mal --role adversary");
    desk.ok("experiment register sim --title Simulation --purpose testing");
    desk.ok_words(&["record", "budget.opened", "--data", PEEKS]);
    desk.ok(&format!(
        "simulate dataset --truth citations --seed 7 --slices 4 {sizes} --fresh 1000 -o sim"
    ));
    change(&desk);
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
        "import cje sim/responses --judge builtin --field domain --field level --labels=calib --seal hold --reveal-by {LATER} --yes"
    ));
    desk.ok("confirm seal hold --experiment sim");
    desk.ok("iterate anchors a-1 --low anchor_low --high anchor_high");
    desk
}

/// The plan of an iteration over the cells of a simulated data set.
pub(super) fn plan(desk: &mut Desk) -> Value {
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

pub(super) fn opened(desk: &mut Desk) {
    let plan = plan(desk);
    let file = desk.file("it.yaml", &plan.to_string());
    desk.ok(&format!("prereg sign {file}"));
    desk.ok("iterate open it-1 --manifest m-it --yes");
}

/// What an arbiter says of rows is computed again as it is appended.
fn made_up(desk: &mut Desk) {
    let mut data = json!({
        "balance": [{"column": "score", "smd": 0.04}], "build": "clover 0.1.0", "iteration": "it-1", "labelled": 2500,
        "inputs": {"digest": Digest::sha256(b"rows").to_hex(), "rows": 2500, "through_seq": 9},
        "orphans": 0, "verdict": "pass",
    });
    let mut say = |data: &Value, parts: &[&str]| {
        let text = data.to_string();
        let kind = "label_process.audited";
        let words = ["record", kind, "--experiment", "sim", "--data", &text];
        desk.refused(&words, 11, parts);
        desk.head()["size"].as_u64().unwrap()
    };
    let size = say(
        &data,
        &[
            "recompute: expected rows through seq",
            "found through seq 9",
        ],
    );
    data["inputs"]["through_seq"] = (size - 1).into();
    say(&data, &["recompute: expected balance"]);
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
    made_up(&mut desk);
    // The rubric in force pays for citations: exploits stay on record, and cards show what attacks earn.
    desk.ok("iterate run it-1 --to audit");
    let attacked = desk.run("battery run it-1 --json");
    assert_eq!(attacked.code, 10, "{}", attacked.err);
    let attacked = attacked.json();
    assert_eq!(
        (&attacked["ok"], &attacked["verdict"]),
        (&false.into(), &"fail".into())
    );
    assert_eq!(attacked["data"]["verdict"], "fail", "{attacked:#}");
    let found = attacked["data"]["exploits_found"].as_u64().unwrap();
    assert!(found > 0, "{attacked:#}");
    let list = desk.ok("battery list --open --json").json();
    assert_eq!(list["data"]["open"], found);
    println!("{}", desk.ok("battery list").out);
    let ran = desk.ok("iterate run it-1");
    println!("{}", ran.out);
    assert!(ran.out.contains("waits for patches"), "{}", ran.out);
    let plan = plan(&mut desk);
    super::carded::cards_say_what_they_are_computed_on(&mut desk, &plan);
    let idle = desk.ok("iterate run it-1 --json").json();
    assert_eq!(
        (&idle["data"]["due"], &idle["data"]["steps"]),
        (&"propose".into(), &json!([]))
    );
    // What is judged again and sealed costs before the look does: it is asked about first.
    let words = ["iterate", "run", "it-1", "--propose", "sim/patch.yaml"];
    let again = "clover iterate run it-1 --propose sim/patch.yaml --yes";
    desk.refused(&words, 2, &["one peek opens the labels of confirm", again]);
    let asked = desk
        .ok("patch objective sim/patch.yaml --iteration it-1 --json")
        .json();
    let again = desk
        .ok("patch objective sim/patch.yaml --iteration it-1 --json")
        .json();
    assert_eq!(asked["data"]["receipt"], again["data"]["receipt"]);
    // Whoever asks is named as any other key is: by its file, its id or its holder.
    let ask = "patch objective sim/patch.yaml --iteration it-1 --json --requester";
    let named = desk.ok(&format!("{ask} owner")).json();
    assert_eq!(named["data"]["receipt"], asked["data"]["receipt"]);
    let unknown = desk.run(&format!("{ask} nobody"));
    says(&unknown, &["no key \"nobody\" in this ledger"]);
    assert_eq!(asked["data"]["gates"].as_array().unwrap().len(), 8);
    desk.ok("iterate propose it-1 sim/patch.yaml");
    let ran = desk.ok("iterate run it-1 --to gate");
    println!("{}", ran.out);
    let batteries = desk.ok("log --kind battery.evaluated --json").json();
    assert_eq!(batteries["data"]["entries"].as_array().unwrap().len(), 2);
    let shown = desk.ok("iterate show it-1 --json").json();
    let gates = shown["data"]["candidates"][0]["dev"].as_array().unwrap();
    assert_eq!(gates.len(), 8, "{shown:#}");
    for gate in gates {
        assert_ne!(gate["recommended"], "not_checked", "{gate:#}");
    }
    // No patch passes: the iteration ended against what it judged.
    let ran = desk.run("iterate run it-1 --yes");
    assert_eq!(ran.code, 10, "{}{}", ran.out, ran.err);
    println!("{}", ran.out);
    // Showing it ends well, whatever it shows.
    let shown = desk.ok("iterate show it-1");
    println!("{}", shown.out);
    for line in shown.out.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let replayed = desk.run("replay --all --explain");
    println!("{}{}", replayed.out, replayed.err);
    for line in replayed.out.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    desk.ok("verify");
    super::carded::full_cards_are_handed_to_who_may_see_labels(&mut desk, "it-1");
}

/// A rubric whose one guard holds nowhere, and a patch that caps long answers.
const LENGTH: [&str; 2] = [
    "rubric:\n  version: \"1.0\"\n  target: Y\n  sdp_version: sdp-1\n  guards:\n    length_bias_cap:\n      \
     if_tokens_gt: 100000\n      max_raw_score: 0.9\n",
    "patch:\n  family: length_bias_cap\n  id: cap-long-answers\n  rationale: Long answers are over-scored.\n  \
     changes:\n    guards.length_bias_cap:\n      if_tokens_gt: 400\n      max_raw_score: 0.8\n  constraints:\n    \
     max_tokens_added: 10\n    affects_rescore: false\n",
];

/// Anchors, rubric and plan of the real sample; the iteration is open.
fn arena_plan(desk: &mut Desk) {
    desk.ok("iterate anchors a-1 --low unhelpful --high clone");
    let rubric = desk.file("rubric.yaml", LENGTH[0]);
    desk.ok(&format!("rubric register {rubric} --experiment sim"));
    let hash = clover::rubric::Rubric::parse(LENGTH[0].as_bytes())
        .unwrap()
        .hash()
        .to_hex();
    let cell = |name: &str, from: u64, to: u64| {
        json!({
            "conditions": [{"at_least_micro": from * 1_000_000, "below_micro": to * 1_000_000, "field": "tokens"}],
            "must_not_regress": false, "slice": name, "stakes_micro": 500_000,
        })
    };
    let cells = [
        cell("short", 0, 200),
        cell("middle", 200, 400),
        cell("long", 400, 100_000),
    ];
    let mut plan = crate::support::iterated::plan("sim", "m-it");
    plan["iteration"]["design"] = json!({
        "anchors": "a-1", "calibrator": "monotone", "covariates": [], "dev_calls_max": 10,
        "environments": [{"environment": "base", "family": "policy", "required": true}],
        "must_not_regress": "guard", "peek_account": "confirm-peeks", "rubric_hash": hash,
        "seed": Digest::sha256(b"seed").to_hex(), "slices": [{"cells": cells, "family": "length"}], "topics": [],
    });
    // Few labels make the calibrator most of the variance: below this eta the iteration goes on for the gain in sight.
    plan["iteration"]["eta_micro"] = 500.into();
    let file = desk.file("it.yaml", &plan.to_string());
    desk.ok(&format!("prereg sign {file}"));
    desk.ok("iterate open it-1 --manifest m-it --yes");
}

/// Imported scores: J2 and the battery are waived by two keys before the split, and what nobody could check stays so.
#[test]
fn the_real_sample_runs_to_its_honest_verdict() {
    let Some(sample) = std::env::var_os("CLOVER_ARENA_SAMPLE") else {
        println!("skipped: CLOVER_ARENA_SAMPLE names no folder with the sample");
        return;
    };
    let sample = std::path::PathBuf::from(sample).join("fresh_draws");
    let mut desk = Desk::new();
    let roles = "owner,registrar,scorer,labeler,arbiter,optimizer";
    desk.ok(&format!(
        "init --origin ledger.example/it --holder Ada --roles {roles}"
    ));
    desk.ok("key new cem --role custodian --seal");
    desk.ok("key new petra --role approver");
    desk.ok("key new paul --role approver");
    desk.ok("experiment register sim --title Arena --purpose testing");
    desk.ok_words(&["record", "budget.opened", "--data", PEEKS]);
    std::fs::create_dir(desk.at.join("arena")).unwrap();
    for policy in ["base", "clone", "unhelpful"] {
        let name = format!("{policy}_responses.jsonl");
        std::fs::copy(sample.join(&name), desk.at.join("arena").join(&name)).unwrap();
    }
    for code in ["CLOVER.J2", "ADV"] {
        let reason = "imported scores";
        let waive = [
            "assume",
            "waive",
            code,
            "--experiment",
            "sim",
            "--reason",
            reason,
            "--until",
            LATER,
            "--key",
            "petra",
        ];
        desk.ok_words(&waive);
        desk.ok(&format!(
            "assume waive {code} --experiment sim --countersign --key paul"
        ));
    }
    desk.ok("label design new calib --purpose calibrate --probability 0.48");
    desk.ok("label design new hold --purpose confirm --probability 0.48");
    desk.ok("import cje arena");
    desk.ok("judge run --judge judge --recorded --rows arena");
    desk.ok("experiment split sim --seed 1 --hashed");
    desk.ok(&format!(
        "import cje arena --labels=calib --seal hold --reveal-by {LATER} --yes"
    ));
    desk.ok("confirm seal hold --experiment sim");
    arena_plan(&mut desk);
    let ran = desk.ok("iterate run it-1");
    println!("{}", ran.out);
    desk.file("patch.yaml", LENGTH[1]);
    if ran.out.contains("waits for patches") {
        desk.ok("iterate propose it-1 patch.yaml");
        let ran = desk.run("iterate run it-1 --yes");
        assert!([0, 10].contains(&ran.code), "{}{}", ran.out, ran.err);
        println!("{}", ran.out);
    }
    println!("{}", desk.ok("iterate show it-1").out);
    let shown = desk.ok("iterate show it-1 --json").json();
    assert!(shown["data"]["outcome"].is_string(), "{shown:#}");
    desk.replayed("");
    desk.ok("verify");
}
