//! Speed of the interpreter of workflows: executions of steps a second on one thread, beside what hashing their requests
//! alone takes.
//!
//! `cargo bench --bench flow`. The floor is 20,000 executions a second with the simulated model.
#![expect(clippy::print_stdout, reason = "the table is the product")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::pedantic,
    clippy::allow_attributes,
    reason = "a bench runs outside the library and stops at the first thing that fails"
)]

use std::hint::black_box;
use std::time::Instant;

use clover::flow;
use clover::flow::Bounds;
use clover::flow::Workflow;
use clover::flow::executor::request_digest;
use clover::flow::executor::simulator::SimulatedModel;
use clover::flow::executor::simulator::Strength;
use clover::flow::task::Family;
use clover::flow::task::Split;
use clover::flow::task::TaskSet;

const ITEMS: usize = 2_000;
const PASSES: u32 = 5;
/// Executions a second that are the floor.
const FLOOR: f64 = 20_000.0;

fn best(mut pass: impl FnMut() -> usize) -> (usize, f64) {
    let times = (0..PASSES).map(|_| {
        let start = Instant::now();
        let count = pass();
        (count, start.elapsed().as_secs_f64())
    });
    times.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
}

fn main() {
    for family in Family::ALL {
        let set = TaskSet::parse(&family.lines(Split::Local, 1, ITEMS)).unwrap();
        let first = family.first_program();
        let check = r#"{"id":"k","kind":"check","hard":true,"expr":{"op":"exists","path":"draft.nothing"}},
            {"id":"g","kind":"guard","target":"draft","when":{"op":"not","of":{"op":"flag","id":"k"}},"max_tries":2,"note":"Fix: {{flags}}"},
            {"id": "answer""#;
        let guarded = first.replace(r#"{"id": "answer""#, check);
        for (name, text) in [("first program", first), ("with a guard", guarded.as_str())] {
            let workflow = Workflow::parse(text).unwrap();
            let (steps, seconds) = best(|| {
                let mut steps = 0;
                for item in &set.items {
                    let model = item.model.as_ref().unwrap();
                    let mut model = SimulatedModel::new(1, Strength::Weak, &item.id, model);
                    let outcome =
                        flow::run(&workflow, &item.inputs, &mut model, Bounds::default(), 0)
                            .unwrap();
                    steps += outcome.trace.steps.len();
                    black_box(outcome.trace.digest());
                }
                steps
            });
            let rate = steps as f64 / seconds;
            println!(
                "{:<10} {name:<14} {rate:>9.0} executions/s  {:>5.1} times the floor",
                family.as_str(),
                rate / FLOOR
            );
        }
    }
    let request = flow::Data::parse(r#"{"model":"m","messages":[{"role":"user","content":"a text of some length, as prompts have"}]}"#, 1_000).unwrap();
    let (count, seconds) = best(|| {
        for _ in 0..100_000 {
            black_box(request_digest(black_box(&request)));
        }
        100_000
    });
    println!(
        "{:<25} {:>9.0} requests/s",
        "digest of a request",
        count as f64 / seconds
    );
}
