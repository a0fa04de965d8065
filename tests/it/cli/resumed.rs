//! An iteration whose every step is killed once and done twice ends as one that ran straight through.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use clover::workflow::simulate::shipped::shipped;
use serde_json::Value;

use super::copy_tree;
use super::killed::Home;
use super::shipped::PEEKS;
use super::shipped::lay_out;
use super::shipped::opening;

const STEPS: [&str; 10] = [
    "score it-mended",
    "fit it-mended",
    "audit it-mended",
    "cards it-mended",
    "propose it-mended mended/patch.yaml",
    "gate it-mended",
    "seal it-mended",
    "confirm it-mended --yes",
    "accept it-mended",
    "close it-mended",
];
/// Members that name other entries: what they name is compared by itself.
const NAMES: [&str; 5] = ["battery", "charge", "for", "gates", "sealed"];

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// A ledger on which the iteration is open.
fn opened(folder: &Path) {
    let [mended, _] = shipped();
    std::fs::create_dir_all(folder.join("work")).unwrap();
    lay_out(&folder.join("work"), &mended);
    let home = Home(folder);
    let roles = "owner,registrar,scorer,labeler,arbiter,optimizer";
    let init = format!("init --origin ledger.example/resumed --holder Ada --roles {roles}");
    home.ok(&words(&init));
    home.ok(&words("key new cem --role custodian --seal"));
    home.ok(&["record", "budget.opened", "--data", PEEKS]);
    for line in opening(&mended) {
        home.ok(&words(&line));
    }
}

fn step(line: &str) -> Vec<&str> {
    [&["iterate"], &words(line)[..]].concat()
}

/// What was said since the opening, by kind and without what names entries, and how far it is.
fn said(home: &Home<'_>, from: u64) -> Vec<Value> {
    let log = home.ok(&words("log --limit 100000"));
    let entries = log["data"]["entries"].as_array().unwrap().clone();
    let mut all = BTreeMap::new();
    for entry in entries {
        let seq = entry["seq"].as_u64().unwrap();
        if seq >= from {
            let shown = home.ok(&["show", &seq.to_string()])["data"].clone();
            let body = shown["body"].clone();
            let mut data = body["data"].clone();
            for name in NAMES {
                data.as_object_mut().unwrap().remove(name);
            }
            all.insert(seq, serde_json::json!([body["kind"], data]));
        }
    }
    all.into_values().collect()
}

#[test]
fn every_step_is_killed_and_done_twice_and_nothing_changes() {
    if std::env::var_os("RUN_SLOW_TESTS").is_none() {
        println!("skipped: RUN_SLOW_TESTS=1 kills every step of an iteration");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    opened(&made);
    let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
    copy_tree(&made, &whole);
    copy_tree(&made, &cut);
    let from = Home(&made).entries();
    let mut killed = 0;
    for (number, line) in (1..).zip(STEPS) {
        let started = Instant::now();
        Home(&whole).ok(&step(line));
        let took = started.elapsed();
        let after = Home(&whole).entries();
        let home = Home(&cut);
        let mut command = home.command(&step(line));
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Late in one step, early in the next: where most of what a step says is said.
        let moment = took.mul_f64([0.9, 0.7, 0.8][number % 3]);
        std::thread::sleep(moment.max(Duration::from_millis(1)));
        child.kill().unwrap();
        child.wait().unwrap();
        killed += u32::from(home.entries() < after);
        for _ in 0..2 {
            // Done already, it says nothing new, or names the step that is due.
            let ran = home.command(&step(line)).output().unwrap();
            let told = String::from_utf8_lossy(&ran.stderr).into_owned();
            let done = ran.status.success()
                || told.contains("is due, not")
                || told.contains("ended at seq");
            assert!(done, "{line}: {told}");
            assert_eq!(home.entries(), after, "{line}, killed after {moment:?}");
        }
    }
    assert!(killed > 0, "no step was cut");
    let (straight, resumed) = (said(&Home(&whole), from), said(&Home(&cut), from));
    assert_eq!(straight, resumed);
    assert!(
        straight.iter().any(|one| one[0] == "patch.accepted"),
        "{straight:#?}"
    );
    // Without an adversary, P7 rests on a battery that nobody signed: that one is not computed again.
    let mut replay = Home(&cut).command(&words("replay --all --json"));
    let ran = replay.output().unwrap();
    let replayed: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let (differ, gone) = (&replayed["data"]["differ"], &replayed["data"]["gone"]);
    assert_eq!((differ, gone), (&0.into(), &1.into()), "{replayed:#}");
    assert_eq!(ran.status.code(), Some(12));
}
