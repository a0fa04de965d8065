//! Repairs of workflows: the walk of the page, runs that are killed, budgets, and what stays out of reach.

use std::path::Path;

use base64ct::Base64;
use base64ct::Encoding as _;
use clover::ground::digest::Digest;
use clover::session::wf::files::RunFiles;
use serde_json::Value;

use super::Desk;
use super::killed;
use super::killed::Home;
use super::live_runs::said;
use super::renderings;
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
    // One run is no trigger.
    let triggers = measured["triggers"].as_array().unwrap();
    assert_eq!(triggers.len(), 4, "{measured:#}");
    let is_few = |of: &Value| of["runs"].as_u64().unwrap() <= 1 && of["least"] == 5;
    assert!(triggers.iter().all(is_few), "{triggers:#?}");
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

/// Given a run that ended; when an open of the same name wrote its private files and was refused at append; then the first run's
/// truth is still there, and it is scored.
#[test]
fn a_second_open_of_a_name_leaves_the_truth_of_the_first() {
    let mut desk = desk("tables");
    desk.ok(&format!("{OPEN} --items 2 --set iterations=1"));
    desk.ok("repair run one");
    let home = clover::session::home::Home::new(desk.at.join(".clover"));
    let of = |text: &str| Digest::sha256(text.as_bytes());
    let second = RunFiles::of(&home, &"one".parse().unwrap(), &of("another truth"));
    second.keep_answers("{}\n").unwrap();
    second.keep_truth(&of("salt"), "{}\n").unwrap();
    desk.ok("repair score one");
    assert!(shown(&mut desk)["worth_before_micro"].is_i64());
    let folders = std::fs::read_dir(desk.at.join(".clover/repair/one")).unwrap();
    assert_eq!(folders.count(), 2);
}

/// Every term and item that no run can have is refused before anything is on record.
#[test]
fn what_can_never_run_or_be_scored_is_not_opened() {
    let mut desk = desk("invoices");
    let before = desk.head();
    for (term, expected) in [
        (
            "calls=99999999999999999999",
            "a whole number from 0 to 9007199254740991",
        ),
        (
            "calls=9007199254740992",
            "a whole number from 0 to 9007199254740991",
        ),
        ("calls=-1", "a whole number"),
        ("theta_micro=1000001", "millionths from 0 to 1000000"),
        ("least_gain_micro=9223372036854775808", "millionths"),
        ("beam", "NAME=NUMBER"),
        ("bean=2", "expected beam, calls"),
    ] {
        let line = format!("{OPEN} --set {term}");
        let words: Vec<&str> = line.split(' ').collect();
        desk.refused(&words, 2, &[term, expected]);
    }
    let text = std::fs::read_to_string(desk.at.join("shop/local.jsonl")).unwrap();
    let mut without = |member: &str| {
        let lines = text.lines().enumerate().map(|(at, line)| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            if at == 2 {
                line.as_object_mut().unwrap().remove(member).unwrap();
            }
            format!("{line}\n")
        });
        let lines = lines.collect::<String>();
        std::fs::write(desk.at.join("shop/without.jsonl"), lines).unwrap();
        let line = OPEN.replace("local", "without");
        let words: Vec<&str> = line.split(' ').collect();
        desk.refused(&words, 2, &["local-1", member]);
    };
    without("sim");
    without("truth");
    let table = desk.file("table.jsonl", "{\"request\":\"x\"}\n");
    let line = format!("{OPEN} --executor table={table}");
    let words: Vec<&str> = line.split(' ').collect();
    desk.refused(&words, 4, &["table.jsonl", "64 lower-case hex digits"]);
    assert_eq!(desk.head(), before);
}

