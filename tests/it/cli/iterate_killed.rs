//! An iteration asks its judge about rows that it has no record of. A run that is killed loses half a second of answers at most,
//! one that is asked to stop loses none, and the same command goes on.

use std::collections::BTreeMap;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use clover::event::Payload;
use clover::ground::ambient::Ambient;
use clover::ledger::Ledger;
use clover::ledger::LedgerError;
use clover::ledger::LedgerOptions;

use super::Desk;
use super::gate_ahead::signer;
use super::judge_killed::LOSS_MAX;
use super::judge_killed::now;
use super::killed::Home;
use super::retold;
use crate::support;
use crate::support::verifiers;

/// Gives each row a score of its own after two milliseconds, and notes when it did.
const JUDGE: &str = r#"import json, sys, time
log = open("answered.log", "a")
for line in sys.stdin:
    ask = json.loads(line)
    time.sleep(0.002)
    micro = sum(ask["response"].encode()) % 1000000
    log.write("%d %s/%s\n" % (time.time() * 1e6, ask["policy"], ask["item"]))
    log.flush()
    print('{"id":%d,"score":%.6f}' % (ask["id"], micro / 1e6), flush=True)
"#;

fn started(desk: &Desk) -> Child {
    let words = "iterate score it-retold -- python3 judge.py";
    let words: Vec<&str> = words.split(' ').collect();
    let mut command = Home(desk.folder.path()).command(&words);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// When the program answered about each row, by its own note.
fn answered(desk: &Desk) -> BTreeMap<String, Duration> {
    let text = std::fs::read_to_string(desk.at.join("answered.log")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let lines = lines.map(|(at, row)| (row.to_owned(), Duration::from_micros(at.parse().unwrap())));
    lines.collect()
}

/// Rows with a score of the judge, each with as many as it has.
fn recorded(desk: &Desk) -> BTreeMap<String, usize> {
    let folder = desk.at.join(".clover");
    let options = LedgerOptions {
        log_key: Some(signer(&folder.join("log.key"))),
        ..support::options(&desk.path("state/clover/pins"))
    };
    let (file, ambient) = (folder.join("ledger.db"), Arc::new(Ambient::system()));
    let ledger = Ledger::open(&file, ambient, &clover::workflow::RULEBOOK, options).unwrap();
    let mut rows = BTreeMap::new();
    ledger
        .entries(0, ledger.size(), |read| {
            if let Payload::ScoreRecorded(score) = read.event.payload
                && score.judge.as_str() == "prog"
            {
                let row = format!("{}/{}", score.policy, score.item);
                *rows.entry(row).or_default() += 1;
            }
            Ok::<_, LedgerError>(())
        })
        .unwrap();
    rows
}

fn first_answer(desk: &Desk, before: usize) {
    let start = Instant::now();
    while answered(desk).len() <= before {
        assert!(start.elapsed() < Duration::from_secs(30), "no answer came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_iteration_that_scores_loses_half_a_second_at_most() {
    if !verifiers::python() {
        return;
    }
    let mut desk = retold::unscored(JUDGE);
    let before = recorded(&desk).len();
    // Given a run that asks about some thousand rows, when it is killed, then what it answered until half a second before stands.
    std::fs::remove_file(desk.at.join("answered.log")).unwrap();
    let mut run = started(&desk);
    first_answer(&desk, 0);
    std::thread::sleep(Duration::from_millis(1_100));
    let killed = now();
    run.kill().unwrap();
    run.wait().unwrap();
    let rows = recorded(&desk);
    assert!(rows.len() > before + 100, "{} rows", rows.len());
    for (row, at) in answered(&desk) {
        let is_old = killed.saturating_sub(at) > LOSS_MAX;
        assert!(!is_old || rows.contains_key(&row), "{row} is lost");
    }
    // When the same command is asked to stop, then nothing is lost, and it says so by its code.
    let known = answered(&desk).len();
    let mut run = started(&desk);
    first_answer(&desk, known);
    std::thread::sleep(Duration::from_millis(300));
    let id = run.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(sent.success());
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let stopped = recorded(&desk);
    assert!(stopped.len() > rows.len());
    // When it goes on, then it ends, and no row has two scores.
    let mut run = started(&desk);
    assert!(run.wait().unwrap().success());
    let all = recorded(&desk);
    assert!(all.values().all(|scores| *scores == 1), "a row is doubled");
    assert!(answered(&desk).keys().all(|row| all.contains_key(row)));
    desk.ok("verify");
}
