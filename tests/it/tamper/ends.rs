//! Verification comes to an end whatever is in the file, and whatever fails on the way.

use std::io::Cursor;
use std::sync::mpsc;
use std::time::Duration;

use clover::event::entry;
use clover::ground::ambient::AmbientError;
use clover::ledger::LedgerError;
use clover::ledger::verify;
use clover::ledger::verify::EntryLines;
use clover::ledger::verify::VerifyOptions;
use clover::store::CreateOptions;
use clover::workflow::RULEBOOK;
use rusqlite::Connection;

use super::stage::Files;
use super::stage::Outcome;
use super::stage::Scene;
use super::stage::Stage;
use crate::support::TestLedger;
use crate::support::full;
use crate::support::score;

/// What `work` gives; fails when it takes longer than anything here may.
fn in_time<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || done.send(work()).ok());
    wait.recv_timeout(Duration::from_secs(120))
        .unwrap_or_else(|_| panic!("{what}: no end after two minutes"))
}

#[test]
fn a_failure_while_judging_also_stops_the_reader() {
    let mut test = TestLedger::unnamed(CreateOptions::default());
    full::every_kind(&mut test);
    let mut lines = Vec::new();
    test.ledger
        .entries(0, test.ledger.size(), |read| {
            let it = &read.stored;
            let (at, author) = (it.recorded_at, &it.author);
            entry::write_line(&mut lines, it.seq, at, &it.body, author, &it.signature);
            lines.push(b'\n');
            Ok::<_, LedgerError>(())
        })
        .unwrap();
    // More chunks than the queues between reader, workers and judge can hold.
    lines.extend(b"no line\n".repeat(20_000));
    let ambient = test.ambient.clone();
    let failed = in_time("a blob source that fails", move || {
        let source = |_: &_| Err(AmbientError::Entropy("a failure".to_owned()));
        let lines = EntryLines {
            lines: Box::new(Cursor::new(lines)),
            checkpoint: None,
            blobs: Some(&source),
        };
        let options = VerifyOptions::default();
        verify::verify_lines(lines, &options, &RULEBOOK, &ambient, &mut |_, _| {}).is_err()
    });
    assert!(failed);
}

const PAGE: usize = 512;

fn page(db: &[u8], number: usize) -> std::ops::Range<usize> {
    assert!(number > 1 && number * PAGE <= db.len());
    (number - 1) * PAGE..number * PAGE
}

/// Where the child pointers of an interior page stand; none in a leaf.
fn pointers(page: &[u8]) -> Vec<usize> {
    let half = |at: usize| usize::from(u16::from_be_bytes([page[at], page[at + 1]]));
    match page[0] {
        2 | 5 => (0..half(3))
            .map(|cell| half(12 + 2 * cell))
            .chain([8])
            .collect(),
        _ => Vec::new(),
    }
}

fn children(page: &[u8]) -> Vec<usize> {
    let number = |at: usize| u32::from_be_bytes(std::array::from_fn(|byte| page[at + byte]));
    let numbers = pointers(page).into_iter().map(number);
    numbers.map(|child| child as usize).collect()
}

/// Makes of a tree a tower of pages that each name the next one many times over: a handful of pages with more
/// rows than anyone can read.
fn tower(db: &mut [u8], root: usize) -> usize {
    let mut pages = vec![root];
    for at in 0.. {
        let Some(&number) = pages.get(at) else { break };
        pages.extend(children(&db[page(db, number)]));
    }
    pages.truncate(18);
    let top = db[page(db, root)].to_vec();
    for pair in pages.windows(2) {
        let mut level = top.clone();
        for at in pointers(&top) {
            let next = u32::try_from(pair[1]).unwrap();
            level[at..at + 4].copy_from_slice(&next.to_be_bytes());
        }
        let at = page(db, pair[0]);
        db[at].copy_from_slice(&level);
    }
    pages.len()
}

#[test]
fn a_page_under_many_parents_is_not_walked_for_ever() {
    let mut test = TestLedger::unnamed(CreateOptions { page_size: 512 });
    full::every_kind(&mut test);
    let all: Vec<_> = (10..1_010).map(score).collect();
    for batch in all.chunks(10) {
        test.append(batch).unwrap();
    }
    let conn = Connection::open(test.path()).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    let root_of = |name: &str| -> i64 {
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
        conn.query_row(sql, [name], |row| row.get(0)).unwrap()
    };
    let trees = [
        "entries",
        "sqlite_autoindex_entries_1",
        "scores",
        "checkpoints",
        "digest_index",
        "tiles",
        "blobs",
    ]
    .map(|name| (name, usize::try_from(root_of(name)).unwrap()));
    drop(conn);
    let files = Files::copy(&test);
    let scene = Scene::of(&test);
    for (name, root) in trees {
        let mut changed = files.clone();
        let levels = tower(&mut changed.db, root);
        println!("{name}: {levels} levels");
        if levels < 3 {
            continue;
        }
        let (scene, files) = (scene.clone(), files.clone());
        let outcome = in_time(name, move || {
            let stage = Stage::new(&scene);
            let honest = stage.honest(&files);
            stage.put(&changed);
            stage.judge(&honest)
        });
        assert!(
            matches!(outcome, Outcome::Open | Outcome::Verify),
            "{name}: {outcome:?}"
        );
    }
}
