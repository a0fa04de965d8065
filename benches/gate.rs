//! A gate's stream in the pure core, beside a floor of the same run: counting the same deltas in a plain array. And
//! observations recorded in a ledger, beside as many scores that the same ledger takes in right before and right after:
//! scores as they come, and scores of as many bytes as an observation; and the CPU time of an observation beside one
//! signature, two hashes and an insert, as the ledger's own bench has it.
//!
//! `cargo bench --bench gate`. Medians of `CLOVER_BENCH_RUNS` runs (5) of 1,000,000 observations; the confidence sequence
//! is left out, as it is computed at registered looks only. `CLOVER_BENCH_UNITS` units (50,000) are recorded.
#![expect(clippy::print_stdout, reason = "the table is the product")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::pedantic,
    clippy::allow_attributes,
    reason = "a bench runs outside the library and stops at the first thing that fails"
)]

mod desk;
mod floor;

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use clover::ground::digest::Digest;
use clover::stats::eprocess::Design;
use clover::stats::eprocess::Futility;
use clover::stats::eprocess::Gate;
use clover::stats::eprocess::GateTerms;
use clover::stats::eprocess::Looks;
use desk::clover;
use rand::Rng as _;
use rand::SeedableRng as _;
use rand::rngs::ChaCha20Rng;

const OBSERVATIONS: u64 = 1_000_000;
const UNIT: i64 = 1_000_000;
/// Observations per second that are wanted.
const WANTED: f64 = 2e6;

fn main() {
    let runs = std::env::var("CLOVER_BENCH_RUNS").map_or(5, |text| text.parse().unwrap());
    println!(
        "{:<44} {:>12} {:>12} {:>9} {:>9}",
        "1,000,000 observations", "floor /s", "gate /s", "ratio", "target"
    );
    let units = std::env::var("CLOVER_BENCH_UNITS").map_or(50_000, |text| text.parse().unwrap());
    if runs > 0 {
        core(runs);
    }
    if units > 0 {
        recorded(units);
    }
}

fn core(runs: usize) {
    for (levels, looks, tests) in [
        (5, 1000, 1),
        (5, 1000, 3),
        (101, 1000, 1),
        (101, 1000, 3),
        (2001, 1000, 3),
        (5, 1, 1),
        (101, 1, 3),
    ] {
        row(levels, looks, tests, runs);
    }
}

/// Deltas on equal levels around 0.
fn deltas(levels: u64) -> Vec<i64> {
    let mut random = ChaCha20Rng::from_seed([3; 32]);
    let step = 2 * UNIT / (levels as i64 - 1);
    (0..OBSERVATIONS)
        .map(|_| (random.next_u64() % levels) as i64 * step - UNIT)
        .collect()
}

fn design(looks: u64, tests: usize) -> Design {
    // A margin that is never shown and tests that never fire, so that the stream runs to its end.
    let mut terms = GateTerms::new(UNIT, OBSERVATIONS);
    terms.claim = clover::stats::eprocess::Claim::Superior { margin: UNIT / 10 };
    if tests > 1 {
        terms.alpha_kill = Some(1);
        terms.futile = Some(Futility {
            beta: 1,
            effect: UNIT / 5,
        });
        // Futility would be found; it is asked for at the end only, like every verdict here.
        terms.min_n = OBSERVATIONS;
    }
    terms.looks = if looks == 1 {
        Looks::Every
    } else {
        Looks::At((1..=OBSERVATIONS / looks).map(|at| at * looks).collect())
    };
    Design::new(terms).unwrap()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn row(levels: u64, looks: u64, tests: usize, runs: usize) {
    let deltas = deltas(levels);
    let (mut floor, mut gates) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let start = Instant::now();
        let step = 2 * UNIT / (levels as i64 - 1);
        let mut counts = vec![0_u64; levels as usize];
        let mut sum = 0_i128;
        for delta in black_box(&deltas) {
            counts[((delta + UNIT) / step) as usize] += 1;
            sum += i128::from(*delta);
        }
        black_box((&counts, sum));
        floor.push(OBSERVATIONS as f64 / start.elapsed().as_secs_f64());
        let mut gate = Gate::verdicts_only(design(looks, tests));
        let start = Instant::now();
        for delta in black_box(&deltas) {
            gate.push(*delta).unwrap();
        }
        black_box(gate.look());
        gates.push(OBSERVATIONS as f64 / start.elapsed().as_secs_f64());
        assert_eq!(gate.n(), OBSERVATIONS);
    }
    let (floor, gate) = (median(floor), median(gates));
    let every = if looks == 1 {
        "every look".to_owned()
    } else {
        format!("a look per {looks}")
    };
    let name = format!("{levels} levels, {tests} tests, {every}");
    let met = if gate >= WANTED {
        "met"
    } else if looks == 1 {
        ""
    } else {
        "MISSED"
    };
    let target = if looks == 1 { "-" } else { "2e6" };
    println!(
        "{name:<44} {floor:>12.2e} {gate:>12.2e} {:>9.3} {target:>9}  {met}",
        gate / floor
    );
}

