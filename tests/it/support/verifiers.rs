//! What an auditor is given, and the two verifiers that read it: ours, and `audits/verify`.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use clover::event::payload::Verdict;
use clover::ground::ambient::Ambient;
use clover::ground::digest::Digest;
use clover::ground::note::SignedCheckpoint;
use clover::ledger::Rulebook;
use clover::ledger::verify;
use clover::ledger::verify::EntryLines;
use clover::ledger::verify::Report;
use clover::ledger::verify::VerifyOptions;
use clover::workflow::GOVERNED;
use clover::workflow::RULEBOOK;
use serde_json::Value;
use serde_json::json;

/// The files of one audit.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// The export.
    pub ledger: Vec<u8>,
    /// The checkpoint that came with it.
    pub checkpoint: Option<Vec<u8>>,
    /// A checkpoint that was kept elsewhere.
    pub pin: Option<Vec<u8>>,
    /// Blobs by digest, when they came too.
    pub blobs: Option<BTreeMap<String, Vec<u8>>>,
    /// The log key that was learnt elsewhere.
    pub log_key: Option<String>,
}

/// What a verifier said: the first finding, and all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub first: Option<(u64, String)>,
    pub all: BTreeSet<(u64, String)>,
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Our verdict.
pub fn ours(case: &Case) -> Outcome {
    ours_under(case, &RULEBOOK, VerifyOptions::default())
}

/// Our verdict where every number is computed again.
pub fn ours_again(case: &Case) -> Outcome {
    ours_under(case, &GOVERNED, again())
}

/// How many numbers of a case cannot be computed again.
pub fn not_recomputed(case: &Case) -> u64 {
    report_under(case, &GOVERNED, again()).not_recomputed
}

fn again() -> VerifyOptions {
    VerifyOptions {
        recompute: true,
        ..VerifyOptions::default()
    }
}

fn ours_under(case: &Case, rulebook: &'static Rulebook, options: VerifyOptions) -> Outcome {
    let report = report_under(case, rulebook, options);
    assert_eq!(report.verdict == Verdict::Pass, report.first.is_none());
    Outcome {
        first: report
            .first
            .map(|first| (first.seq, first.rule.to_string())),
        all: report
            .findings
            .iter()
            .map(|finding| (finding.seq, finding.rule.to_string()))
            .collect(),
    }
}

fn report_under(case: &Case, rulebook: &'static Rulebook, options: VerifyOptions) -> Report {
    let mut unreadable = Vec::new();
    let mut parse = |name: &str, note: &Option<Vec<u8>>| {
        let read = SignedCheckpoint::parse(note.as_ref()?);
        let fault = |error: &_| unreadable.push((name.to_owned(), format!("{error}")));
        read.inspect_err(fault).ok()
    };
    let checkpoint = parse("the checkpoint", &case.checkpoint);
    let pin = parse("the pin", &case.pin);
    let against = pin.into_iter().map(|pin| ("the pin".to_owned(), pin));
    let options = VerifyOptions {
        against: against.collect(),
        unreadable,
        log_key: case.log_key.as_ref().map(|key| key.parse().unwrap()),
        ..options
    };
    let blobs = |digest: &Digest| {
        Ok(case
            .blobs
            .as_ref()
            .and_then(|blobs| blobs.get(&digest.to_hex()))
            .cloned())
    };
    let lines = EntryLines {
        lines: Box::new(case.ledger.as_slice()),
        checkpoint,
        blobs: if case.blobs.is_some() {
            Some(&blobs)
        } else {
            None
        },
    };
    let ambient = Arc::new(Ambient::system());
    verify::verify_lines(lines, &options, rulebook, &ambient, &mut |_, _| {}).unwrap()
}

