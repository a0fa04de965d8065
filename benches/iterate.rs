//! A governed iteration at size: 25,000 scores, 2,500 labels, from its opening to its end, and computed again; beside
//! the same log without its decisions, whose events are appended in bulk in the same run.
//!
//! `cargo bench --bench iterate`. `CLOVER_BENCH_SCORES` scores (25,000), a tenth of them labelled; steps that take a
//! second or more are shown by themselves.
#![expect(clippy::print_stdout, reason = "the table is the product")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::pedantic,
    clippy::allow_attributes,
    reason = "a bench runs outside the library and stops at the first thing that fails"
)]

mod desk;

use std::collections::BTreeSet;
use std::path::Path;

use clover::ground::digest::Digest;
use clover::num::Micro;
use clover::rubric::Rubric;
use clover::workflow::simulate::Fault;
use clover::workflow::simulate::Kind;
use clover::workflow::simulate::Setting;
use clover::workflow::simulate::SimulatedRow;
use clover::workflow::simulate::World;
use clover::workflow::simulate::files;
use desk::clover;
use serde_json::Value;
use serde_json::json;

/// Seconds within which an iteration runs, and within which it is computed again.
const WANTED: f64 = 20.0;
/// One row in so many is labelled.
const LABELLED: usize = 10;
const SEED: u64 = 7;

