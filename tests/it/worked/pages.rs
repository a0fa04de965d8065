//! The pages of `audits/worked` run as they stand, from a copy of each folder: with `clover`, with Python alone, and with
//! `sha256sum` and `openssl` alone.
//!
//! In a block of `console` a line that begins with `$` is a command; what follows is what it prints first.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::FILES;
use super::SAMPLES;
use super::folder;
use crate::cli::copy_tree;
use crate::support::child;
use crate::support::verifiers;

/// A command of a page, and the lines that it prints first.
struct PastedCommand {
    command: String,
    lines: Vec<String>,
}

fn commands(page: &str) -> Vec<PastedCommand> {
    let mut found: Vec<PastedCommand> = Vec::new();
    let mut is_console = false;
    for line in page.lines() {
        if let Some(info) = line.strip_prefix("```") {
            is_console = info == "console";
        } else if let (true, Some(command)) = (is_console, line.strip_prefix("$ ")) {
            found.push(PastedCommand {
                command: command.to_owned(),
                lines: Vec::new(),
            });
        } else if is_console {
            found.last_mut().unwrap().lines.push(line.to_owned());
        }
    }
    found
}

/// Whether a command asks for a program that is not here.
fn is_missing(command: &str) -> bool {
    ["unzip", "openssl", "sha256sum", "python3"]
        .iter()
        .filter(|program| {
            command.contains(**program) || **program == "openssl" && command.contains("verify.sh")
        })
        .any(|program| Command::new(program).arg("--help").output().is_err())
}

/// The verdict of the shell with the number of entries and the root of another verdict.
fn of_same_log(line: &str, verdict: &str) -> String {
    let count = verdict.split_whitespace().nth(1).unwrap();
    let root = |text: &str| {
        let (_, rest) = text.split_once("root ").unwrap();
        rest.split(' ').next().unwrap().to_owned()
    };
    let (_, rest) = line.split_once(" entries of ").unwrap();
    let rest = rest.replace(&root(line), &root(verdict));
    format!("VERIFIED  {count} of {count} entries of {rest}")
}

/// Runs the commands of a page one after the other; answers with the page as it would have to say it.
fn follow(name: &str) -> (String, String) {
    let temporary = tempfile::tempdir().unwrap();
    let here = temporary.path().join(name);
    copy_tree(&folder(name), &here);
    let home = temporary.path().join("home");
    std::fs::create_dir_all(&home).unwrap();
    let binaries = Path::new(env!("CARGO_BIN_EXE_clover")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let variables = BTreeMap::from([
        ("CLOVER", verifiers::repository().display().to_string()),
        ("HOME", home.display().to_string()),
        ("PATH", path),
        ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
    ]);
    let page = std::fs::read_to_string(here.join(FILES[0])).unwrap();
    let (mut said, mut ran, mut verdict) = (page.clone(), 0, String::new());
    for of in commands(&page) {
        if is_missing(&of.command) {
            println!("skipped: {name}: $ {}: a program is not here", of.command);
            continue;
        }
        // OpenSSL starts twice for each entry: a short history is checked each time, all of them at length. What is not run
        // still has to name the entries and the root that `clover verify` found.
        if of.command.contains("verify.sh") && !(child::slow() || name == "erased-subject") {
            for line in &of.lines {
                said = said.replacen(line.as_str(), &of_same_log(line, &verdict), 1);
            }
            continue;
        }
        let output = Command::new("sh")
            .args(["-c", &of.command])
            .current_dir(&here)
            .env_clear()
            .envs(&variables)
            .output()
            .unwrap();
        ran += 1;
        let out = String::from_utf8(output.stdout).unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{name}: $ {}\n{out}{err}",
            of.command
        );
        if verdict.is_empty() {
            out.lines()
                .next()
                .unwrap_or_default()
                .clone_into(&mut verdict);
        }
        let mut printed = out.lines();
        for line in &of.lines {
            let first = printed.next().unwrap_or_default();
            if line != "…" {
                said = said.replacen(line.as_str(), first.trim_end(), 1);
            }
        }
    }
    assert!(ran >= 5, "{name}: {ran} commands");
    (page, said)
}

#[test]
fn pages_of_worked_samples_run_as_they_stand() {
    if !verifiers::python() {
        return;
    }
    let read = std::thread::scope(|scope| {
        let threads = SAMPLES.map(|of| (of.name, scope.spawn(move || follow(of.name))));
        threads.map(|(name, thread)| (name, thread.join().unwrap()))
    });
    for (name, (page, said)) in read {
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(folder(name).join(FILES[0]), &said).unwrap();
        } else {
            assert!(
                page == said,
                "audits/worked/{name}/README.md: UPDATE=1 writes what is printed:\n{said}"
            );
        }
    }
}

/// A page says what happened, who did what, and one question that whoever reads it can answer.
#[test]
fn pages_of_worked_samples_say_what_a_stranger_needs() {
    for of in SAMPLES {
        let page = std::fs::read_to_string(folder(of.name).join(FILES[0])).unwrap();
        for part in [
            "## What happened",
            "## Who did what",
            "## Check it",
            "## Look at it",
            "## A question",
            "clover verify audit.clover",
            "python3 $CLOVER/audits/verify audit.clover | tail -1",
            "sh bundle/verify.sh",
        ] {
            assert!(page.contains(part), "{}: {part}", of.name);
        }
    }
}
