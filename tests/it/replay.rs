//! Folding recorded facts gives the same state however it is cut, stored and read again.

use clover::ledger::Ledger;
use clover::store::Reader;
use clover::store::Table;
use clover::workflow::RULEBOOK;

use crate::support::TestLedger;
use crate::support::ambient;
use crate::support::full;
use crate::support::options;
use crate::support::score;
use crate::support::signer;
use crate::support::start;

type Snapshots = Vec<(&'static str, Vec<u8>)>;

/// A ledger with every kind, and the live state after each of its batches.
fn every_kind() -> (TestLedger, Vec<(u64, Snapshots)>) {
    let mut test = TestLedger::unnamed(clover::store::CreateOptions::default());
    full::every_kind(&mut test);
    // One at a time, so that there is a live state at every size from here on.
    let mut live = vec![(test.ledger.size(), test.ledger.state().snapshots())];
    for n in 100..120 {
        test.append(&[score(n)]).unwrap();
        live.push((test.ledger.size(), test.ledger.state().snapshots()));
    }
    (test, live)
}

fn read_only(test: &TestLedger) -> Ledger {
    let mut options = options(&test.folder.path().join("pins"));
    options.log_key = Some(signer(test.log_key));
    let ambient = ambient(start().plus_seconds(60));
    Ledger::open(&test.path(), ambient, &RULEBOOK, options).unwrap()
}

#[test]
fn state_at_every_size_is_the_live_state_of_that_size() {
    let (test, live) = every_kind();
    for (size, snapshots) in &live {
        let state = test.ledger.state_at(*size).unwrap();
        assert_eq!(state.size, *size);
        assert_eq!(&state.snapshots(), snapshots, "at {size}");
    }
    // Beyond the head is the head.
    let state = test.ledger.state_at(u64::MAX).unwrap();
    assert_eq!(state.snapshots(), test.ledger.state().snapshots());
    assert_eq!(test.ledger.state_at(0).unwrap().snapshots(), {
        clover::ledger::State::new(&RULEBOOK).snapshots()
    });
}

#[test]
fn the_fold_of_a_prefix_and_then_the_rest_is_the_fold_of_the_whole() {
    // The stored snapshot is a prefix: with it, and with it taken away, opening gives one state.
    let (mut test, _) = every_kind();
    let batch: Vec<_> = (200..1_400).map(score).collect();
    for part in batch.chunks(300) {
        test.append(part).unwrap();
    }
    test.append(&[score(2_000), score(2_001)]).unwrap();
    let live = test.ledger.state().snapshots();
    let (size, root) = (test.ledger.size(), test.ledger.root());
    let custody = test.ledger.store().reader().snapshot("custody").unwrap();
    let prefix = custody.unwrap().size;
    assert!(prefix > 1_000 && prefix < size, "{prefix} of {size}");
    let with = read_only(&test);
    assert_eq!((with.size(), with.root()), (size, root));
    assert_eq!(with.state().snapshots(), live);
    drop(with);
    // The same at any other cut: the state of each size, stored as the snapshot, is a prefix that opens.
    let conn = rusqlite::Connection::open(test.path()).unwrap();
    for cut in [1, 2, 9, 27, 255, 256, 257, 700, size - 1, size] {
        let state = test.ledger.state_at(cut).unwrap();
        let root = test.ledger.root_at(cut).unwrap();
        for (name, bytes) in state.snapshots() {
            conn.execute(
                "UPDATE snapshots SET size = ?1, root = ?2, state = ?3 WHERE fold = ?4",
                rusqlite::params![i64::try_from(cut).unwrap(), &root.0[..], bytes, name],
            )
            .unwrap();
        }
        let opened = read_only(&test);
        assert_eq!(
            (opened.size(), opened.root()),
            (size, test.ledger.root()),
            "cut at {cut}"
        );
        assert_eq!(opened.state().snapshots(), live, "cut at {cut}");
        test.check_all();
    }
    conn.execute("DELETE FROM snapshots", []).unwrap();
    let without = read_only(&test);
    assert_eq!(without.state().snapshots(), live);
    assert_eq!(without.root(), root);
}

#[test]
fn a_reopened_ledger_is_the_one_that_was_closed() {
    let (test, _) = every_kind();
    let live = test.ledger.state().snapshots();
    let (size, root) = (test.ledger.size(), test.ledger.root());
    let mut test = test.reopen().unwrap();
    assert_eq!((test.ledger.size(), test.ledger.root()), (size, root));
    assert_eq!(test.ledger.state().snapshots(), live);
    test.append(&[score(500)]).unwrap();
    test.check_all();
}

/// Digest index, read models and tiles as they stand.
fn derived(reader: Reader<'_>) -> (Vec<(String, u64)>, Vec<u64>, u64) {
    let (mut index, mut after) = (Vec::new(), None);
    loop {
        let page = reader.index_page(after, 100).unwrap();
        after = page.last().map(|(digest, _)| *digest);
        let end = page.len() < 100;
        index.extend(page.into_iter().map(|(digest, seq)| (digest.to_hex(), seq)));
        if end {
            break;
        }
    }
    let rows = Table::ALL.map(|table| reader.row_count(table).unwrap());
    (index, rows.to_vec(), reader.tile_count().unwrap())
}

#[test]
fn what_is_derived_from_the_entries_is_the_same_when_built_again() {
    let (mut test, _) = every_kind();
    let batch: Vec<_> = (200..700).map(score).collect();
    test.append(&batch).unwrap();
    test.append(&[score(9_000)]).unwrap();
    test.check_all();
    // The same events, submitted one by one to a second ledger with the same keys and clock.
    let mut second = TestLedger::unnamed(clover::store::CreateOptions::default());
    second.ledger.set_next_log_key(signer(full::NEXT_LOG_KEY));
    let reader = test.ledger.store().reader();
    let mut blobs = Vec::new();
    reader
        .blobs(|_, bytes| {
            blobs.push(bytes.to_vec());
            Ok::<_, clover::store::StoreError>(())
        })
        .unwrap();
    second.ledger.put_blobs(&blobs).unwrap();
    let mut sizes = Vec::new();
    reader
        .checkpoints(0, |stored| {
            sizes.push(stored.size);
            Ok::<_, clover::store::StoreError>(())
        })
        .unwrap();
    for (from, to) in sizes.iter().zip(&sizes[1..]) {
        let mut events = Vec::new();
        reader
            .entries(*from, *to, |it| {
                events.push(clover::ledger::SignedEvent::new(
                    it.body,
                    it.author,
                    it.signature,
                ));
                Ok::<_, clover::store::StoreError>(())
            })
            .unwrap();
        let last = reader.entry(*from).unwrap().unwrap().recorded_at;
        second.clock.set(last);
        second.ledger.submit(events).unwrap();
    }
    assert_eq!(second.ledger.size(), test.ledger.size());
    assert_eq!(
        second.ledger.root(),
        test.ledger.root(),
        "byte for byte the same log"
    );
    assert_eq!(
        second.ledger.state().snapshots(),
        test.ledger.state().snapshots()
    );
    let (one, two) = (
        derived(test.ledger.store().reader()),
        derived(second.ledger.store().reader()),
    );
    assert_eq!(one, two);
    second.log_key = full::NEXT_LOG_KEY;
    second.check_all();
}

#[test]
fn an_index_that_lags_is_filled_when_it_is_needed() {
    // A large batch leaves its digests to a later one; nothing is forgotten in between, here or in another
    // process.
    let mut test = TestLedger::with_experiment();
    let batch: Vec<_> = (0..5_000).map(score).collect();
    let appended = test.append(&batch).unwrap();
    let through = |test: &TestLedger| test.ledger.store().reader().index_through().unwrap();
    assert!(through(&test) < test.ledger.size(), "the index lags");
    test.check_all();
    assert_eq!(
        test.ledger.find(appended[4_321].id).unwrap(),
        Some(appended[4_321].seq)
    );
    let test2 = read_only(&test);
    assert_eq!(
        test2.find(appended[4_321].id).unwrap(),
        Some(appended[4_321].seq)
    );
    drop(test2);
    let mut test = test.reopen().unwrap();
    assert!(
        test.append(&batch[4_000..4_100])
            .unwrap()
            .iter()
            .all(|it| it.already)
    );
    let mut with_ref = score(9_999);
    with_ref.refs = vec![appended[17].id];
    test.append(&[with_ref]).unwrap();
    assert_eq!(through(&test), test.ledger.size(), "a reference fills it");
    test.check_all();
}
