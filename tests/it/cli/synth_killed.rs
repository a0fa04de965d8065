//! A run of an optimizer that is killed at any moment goes on with the same command: no round is had twice, nothing is asked of
//! dev twice, and it comes to what it comes to uncut.

use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use clover::num::draws::Draws;
use serde_json::Value;

use super::copy_tree;
use super::killed::Home;
use super::live_runs::said;
use super::synth::carded;
use crate::support::child;

const RUN: [&str; 3] = ["synth", "run", "it-mended"];

/// What came of every round and of the run, but for positions in the log.
fn came_of(home: &Home<'_>) -> Vec<Value> {
    let of = |kind: &str, members: &[&str]| {
        let all = said(home, kind).into_iter();
        let each = all.map(|data| members.iter().map(|of| data[*of].clone()).collect());
        each.collect::<Vec<Value>>()
    };
    let mut all = of("synth.returned", &["round", "state", "candidates"]);
    all.extend(of(
        "synth.stopped",
        &["reason", "rounds", "dev_calls", "proposed"],
    ));
    all.extend(of("dev.objective_queried", &["candidate", "answers"]));
    all.extend(of("patch.proposed", &["patch", "patch_hash", "run"]));
    all
}

/// Given an iteration with cards; when the search is killed at random moments and started again, until it ends; then its rounds,
/// dev calls and proposals are those of a run that nobody cut, and the ledger verifies.
#[test]
fn a_run_of_an_optimizer_that_is_killed_comes_to_the_same() {
    let (desk, _) = carded(|_| ());
    let whole = tempfile::tempdir().unwrap();
    copy_tree(desk.folder.path(), whole.path());
    let uncut = Home(whole.path());
    let begun = Instant::now();
    uncut.ok(&RUN);
    let took = begun.elapsed();
    let expected = came_of(&uncut);
    let (kills, rounds) = if child::slow() { (40, 5) } else { (3, 1) };
    for seed in 0..rounds {
        let folder = tempfile::tempdir().unwrap();
        copy_tree(desk.folder.path(), folder.path());
        let home = Home(folder.path());
        let mut draws = Draws::of([seed; 32], 0);
        let mut cut = 0;
        for _ in 0..kills {
            let mut command = home.command(&RUN);
            let command = command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut run = command.spawn().unwrap();
            let millis = u64::try_from(draws.below(400)).unwrap();
            std::thread::sleep(
                took.mul_f64(millis as f64 / 1_000.0)
                    .max(Duration::from_millis(5)),
            );
            cut += u32::from(run.try_wait().unwrap().is_none());
            run.kill().unwrap();
            run.wait().unwrap();
        }
        assert!(cut > 0, "no kill struck");
        home.ok(&RUN);
        assert_eq!(came_of(&home), expected, "seed {seed}, {cut} kills");
        let verify: &[&str] = if child::slow() {
            &["verify", "--recompute"]
        } else {
            &["verify"]
        };
        home.ok(verify);
    }
}