/// A gate's manifest on so many units, whose test says nothing before all of them are there.
fn manifest(units: u64, root: &str) -> String {
    let digest = |text: &str| Digest::sha256(text.as_bytes()).to_hex();
    format!(
        "template: gate\nversion: 1\nmanifest: m-1\nexperiment: exp-1\ntitle: Answers\n\
         hypothesis: {{claim: the new policy answers better, kind: promote}}\narms:\n  \
         - {{id: baseline, role: baseline, artifact_digest: {}}}\n  \
         - {{id: candidate, role: candidate, artifact_digest: {}}}\n\
         estimand: {{population: superpopulation, unit_key: scenario, rep_rule: single, aggregation: mean, missing_rule: conservative}}\n\
         metric: {{metric: quality, judge_digest: {}, direction: increase, scale_lo_micro: 0, scale_hi_micro: 1000000, repeats: 1}}\n\
         data: {{confirm_root: {root}, n_units: {units}, exposure_cap: 2}}\n\
         test:\n  alpha_micro: 50000\n  side: upper\n  null_margin_micro: 0\n  delta_design_micro: 200000\n  \
         n_min: {units}\n  n_max: {units}\n  bettor: {{name: grid_kelly, grid: 20}}\n  beacon: first_checkpoint\n  without_replacement: false\n\
         multiplicity: {{family: quarter, family_alpha_micro: 50000, method: spend}}\n",
        digest("old"),
        digest("new"),
        digest("judge")
    )
}

/// A file of scores of an experiment: of every unit by each policy.
fn scores(at: &Path, file: &str, experiment: &str, (names, policies): (&[String], &[&str])) {
    let mut lines = String::new();
    for (unit, name) in names.iter().enumerate() {
        for policy in policies {
            let score = match *policy {
                "baseline" => 400_000,
                _ => [300_000, 500_000][unit % 2],
            };
            lines += &format!(
                "{{\"kind\":\"score.recorded\",\"experiment\":\"{experiment}\",\"data\":{{\"draw\":0,\"item\":\"{name}\",\"judge\":\"judge-1\",\"policy\":\"{policy}\",\"score_micro\":{score}}}}}\n"
            );
        }
    }
    std::fs::write(at.join(file), lines).unwrap();
}

/// Bytes of the first event that a command would append.
fn bytes(at: &Path, line: &str) -> usize {
    let (answer, _) = clover(at, &format!("{line} --dry-run"));
    answer["data"]["bodies"][0].as_str().unwrap().len()
}

/// Every unit observed whose scores are recorded, and right before and after it as many scores of another experiment, once as
/// they come and once as long as an observation: all through the command line. A ledger appends more slowly the larger it is,
/// and with what the machine does, so both sides count.
fn recorded(units: u64) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    clover(
        at,
        "init --origin bench.example/gate --roles owner,registrar,scorer,arbiter",
    );
    clover(at, "key new cem --role custodian");
    clover(at, "experiment register exp-1 --title One --purpose bench");
    clover(
        at,
        "family open quarter --method spend --alpha 0.05 --members 3 --membership gates",
    );
    let names: Vec<_> = (0..units).map(|unit| format!("unit-{unit:06}")).collect();
    std::fs::write(at.join("units.txt"), names.join("\n") + "\n").unwrap();
    let (root, _) = clover(at, "gate root units.txt");
    let root = root["data"]["confirm_root"].as_str().unwrap();
    std::fs::write(at.join("plan.yaml"), manifest(units, root)).unwrap();
    clover(at, "prereg sign plan.yaml --countersign");
    clover(at, "gate open m-1 --units units.txt --judge judge-1");
    clover(at, "exposure open m-1");
    clover(at, "experiment register exp-2 --title Two --purpose bench");
    scores(
        at,
        "scores.jsonl",
        "exp-1",
        (&names, &["baseline", "candidate"]),
    );
    clover(at, "append --bulk scores.jsonl");
    scores(at, "short.jsonl", "exp-2", (&names, &["before"]));
    scores(at, "one.jsonl", "exp-2", (&names[..1], &["before"]));
    let [score, observation] =
        ["append --bulk one.jsonl", "gate observe m-1 --through 1"].map(|line| bytes(at, line));
    let longer = observation - score;
    let pad = "x".repeat(longer);
    let long: Vec<_> = names.iter().map(|name| format!("{name}{pad}")).collect();
    scores(at, "short-after.jsonl", "exp-2", (&names, &["after"]));
    scores(at, "long.jsonl", "exp-2", (&long, &["before"]));
    scores(at, "long-after.jsonl", "exp-2", (&long, &["after"]));
    let (_, short) = clover(at, "append --bulk short.jsonl");
    let (_, before) = clover(at, "append --bulk long.jsonl");
    let floor =
        || floor::sign(observation) + floor::hash(observation) + floor::insert(at, observation);
    let (floor_before, spent) = (floor(), floor::cpu());
    let (observed, seconds) = clover(at, "gate observe m-1 --all");
    let spent = (floor::cpu() - spent).as_secs_f64() * 1e6 / units as f64;
    let least = f64::midpoint(floor_before, floor());
    assert_eq!(observed["data"]["n"], units);
    let (_, after) = clover(at, "append --bulk long-after.jsonl");
    let (_, short_after) = clover(at, "append --bulk short-after.jsonl");
    let seconds = units as f64 / seconds;
    for (beside, scores) in [
        ("scores", short + short_after),
        ("scores as long", before + after),
    ] {
        let scores = 2.0 * units as f64 / scores;
        let name = format!("{units} units recorded, beside {beside}");
        let met = if seconds >= scores { "met" } else { "MISSED" };
        println!(
            "{name:<44} {scores:>12.2e} {seconds:>12.2e} {:>9.3} {:>9}  {met}",
            seconds / scores,
            "1.0"
        );
    }
    // As of every event that the ledger takes in: a signature, two hashes and an insert.
    let name = format!("{units} units recorded, us of CPU each");
    println!(
        "{name:<44} {least:>12.1} {spent:>12.1} {:>9.3} {:>9}",
        spent / least,
        "-"
    );
}
