//! `clover synth run --endpoint`: a model behind HTTP writes candidates. A double plays it by a script; nothing leaves the machine.

use std::process::Stdio;
use std::time::Duration;

use clover::model::simulate::Double;
use clover::num::draws::Draws;
use clover::workflow::simulate::shipped::shipped as shipped_rows;
use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::Ran;
use super::endpoints::double;
use super::killed::Home;
use super::live_runs::said;
use super::shipped;
use super::synth::carded;
use super::synth::codes;
use super::synth::count;
use super::synth::penalty;
use super::synth::yaml;
use crate::support::child;

const PRICES: &str = "provider,model,mode,input,output,cache_read,cache_write
example,m-1-2026-01-15,live,0.25,2,0.025,
";
const RUN: &str = "synth run it-mended --json --endpoint sim --model m-1 --pin m-1-2026-01-15 --account optimizers";

fn text(yamls: &[String]) -> String {
    let candidates = yamls
        .iter()
        .map(|yaml| json!({"yaml": yaml, "cards": [], "why": ""}));
    json!({"candidates": candidates.collect::<Vec<_>>()}).to_string()
}

/// What the double says to its requests, in order.
fn script(said: &[Value]) -> String {
    let rules = said.iter().enumerate();
    let rules = rules.map(|(nth, said)| json!({"when": {"nth": nth}, "do": said}).to_string());
    rules.collect::<Vec<_>>().join("\n")
}

fn says(yamls: &[String]) -> Value {
    json!({"text": text(yamls)})
}

/// An endpoint for optimizers with prices, and an account of so much.
pub(super) fn priced(desk: &mut Desk, of: &Double, amount: u64) {
    desk.ok(&format!(
        "endpoint add sim --url http://{} --provider example --texts aggregates --auth none",
        of.address()
    ));
    desk.file("prices.csv", PRICES);
    desk.ok("price import prices.csv --name 2026-11 --as-of 2026-11-01 --source page");
    let account = json!({"account": "optimizers", "amount": amount, "period": "once", "purpose": "optimizers",
        "spenders": ["optimizer"], "unit": "usd_micro"});
    desk.ok_words(&["record", "budget.opened", "--data", &account.to_string()]);
}

/// An iteration with cards, and a model that says this.
fn asked(said: &[Value], amount: u64) -> (Desk, Double) {
    let (mut desk, _) = carded(|_| ());
    let of = double(&script(said), None);
    priced(&mut desk, &of, amount);
    (desk, of)
}

/// What the double billed, in millionths of a dollar.
pub(super) fn billed(of: &Double) -> u64 {
    let price =
        |input: u64, output: u64| (input * 250_000 + output * 2_000_000).div_ceil(1_000_000);
    let calls = of.billed();
    calls.iter().map(|of| price(of.input, of.output)).sum()
}

fn data(ran: &Ran) -> Value {
    ran.json()["data"].clone()
}

