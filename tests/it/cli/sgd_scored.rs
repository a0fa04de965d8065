//! `clover sgd open --judge-plan`: the judge of a run is a model behind HTTP. A double plays the simulated judge; nothing leaves the
//! machine.

use std::collections::BTreeMap;
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
use crate::support::child;

const PRICES: &str = "provider,model,mode,input,output,cache_read,cache_write\n\
                      example,simulated-judge/1-2026-01-15,live,0.25,2,0.025,\n";

const OPEN: &str =
    "one --judge llm --judge-plan plan.yaml --prompt judge.md --judge-account judges";

/// A desk with a judge behind HTTP whom a double plays; the account has so many millionths of a dollar.
fn behind_http(script: &str, rows: u64, amount: u64) -> (Desk, Double) {
    let mut desk = desk(rows, 3);
    let of = double(script, None);
    desk.ok(&format!(
        "endpoint add here --url http://{} --provider example --texts rows --terms kept-here --auth none",
        of.address()
    ));
    desk.file("prices.csv", PRICES);
    desk.ok("price import prices.csv --name 2026-11 --as-of 2026-11-01 --source page");
    let account = json!({"account": "judges", "amount": amount, "period": "once", "purpose": "judges",
        "spenders": ["scorer"], "unit": "usd_micro"});
    desk.ok_words(&["record", "budget.opened", "--data", &account.to_string()]);
    let levels: Vec<_> = (0..=100).map(|level| level.to_string()).collect();
    let plan = format!(
        "plan: judge_plan/1\njudge: llm\nendpoint: here\nmodel: simulated-judge/1\n\
         pin: simulated-judge/1-2026-01-15\nlevels: [{}]\ndecoding: {{seed: derived, temperature_micro: 0}}\n",
        levels.join(", ")
    );
    desk.file("plan.yaml", &plan);
    (desk, of)
}

fn shown(desk: &mut Desk) -> Value {
    desk.ok("sgd show one --json").json()["data"].clone()
}

/// What calls answered and what was missed, by judge, and what was charged.
fn calls(home: &Home<'_>) -> (BTreeMap<String, u64>, u64) {
    let mut by_outcome = BTreeMap::new();
    for call in said(home, "call.recorded") {
        let outcome = call["outcome"].as_str().unwrap().to_owned();
        *by_outcome.entry(outcome).or_default() += 1;
    }
    let settled = said(home, "budget.settled");
    let settled = settled.iter().map(|of| of["amount"].as_u64().unwrap());
    (by_outcome, settled.sum())
}

/// Given a judge behind HTTP; when a run descends; then each score is what a call answered that was held for, no text is asked
/// about twice under a prompt, and the whole is made again from the log.
#[test]
fn a_judge_behind_http_is_told_each_prompt_and_its_calls_are_the_scores() {
    let (mut desk, of) = behind_http("", 30, 10_000_000);
    let unpaid = "sgd plan one --judge llm --judge-plan plan.yaml --prompt judge.md";
    let unpaid: Vec<&str> = unpaid.split(' ').collect();
    desk.refused(&unpaid, 2, &["--judge-account ID"]);
    let planned = desk
        .ok(&format!("sgd plan {OPEN} --steps 1 --repeats 2 --json"))
        .json();
    let planned = planned["data"].clone();
    desk.ok(&format!(
        "sgd open {OPEN} --steps 1 --repeats 2 --judge-cap-usd 5 --set extra=1"
    ));
    desk.ok("sgd run one");
    desk.ok("sgd test one");
    let run = shown(&mut desk);
    assert!(!run["steps"][0]["measured"].is_null(), "{run:#}");
    let home = Home(desk.folder.path());
    let (by_outcome, settled) = calls(&home);
    let all = of.billed().len() as u64;
    assert_eq!(by_outcome, BTreeMap::from([("answered".to_owned(), all)]));
    assert_eq!(settled, billed(&of));
    assert!(all <= planned["asks_max"].as_u64().unwrap(), "{planned}");
    assert!(
        settled <= planned["scores_cost_max_usd_micro"].as_u64().unwrap(),
        "{planned}"
    );
    let scored: usize = said(&home, "sgd.scored")
        .iter()
        .flat_map(|of| of["scores"].as_array().unwrap().clone())
        .map(|of| of.as_array().unwrap().len())
        .sum();
    assert!(
        scored as u64 > all,
        "rows of the batch were asked about before: {scored} of {all}"
    );
    let left = desk.ok("sgd run one --dry-run --json").json()["data"].clone();
    assert_eq!(left["asks_max"], 0, "{left}");
    // What confirm costs is told before anything of it is asked, and nothing is recorded of that.
    let before = desk.head();
    let ahead = desk.ok("sgd promote one --dry-run --json").json()["data"].clone();
    let rows = run["rows"]["confirm"].as_u64().unwrap();
    assert_eq!(ahead["asks_max"], 2 * 2 * rows, "{ahead}");
    assert!(
        ahead["scores_cost_max_usd_micro"].as_u64() > Some(0),
        "{ahead}"
    );
    assert_eq!(desk.head(), before);
    assert_eq!(desk.run("sgd promote one").code, 12);
    desk.ok("verify --recompute");
    let replayed = desk.run("replay one");
    assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);
}

