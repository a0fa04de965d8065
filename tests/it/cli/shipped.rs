//! The data that ship, on a ledger from their files to the verdict, every gate at work.

use std::path::Path;

use clover::rubric::Rubric;
use clover::workflow::simulate::shipped::ShippedDataset;
use clover::workflow::simulate::shipped::shipped;
use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::reported;
use super::rewritten;

pub(super) const PEEKS: &str = r#"{"account":"confirm-peeks","amount":3,"period":"quarter","purpose":"peeks","spenders":["custodian"],"unit":"peek"}"#;
const LATER: &str = "2027-06-01T00:00:00.000000Z";

/// The plan of an iteration over a data set; two families of patches are registered.
pub(super) fn plan(of: &ShippedDataset) -> Value {
    let world = of.world();
    let field = |name: &str, value: &str| json!({"any_of": [value], "field": name});
    let slices: Vec<(String, Value)> = if of.by_domain {
        let each = world.domains().iter();
        each.map(|domain| ((*domain).to_owned(), json!([field("domain", domain)])))
            .collect()
    } else {
        let each = (0..world.slices()).map(|slice| world.slice(slice));
        each.map(|(domain, level)| {
            let conditions = json!([field("domain", domain), field("level", level)]);
            (format!("{domain}-{level}"), conditions)
        })
        .collect()
    };
    let green = slices.len() as u64 - 1;
    let cell = |(slice, conditions): (String, Value)| {
        json!({
            "conditions": conditions, "must_not_regress": false, "slice": slice, "stakes_micro": 500_000,
        })
    };
    let cells: Vec<Value> = slices.into_iter().map(cell).collect();
    let rubric = Rubric::parse(of.rubric.as_bytes()).unwrap();
    let dev = of.setting.window_rows / 3;
    let effect = if of.setting.confirm_rows < 600 {
        12_000
    } else {
        6_000
    };
    let mut plan = crate::support::iterated::plan(of.name, &format!("plan-{}", of.name));
    let terms = json!({
        "confirm_rows": of.setting.confirm_rows, "confirm_separation": "time", "dev_rows": dev,
        "difference_sd_micro": 20_000, "effect_micro": effect, "eta_micro": of.eta_micro,
        "fit_rows": of.setting.window_rows - dev, "green_sd_micro": 3_000, "green_slices": green,
        "hypotheses_max": 2, "patch_families": ["evidence_verification", "length_bias_cap"],
        "slice_rows_min": dev / (green + 2),
        "design": {
            "anchors": format!("anchors-{}", of.name), "calibrator": "monotone", "covariates": [],
            "dev_calls_max": 10, "environments": [], "judge": "builtin", "must_not_regress": "guard",
            "no_environment_claimed": true, "peek_account": "confirm-peeks", "rubric_hash": rubric.hash().to_hex(),
            "seed": "ab".repeat(32),
            "slices": [{"cells": cells, "family": "cell"}], "topics": [],
        },
    });
    for (name, value) in terms.as_object().unwrap() {
        plan["iteration"][name] = value.clone();
    }
    plan
}

/// Writes a data set with its plan into a working folder.
pub(super) fn lay_out(at: &Path, of: &ShippedDataset) {
    written(at, of, &plan(of));
}

/// As [`lay_out`], under a plan of one's own.
pub(super) fn written(at: &Path, of: &ShippedDataset, plan: &Value) {
    for file in of.files() {
        let path = at.join(of.name).join(file.path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &file.bytes).unwrap();
    }
    std::fs::write(at.join(format!("{}.yaml", of.name)), plan.to_string()).unwrap();
}