fn main() {
    let scores = std::env::var("CLOVER_BENCH_SCORES").map_or(25_000, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let world = written(at, scores);
    println!(
        "{:<52} {:>9} {:>9}",
        format!("{scores} scores, {} labels", scores / LABELLED as u64),
        "seconds",
        "wanted"
    );
    let floor = prepared(at, &world);
    line("floor: scores and labels taken in, bulk", floor, None);
    let plan = plan(at, &world);
    std::fs::write(at.join("plan.json"), plan.to_string()).unwrap();
    clover(at, "prereg sign plan.json");
    let mut all = 0.0;
    let mut step = |words: &str| {
        let (answer, seconds) = clover(at, words);
        line(words, seconds, None);
        all += seconds;
        answer
    };
    step("iterate open it-1 --manifest m-1 --yes");
    step("iterate run it-1 --to cards");
    step("iterate propose it-1 sim/patch.yaml");
    step("iterate run it-1 --to seal");
    step("iterate run it-1 --yes");
    let (shown, _) = clover(at, "iterate show it-1");
    let confirm = &shown["data"]["candidates"][0]["confirm"];
    assert!(
        confirm.as_array().is_some_and(|gates| !gates.is_empty()),
        "it reached confirm: {shown:#}"
    );
    line(
        &format!("iteration to its end: {}", shown["data"]["outcome"]),
        all,
        Some(WANTED),
    );
    let (replayed, seconds) = clover(at, "replay --all");
    let of = &replayed["data"];
    assert_eq!(of["differ"], 0, "{replayed:#}");
    line(
        &format!("replay --all: {} the same, {} gone", of["same"], of["gone"]),
        seconds,
        Some(WANTED),
    );
    let (_, seconds) = clover(at, "verify");
    line("verify", seconds, None);
    println!("{:<52} {:>9.2}", "iteration / floor", all / floor);
}

fn line(name: &str, seconds: f64, wanted: Option<f64>) {
    let (wanted, met) = match wanted {
        Some(wanted) => (
            format!("{wanted:.0}"),
            if seconds < wanted { "met" } else { "MISSED" },
        ),
        None => ("-".to_owned(), ""),
    };
    println!("{name:<52} {seconds:>9.2} {wanted:>9}  {met}");
}

/// A world whose judge pays for citations, written to a folder; a tenth of its rows keep their label.
fn written(at: &Path, scores: u64) -> World {
    let setting = Setting {
        confirm_rows: 3 * scores / 10,
        fault: Fault::Citations,
        // So much that an iteration whose labels are few beside its scores goes on without more of them.
        share_micro: Micro::new(200_000).unwrap(),
        slices: 4,
        window_rows: scores - 3 * scores / 10,
        ..Setting::default()
    };
    let world = World::new(setting, SEED).unwrap();
    let rows: Vec<SimulatedRow> = (0..world.rows())
        .map(|number| world.row(Kind::Base, number))
        .collect();
    let mut drawn: Vec<(Digest, &str)> = rows
        .iter()
        .map(|row| {
            (
                Digest::sha256(row.item.as_str().as_bytes()),
                row.item.as_str(),
            )
        })
        .collect();
    drawn.sort_unstable();
    let labelled: BTreeSet<&str> = drawn
        .iter()
        .take(rows.len() / LABELLED)
        .map(|(_, item)| *item)
        .collect();
    for file in files::files(&world, &rows) {
        let path = at.join("sim").join(file.path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let bytes = match file.path {
            "responses/base_responses.jsonl" => without_labels(&file.bytes, &labelled),
            _ => file.bytes,
        };
        std::fs::write(path, bytes).unwrap();
    }
    world
}

fn without_labels(lines: &[u8], labelled: &BTreeSet<&str>) -> Vec<u8> {
    let text = std::str::from_utf8(lines).unwrap();
    let mut out = Vec::new();
    for line in text.lines() {
        let mut row: Value = serde_json::from_str(line).unwrap();
        if !labelled.contains(row["prompt_id"].as_str().unwrap()) {
            row.as_object_mut().unwrap().remove("oracle_label");
        }
        serde_json::to_writer(&mut out, &row).unwrap();
        out.push(b'\n');
    }
    out
}

/// A ledger with everything that an iteration starts from. Gives the seconds of what is appended in bulk.
fn prepared(at: &Path, world: &World) -> f64 {
    let text =
        |time: clover::ground::time::Timestamp| String::from_utf8(time.to_text().to_vec()).unwrap();
    let (t1, _, t2) = world.times();
    let (t1, t2) = (text(t1), text(t2));
    let roles = "owner,registrar,scorer,labeler,arbiter,optimizer";
    clover(
        at,
        &format!("init --origin bench.example/iterate --holder Ada --roles {roles}"),
    );
    clover(at, "key new cem --role custodian --seal");
    clover(
        at,
        "experiment register sim --title Simulation --purpose bench",
    );
    clover(
        at,
        "record budget.opened --data {\"account\":\"confirm-peeks\",\"amount\":3,\"period\":\"quarter\",\"purpose\":\"peeks\",\"spenders\":[\"custodian\"],\"unit\":\"peek\"}",
    );
    clover(at, "rubric register sim/rubric.yaml --experiment sim");
    let mut bulk = 0.0;
    let mut timed = |words: &str| {
        let (_, seconds) = clover(at, words);
        bulk += seconds;
        line(words.split(" --").next().unwrap(), seconds, None);
    };
    timed(
        "judge run --judge builtin --rows sim/responses --rows sim/anchors --known sim/known.json",
    );
    clover(
        at,
        "label design new calib --purpose calibrate --probability 0.1",
    );
    clover(
        at,
        "label design new hold --purpose confirm --probability 0.1",
    );
    let import = "import cje sim/responses --judge builtin --field domain --field level";
    timed(import);
    timed(&format!(
        "experiment split sim --seed 1 --t1 {t1} --t2 {t2}"
    ));
    timed(&format!(
        "{import} --labels=calib --seal hold --reveal-by 2027-06-01T00:00:00.000000Z"
    ));
    clover(at, "confirm seal hold --experiment sim");
    clover(
        at,
        "iterate anchors a-1 --low anchor_low --high anchor_high",
    );
    bulk
}

/// The plan of an iteration over the world's slices.
fn plan(at: &Path, world: &World) -> Value {
    let rubric = std::fs::read(at.join("sim/rubric.yaml")).unwrap();
    let hash = Rubric::parse(&rubric).unwrap().hash().to_hex();
    let cells: Vec<Value> = (0..world.slices())
        .map(|slice| {
            let (domain, level) = world.slice(slice);
            json!({
                "conditions": [{"any_of": [domain], "field": "domain"}, {"any_of": [level], "field": "level"}],
                "must_not_regress": false, "slice": format!("{domain}-{level}"), "stakes_micro": 500_000,
            })
        })
        .collect();
    let (window, confirm) = (world.setting().window_rows, world.setting().confirm_rows);
    let of = |rows: u64| rows / LABELLED as u64;
    json!({
        "experiment": "sim", "manifest": "m-1", "template": "iteration", "title": "bench", "version": 1,
        "hypothesis": {"claim": "the patch makes scores better", "kind": "promote"},
        "iteration": {
            "alpha_micro": 50_000, "confirm_rows": of(confirm), "confirm_separation": "time", "confirm_test": "betting",
            "design": {
                "anchors": "a-1", "calibrator": "auto", "covariates": ["log_tokens"], "dev_calls_max": 10,
                "environments": [{"environment": "base", "family": "policy", "required": true}],
                "judge": "builtin", "must_not_regress": "guard", "peek_account": "confirm-peeks",
                "rubric_hash": hash, "seed": "ab".repeat(32),
                "slices": [{"cells": cells, "family": "cell"}], "topics": [],
            },
            "dev_rows": of(window / 3), "difference_sd_micro": 30_000, "drift_max_micro": 10_000,
            "ece_slack_micro": 5_000, "effect_micro": 6_000, "eta_micro": 500, "fit_rows": of(window - window / 3),
            "gap_seconds": 259_200, "green_sd_micro": 3_000, "green_slices": 3, "hypotheses_max": 1,
            "ks_max_micro": 50_000, "patch_families": ["evidence_verification"],
            "power_micro": 800_000, "profile": "recommended", "q_micro": 100_000, "shift_metric": "either",
            "slice_rows_min": of(window / 3) / 5 + 1, "tau_micro": 1_500, "uplift_max_micro": 50_000, "w1_max_micro": 30_000,
        },
    })
}
