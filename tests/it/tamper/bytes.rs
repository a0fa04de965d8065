//! Every byte of every file, changed by XOR 0x01 and by XOR 0xff.

use std::time::Instant;

use clover::event::payload::Role;
use clover::event::payload::Verdict;
use clover::event::payload::custody::Separation;
use clover::ground::note::SignedCheckpoint;
use clover::ledger::verify::VerifyOptions;
use clover::store::CreateOptions;
use rayon::prelude::*;

use super::stage::Counts;
use super::stage::Files;
use super::stage::Scene;
use super::stage::Stage;
use super::stage::judge_all;
use super::stage::slow;
use crate::support::TestLedger;
use crate::support::forge;
use crate::support::full;

const FLIPS: [u8; 2] = [0x01, 0xff];
/// How many places of a file the default run changes, besides its header.
const PLACES: usize = 150;

/// A ledger on pages of 512 bytes with what `tell` tells it.
fn on_small_pages(tell: impl FnOnce(&mut TestLedger)) -> TestLedger {
    let layout = CreateOptions { page_size: 512 };
    let mut test = TestLedger::unnamed(layout);
    tell(&mut test);
    test.check_all();
    test
}

/// A ledger of which every byte can be changed.
fn small() -> TestLedger {
    on_small_pages(|test| {
        full::few_kinds(test);
    })
}

/// A ledger with every kind.
fn large() -> TestLedger {
    on_small_pages(full::every_kind)
}

/// The places of a file that are changed in this run.
fn places(len: usize, header: usize) -> Vec<usize> {
    let stride = (len / PLACES) | 1;
    (0..len)
        .filter(|at| slow() || *at < header || at.is_multiple_of(stride))
        .collect()
}

/// Changes `of(files)` at every place, and judges.
fn sweep(
    what: &str,
    test: &TestLedger,
    files: &Files,
    header: usize,
    of: impl Fn(&mut Files) -> &mut Vec<u8> + Sync,
) {
    let len = of(&mut files.clone()).len();
    change_each(what, test, files, &places(len, header), of);
}

/// Changes `of(files)` at these places, and judges.
fn change_each(
    what: &str,
    test: &TestLedger,
    files: &Files,
    places: &[usize],
    of: impl Fn(&mut Files) -> &mut Vec<u8> + Sync,
) {
    let began = Instant::now();
    let len = of(&mut files.clone()).len();
    let changes: Vec<_> = places
        .iter()
        .flat_map(|at| FLIPS.map(|flip| (*at, flip)))
        .collect();
    eprintln!("{what}: {len} bytes, {} changes", changes.len());
    let change = |stage: &Stage, (at, flip): &(usize, u8)| {
        let mut files = files.clone();
        of(&mut files)[*at] ^= flip;
        stage.put(&files);
    };
    let name = |(at, flip): &(usize, u8)| format!("byte {at} ^ {flip:#04x}");
    let counts = judge_all(&Scene::of(test), files, &changes, change, name);
    eprintln!("{what}: {:.1} s", began.elapsed().as_secs_f64());
    counts.finish(what);
}

/// Writes the log back into the database.
fn checkpointed(test: &TestLedger) -> Files {
    let conn = rusqlite::Connection::open(test.path()).unwrap();
    let busy: i64 = conn
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .unwrap();
    assert_eq!(busy, 0);
    let files = Files::copy(test);
    assert!(files.wal.is_none());
    files
}

#[test]
fn every_byte_of_the_database() {
    let test = small();
    let files = checkpointed(&test);
    sweep("ledger.db", &test, &files, 100, |files| &mut files.db);
}

#[test]
fn some_bytes_of_the_database_of_a_ledger_with_every_kind() {
    let test = large();
    let files = checkpointed(&test);
    let stride = (3 * files.db.len() / PLACES) | 1;
    let places: Vec<usize> = (0..files.db.len()).step_by(stride).collect();
    change_each("ledger.db", &test, &files, &places, |files| &mut files.db);
}

#[test]
fn every_byte_of_the_wal_of_an_uncheckpointed_ledger() {
    let test = small();
    let files = Files::copy(&test);
    sweep("ledger.db-wal", &test, &files, 56, |files| {
        files.wal.as_mut().unwrap()
    });
    sweep("ledger.db beside its wal", &test, &files, 0, |files| {
        &mut files.db
    });
}

