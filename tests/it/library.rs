//! The example programs: whole stories through the library, and the command line verifies what they leave.

#[path = "../library/data.rs"]
mod data;
#[path = "../library/desk.rs"]
mod desk;
#[path = "../library/gate.rs"]
mod gate;
#[path = "../library/iteration.rs"]
mod iteration;

use std::path::Path;
use std::process::Command;

use clover::event::payload::decision::Outcome;
use clover::event::payload::iteration::IterationOutcome;

/// Statements of an example beside its imports and comments.
fn statements(text: &str) -> usize {
    let lines = text.lines().map(str::trim);
    let counts =
        |line: &&str| !line.is_empty() && !line.starts_with("//") && !line.starts_with("use ");
    lines.filter(counts).count()
}

/// Everything in a ledger verifies, and every decision is computed again.
fn holds(folder: &Path) {
    for words in [["verify", "--json"], ["replay", "--all"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_clover"))
            .args(words)
            .arg("--ledger")
            .arg(folder)
            .env("HOME", folder)
            .env_remove("XDG_STATE_HOME")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{words:?}: {text}");
    }
}

#[test]
fn an_iteration_runs_without_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = iteration::run(folder.path()).unwrap();
    assert_eq!(outcome, IterationOutcome::Accepted);
    holds(folder.path());
    assert!(statements(include_str!("../library/iteration.rs")) < 80);
}

#[test]
fn a_gate_runs_without_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = gate::run(folder.path()).unwrap();
    assert_eq!(outcome, Outcome::Promote);
    holds(folder.path());
    assert!(statements(include_str!("../library/gate.rs")) < 80);
}
