//! The index of kinds: what it lists is what the entries say, a file without it is read and brought up to date, and one that
//! lies is named. Entries of the past are named by position, event id or time.

use rusqlite::Connection;

use super::Desk;
use super::says;
use super::score_line;

/// A ledger whose kinds come in runs of one and of many.
fn ledger() -> Desk {
    let mut desk = Desk::with_ledger();
    for part in 0..3 {
        desk.ok("record note.recorded --data {\"text\":\"one\"}");
        let lines: String = (0..40)
            .map(|item| score_line(&format!("item-{part}-{item}")))
            .collect();
        desk.file("scores.jsonl", &lines);
        desk.ok("append --bulk scores.jsonl --key scorer");
        desk.ok("record note.recorded --data {\"text\":\"two\"}");
        desk.ok("record note.recorded --data {\"text\":\"three\"}");
    }
    desk.ok("verify");
    desk
}

fn sql(desk: &Desk, text: &str) {
    let conn = Connection::open(desk.database()).unwrap();
    conn.execute_batch(text).unwrap();
}

/// The file as it was made before there was an index of kinds.
const BEFORE_INDEX: &str =
    "DROP TABLE kind_runs; DELETE FROM cursors WHERE name = 'kind_runs'; PRAGMA user_version = 1";

fn listed(desk: &mut Desk) -> Vec<String> {
    let all = [
        "log --kind note.recorded",
        "log --kind note.recorded --limit 4",
        "log --kind score.recorded --limit 100",
        "log --kind score.recorded --limit 7 --to 60",
        "log --kind score.recorded --from 20 --limit 50",
        "log --kind score.recorded --from 31 --to 33",
        "log --kind note.recorded --from 6",
        "log --kind note.recorded --from 6 --limit 1",
        "log --kind key.added --author scorer",
        "log --kind score.recorded --author scorer --limit 3",
        "log --kind gate.opened",
        "at 60 -- log --kind note.recorded",
    ];
    let run = |line: &&str| desk.ok(&format!("{line} --json")).out;
    all.iter().map(run).collect()
}

#[test]
fn entries_of_a_kind_are_those_that_a_walk_finds() {
    let mut desk = ledger();
    let entries = desk.ok("log --from 0 --json").json()["data"]["entries"].clone();
    for kind in ["note.recorded", "score.recorded", "key.added"] {
        let of = |found: &serde_json::Value| -> Vec<u64> {
            let all = found.as_array().unwrap().iter();
            let all = all.filter(|entry| entry["body"]["kind"] == kind);
            all.map(|entry| entry["seq"].as_u64().unwrap()).collect()
        };
        let walked = of(&entries);
        assert!(walked.len() > 1, "{kind}");
        for line in ["--limit 1000", "--from 0"] {
            let ran = desk.ok(&format!("log --kind {kind} {line} --json"));
            assert_eq!(of(&ran.json()["data"]["entries"]), walked, "{kind} {line}");
        }
    }
}