/// Given answers that have not the form, an endpoint that is down, and an account that runs dry; when a run asks; then a miss is an
/// outcome, an outage is none, and nothing is sent that was not held for.
#[test]
fn an_answer_without_the_form_is_a_miss_and_an_outage_is_none() {
    let script = json!({"when": {"nth": 3}, "do": {"text": "seven"}}).to_string();
    let (mut desk, of) = behind_http(&script, 30, 10_000_000);
    desk.ok(&format!(
        "sgd open {OPEN} --steps 1 --repeats 1 --set extra=1"
    ));
    desk.ok("sgd run one --steps 0");
    let home = Home(desk.folder.path());
    let missed = said(&home, "sgd.scored")[0]["missed"].clone();
    assert_eq!(missed.as_array().map(Vec::len), Some(1), "{missed}");
    assert_eq!(calls(&home).0["unparsed"], 1);
    let failures = said(&home, "sgd.loss_computed")[0]["loss"]["failures"].clone();
    assert!(failures.as_f64().unwrap() > 0.0);
    drop(of);
    let down = desk.run("sgd run one");
    assert_eq!(down.code, 75, "{}{}", down.out, down.err);
    desk.ok("sgd stop one --yes");
    desk.ok("verify --recompute");
    let (mut poor, of) = behind_http("", 30, 10);
    poor.ok(&format!("sgd open {OPEN} --steps 1 --repeats 1"));
    let ran = poor.run("sgd run one --yes");
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    assert_eq!(of.billed().len(), 0);
}

/// Given a judge that takes its time; when its run is killed at random moments and started again; then each step is taken once, no
/// ask has two answers, and what was charged covers what was billed.
#[test]
fn a_run_of_a_judge_that_is_killed_accounts_for_every_call() {
    let slow = json!({"do": {"delay_ms": 10}}).to_string();
    let (kills, rows) = if child::slow() { (200, 120) } else { (2, 30) };
    let (mut desk, of) = behind_http(&slow, rows, 1_000_000_000);
    let steps = if child::slow() { 12 } else { 1 };
    desk.ok(&format!(
        "sgd open {OPEN} --steps {steps} --repeats 2 --set extra={steps}"
    ));
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
    let mut answers: BTreeMap<String, u64> = BTreeMap::new();
    let all = said(&home, "call.recorded");
    for call in all.iter().filter(|of| of["outcome"] == "answered") {
        *answers.entry(call["ask"].to_string()).or_default() += 1;
    }
    assert!(
        answers.values().all(|count| *count == 1),
        "an ask has one answer"
    );
    assert!(
        of.billed().len() <= all.len(),
        "{} of {}",
        of.billed().len(),
        all.len()
    );
    let taken = said(&home, "sgd.step_committed");
    let numbers: Vec<_> = taken
        .iter()
        .map(|of| of["step"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    let settled = calls(&home).1;
    assert!(settled >= billed(&of), "{settled} of {}", billed(&of));
    // What is not known is what was held for when a run was cut, each ask at its bound.
    let lost = all.iter().filter(|of| of["outcome"] == "lost");
    let unknown: u64 = lost.map(|of| of["bound_usd_micro"].as_u64().unwrap()).sum();
    let most = billed(&of) + unknown;
    assert!(settled <= most, "{settled} of {most}");
    println!(
        "{cut} of {kills} kills struck: {} steps, {} answers, {} calls, {} billed, {settled} of {} charged",
        numbers.len(),
        answers.len(),
        all.len(),
        of.billed().len(),
        billed(&of)
    );
    home.ok(&["verify", "--recompute"]);
}
