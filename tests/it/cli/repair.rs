//! Repairs of workflows: the walk of the page, runs that are killed, budgets, and what stays out of reach.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use clover::num::draws::Draws;
use serde_json::Value;

use super::Desk;
use super::copy_tree;
use super::killed::Home;
use super::live_runs::said;
use crate::support::child;

/// The commands of a page's first block.
fn walk() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/REPAIR.md");
    let page = std::fs::read_to_string(path).unwrap();
    let block = page.split("```sh\n").nth(1).unwrap();
    let block = block.split("```").next().unwrap();
    block.lines().map(str::to_owned).collect()
}

/// A desk with keys, an experiment and a family's files.
fn desk(family: &str) -> Desk {
    let mut desk = Desk::new();
    for line in [
        "init --origin lab.example/repair --holder Ada --roles owner,registrar,scorer,arbiter",
        "key new opt --role optimizer",
        "key new ver --role verifier",
        "key new cem --role custodian",
        "experiment register shop --title T --purpose trial",
    ] {
        desk.ok(line);
    }
    desk.ok(&format!("workflow new {family} -o shop"));
    desk
}

const OPEN: &str = "repair open one --program shop/workflow.json --tasks shop/local.jsonl";

fn shown(desk: &mut Desk) -> Value {
    desk.ok("repair show one --json").json()["data"].clone()
}

#[test]
fn the_walk_of_the_repair_page_mends_the_workflow() {
    let mut desk = Desk::new();
    for line in walk() {
        let words = line.strip_prefix("clover ").unwrap();
        desk.ok(&words
            .replace("'Invoices of a shop'", "T")
            .replace("'repair of a workflow'", "P")
            .replace("shop-1", "one"));
    }
    let data = shown(&mut desk);
    assert_eq!(data["end"], "pass", "{data:#}");
    let worth = |name: &str| data[name].as_i64().unwrap();
    assert!(
        worth("worth_after_micro") > worth("worth_before_micro") + 200_000,
        "{data:#}"
    );
    // What was said stands, and nothing of it is said twice.
    let size = desk.ok("status --json").json()["data"]["events"].clone();
    desk.ok("repair run one");
    desk.ok("repair score one");
    assert_eq!(desk.ok("status --json").json()["data"]["events"], size);
    let measured = desk.ok("repair measure --json").json()["data"].clone();
    assert_eq!(measured["success"]["of"], 1, "{measured:#}");
    assert!(
        measured["gamma"]["mean"].as_f64().unwrap() > 0.5,
        "{measured:#}"
    );
    desk.ok("at 20 -- repair status");
}

#[test]
fn what_is_right_stays_out_of_reach_until_the_end() {
    let mut desk = desk("tables");
    desk.ok(&format!("{OPEN} --items 3 --set iterations=1"));
    let early = ["repair", "score", "one"];
    desk.refused(&early, 11, &["comes first"]);
    let again: Vec<String> = OPEN.split(' ').map(str::to_owned).collect();
    let again: Vec<&str> = again.iter().map(String::as_str).collect();
    desk.refused(&again, 11, &["a run one was opened before"]);
    desk.ok("repair stop one");
    desk.refused(&["repair", "stop", "one"], 11, &["has ended"]);
    // Nothing was executed, so nothing is worth anything.
    desk.ok("repair score one");
    let log = desk.ok("log --kind utility.recorded --json").json();
    assert_eq!(log["data"]["entries"].as_array().unwrap().len(), 0);
    desk.refused(&["repair", "show", "two"], 5, &["no run two"]);
}

#[test]
fn a_budget_is_passed_by_one_call_at_most() {
    for calls in [1, 5, 9] {
        let mut desk = desk("invoices");
        desk.ok(&format!("{OPEN} --items 4 --set calls={calls}"));
        desk.ok("repair run one");
        let data = shown(&mut desk);
        assert_eq!(data["end"], "budget", "{data:#}");
        assert_eq!(data["spent"]["calls"], calls, "{data:#}");
        desk.ok("verify");
    }
}