#[test]
fn every_byte_of_the_pin() {
    let test = small();
    let files = checkpointed(&test);
    sweep("the pin", &test, &files, usize::MAX, |files| &mut files.pin);
}

#[test]
fn every_byte_of_a_blob() {
    let test = small();
    let files = checkpointed(&test);
    for blob in full::blobs() {
        // A blob of 700 bytes continues on an overflow page: its last 100 bytes are found there.
        let part = &blob[blob.len() - blob.len().min(100)..];
        // A page that was split keeps dead copies of what moved away: all copies are changed alike.
        let places: Vec<usize> = files
            .db
            .windows(part.len())
            .enumerate()
            .filter_map(|(at, it)| (it == part).then_some(at))
            .collect();
        assert!(!places.is_empty(), "the blob stands in the file");
        let len = part.len();
        let step = if slow() { 1 } else { 7 };
        let changes: Vec<_> = (0..len)
            .step_by(step)
            .flat_map(|at| FLIPS.map(|flip| (at, flip)))
            .collect();
        let change = |stage: &Stage, (at, flip): &(usize, u8)| {
            let mut changed = files.clone();
            for place in &places {
                changed.db[place + at] ^= flip;
            }
            stage.put(&changed);
        };
        let name = |(at, _): &(usize, u8)| format!("byte {at} of a blob");
        let counts: Counts = judge_all(&Scene::of(&test), &files, &changes, change, name);
        assert!(!counts.classes.contains_key("harmless and identical"));
        counts.finish("a blob");
    }
}

#[test]
fn every_byte_of_an_export_and_its_checkpoint() {
    let mut ledger = forge::Forge::new(Separation::Solo, &Role::ALL);
    let owner = crate::support::signer(1);
    for n in 0..4 {
        ledger.say(&owner, full::note(&format!("note {n}")).payload, None);
    }
    let (jsonl, head) = (ledger.jsonl(), ledger.checkpoint().encode());
    let checkpoint = || SignedCheckpoint::parse(&head).unwrap();
    let options = VerifyOptions::default();
    let verdict = |jsonl: &[u8], checkpoint| {
        let report = forge::verify_jsonl(jsonl, Some(checkpoint), &options);
        (report.verdict, report.root)
    };
    assert_eq!(verdict(&jsonl, checkpoint()).0, Verdict::Pass);
    let step = if slow() { 1 } else { 5 };
    let last = jsonl.len() - 1;
    let survivors: Vec<_> = (0..jsonl.len())
        .into_par_iter()
        .step_by(step)
        .flat_map_iter(|at| FLIPS.map(|flip| (at, flip)))
        .filter(|(at, flip)| {
            let mut changed = jsonl.clone();
            changed[*at] ^= flip;
            verdict(&changed, checkpoint()).0 == Verdict::Pass
        })
        .collect();
    assert_eq!(
        survivors,
        [],
        "of {} bytes, the last at {last}",
        jsonl.len()
    );
    for at in 0..head.len() {
        for flip in FLIPS {
            let mut changed = head.clone();
            changed[at] ^= flip;
            if let Ok(parsed) = SignedCheckpoint::parse(&changed) {
                assert_eq!(verdict(&jsonl, parsed).0, Verdict::Fail, "byte {at}");
            }
        }
    }
}

#[test]
fn a_walk_over_a_damaged_table_comes_to_an_end() {
    // Inner pages of a b-tree whose keys are out of order: the next checkpoint after 25 is 25 again.
    let test = if slow() { small() } else { large() };
    let files = checkpointed(&test);
    let scene = Scene::of(&test);
    let inner: Vec<_> = (0..files.db.len() / 512)
        .filter(|page| files.db[page * 512 + if *page == 0 { 100 } else { 0 }] == 5)
        .collect();
    assert!(!inner.is_empty());
    let changes: Vec<_> = inner
        .iter()
        .flat_map(|page| page * 512 + 400..page * 512 + 512)
        .filter(|at| files.db[*at] != 0)
        .map(|at| (at, 0x01))
        .collect();
    let stride = if slow() {
        1
    } else {
        changes.len() / PLACES + 1
    };
    let changes: Vec<_> = changes.into_iter().step_by(stride).collect();
    let change = |stage: &Stage, (at, flip): &(usize, u8)| {
        let mut changed = files.clone();
        changed.db[*at] ^= flip;
        stage.put(&changed);
    };
    let name = |(at, _): &(usize, u8)| format!("byte {at}");
    judge_all(&scene, &files, &changes, change, name).finish("inner pages");
}