/// Command lines from the files of a data set to an open iteration.
pub(super) fn opening(of: &ShippedDataset) -> Vec<String> {
    let name = of.name;
    let (t1, _, t2) = of.world().times();
    let text =
        |time: clover::ground::time::Timestamp| String::from_utf8(time.to_text().to_vec()).unwrap();
    let (t1, t2) = (text(t1), text(t2));
    let import = format!(
        "import cje {name}/responses --experiment {name} --judge builtin --field domain --field level"
    );
    vec![
        format!("experiment register {name} --title {name} --purpose testing"),
        format!("rubric register {name}/rubric.yaml --experiment {name}"),
        format!(
            "judge run --experiment {name} --judge builtin --rows {name}/responses --rows {name}/anchors --known \
             {name}/known.json"
        ),
        format!("label design new calib --experiment {name} --purpose calibrate --probability 1"),
        format!("label design new hold --experiment {name} --purpose confirm --probability 1"),
        import.clone(),
        format!("experiment split {name} --seed 1 --t1 {t1} --t2 {t2}"),
        format!("{import} --labels=calib --seal hold --reveal-by {LATER} --yes"),
        format!("confirm seal hold --experiment {name}"),
        format!(
            "iterate anchors anchors-{name} --experiment {name} --low anchor_low --high anchor_high"
        ),
        format!("prereg sign {name}.yaml"),
        format!("iterate open it-{name} --manifest plan-{name}"),
    ]
}

/// Runs an iteration over a data set and gives its page.
fn decided(desk: &mut Desk, of: &ShippedDataset) -> String {
    proposed(desk, of, &plan(of));
    let name = of.name;
    let ran = desk.run(&format!("iterate run it-{name} --yes"));
    // A patch that no label of confirm bears out ends against what was judged.
    let code = if name == "mended" { 0 } else { 10 };
    assert_eq!(ran.code, code, "{name}: {}{}", ran.out, ran.err);
    desk.ok(&format!("iterate show it-{name}")).out
}

/// Takes a data set in under a plan, and opens an iteration with its patch proposed.
pub(super) fn proposed(desk: &mut Desk, of: &ShippedDataset, plan: &Value) {
    let name = of.name;
    written(&desk.at, of, plan);
    let proposing = [
        format!("iterate run it-{name} --to cards"),
        format!("iterate propose it-{name} {name}/patch.yaml"),
    ];
    for words in opening(of).into_iter().chain(proposing) {
        desk.ok(&words);
    }
}

