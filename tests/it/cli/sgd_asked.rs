//! `clover sgd open --endpoint`: a model behind HTTP writes gradients and patches. A double plays it; nothing leaves the machine.

use std::process::Stdio;
use std::time::Duration;

use clover::model::simulate::Double;
use clover::num::draws::Draws;
use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::endpoints::double;
use super::killed::Home;
use super::live_runs::said;
use super::sgd::desk;
use super::synth_asked::billed;
use super::synth_asked::priced;
use crate::support::child;

const OPEN: &str = "sgd open one --judge sim --simulated --prompt judge.md --repeats 1 --endpoint sim --model m-1 \
                    --pin m-1-2026-01-15 --account optimizers";

/// A desk with an open run of so many steps, whose model a double plays.
fn opened(script: &str, steps: u64, amount: u64) -> (Desk, Double) {
    let mut desk = desk(60, 3);
    let of = double(script, None);
    priced(&mut desk, &of, amount);
    desk.ok(&format!("{OPEN} --steps {steps} --set extra={steps}"));
    (desk, of)
}

fn shown(desk: &mut Desk) -> Value {
    desk.ok("sgd show one --json").json()["data"].clone()
}

/// Given a model that answers as the pair of this program; when a run asks it; then each ask is one call on record, paid as the
/// double bills it, and made again from the log.
#[test]
fn a_model_behind_http_writes_gradients_and_patches() {
    let (mut desk, of) = opened("", 2, 1_000_000);
    desk.ok("sgd run one");
    let run = shown(&mut desk);
    assert_eq!(run["agents"], "m-1-2026-01-15 at sim");
    assert_eq!(run["steps"].as_array().unwrap().len(), 2);
    let patched = run["steps"].as_array().unwrap().iter();
    assert!(
        patched.clone().any(|of| !of["measured"].is_null()),
        "{run:#}"
    );
    let calls = &run["asked"];
    assert_eq!(calls["calls"], of.billed().len(), "{run:#}");
    assert_eq!(calls["by_outcome"], json!({"answered": of.billed().len()}));
    for paid in ["cost_usd_micro", "settled_usd_micro"] {
        assert_eq!(calls[paid], billed(&of), "{run:#}");
    }
    assert_eq!(calls["held_usd_micro"], 0);
    // The same command asks nobody again.
    desk.ok("sgd run one");
    assert_eq!(calls["calls"], of.billed().len());
    desk.ok("sgd test one");
    desk.ok("verify --recompute");
    let replayed = desk.run("replay one");
    assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);
}

/// Given answers that are no gradient, no patch, cut off or declined; when a run asks; then each step is taken without a patch, and
/// every call is on record as what it came to.
#[test]
fn answers_that_are_none_end_their_step() {
    let script = [
        json!({"when": {"nth": 0}, "do": {"text": "I would shorten it."}}),
        json!({"when": {"nth": 1}, "do": {"text": "null"}}),
        json!({"when": {"nth": 2}, "do": {"text": "{", "stop": "limit"}}),
        json!({"when": {"nth": 3}, "do": {"text": "No.", "stop": "refusal"}}),
        json!({"when": {"nth": 5}, "do": {"text": "no patch"}}),
        json!({"when": {"nth": 6}, "do": {"text": "no patch"}}),
        json!({"when": {"nth": 7}, "do": {"text": "null"}}),
    ];
    let script: Vec<String> = script.iter().map(Value::to_string).collect();
    let (mut desk, of) = opened(&script.join("\n"), 3, 1_000_000);
    desk.ok("sgd run one");
    let run = shown(&mut desk);
    let calls = json!({"answered": 6, "refused": 1, "truncated": 1});
    assert_eq!(run["asked"]["by_outcome"], calls, "{run:#}");
    assert_eq!(of.billed().len(), 8);
    let rejected = json!([{"rule": "form", "proposals": 2}]);
    assert_eq!(run["rejected"], rejected);
    let mut steps = run["steps"].as_array().unwrap().iter();
    assert!(steps.all(|of| of["measured"].is_null()), "{run:#}");
    desk.ok("verify --recompute");
}