#[test]
fn a_scripted_model_that_breaks_every_rule_is_on_record_with_its_codes_and_is_billed_as_it_says() {
    let frozen = yaml("frozen-1", "evidence_verification", "target: Y_star");
    let same = penalty("same-1", "0.3");
    let all = [
        says(&[
            frozen,
            penalty("none-1", "0"),
            same.clone(),
            "no patch".to_owned(),
            same.clone(),
        ]),
        json!({"text": "I would raise the penalty."}),
        says(std::slice::from_ref(&same)),
        json!({"text": "{\"candidates\":[", "stop": "limit"}),
        json!({"text": "I cannot help with that.", "stop": "refusal"}),
    ];
    let (mut desk, of) = asked(&all, 1_000_000);
    let foreseen = data(&desk.run(&format!("{RUN} --dry-run")));
    assert!(
        foreseen["most_usd_micro"].as_u64().unwrap() > 0,
        "{foreseen:#}"
    );
    assert_eq!(
        (of.billed().len(), count(&mut desk, "synth.opened")),
        (0, 0),
        "a dry run sends nothing"
    );
    let ran = desk.run(RUN);
    let run = data(&ran);
    assert_eq!(
        codes(&run),
        [
            "frozen",
            "noop",
            "none",
            "keys",
            "beyond_k",
            "duplicate_diff"
        ],
        "{run:#}"
    );
    let calls = &run["asked"];
    assert_eq!(calls["by_outcome"], json!({"answered": 3}), "{run:#}");
    let cost = calls["cost_usd_micro"].as_u64().unwrap();
    assert_eq!(
        (cost, calls["settled_usd_micro"].as_u64().unwrap()),
        (billed(&of), billed(&of))
    );
    assert_eq!(run["optimizer"], "m-1-2026-01-15 at sim");
    assert_eq!(run["proposed"], json!([]), "none of it passes: {run:#}");
    assert_eq!(of.billed().len(), 3);
    // The same command says the same again, and asks nobody.
    assert_eq!(data(&desk.ok(RUN))["candidates"], run["candidates"]);
    assert_eq!(of.billed().len(), 3);
    let ran = desk.run(&format!("{RUN} --again"));
    let run = data(&ran);
    assert_eq!(
        run["asked"]["by_outcome"],
        json!({"refused": 1, "truncated": 1}),
        "{run:#}"
    );
    assert_eq!(
        (&run["end"], &run["unread"]),
        (&json!("unreadable"), &json!(2)),
        "{run:#}"
    );
    desk.ok("verify --recompute");
    assert_eq!(desk.replayed("")["gone"], 0);
    let report = desk.ok("report experiment --format json").out;
    assert!(
        report.contains("calls of models for $0.00"),
        "the report says which model wrote patches"
    );
}

#[test]
fn a_round_that_is_cut_off_is_charged_and_asked_again_and_nothing_is_sent_without_room() {
    let good = penalty("good-1", "0.3");
    let all = [
        json!({"status": 500}),
        says(&[good]),
        json!({"model": "m-9"}),
        json!({"status": 503}),
    ];
    let (mut desk, of) = asked(&all, 1_000_000);
    let poor = desk.run(&format!("{RUN} --cap-usd 0.000001"));
    assert_eq!(poor.code, 11, "{}{}", poor.out, poor.err);
    assert_eq!(
        (of.billed().len(), count(&mut desk, "budget.reserved")),
        (0, 0)
    );
    let run = data(&poor)["run"].as_str().unwrap().to_owned();
    desk.ok(&format!("synth stop {run}"));
    let ran = desk.run(&format!("{RUN} --again --rounds 2"));
    assert_eq!(
        ran.code, 11,
        "another model answers: {}{}",
        ran.out, ran.err
    );
    let run = data(&ran);
    assert_eq!(
        run["asked"]["by_outcome"],
        json!({"answered": 1, "mismatched": 1}),
        "{run:#}"
    );
    let calls = desk.ok("log --kind model_call.recorded --json").json();
    assert_eq!(calls["data"]["entries"].as_array().unwrap().len(), 2);
    assert!(
        run["asked"]["settled_usd_micro"].as_u64().unwrap() >= billed(&of),
        "{run:#}"
    );
    // The same command goes on: the round is asked again, as its next call.
    let ran = desk.run(&format!("{RUN} --rounds 2"));
    let run = data(&ran);
    assert_eq!(run["end"], "empty", "{}{}", ran.out, ran.err);
    assert_eq!(
        run["asked"]["by_outcome"],
        json!({"answered": 2, "mismatched": 1})
    );
    let status = desk.ok("budget show optimizers --json").json();
    let (left, spent) = (&status["data"]["left"], &status["data"]["spent"]);
    let all = left.as_u64().unwrap() + spent.as_u64().unwrap();
    assert_eq!(all, 1_000_000, "nothing is held: {status:#}");
    desk.ok("verify --recompute");
}

