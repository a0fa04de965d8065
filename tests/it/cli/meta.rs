//! The outer loop: a verifier that is passed in vain calls for an update, which is tried on pairs of runs and takes effect or not.

use std::fmt::Write as _;

use serde_json::Value;

use super::Desk;
use super::killed;
use super::killed::Home;
use super::live_runs::said;
use crate::support::child;

const CONTEXT: &str = r#"{"task_set":"wf-tasks/1","family":"own","rules":[{"id":"word","text":"word is ok.","check":{"op":"eq","a":{"path":"y.word"},"b":{"const":"ok"}}}]}"#;
const PROGRAM: &str = r#"{"ir":"wf/1","inputs":["x"],"steps":[{"id":"say","kind":"llm","prompt":{"user":"Say: {{x.text}}"},"reads":["x"],"writes":"say","out":{"as":"json","schema":{"type":"object","properties":{"a":{},"word":{"type":"string"}}}}},{"id":"y","kind":"map","fn":"select","args":{"path":"say"},"writes":"y"}],"return":"y"}"#;
const VERBS: [&str; 6] = [
    "init --origin lab.example/meta --holder Ada --roles owner,registrar,scorer,arbiter",
    "key new opt --role optimizer",
    "key new ver --role verifier",
    "key new cem --role custodian",
    "key new moto --role meta_optimizer",
    "experiment register shop --title T --purpose trial",
];

