//! Speed of runs of a judge's prompt: the loss of a step over 100,000 scored rows, and the replay of a run of 40 steps, which
//! asks nobody.
//!
//! `cargo bench --bench descent`. A loss may take 50 ms, and the replay 2 s.
#![expect(clippy::print_stdout, reason = "the table is the product")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::pedantic,
    clippy::allow_attributes,
    reason = "a bench runs outside the library and stops at the first thing that fails"
)]

mod desk;

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use clover::event::payload::sgd::SgdOpened;
use clover::event::payload::sgd::SgdRow;
use clover::event::payload::sgd::SgdSplit;
use clover::ground::digest::Digest;
use clover::num::Micro;
use clover::num::draws::Draws;
use clover::projection::sgd::RowScores;
use clover::projection::sgd::SgdRun;
use clover::workflow::sgd::numbers;
use serde_json::json;

const ROWS: usize = 100_000;
const PASSES: u32 = 9;
/// Seconds that a loss may take.
const LOSS_MAX: f64 = 0.050;
/// Steps of the run that is computed again.
const STEPS: u64 = 40;
/// Seconds that its replay may take.
const REPLAY_MAX: f64 = 2.0;

/// A run whose train has so many rows, and two scores of each.
fn run(rows: usize) -> (SgdRun, RowScores) {
    let none = Digest::sha256(b"");
    let part = json!({"count": rows, "root": none.to_base64()});
    let said: SgdOpened = serde_json::from_value(json!({
        "agents": "aggregate", "build": "clover", "judge": "sim", "key": none, "lexicon": none,
        "model": "aggregate/1", "prompt": "{}", "prompt_digest": none, "run": "one", "seed": none,
        "splits": {"confirm": part, "test": part, "train": part, "val": part},
        "terms": {
            "alpha_micro": 1_000_000, "batch": 24, "beta_micro": 500_000, "distance": "huber", "eta_micro": 100_000,
            "extra": 3, "gamma_micro": 200_000, "lr_max_micro": 1_000_000, "lr_min_micro": 50_000, "ranking": "logistic",
            "repeats": 2, "reverts": true, "steps": STEPS, "target": "mean", "tau_micro": 500_000, "warmup": 4,
            "zeta_micro": 2_000_000,
        },
        "through_seq": 1,
    }))
    .unwrap();
    let mut run = SgdRun::opened("e".parse().unwrap(), 0, &said);
    let mut draws = Draws::of([7; 32], 0);
    let mut micro = || Micro::new(i64::try_from(draws.below(1_000_001)).unwrap()).unwrap();
    let mut scores = Vec::with_capacity(rows);
    let train = run.rows.entry(SgdSplit::Train).or_default();
    for at in 0..rows {
        let row = json!({"item": format!("p{at:06}"), "policy": "base", "draw": 0, "target_micro": micro()});
        train.push(serde_json::from_value::<SgdRow>(row).unwrap());
        scores.push(vec![micro(), micro()]);
    }
    (run, scores)
}

fn best(mut pass: impl FnMut()) -> f64 {
    let times = (0..PASSES).map(|_| {
        let start = Instant::now();
        pass();
        start.elapsed().as_secs_f64()
    });
    times.min_by(f64::total_cmp).unwrap()
}

/// A ledger with a run of 40 steps, which a judge of the program scored.
fn descended(at: &Path) {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/SGD.md"));
    let page = page.unwrap();
    let (_, prompt) = page.split_once("```text\n").unwrap();
    std::fs::write(at.join("judge.md"), prompt.split_once("```").unwrap().0).unwrap();
    for line in [
        "init --origin lab.example/sgd --holder Ada --roles owner,registrar,scorer,labeler,arbiter,approver",
        "key new cem --role custodian --seal",
        "key new opt --role optimizer",
        "experiment register tune --title T --purpose trial",
        "label design new read --purpose calibrate --probability 1",
        "sgd sample rows.jsonl --rows 400 --seed 5",
        "import cje rows.jsonl --labels",
        // No step is the last before its time: a stop that is triggered leaves as many steps as the run has.
        "sgd open one --judge sim --simulated --prompt judge.md --steps 40 --repeats 2 --set extra=40",
        "sgd run one",
    ] {
        desk::clover(at, line);
    }
}

fn main() {
    let (run, scores) = run(ROWS);
    let rows: Vec<&SgdRow> = run.rows(SgdSplit::Train).iter().collect();
    let seconds = best(|| {
        black_box(numbers::loss(&run, black_box(&rows), &scores, None).unwrap());
    });
    println!(
        "loss over {ROWS} rows    {:>8.1} ms, of {:.0} ms",
        seconds * 1e3,
        LOSS_MAX * 1e3
    );
    let folder = tempfile::tempdir().unwrap();
    descended(folder.path());
    let (told, _) = desk::clover(folder.path(), "sgd show one");
    let steps = told["data"]["steps"].as_array().unwrap().len();
    let replay = best(|| {
        black_box(desk::clover(folder.path(), "replay one"));
    });
    println!("replay of {steps} steps         {replay:>8.2} s, of {REPLAY_MAX:.0} s");
    assert!(seconds < LOSS_MAX && replay < REPLAY_MAX && steps as u64 == STEPS);
}
