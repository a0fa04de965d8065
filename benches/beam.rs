//! What a repair costs besides its model: the share of wall time that the beam takes at a model of 10 ms, and the share of
//! a run whose every step goes on record.
//!
//! `cargo bench --bench beam`. The beam (feedback, scores, what a turn keeps, edits) may take 2 %. The model really waits, so that
//! both times are of the same run.
#![expect(clippy::print_stdout, reason = "the table is the product")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::pedantic,
    clippy::allow_attributes,
    reason = "a bench runs outside the library and stops at the first thing that fails"
)]

mod desk;

use std::time::Duration;
use std::time::Instant;

use clover::flow;
use clover::flow::Bounds;
use clover::flow::Workflow;
use clover::flow::executor::Executor;
use clover::flow::executor::ExecutorFault;
use clover::flow::executor::StepAnswer;
use clover::flow::executor::StepAsk;
use clover::flow::executor::Usage;
use clover::flow::executor::simulator::SimulatedModel;
use clover::flow::executor::simulator::Strength;
use clover::flow::item::Item;
use clover::flow::repair::beam::Beam;
use clover::flow::repair::beam::BeamSettings;
use clover::flow::repair::beam::Due;
use clover::flow::repair::feedback::ItemEvidence;
use clover::flow::repair::feedback::VerifierSettings;
use clover::flow::repair::feedback::feedback;
use clover::flow::repair::propose::propose;
use clover::flow::task::Family;
use clover::flow::task::Split;
use clover::flow::task::TaskSet;

/// What a call takes.
const MODEL: Duration = Duration::from_millis(10);
/// Share of wall time that the beam may take.
const SHARE_MAX: f64 = 0.02;
/// Items of the batch.
const ITEMS: usize = 8;

/// A simulated model that takes its time, which is counted.
struct SlowModel<'a> {
    inner: SimulatedModel<'a>,
    spent: &'a mut (Duration, u64),
}

impl Executor for SlowModel<'_> {
    fn ask(&mut self, ask: &StepAsk<'_>) -> Result<StepAnswer, ExecutorFault> {
        let start = Instant::now();
        std::thread::sleep(MODEL);
        let answer = self.inner.ask(ask);
        self.spent.0 += start.elapsed();
        self.spent.1 += 1;
        answer
    }
}

/// A whole search: its wall time, and of it what the model took, over how many calls.
fn searched(set: &TaskSet, first: &Workflow) -> (Duration, Duration, u64, usize) {
    let mut spent = (Duration::ZERO, 0);
    let start = Instant::now();
    let mut beam = Beam::new(BeamSettings::default(), [first.clone()]).unwrap();
    loop {
        match beam.due() {
            Due::Nothing(_) => {
                return (start.elapsed(), spent.0, spent.1, beam.candidates().len());
            }
            Due::Judge(ids) => {
                let workflow = beam.candidate(&ids[0]).unwrap().workflow.clone();
                let mut one = |item: &Item| {
                    let model = item.model.as_ref().unwrap();
                    let mut model = SlowModel {
                        inner: SimulatedModel::new(11, Strength::Weak, &item.id, model),
                        spent: &mut spent,
                    };
                    flow::run(&workflow, &item.inputs, &mut model, Bounds::default(), 0).unwrap()
                };
                let runs: Vec<_> = set.items.iter().map(&mut one).collect();
                let evidence = set.items.iter().zip(&runs).map(|(item, run)| ItemEvidence {
                    item,
                    run,
                    reruns: &[],
                    critic: None,
                });
                let evidence: Vec<_> = evidence.collect();
                let settings = VerifierSettings::default();
                let said = feedback(&workflow, &set.rules, &evidence, &settings);
                let runs = runs.iter();
                let cost = runs.fold(Usage::default(), |all, run| all.plus(run.usage));
                beam.judged(ids[0], said, cost).unwrap();
            }
            Due::Propose(ids) => {
                let of = beam.candidate(&ids[0]).unwrap();
                let said = of.feedback.as_ref().unwrap();
                let edits = propose(&of.workflow, &set.rules, &said.blame, 3);
                beam.proposed(ids[0], &edits).unwrap();
            }
        }
    }
}

/// A run on record by the simulator, which takes no time: its seconds and calls.
fn recorded() -> (f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for line in [
        "init --origin lab.example/beam --holder Ada --roles owner,registrar,scorer,arbiter",
        "key new opt --role optimizer",
        "key new ver --role verifier",
        "key new cem --role custodian",
        "experiment register shop --title T --purpose trial",
        "workflow new invoices -o set",
        "repair open one --program set/workflow.json --tasks set/local.jsonl --items 8",
    ] {
        desk::clover(at, line);
    }
    let (_, seconds) = desk::clover(at, "repair run one");
    let (told, _) = desk::clover(at, "repair show one");
    (seconds, told["data"]["spent"]["calls"].as_f64().unwrap())
}

fn main() {
    let mut worst = 0.0_f64;
    for family in Family::ALL {
        let set = TaskSet::parse(&family.lines(Split::Local, 1, ITEMS)).unwrap();
        let first = Workflow::parse(family.first_program()).unwrap();
        let (wall, model, calls, candidates) = searched(&set, &first);
        let share = (wall - model).as_secs_f64() / wall.as_secs_f64();
        worst = worst.max(share);
        println!(
            "{:<10} {calls:>5} calls, {candidates:>3} candidates  {:>7.2} s wall  beam {:>7.3} %, of {:.0} %",
            family.as_str(),
            wall.as_secs_f64(),
            share * 100.0,
            SHARE_MAX * 100.0
        );
    }
    let (seconds, calls) = recorded();
    let wall = seconds + calls * MODEL.as_secs_f64();
    println!(
        "on record  {calls:>5} calls                  {wall:>7.2} s wall  beam and record {:>6.2} %",
        seconds / wall * 100.0
    );
    assert!(worst < SHARE_MAX, "{worst}");
}