/// Items that no rule of the context tells right from wrong: what `a` is stands in the input, and the model ignores it until it
/// is told so.
fn tasks(from: usize, count: usize, slips: &str) -> String {
    let mut lines = format!("{CONTEXT}\n");
    for at in from..from + count {
        let right = format!(r#"{{"a":{at},"word":"ok"}}"#);
        let item = format!(
            r#"{{"id":"i{at}","input":{{"x":{{"n":{at},"text":"item {at}"}}}},"truth":{right},"sim":{{"answer":{right},"slips":[{{"id":"word","p":1,"fault":"ignore_rule","path":"word","value":"no","until":"word is ok"}}{slips}]}}}}"#
        );
        writeln!(lines, "{item}").unwrap();
    }
    lines
}

/// The model says a wrong number until it is told where the right one stands: a shortcut that no rule of the context sees.
const SHORTCUT: &str =
    r#",{"id":"a","p":1,"fault":"ignore_rule","path":"a","value":0,"until":"a is what x.n says"}"#;

/// A desk with runs that were scored: each passes in vain.
pub(super) fn desk(runs: usize) -> Desk {
    let desk = desk_of(runs, "", |at| tasks(100 + at, 1, SHORTCUT));
    std::fs::write(desk.at.join("more.jsonl"), tasks(1_000, 60, SHORTCUT)).unwrap();
    desk
}

/// A desk with runs that were scored, each on tasks of its own.
fn desk_of(runs: usize, set: &str, tasks_of: impl Fn(usize) -> String) -> Desk {
    let mut desk = Desk::new();
    for line in VERBS {
        desk.ok(line);
    }
    std::fs::write(desk.at.join("program.json"), PROGRAM).unwrap();
    std::fs::write(desk.at.join("strict.json"), STRICT).unwrap();
    for at in 0..runs {
        std::fs::write(desk.at.join(format!("t{at}.jsonl")), tasks_of(at)).unwrap();
        desk.ok(&format!(
            "repair open r{at} --program program.json --tasks t{at}.jsonl --items 1 --set iterations=3{set}"
        ));
        desk.ok(&format!("repair run r{at}"));
        desk.ok(&format!("repair score r{at}"));
    }
    desk
}

/// A verifier that asks, above all, for what no right answer has.
const STRICT: &str = r#"{"verifier":"wf-verifier/1","cost_reference":2000,"critic_weight":0,"filter":"crashes","held_share":1000000,"rules":[{"id":"never","text":"b begins with Z.","weight":3,"check":{"op":"regex","path":"y.b","pattern":"^Z"}}]}"#;

const RUN: &str = "meta run stricter --tasks more.jsonl --items 1";

/// Given five runs whose verifier rewards a shortcut; when the outer loop is run; then the trigger of false positives fires, the
/// update adds the check that the shortcut breaks, its gates read all pairs, and a run begins from it once it passed.
#[test]
fn a_shortcut_is_caught_and_an_update_takes_effect_by_its_gates() {
    let slow = child::slow();
    let pairs = if slow { 30 } else { 2 };
    let mut desk = desk(5);
    let measured = desk.ok("repair measure --json").json()["data"].clone();
    assert_eq!(measured["false_positive"]["count"], 5, "{measured:#}");
    assert_eq!(measured["triggers"][0]["class"], "false_positive");
    let head = desk.head();
    let planned = desk.ok(&format!("{RUN} --pairs {pairs} --plan --json"));
    assert_eq!(planned.json()["data"]["is_recorded"], false);
    assert_eq!(desk.head(), head, "a plan records nothing");
    let shown = desk.ok(&format!("{RUN} --pairs {pairs} --json")).json()["data"].clone();
    assert_eq!(shown["target"], "verifier", "{shown:#}");
    let document = shown["document"].as_str().unwrap();
    assert!(document.contains("a is what x.n says."), "{document}");
    for pair in shown["pairs"].as_array().unwrap() {
        assert_eq!(pair["new_succeeds"], true, "{pair:#}");
        assert_eq!(pair["old_succeeds"], false, "{pair:#}");
    }
    assert_eq!(shown["gates"]["success"]["pairs"], pairs);
    let begins =
        "repair open next --program program.json --tasks last.jsonl --items 1 --update stricter";
    std::fs::write(desk.at.join("last.jsonl"), tasks(9_000, 1, SHORTCUT)).unwrap();
    if slow {
        println!("{shown:#}");
        assert_eq!(shown["verdict"], "pass");
        desk.ok(begins);
        let lineage = desk.ok("meta show --json").json()["data"]["updates"].clone();
        assert_eq!(lineage[0]["runs"], 1, "{lineage:#}");
    } else {
        // Two pairs are too few for any gate: nothing takes effect.
        assert_eq!(shown["verdict"], "fail");
        let words: Vec<&str> = begins.split(' ').collect();
        desk.refused(&words, 5, &["update stricter did not pass"]);
    }
    let again = desk.head();
    desk.ok(&format!("{RUN} --pairs {pairs}"));
    assert_eq!(desk.head(), again, "what stands is not said twice");
    desk.ok("meta show stricter");
    desk.ok("verify --recompute");
}

/// Given five runs whose verifier scores what is right low; when the outer loop is run; then the trigger of false negatives fires,
/// the update drops the check that useful outputs break, and both runs of a pair are executed.
#[test]
fn a_verifier_that_is_too_strict_is_loosened() {
    let mut desk = desk_of(5, " --verifier strict.json", |at| tasks(100 + at, 1, ""));
    std::fs::write(desk.at.join("more.jsonl"), tasks(1_000, 2, "")).unwrap();
    let shown = desk.ok(&format!("{RUN} --pairs 1 --json")).json()["data"].clone();
    assert_eq!(shown["triggers"][0]["class"], "false_negative", "{shown:#}");
    assert_eq!(shown["target"], "verifier");
    let document = shown["document"].as_str().unwrap();
    assert!(!document.contains("never"), "{document}");
    assert_eq!(shown["pairs"][0]["new_succeeds"], true, "{shown:#}");
    assert_eq!(shown["verdict"], "fail", "one pair says nothing");
    desk.ok("verify --recompute");
}

/// Given five runs that stop rising, since no edit helps; when the outer loop is run; then the trigger of stagnation fires, and the
/// meta prompt forbids one operator.
#[test]
fn runs_that_stop_rising_forbid_an_operator() {
    const DEAF: &str = r#",{"id":"a","p":1,"fault":"ignore_rule","path":"word","value":"never","until":"nobody says this"}"#;
    let mut desk = desk_of(5, " --set stagnation=1", |at| tasks(100 + at, 1, DEAF));
    std::fs::write(desk.at.join("more.jsonl"), tasks(1_000, 2, DEAF)).unwrap();
    let shown = desk.ok(&format!("{RUN} --pairs 1 --json")).json()["data"].clone();
    assert_eq!(shown["triggers"][0]["class"], "stagnation", "{shown:#}");
    assert_eq!(shown["target"], "meta");
    let document: Value = serde_json::from_str(shown["document"].as_str().unwrap()).unwrap();
    assert_eq!(
        document["operators"].as_array().unwrap().len(),
        4,
        "{document}"
    );
    assert_eq!(shown["verdict"], "fail");
    desk.ok("verify --recompute");
}

/// Given runs that succeed, five of them at more cost than three quarters of all; when the outer loop is run; then the winner of one
/// becomes a template that a run begins from, and the library has it only once it passed. Slow: it needs 21 runs.
#[test]
fn a_success_that_costs_much_becomes_a_template() {
    if !child::slow() {
        return;
    }
    let long = |at: usize| {
        tasks(100 + at, 1, "").replace("\"item ", &format!("\"item {}", "word ".repeat(at)))
    };
    let mut desk = desk_of(21, "", long);
    std::fs::write(desk.at.join("more.jsonl"), tasks(1_000, 2, "")).unwrap();
    let shown = desk.ok(&format!("{RUN} --pairs 2 --json")).json()["data"].clone();
    assert_eq!(shown["triggers"][0]["class"], "slow", "{shown:#}");
    assert_eq!(shown["target"], "library");
    for pair in shown["pairs"].as_array().unwrap() {
        assert_eq!(pair["new_succeeds"], true, "{pair:#}");
    }
    assert_eq!(
        shown["verdict"], "fail",
        "both succeed, and two pairs say nothing"
    );
    desk.ok("verify --recompute");
}

/// What the record does not call for is not proposed, and what a trial needs is looked for before anything is said.
#[test]
fn nothing_is_proposed_that_is_not_called_for() {
    let mut desk = desk(2);
    let refused = |desk: &mut Desk, line: &str, exit, said: &[&str]| {
        let words: Vec<&str> = line.split(' ').collect();
        desk.refused(&words, exit, said);
    };
    let head = desk.head();
    refused(&mut desk, RUN, 11, &["no update is called for"]);
    refused(
        &mut desk,
        &format!("{RUN} --pairs 61"),
        2,
        &["60 free items for 61 pairs"],
    );
    refused(&mut desk, &format!("{RUN} --pairs 0"), 2, &["--pairs"]);
    refused(&mut desk, &format!("{RUN} --alpha 0.06"), 2, &["--alpha"]);
    refused(&mut desk, "meta show none", 5, &["no update none"]);
    assert_eq!(desk.head(), head);
    desk.ok("meta show");
}

/// Everything that an outer loop said, but for where it stands.
fn came_of(home: &Home<'_>) -> Vec<Vec<Value>> {
    [
        "meta.triggered",
        "meta.updated",
        "wf.executed",
        "wf.stopped",
        "meta.validated",
    ]
    .map(|kind| said(home, kind))
    .into()
}

/// Given runs that call for an update; when the outer loop is killed at random moments and started again; then it said what one
/// says that nobody cut, each step once.
#[test]
fn an_outer_loop_that_is_killed_comes_to_the_same() {
    let desk = desk(5);
    let words: Vec<&str> = RUN.split(' ').chain(["--pairs", "1"]).collect();
    killed::comes_to_the_same(desk.folder.path(), &words, came_of);
}