/// A run that failed before anything could be scored stays in the denominator, and one that nobody scored is named.
#[test]
fn a_run_that_failed_is_measured() {
    let mut desk = desk("invoices");
    desk.ok(&format!("{OPEN} --items 2 --set calls=1"));
    desk.ok("repair run one");
    desk.ok("repair score one");
    let measured = desk.ok("repair measure --json").json()["data"].clone();
    assert_eq!(measured["success"]["of"], 1, "{measured:#}");
    assert_eq!(measured["success"]["count"], 0, "{measured:#}");
    desk.ok(&format!(
        "{} --items 2",
        OPEN.replace("open one", "open two")
    ));
    desk.ok("repair run two");
    let measured = desk.ok("repair measure --json").json()["data"].clone();
    assert_eq!(measured["success"]["of"], 1, "{measured:#}");
    assert_eq!(measured["unscored"], 1, "{measured:#}");
}

/// Everything that a run said, but for where it stands.
fn came_of(home: &Home<'_>) -> Vec<Vec<Value>> {
    let kinds = [
        "wf.candidate_added",
        "wf.edit_rejected",
        "wf.called",
        "wf.executed",
        "wf.feedback_given",
        "wf.scored",
        "wf.pruned",
        "wf.iteration_closed",
        "wf.stopped",
    ];
    kinds.map(|kind| said(home, kind)).into()
}

/// Given an open run; when it is killed at random moments and started again until it ends; then it said what a run says that
/// nobody cut, each step once.
#[test]
fn a_repair_that_is_killed_comes_to_the_same() {
    const RUN: [&str; 3] = ["repair", "run", "one"];
    let mut desk = desk("replies");
    desk.ok(&format!("{OPEN} --items 2"));
    let whole = tempfile::tempdir().unwrap();
    copy_tree(desk.folder.path(), whole.path());
    let uncut = Home(whole.path());
    let begun = std::time::Instant::now();
    uncut.ok(&RUN);
    let took = begun.elapsed();
    let expected = came_of(&uncut);
    let (kills, rounds) = if child::slow() { (40, 5) } else { (2, 1) };
    for seed in 0..rounds {
        let folder = tempfile::tempdir().unwrap();
        copy_tree(desk.folder.path(), folder.path());
        let home = Home(folder.path());
        let mut draws = Draws::of([seed; 32], 0);
        for _ in 0..kills {
            let mut command = home.command(&RUN);
            let command = command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut run = command.spawn().unwrap();
            let share = draws.uniform() / f64::from(kills);
            std::thread::sleep(took.mul_f64(share).max(Duration::from_millis(5)));
            run.kill().unwrap();
            run.wait().unwrap();
        }
        home.ok(&RUN);
        assert_eq!(came_of(&home), expected, "seed {seed}");
        home.ok(&["verify"]);
    }
}

/// Success under budget rises in every family; over 200 runs a family where there is time.
#[test]
fn success_rises_in_every_family() {
    let slow = child::slow();
    let families = if slow {
        &["invoices", "replies", "tables"][..]
    } else {
        &["invoices"]
    };
    let runs = if slow { 200 } else { 2 };
    for family in families {
        let mut desk = desk(family);
        for at in 0..runs {
            desk.ok(&format!(
                "workflow new {family} -o s{at} --seed {}",
                100 + at
            ));
            desk.ok(&format!(
                "repair open r{at} --program s{at}/workflow.json --tasks s{at}/local.jsonl --items 4 --executor sim={at}"
            ));
            desk.ok(&format!("repair run r{at}"));
        }
        for at in 0..runs {
            desk.ok(&format!("repair score r{at}"));
        }
        let measured = desk.ok("repair measure --json").json()["data"].clone();
        println!("{family}: {measured:#}");
        assert_eq!(measured["success"]["of"], runs);
        // Two runs have an interval that says nothing.
        let end = if slow { "low" } else { "mean" };
        assert!(
            measured["gain"][end].as_f64().unwrap() > 0.0,
            "{measured:#}"
        );
    }
}