/// Given an account without room, then a model of another name; when a run asks; then nothing is sent that was not held for, and
/// the same command goes on.
#[test]
fn nothing_is_sent_without_room_and_another_model_is_none() {
    let script = json!({"when": {"nth": 0}, "do": {"model": "m-9"}}).to_string();
    let (mut desk, of) = opened(&script, 1, 1_000_000);
    let ran = desk.run("sgd run one");
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("another model answers"), "{}", ran.out);
    desk.ok("sgd run one");
    let run = shown(&mut desk);
    assert_eq!(run["asked"]["by_outcome"]["mismatched"], 1, "{run:#}");
    assert!(run["asked"]["settled_usd_micro"].as_u64().unwrap() >= billed(&of));
    let (mut poor, of) = opened("", 1, 10);
    let plan = "sgd plan two --judge sim --simulated --prompt judge.md --steps 1 --endpoint sim --model m-1 --pin m-1-2026-01-15 --account optimizers";
    let planned = poor.run(plan).out;
    assert!(planned.contains("of $0.00001 in the account"), "{planned}");
    assert!(planned.contains("more than there is room for"), "{planned}");
    let before = poor.head();
    let left = poor.ok("sgd run one --dry-run --json").json();
    let left = &left["data"];
    assert_eq!(
        (&left["steps_taken"], &left["steps_left"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(left["agent_asks_max"], 4);
    assert_eq!(left["account_left_usd_micro"], 10);
    assert!(
        left["agent_cost_max_usd_micro"].as_u64() > Some(10),
        "{left}"
    );
    assert_eq!(poor.head(), before);
    let ran = poor.run("sgd run one");
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    assert_eq!(of.billed().len(), 0);
    poor.ok("sgd stop one --yes");
    poor.ok("verify --recompute");
}

/// Given a model that takes its time; when a run is killed at random moments and started again until test is due; then each ask
/// has one answer, each step is taken once, and what was charged covers what was billed.
#[test]
fn a_run_of_a_model_that_is_killed_takes_each_step_once_and_accounts_for_every_call() {
    let slow = json!({"do": {"delay_ms": 60}}).to_string();
    let (kills, steps) = if child::slow() { (200, 60) } else { (2, 1) };
    let (desk, of) = opened(&slow, steps, 10_000_000);
    let home = Home(desk.folder.path());
    let mut draws = Draws::of([9; 32], 0);
    let mut cut = 0;
    for _ in 0..kills {
        let mut command = home.command(&["sgd", "run", "one", "--yes"]);
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut run = command.spawn().unwrap();
        let millis = 20 + u64::try_from(draws.below(400)).unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        cut += u32::from(run.try_wait().unwrap().is_none());
        run.kill().unwrap();
        run.wait().unwrap();
    }
    home.ok(&["sgd", "run", "one", "--yes"]);
    let calls = said(&home, "model_call.recorded");
    let answered = calls.iter().filter(|of| of["outcome"] == "answered");
    let mut places: Vec<u64> = answered.map(|of| of["place"].as_u64().unwrap()).collect();
    let all = places.len();
    places.dedup();
    assert_eq!(places.len(), all, "an ask has one answer");
    let taken = said(&home, "sgd.step_committed");
    let numbers: Vec<u64> = taken
        .iter()
        .map(|of| of["step"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    let lost = calls.iter().filter(|of| of["outcome"] == "lost").count();
    // A call that reached the model is on record, as answered or as lost.
    assert!(
        of.billed().len() <= calls.len(),
        "{} of {}",
        of.billed().len(),
        calls.len()
    );
    let settled = said(&home, "budget.settled");
    let settled: u64 = settled
        .iter()
        .map(|of| of["amount"].as_u64().unwrap())
        .sum();
    assert!(settled >= billed(&of), "{settled} of {}", billed(&of));
    let unknown = calls.iter().filter(|of| of["outcome"] == "lost");
    let unknown: u64 = unknown
        .map(|of| of["bound_usd_micro"].as_u64().unwrap())
        .sum();
    let most = billed(&of) + unknown;
    assert!(settled <= most, "{settled} of {most}");
    println!(
        "{cut} of {kills} kills struck: {} steps, {all} answers, {lost} calls lost, {} billed, {settled} of {} charged",
        numbers.len(),
        of.billed().len(),
        billed(&of)
    );
    home.ok(&["verify", "--recompute"]);
}