#[test]
fn a_model_is_asked_only_where_aggregates_may_go_by_whoever_may_pay() {
    let (mut desk, of) = asked(&[], 1_000_000);
    desk.ok(&format!(
        "endpoint add rows --url http://{} --provider example --texts rows --terms kept --auth none",
        of.address()
    ));
    let rows = RUN.replace("--endpoint sim", "--endpoint rows");
    let words: Vec<&str> = rows.split(' ').collect();
    desk.refused(&words, 11, &["aggregates may go"]);
    let other = RUN.replace("m-1-2026-01-15", "m-7");
    let words: Vec<&str> = other.split(' ').collect();
    desk.refused(&words, 11, &["no table of prices has a price of m-7"]);
    desk.ok_words(&[
        "record",
        "budget.opened",
        "--data",
        shipped::PEEKS
            .replace("confirm-peeks", "judges")
            .replace("\"peek\"", "\"usd_micro\"")
            .as_str(),
    ]);
    let other = RUN.replace("--account optimizers", "--account judges");
    let words: Vec<&str> = other.split(' ').collect();
    desk.refused(&words, 11, &["judges"]);
    assert_eq!(of.billed().len(), 0);
}

/// Given a model that takes its time; when a run is killed at random moments and started again, until it ends; then each round has
/// one answer, and what the run was charged covers what was billed.
#[test]
fn a_run_of_a_model_that_is_killed_asks_each_round_once_and_pays_for_what_it_may_have_sent() {
    let slow = |yamls: &[String]| json!({"text": text(yamls), "delay_ms": 40});
    let (mut desk, _) = carded(|_| ());
    let good = slow(&[penalty("good-1", "0.02")]);
    let lines: Vec<String> = [json!({"do": good}).to_string()].into();
    let of = double(&lines.join("\n"), None);
    priced(&mut desk, &of, 1_000_000);
    let home = Home(desk.folder.path());
    let words: Vec<&str> = RUN.split(' ').filter(|word| *word != "--json").collect();
    let kills = if child::slow() { 40 } else { 1 };
    let mut draws = Draws::of([5; 32], 0);
    for _ in 0..kills {
        let mut command = home.command(&words);
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut run = command.spawn().unwrap();
        let millis = 40 + u64::try_from(draws.below(400)).unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        run.kill().unwrap();
        run.wait().unwrap();
    }
    home.ok(&words);
    let calls = said(&home, "model_call.recorded");
    let returned = said(&home, "synth.returned");
    let answered = calls.iter().filter(|of| of["outcome"] == "answered");
    assert_eq!(answered.count(), returned.len(), "{calls:#?}");
    let settled: u64 = said(&home, "budget.settled")
        .iter()
        .map(|of| of["amount"].as_u64().unwrap())
        .sum();
    assert!(settled >= billed(&of), "{settled} of {}", billed(&of));
    assert_eq!(said(&home, "synth.stopped")[0]["reason"], "duplicates");
    let verify: &[&str] = if child::slow() {
        &["verify", "--recompute"]
    } else {
        &["verify"]
    };
    home.ok(verify);
}

#[test]
fn a_view_with_the_words_of_a_row_is_not_sent() {
    let [mended, _] = shipped_rows();
    let files = mended.files();
    let file = files.iter().find(|of| of.path.starts_with("responses/"));
    let line = file.unwrap().bytes.split(|byte| *byte == b'\n').next();
    let row: Value = serde_json::from_slice(line.unwrap()).unwrap();
    let words: String = row["response"].as_str().unwrap().chars().take(60).collect();
    let topics = json!([words.trim()]);
    let (mut desk, _) = carded(|plan| plan["iteration"]["design"]["topics"] = topics);
    let of = double(&script(&[]), None);
    priced(&mut desk, &of, 1_000_000);
    for more in ["--dry-run", "--rounds 1"] {
        let ran = desk.run(&format!("{RUN} {more}"));
        assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
        assert!(
            ran.err.contains("words of a text of the row"),
            "{}",
            ran.err
        );
    }
    assert_eq!(
        (of.billed().len(), count(&mut desk, "budget.reserved")),
        (0, 0)
    );
}
