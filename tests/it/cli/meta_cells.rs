//! A plan of sixteen cells: it is registered before its runs, all of them stand on the same tasks, and its claims are closed.

use serde_json::Value;

use super::killed;
use super::killed::Home;
use super::live_runs::said;
use super::meta;
use crate::support::child;

const PLAN: &str = "meta experiment cells --update stricter --tasks more.jsonl --items 1";

/// Given an update on record; when a plan over it is gone through; then it opens sixteen runs a task on the same items, a preview
/// records nothing, other numbers are refused on the way, and every claim has its difference and its e-value.
#[test]
fn a_plan_goes_through_sixteen_cells_and_closes_its_claims() {
    let slow = child::slow();
    let tasks = if slow { 12 } else { 1 };
    let mut desk = meta::desk(5);
    desk.ok("meta run stricter --tasks more.jsonl --items 1 --pairs 1");
    let head = desk.head();
    let planned = desk.ok(&format!("{PLAN} --count {tasks} --plan --json"));
    let planned = planned.json()["data"].clone();
    assert_eq!(planned["runs"], tasks * 16, "{planned:#}");
    assert_eq!(planned["is_recorded"], false);
    assert_eq!(planned["price"]["known"], 7);
    assert!(planned["price"]["calls"].as_u64().unwrap() > 0);
    for (line, exit, words) in [
        (format!("{PLAN} --count 0"), 2, "--count"),
        (format!("{PLAN} --count 501"), 2, "--count"),
        (
            format!("{PLAN} --count 60"),
            2,
            "59 free items for 60 tasks",
        ),
        (PLAN.replace("stricter", "none"), 5, "no update none"),
    ] {
        let line: Vec<&str> = line.split(' ').collect();
        desk.refused(&line, exit, &[words]);
    }
    assert_eq!(
        desk.head(),
        head,
        "a plan that is not recorded changes nothing"
    );
    let shown = desk.ok(&format!("{PLAN} --count {tasks} --json")).json()["data"].clone();
    assert_eq!(shown["is_concluded"], true, "{shown:#}");
    assert_eq!(shown["known"], tasks * 16);
    let cells = shown["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 16);
    let of_use = |at: usize| cells[at]["of_use"].as_u64().unwrap();
    // The shortcut is not seen without the update, and is with it.
    assert_eq!((of_use(0), of_use(8)), (0, tasks), "{shown:#}");
    let claims = shown["claims"].as_array().unwrap();
    assert_eq!(claims.len(), 3);
    for claim in claims {
        assert!(claim["log_closed"].is_f64(), "{claim:#}");
    }
    if slow {
        println!("{}", desk.ok("meta show cells").out);
    }
    let head = desk.head();
    desk.ok(&format!("{PLAN} --count {tasks}"));
    assert_eq!(desk.head(), head, "what stands is not said twice");
    let other = format!("{PLAN} --count {}", tasks + 1);
    let other: Vec<&str> = other.split(' ').collect();
    desk.refused(&other, 2, &["the count of tasks of the plan"]);
    let listed = desk.ok("meta show --json").json()["data"]["plans"].clone();
    assert_eq!(listed[0]["plan"], "cells", "{listed:#}");
    desk.ok("verify --recompute");
}

/// Everything that a plan said, but for where it stands.
fn came_of(home: &Home<'_>) -> Vec<Vec<Value>> {
    [
        "meta.planned",
        "wf.executed",
        "wf.stopped",
        "meta.concluded",
    ]
    .map(|kind| said(home, kind))
    .into()
}

/// Given a plan; when it is killed at random moments and started again; then it said what one says that nobody cut, each step once.
/// Slow: it goes through 16 runs each time.
#[test]
fn a_plan_that_is_killed_comes_to_the_same() {
    if !child::slow() {
        return;
    }
    let mut desk = meta::desk(5);
    desk.ok("meta run stricter --tasks more.jsonl --items 1 --pairs 1");
    let words: Vec<&str> = PLAN.split(' ').chain(["--count", "1"]).collect();
    killed::comes_to_the_same(desk.folder.path(), &words, came_of);
}