impl Case {
    /// Writes the files into a folder.
    pub fn write(&self, folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("ledger.jsonl"), &self.ledger).unwrap();
        let optional = [("checkpoint", &self.checkpoint), ("pin", &self.pin)];
        for (name, bytes) in optional {
            if let Some(bytes) = bytes {
                fs::write(folder.join(name), bytes).unwrap();
            }
        }
        if let Some(key) = &self.log_key {
            fs::write(folder.join("log_key"), format!("{key}\n")).unwrap();
        }
        if let Some(blobs) = &self.blobs {
            fs::create_dir_all(folder.join("blobs")).unwrap();
            for (name, bytes) in blobs {
                fs::write(folder.join("blobs").join(name), bytes).unwrap();
            }
        }
    }

    /// Arguments of `audits/verify` for a folder that was written.
    pub fn arguments(&self, folder: &Path) -> Vec<String> {
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let mut arguments = vec![path("ledger.jsonl")];
        let mut give = |flag: &str, there: bool, value: String| {
            if there {
                arguments.extend([flag.to_owned(), value]);
            }
        };
        give(
            "--checkpoint",
            self.checkpoint.is_some(),
            path("checkpoint"),
        );
        give("--against", self.pin.is_some(), path("pin"));
        give("--blobs", self.blobs.is_some(), path("blobs"));
        let key = self.log_key.clone().unwrap_or_default();
        give("--log-key", self.log_key.is_some(), key);
        arguments
    }
}

/// The verifier in Python: a folder that Python runs.
pub fn audits_verify() -> PathBuf {
    repository().join("audits/verify")
}

/// A run of Python that leaves no compiled copies beside what it imports.
pub fn python3() -> Command {
    let mut command = Command::new("python3");
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Whether there is a Python to run the other verifier; says so when there is none.
pub fn python() -> bool {
    let found = python3().arg("--version").output().is_ok();
    if !found {
        println!("skipped: python3 not found");
    }
    found
}

/// What `audits/verify` prints as JSON; its exit status agrees with its verdict.
pub fn theirs(arguments: &[String]) -> Outcome {
    let output = python3()
        .arg(audits_verify())
        .args(arguments)
        .arg("--json")
        .output()
        .unwrap();
    let outcome = outcome(&serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        panic!("audits/verify {arguments:?}: {stderr}")
    }));
    let status = if outcome.first.is_none() { 0 } else { 3 };
    assert_eq!(output.status.code(), Some(status), "{arguments:?}");
    outcome
}

/// The outcome in a report of `audits/verify`.
pub fn outcome(report: &Value) -> Outcome {
    let place = |finding: &Value| {
        let rule = finding["rule"].as_str().unwrap();
        (finding["seq"].as_u64().unwrap(), rule.to_owned())
    };
    let first = (!report["first"].is_null()).then(|| place(&report["first"]));
    let verdict = if first.is_some() { "fail" } else { "pass" };
    assert_eq!(report["verdict"], verdict);
    let all = report["findings"].as_array().unwrap();
    Outcome {
        first,
        all: all.iter().map(place).collect(),
    }
}

/// What `audits/verify` says of many cases: an outcome, or the exit status with which it gave up.
pub fn theirs_of_many(cases: &[Case]) -> Vec<Result<Outcome, i64>> {
    let of = |answer: &Value| {
        answer["exit"]
            .as_i64()
            .map_or_else(|| Ok(outcome(answer)), Err)
    };
    answers_of_many(cases).iter().map(of).collect()
}

/// What `audits/verify` prints about many cases, run in one process by `differential.py`.
pub fn answers_of_many(cases: &[Case]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let mut list = String::new();
    for (at, case) in cases.iter().enumerate() {
        let folder = folder.path().join(at.to_string());
        case.write(&folder);
        list += &json!(case.arguments(&folder)).to_string();
        list.push('\n');
    }
    let list_path = folder.path().join("list");
    fs::write(&list_path, list).unwrap();
    let output = python3()
        .arg(repository().join("tests/it/support/differential.py"))
        .arg(audits_verify())
        .arg(&list_path)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "differential.py: {stderr}");
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<_> = answers
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), cases.len());
    answers
}