/// What is shown of an earlier entry is what was known there; what comes next can be done.
#[test]
fn a_show_of_the_past_knows_no_later_execution() {
    let mut desk = desk("tables");
    let next = |ran: &Value| {
        let next = ran["next"].as_array().unwrap().iter();
        next.map(|line| line.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    desk.ok(&format!("{OPEN} --items 2 --set iterations=1"));
    let opened = desk.head()["size"].as_u64().unwrap();
    desk.ok("repair run one");
    desk.ok("repair show one --candidate first --item local-1");
    let show = "repair show one --candidate first --item local-1";
    let early = desk.run(&format!("at {} -- {show}", opened - 1));
    assert_eq!(early.code, 5, "{}{}", early.out, early.err);
    let ended = desk.ok("repair show one --json").json();
    assert!(next(&ended).contains(&"clover repair score one".to_owned()));
    desk.ok("repair score one");
    let scored = desk.ok("repair show one --json").json();
    assert_eq!(next(&scored), ["clover repair show one --candidate winner"]);
    // A run that a person stops before anything was judged has no winner, and nothing to score.
    desk.ok(&format!(
        "{} --items 2",
        OPEN.replace("open one", "open two")
            .replace("local", "general")
    ));
    let stopped = desk.ok("repair stop two --json").json();
    assert_eq!(stopped["data"]["winner"], Value::Null);
    for line in next(&stopped) {
        desk.ok(line.strip_prefix("clover ").unwrap());
    }
    assert_eq!(next(&stopped), ["clover repair show two --candidate first"]);
    for wrong in ["--useful nan", "--useful 7", "--gain inf", "--epsilon=-1"] {
        let line = format!("repair measure {wrong}");
        let words: Vec<&str> = line.split(' ').collect();
        let flag = wrong.split([' ', '=']).next().unwrap();
        desk.refused(&words, 2, &[flag]);
    }
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

/// Given models whose answers hold what nobody may learn; when a run crashes on them; then events that are exported say where,
/// and nothing of it.
#[test]
fn a_crash_says_nothing_of_an_answer_in_public() {
    let mut desk = desk("invoices");
    let file = desk.at.join("shop/workflow.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let open = "\"type\": \"object\"";
    let closed = text.replace(open, &format!("{open}, \"additionalProperties\": false"));
    assert_ne!(closed, text);
    std::fs::write(&file, closed).unwrap();
    desk.ok("workflow run shop/workflow.json --input shop/local.jsonl --executor sim --record said.jsonl");
    let said = std::fs::read_to_string(desk.at.join("said.jsonl")).unwrap();
    let bad = [
        r#"{"Jane Roe 555-1234":"k"}"#,
        r#"{"Jane Roe 555-1234":1,"Jane Roe 555-1234":2}"#,
        r#"{"total":98989898989898989898}"#,
        "Jane Roe 555-1234",
    ];
    let lines = said.lines().zip(bad).map(|(line, bad)| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line["text"] = bad.into();
        format!("{line}\n")
    });
    let table = desk.file("table.jsonl", &lines.collect::<String>());
    desk.ok(&format!(
        "{OPEN} --items 4 --executor table={table} --set iterations=1"
    ));
    // No answer of a candidate that is proposed was recorded.
    desk.run("repair run one");
    let crashed = desk.ok("log --kind wf.executed --json").json();
    let crashed = crashed["data"]["entries"].as_array().unwrap().len();
    assert_eq!(crashed, bad.len());
    desk.ok("export jsonl -o out");
    let lines = std::fs::read_to_string(desk.at.join("out/ledger.jsonl")).unwrap();
    let bodies = lines.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let body = Base64::decode_vec(line["envelope"]["payload"].as_str().unwrap()).unwrap();
        String::from_utf8(body).unwrap()
    });
    let bodies = bodies.collect::<String>();
    assert!(bodies.contains("the answer does not fit its schema"));
    for part in ["Jane", "555-1234", "989898"] {
        assert!(!bodies.contains(part), "{part}");
    }
}

/// The first program of invoices, with two steps that ask a model.
fn in_two_steps(desk: &Desk) {
    let file = desk.at.join("shop/workflow.json");
    let mut whole: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let steps = whole["steps"].as_array_mut().unwrap();
    let mut second = steps[0].clone();
    let asked = |step: &mut Value, gone: [&str; 2]| {
        let asked = &mut step["out"]["schema"]["properties"];
        let asked = asked.as_object_mut().unwrap();
        for name in gone {
            asked.remove(name).unwrap();
        }
    };
    asked(&mut steps[0], ["currency", "date"]);
    asked(&mut second, ["total", "vendor"]);
    second["id"] = "terms".into();
    second["writes"] = "terms".into();
    steps[1] = serde_json::json!({"id": "answer", "kind": "map", "fn": "merge",
        "args": {"paths": ["draft", "terms"]}, "writes": "y"});
    steps.insert(1, second);
    std::fs::write(&file, whole.to_string()).unwrap();
}

/// Given a program of two steps; when pairs of edits are tried after the run; then beta is measured, and both sides are computed
/// again. A program of one step has none, and once what is right was read it is too late.
#[test]
fn pairs_of_edits_give_beta() {
    let mut desk = desk("invoices");
    desk.ok(&format!(
        "{} --items 2 --set iterations=1",
        OPEN.replace("open one", "open alone")
    ));
    desk.refused(&["repair", "pair", "alone"], 11, &["alone", "comes first"]);
    desk.ok("repair run alone");
    desk.refused(
        &["repair", "pair", "alone"],
        11,
        &["two steps that ask a model"],
    );
    in_two_steps(&desk);
    desk.ok(&format!("{OPEN} --items 3 --set iterations=2"));
    desk.ok("repair run one");
    let paired = desk.ok("repair pair one --pairs 2 --json").json()["data"].clone();
    assert_eq!(paired["pairs"], 2, "{paired:#}");
    assert!(
        paired["due"].as_str().unwrap().contains("worth"),
        "{paired:#}"
    );
    desk.ok("repair score one");
    desk.refused(&["repair", "pair", "one"], 11, &["pairs come before it"]);
    let measured = desk.ok("repair measure --json").json()["data"].clone();
    assert_eq!(measured["beta"]["runs"], 1, "{measured:#}");
    let beta = measured["beta"]["mean"].as_f64().unwrap();
    assert!(beta > 0.5, "the blamed step is the one to edit: {beta}");
    desk.ok("verify --recompute");
    desk.replayed("");
}

/// Given the shipped family whose first program asks in two steps; when pairs are tried after each run, with no file changed; then
/// beta says that blame points to the step that is worth an edit. Twenty runs where there is time give the figures of the page.
#[test]
fn a_shipped_family_gives_beta() {
    let slow = child::slow();
    let runs = if slow { 20 } else { 1 };
    let items = if slow { 4 } else { 2 };
    let mut desk = desk("tickets");
    for at in 0..runs {
        desk.ok(&format!(
            "workflow new tickets -o s{at} --seed {}",
            100 + at
        ));
        desk.ok(&format!(
            "repair open r{at} --program s{at}/workflow.json --tasks s{at}/local.jsonl --items {items} --executor sim={at}"
        ));
        desk.ok(&format!("repair run r{at}"));
        desk.ok(&format!("repair pair r{at} --pairs 3"));
    }
    for at in 0..runs {
        desk.ok(&format!("repair score r{at}"));
    }
    let measured = desk.ok("repair measure --json").json()["data"].clone();
    let beta = &measured["beta"];
    if slow {
        println!("{measured:#}");
    }
    assert_eq!(beta["runs"], runs, "{beta:#}");
    // One run has no interval.
    let end = if slow { "low" } else { "mean" };
    assert!(beta[end].as_f64().unwrap() > 0.5, "{beta:#}");
    desk.ok("verify --recompute");
}

/// The report of a run: one document in three forms, with nothing from outside, before and after what is right is opened.
#[test]
fn the_report_of_a_run_says_what_came_of_it() {
    let mut desk = desk("replies");
    desk.ok(&format!("{OPEN} --items 4"));
    let going = desk
        .ok("report repair one --format md")
        .out
        .replace('\n', " ");
    assert!(going.contains("nothing is claimed yet"), "{going}");
    desk.ok("repair run one");
    let sealed = desk
        .ok("report repair one --format md")
        .out
        .replace('\n', " ");
    assert!(
        sealed.contains("what its winner is worth is sealed"),
        "{sealed}"
    );
    assert!(sealed.contains("what candidates are worth"), "{sealed}");
    desk.ok("repair score one");
    desk.refused(
        &["report", "repair", "one", "--useful", "7"],
        2,
        &["--useful"],
    );
    desk.refused(&["report", "repair", "none"], 5, &["no run none"]);
    let drawn = renderings::drawn(&mut desk, "report repair one");
    let parts = drawn.json["parts"].as_array().unwrap();
    let keys: Vec<&str> = parts
        .iter()
        .map(|of| of["part"].as_str().unwrap())
        .collect();
    let expected = [
        "asked",
        "candidates",
        "changed",
        "judged",
        "turns",
        "steps",
        "confusion",
        "success",
        "believed",
        "operators",
    ];
    assert_eq!(keys, expected);
    let run = shown(&mut desk);
    let candidates = run["candidates"].as_array().unwrap().len();
    assert!(drawn.html.matches("<circle").count() > candidates);
    let table = &parts[6]["tables"][0]["rows"];
    let count = |name: &str| {
        let rows = table.as_array().unwrap().iter();
        rows.map(|row| row[name].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(count("useful") + count("useless"), candidates as u64);
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
    killed::comes_to_the_same(desk.folder.path(), &RUN, came_of);
}

/// Success under budget rises in every family; over 200 runs a family where there is time.
#[test]
fn success_rises_in_every_family() {
    let slow = child::slow();
    let families = if slow {
        &["invoices", "replies", "tables", "tickets"][..]
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
