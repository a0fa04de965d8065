//! The example programs: whole stories through the library, and the command line verifies what they leave.

#[path = "../library/data.rs"]
mod data;
#[path = "../library/desk.rs"]
mod desk;
#[path = "../library/gate.rs"]
mod gate;
#[path = "../library/iteration.rs"]
mod iteration;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use clover::event::payload::decision::Outcome;
use clover::event::payload::iteration::IterationOutcome;
use serde_json::Value;

use crate::support::verifiers;

/// Statements of an example beside its imports and comments.
fn statements(text: &str) -> usize {
    let lines = text.lines().map(str::trim);
    let counts =
        |line: &&str| !line.is_empty() && !line.starts_with("//") && !line.starts_with("use ");
    lines.filter(counts).count()
}

/// What the binary prints.
fn clover(folder: &Path, words: &[&str]) -> Vec<u8> {
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
    output.stdout
}

/// The members of each object of a list, in no order.
fn members(list: &Value, names: &[&str]) -> BTreeSet<String> {
    let list = list.as_array().unwrap().iter();
    let one = |of: &Value| {
        names
            .iter()
            .map(|name| format!("{}={} ", name, of[name]))
            .collect()
    };
    list.map(one).collect()
}

/// The binary and the verifier in Python answer an auditor's questions alike; the binary's answers.
fn questions(folder: &Path) -> Value {
    let summary = clover(folder, &["audit", "summary", "--json"]);
    let ours: Value = serde_json::from_slice(&summary).unwrap();
    let ours = ours["data"].clone();
    if !verifiers::python() {
        return ours;
    }
    let export = folder.join("export");
    let export_path = export.to_str().unwrap();
    clover(folder, &["export", "jsonl", "-o", export_path]);
    let output = verifiers::python3()
        .arg(verifiers::audits_verify())
        .arg(export.join("ledger.jsonl"))
        .args(["--summary", "--json"])
        .output()
        .unwrap();
    let theirs: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(theirs["verdict"], "pass");
    let count = ["kind", "events", "first_seq", "last_seq"];
    let of = |more: &[&'static str]| [&count[..], more].concat();
    for (question, names) in [
        ("signers", of(&["key", "holder", "role"])),
        (
            "peeks",
            of(&[
                "of",
                "by",
                "holder",
                "reader",
                "reader_holder",
                "purpose",
                "account",
                "charge",
                "given",
            ]),
        ),
        ("decisions", of(&["check"])),
        (
            "plans",
            vec![
                "manifest",
                "experiment",
                "versions",
                "in_force_seq",
                "first_row_seq",
                "row_timing",
                "first_look_seq",
                "timing",
                "amended_after",
                "deviations",
            ],
        ),
    ] {
        let (ours, theirs) = (&ours[question], &theirs["answers"][question]);
        assert_eq!(members(ours, &names), members(theirs, &names), "{question}");
    }
    ours
}

/// Everything in a ledger verifies, and every decision is computed again.
fn holds(folder: &Path) {
    for words in [["verify", "--json"], ["replay", "--all"]] {
        clover(folder, &words);
    }
}

#[test]
fn an_iteration_runs_without_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = iteration::run(folder.path()).unwrap();
    assert_eq!(outcome, IterationOutcome::Accepted);
    holds(folder.path());
    assert!(statements(include_str!("../library/iteration.rs")) < 80);
    let asked = questions(folder.path());
    let peeks = members(&asked["peeks"], &["kind"]);
    for kind in ["confirm.unsealed", "label.revealed"] {
        assert!(peeks.contains(&format!("kind=\"{kind}\" ")), "{peeks:?}");
    }
    let decided = members(&asked["decisions"], &["kind", "check"]);
    let accepted = "kind=\"patch.accepted\" check=\"again\" ";
    assert!(decided.contains(accepted), "{decided:?}");
}

#[test]
fn a_gate_runs_without_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = gate::run(folder.path()).unwrap();
    assert_eq!(outcome, Outcome::Promote);
    holds(folder.path());
    assert!(statements(include_str!("../library/gate.rs")) < 80);
    let asked = questions(folder.path());
    let plans = members(&asked["plans"], &["timing"]);
    assert_eq!(plans, BTreeSet::from(["timing=\"before\" ".to_owned()]));
    let peeks = members(&asked["peeks"], &["kind"]);
    for kind in ["exposure.opened", "gate.looked"] {
        assert!(peeks.contains(&format!("kind=\"{kind}\" ")), "{peeks:?}");
    }
}