#[test]
fn a_file_without_the_index_is_read_as_it_stands_and_indexed_by_the_next_append() {
    let mut desk = ledger();
    let with = listed(&mut desk);
    sql(&desk, BEFORE_INDEX);
    assert_eq!(listed(&mut desk), with);
    desk.ok("verify");
    desk.ok("status");
    let version = |desk: &Desk| -> u32 {
        let conn = Connection::open(desk.database()).unwrap();
        conn.query_row("PRAGMA user_version", [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!(version(&desk), 1);
    desk.ok("record note.recorded --data {\"text\":\"after\"}");
    assert_eq!(version(&desk), 2);
    desk.ok("verify");
    let conn = Connection::open(desk.database()).unwrap();
    let indexed: i64 = conn
        .query_row("SELECT sum(entries) FROM kind_runs", [], |row| row.get(0))
        .unwrap();
    let status = desk.ok("status --json").json();
    assert_eq!(status["data"]["size"], indexed);
}

#[test]
fn an_index_that_lies_is_named_by_what_reads_it_and_by_verify() {
    // What is done to the index, and whether entries of notes can still be listed: an index that points past a cursor says too
    // much and nothing wrong about what it lists.
    let lies = [
        "UPDATE kind_runs SET kind = 'note.recorded' WHERE kind = 'experiment.registered'",
        "DELETE FROM kind_runs WHERE first = (SELECT max(first) FROM kind_runs WHERE kind = 'note.recorded')",
        "UPDATE kind_runs SET entries = entries + 1 WHERE first = (SELECT max(first) FROM kind_runs WHERE kind = 'note.recorded')",
        "UPDATE kind_runs SET first = first - 2 WHERE first = (SELECT min(first) FROM kind_runs WHERE kind = 'note.recorded')",
        "INSERT INTO kind_runs VALUES ('note.recorded', 9000000, 1)",
    ];
    for lie in lies {
        let mut desk = ledger();
        sql(&desk, lie);
        let ran = desk.run("log --kind note.recorded");
        assert_eq!(ran.code, 3, "{lie}\n{}{}", ran.out, ran.err);
        says(&ran, &["index of kinds"]);
        let ran = desk.run("verify");
        assert_eq!(ran.code, 3, "{lie}\n{}{}", ran.out, ran.err);
        assert!(ran.out.contains("note.recorded"), "{lie}\n{}", ran.out);
        // A rule asks no index: what is appended is judged by the entries.
        desk.ok("status");
        desk.ok("record note.recorded --data {\"text\":\"after\"}");
    }
    for lie in [
        "INSERT INTO kind_runs VALUES ('note.forgotten', 3, 1)",
        "UPDATE cursors SET through = through + 1 WHERE name = 'kind_runs'",
        "UPDATE cursors SET through = through - 1 WHERE name = 'kind_runs'",
        "DELETE FROM cursors WHERE name = 'kind_runs'",
        "INSERT INTO cursors VALUES ('other', 1)",
        "PRAGMA user_version = 1",
        "DROP TABLE kind_runs",
    ] {
        let mut desk = ledger();
        sql(&desk, lie);
        let ran = desk.run("verify");
        assert_eq!(ran.code, 3, "{lie}\n{}{}", ran.out, ran.err);
    }
}

#[test]
fn an_entry_of_the_past_is_named_by_position_event_id_or_time() {
    let mut desk = Desk::with_ledger();
    let before = desk.ok("log --json").json()["data"]["entries"].clone();
    let last = before.as_array().unwrap().last().unwrap().clone();
    desk.clock.set(crate::support::start().plus_seconds(86_400));
    desk.ok("record note.recorded --data {\"text\":\"later\"}");
    let seen = |desk: &mut Desk, at: &str| {
        let ran = desk.ok(&format!("at {at} --json -- status"));
        ran.json()["data"]["size"].as_u64().unwrap()
    };
    let size = last["seq"].as_u64().unwrap() + 1;
    assert_eq!(seen(&mut desk, &(size - 1).to_string()), size);
    assert_eq!(seen(&mut desk, last["id"].as_str().unwrap()), size);
    assert_eq!(seen(&mut desk, last["recorded_at"].as_str().unwrap()), size);
    let later = crate::support::start().plus_seconds(2 * 86_400).to_string();
    assert_eq!(seen(&mut desk, &later), size + 1);
    let ran = desk.run("at 1999-12-31 -- status");
    assert_eq!(ran.code, 5, "{}{}", ran.out, ran.err);
    says(&ran, &["no entry was recorded by 1999-12-31"]);
    let ran = desk.run("at yesterday -- status");
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    says(
        &ran,
        &["expected a position, an event id of 64 hex digits, or a time"],
    );
}

/// States that this machine kept give the same answers as the entries, and a file of it that is damaged is passed by.
#[test]
fn states_that_were_kept_are_those_of_the_entries() {
    let mut desk = Desk::with_ledger();
    for part in 0..3 {
        let lines: String = (0..4_000)
            .map(|item| score_line(&format!("item-{part}-{item}")))
            .collect();
        desk.file("scores.jsonl", &lines);
        desk.ok("append --bulk scores.jsonl --key scorer");
    }
    let folder = walk(&desk.path("state")).into_iter().find(|path| {
        path.extension()
            .is_some_and(|extension| extension == "states")
    });
    let folder = folder.unwrap();
    let kept = || {
        std::fs::read_dir(&folder)
            .unwrap()
            .map(|file| file.unwrap().path())
    };
    let asked = ["at 11000 --json -- status", "at 9000 --json -- status"];
    let answers = asked.map(|line| desk.ok(line).out);
    assert!(kept().count() > 1, "{:?}", kept().collect::<Vec<_>>());
    assert_eq!(asked.map(|line| desk.ok(line).out), answers);
    for file in kept() {
        let mut bytes = std::fs::read(&file).unwrap();
        bytes.truncate(bytes.len() - 40);
        std::fs::write(&file, bytes).unwrap();
    }
    assert_eq!(asked.map(|line| desk.ok(line).out), answers);
    // Of another log: its root is none of this one.
    for file in kept() {
        let text = std::fs::read_to_string(&file).unwrap();
        let root = text.lines().nth(1).unwrap().rsplit(' ').next().unwrap();
        let other = text.replacen(root, &"0".repeat(64), 1);
        let other = other.replace("\"scores\":4000", "\"scores\":1");
        std::fs::write(&file, other).unwrap();
    }
    assert_eq!(asked.map(|line| desk.ok(line).out), answers);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(asked.map(|line| desk.ok(line).out), answers);
}

/// Every file and folder below a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(walk(&path));
        }
        found.push(path);
    }
    found
}