/// The accepted patch runs on the calibrator that its gates saw, though the commit has another version number and hash, and
/// on no other.
fn released(desk: &mut Desk) {
    desk.ok("key new rel --role releaser");
    let committed = desk.ok("prompt commit verify-sources");
    // The way on has its judge by name; the patch changes no hard rule, so no fresh labels are asked for.
    assert!(
        committed
            .err
            .contains("next: clover deploy activate mended@1.1 --judge builtin"),
        "{}",
        committed.err
    );
    let fits = desk.ok("log --kind calibrator.fitted --json").json();
    let fits: Vec<Value> = fits["data"]["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| desk.ok(&format!("show {} --body", entry["seq"])).out)
        .map(|body| serde_json::from_str(&body).unwrap())
        .filter(|body: &Value| body["experiment"] == "mended")
        .collect();
    let of = |is_tried: bool| {
        let mut all = fits.iter().map(|body| &body["data"]);
        let tried = |data: &&Value| data["terms"]["iteration"]["candidate"].is_string() == is_tried;
        all.find(tried).unwrap()["calibrator"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let words = [
        "deploy",
        "activate",
        "mended",
        "--judge",
        "builtin",
        "--calibrator",
        &of(false),
    ];
    desk.refused(
        &words,
        11,
        &[&of(true), "with which its gates were evaluated"],
    );
    desk.ok("deploy activate mended --judge builtin");
    let status = desk.ok("deploy status mended --json").out;
    assert!(
        status.contains(&of(true)) && !status.contains(&of(false)),
        "{status}"
    );
}

/// An acceptance is shown as what it read, its numbers, its thirteen gates and what follows, in this order.
fn explained(desk: &mut Desk) {
    let list = desk.ok("log --kind patch.accepted --json").json();
    let seq = list["data"]["entries"][0]["seq"].as_u64().unwrap();
    let page = desk.ok(&format!("replay {seq} --explain")).out;
    let parts = ["INPUTS\n", "NUMBERS\n", "CRITERIA\n", "VERDICT\n"];
    let places = parts.map(|part| page.find(part).unwrap_or_else(|| panic!("{part}{page}")));
    assert!(places.is_sorted(), "{page}");
    let table = &page[places[2]..places[3]];
    for split in ["dev", "confirm"] {
        let of = if split == "dev" { 8 } else { 5 };
        assert_eq!(table.matches(&format!(" {split},")).count(), of, "{page}");
    }
    for line in page.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    // A gate stands in its own table, with every number that is behind it.
    let gates = desk.ok("log --kind gate.evaluated --json").json();
    let seq = gates["data"]["entries"][0]["seq"].as_u64().unwrap();
    let page = desk.ok(&format!("replay {seq} --explain")).out;
    for part in [
        "inputs.digest",
        "thresholds.eta_micro",
        "evidence.p",
        "verdicts.recommended",
    ] {
        assert!(page.contains(part), "{part} is not in:\n{page}");
    }
}

/// Calibrators of iterations are read from their curves: at the ends of the labelled scores they give the ends of the rewards
/// that the fit recorded.
fn calibrated(desk: &mut Desk) {
    let listed = desk.run("calibrate list");
    let listed = (listed.err, desk.ok("calibrate list --json").json());
    let all = listed.1["data"]["calibrators"].as_array().unwrap().clone();
    let newest = &all.last().unwrap()["seq"];
    let next = format!("next: clover calibrate show {newest}");
    assert!(listed.0.contains(&next), "{}", listed.0);
    let mut monotone = 0;
    for fit in &all {
        let seq = &fit["seq"];
        let shown = desk.ok(&format!("calibrate show {seq}")).out;
        assert!(shown.contains("by its rubric, 0 to 1"), "{shown}");
        let event = desk.ok(&format!("show {seq} --json")).json();
        let said = &event["data"]["body"]["data"];
        for (end, at) in [("low", 0), ("high", 1)] {
            let line = format!(
                "calibrate apply {seq} --score {} --json",
                fit["score_range"][at]
            );
            let given = desk.ok(&line).json()["data"]["scores"][0]["calibrated"].clone();
            if fit["selected"] == "monotone" {
                monotone += 1;
                let reward = said["reward_range"][end].as_f64().unwrap();
                assert_eq!(given.as_f64(), Some(reward), "{fit:#} {said:#}");
            }
        }
    }
    assert!(monotone > 0, "{all:#?}");
}

#[test]
fn a_fix_is_accepted_and_a_tuned_cap_dies_on_confirm() {
    let mut desk = Desk::new();
    let roles = "owner,registrar,scorer,labeler,arbiter,optimizer";
    desk.ok(&format!(
        "init --origin ledger.example/it --holder Ada --roles {roles}"
    ));
    desk.ok("key new cem --role custodian --seal");
    desk.ok_words(&["record", "budget.opened", "--data", PEEKS]);
    let [mended, overfitted] = shipped();
    let page = decided(&mut desk, &mended);
    let count = |desk: &mut Desk, kind: &str| {
        let list = desk.ok(&format!("log --kind {kind} --json")).json();
        list["data"]["entries"].as_array().unwrap().len()
    };
    assert_eq!(count(&mut desk, "patch.accepted"), 1, "{page}");
    let page = decided(&mut desk, &overfitted);
    // It reached confirm, where a peek was spent on it, and was not accepted.
    assert_eq!(count(&mut desk, "confirm.unsealed"), 2, "{page}");
    assert_eq!(count(&mut desk, "patch.accepted"), 1, "{page}");
    for of in [&mended, &overfitted] {
        let iteration = format!("it-{}", of.name);
        reported::check(&mut desk, &iteration, of.patch_id);
        reported::publish(&mut desk, &iteration);
        let dead = desk.ok(&format!("rubric dead {} --json", of.name)).json();
        assert_eq!(dead["data"]["counted"], json!([iteration]));
    }
    desk.ok("verify");
    // P7 of either patch rests on a battery that nobody signed.
    let replayed = desk.replayed("");
    assert_eq!(replayed["gone"], 2, "{replayed:#}");
    let mut events = replayed["events"].as_array().unwrap().iter();
    let rejected = events.find(|event| event["kind"] == "patch.rejected");
    assert_eq!(rejected.unwrap()["outcome"], "identical", "{replayed:#}");
    calibrated(&mut desk);
    explained(&mut desk);
    rewritten::edited_gates_are_found(&mut desk, "it-mended");
    released(&mut desk);
}
