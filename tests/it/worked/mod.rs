//! `audits/worked`: five histories that a stranger can follow, each with a page, one bundle and one report.
//!
//! Each history is told here by the command line, with simulated data, a fixed clock and fixed keys. What the folders hold is what
//! these stories end in, and the commands of each page run as they stand.

mod pages;
mod patches;
mod printed;
mod seen;
mod stories;

use std::path::Path;
use std::path::PathBuf;

use clover::ground::time::Timestamp;

use crate::cli::Desk;
use crate::cli::Ran;
use crate::support::verifiers;

/// A history, the folder that it fills, and the report that lies beside its bundle.
struct WorkedSample {
    name: &'static str,
    report: &'static str,
    tell: fn() -> Desk,
}

const SAMPLES: [WorkedSample; 5] = [
    WorkedSample {
        name: "accepted-patch",
        report: "report iteration it-1",
        tell: patches::accepted,
    },
    WorkedSample {
        name: "refused-patch",
        report: "report iteration it-1",
        tell: patches::refused,
    },
    WorkedSample {
        name: "failed-audit",
        report: "report estimate arena",
        tell: stories::failed_audit,
    },
    WorkedSample {
        name: "stopped-gate",
        report: "report gate m-1",
        tell: stories::stopped_gate,
    },
    WorkedSample {
        name: "erased-subject",
        report: "report retention",
        tell: stories::erased_subject,
    },
];

/// Files of each folder.
const FILES: [&str; 3] = ["README.md", "audit.clover", "report.md"];
/// A stranger downloads it, and reads all of it.
const BYTES_MAX: u64 = 1_150_000;

fn folder(name: &str) -> PathBuf {
    verifiers::repository().join("audits/worked").join(name)
}

/// Runs a line as it is pasted: words in single quotes stay together.
fn run(desk: &mut Desk, line: &str) -> Ran {
    let mut words = Vec::new();
    for (at, piece) in line.split('\'').enumerate() {
        if at % 2 == 1 {
            words.push(piece);
        } else {
            words.extend(piece.split_whitespace());
        }
    }
    desk.words(&words)
}

/// As [`run`]; each line must end with 0.
fn say(desk: &mut Desk, lines: &[&str]) {
    for line in lines {
        let ran = run(desk, line);
        assert_eq!(ran.code, 0, "{line}\n{}{}", ran.out, ran.err);
    }
}

/// Moves the clock.
fn at(desk: &Desk, time: &str) {
    let time = format!("{time}:00.000000Z");
    desk.clock.set(Timestamp::parse(&time).unwrap());
}

/// A ledger of people who check one another, at the start of a day.
fn founded(origin: &str, keys: &[&str]) -> Desk {
    let mut desk = Desk::new();
    at(&desk, "2026-11-02T09:00");
    let init =
        format!("init --origin {origin} --holder Ada --roles owner,registrar --separation strict");
    say(&mut desk, &[&init]);
    for key in keys {
        say(&mut desk, &[&format!("key new {key}")]);
    }
    desk
}

/// The root over all entries of a bundle, as its reader computes it.
fn root(desk: &mut Desk, bundle: &Path) -> String {
    let bundle = bundle.display().to_string();
    let ran = desk.ok_words(&["verify", &bundle, "--json"]).json();
    ran["checkpoint"]["root"].as_str().unwrap().to_owned()
}

/// A stranger runs the file that ships: the program in it says its verdict.
fn verifies_itself(folder: &Path, name: &str) {
    if !verifiers::python() {
        return;
    }
    let ran = verifiers::python3()
        .arg(folder.join("audit.clover"))
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    let is_verified = out.lines().any(|line| line.starts_with("VERIFIED  "));
    assert!(is_verified, "audits/worked/{name}/audit.clover: {out}{err}");
}

/// The root covers each byte of each entry, and each entry names its blobs by digest. Pages and programs in a bundle are those of
/// the day on which it was made.
fn holds(sample: &WorkedSample) {
    let mut desk = (sample.tell)();
    let (folder, name) = (folder(sample.name), sample.name);
    say(
        &mut desk,
        &[
            "export bundle -o audit.clover",
            &format!("{} -o report.md", sample.report),
        ],
    );
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        for file in &FILES[1..] {
            std::fs::copy(desk.at.join(file), folder.join(file)).unwrap();
        }
    }
    verifies_itself(&folder, name);
    let told = root(&mut desk, Path::new("audit.clover"));
    let kept = root(&mut desk, &folder.join("audit.clover"));
    let again = "UPDATE=1 writes what the story ends in";
    assert_eq!(kept, told, "audits/worked/{name}/audit.clover: {again}");
    let read = |at: &Path| std::fs::read_to_string(at.join("report.md")).unwrap();
    assert!(
        read(&folder) == read(&desk.at),
        "audits/worked/{name}/report.md: {again}"
    );
    let mut found: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, FILES, "{name}");
    let bytes = std::fs::metadata(folder.join("audit.clover")).unwrap();
    assert!(bytes.len() <= BYTES_MAX, "{name}: {} bytes", bytes.len());
}

/// `worked_folders_are`: each folder is what its story ends in.
#[test]
fn worked_folders_are_those_of_the_stories() {
    let results = std::thread::scope(|scope| {
        let each = SAMPLES.iter();
        let threads: Vec<_> = each.map(|of| scope.spawn(|| holds(of))).collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.collect::<Vec<_>>()
    });
    for result in results {
        result.unwrap();
    }
    let listed = std::fs::read_dir(folder("")).unwrap();
    for entry in listed {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let known = name == "README.md" || SAMPLES.iter().any(|of| of.name == name);
        assert!(known, "audits/worked/{name} is made by nobody");
    }
}
