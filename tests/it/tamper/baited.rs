//! A file that is changed under an open ledger, or written around the program, is not read, not shown and not built on.

use std::path::Path;

use clover::event::Draft;
use clover::event::PAYLOAD_TYPE;
use clover::event::entry;
use clover::event::payload::Verdict;
use clover::ground::digest::Digest;
use clover::ground::merkle;
use clover::ground::merkle::MemoryTiles;
use clover::ground::sign::Signed;
use clover::ledger::Ledger;
use clover::ledger::LedgerError;
use clover::ledger::RuleName;
use clover::ledger::checkpoint;
use clover::ledger::rulebooks;
use clover::ledger::verify::VerifyOptions;
use clover::workflow::RULEBOOK;
use rusqlite::Connection;
use rusqlite::params;

use super::tables::without_triggers;
use crate::support::ORIGIN;
use crate::support::TestLedger;
use crate::support::ambient;
use crate::support::full;
use crate::support::options;
use crate::support::score;
use crate::support::signer;
use crate::support::start;

fn integrity<T>(found: Result<T, LedgerError>, at: u64) {
    match found.map(drop).unwrap_err() {
        LedgerError::Integrity { seq, .. } => assert_eq!(seq, at),
        other => panic!("{other}"),
    }
}

/// A ledger of 1,100 scores: full tiles, and a right edge.
fn long() -> TestLedger {
    let mut test = TestLedger::with_experiment();
    let scores: Vec<_> = (0..1_100).map(score).collect();
    for batch in scores.chunks(300) {
        test.append(batch).unwrap();
    }
    test
}

fn column(seq: u64) -> i64 {
    i64::try_from(seq).unwrap()
}

fn body(conn: &Connection, seq: u64) -> Vec<u8> {
    let read = "SELECT body FROM entries WHERE seq = ?1";
    conn.query_row(read, [column(seq)], |row| row.get(0))
        .unwrap()
}

/// The body with another score of the same length.
fn flipped(body: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(body.to_vec()).unwrap();
    let at = text.find("\"score_micro\":").unwrap() + "\"score_micro\":".len();
    let mut bytes = text.into_bytes();
    bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
    bytes
}

fn write_body(path: &Path, seq: u64, body: &[u8]) {
    without_triggers(path, |conn| {
        let write = "UPDATE entries SET body = ?1 WHERE seq = ?2";
        conn.execute(write, params![body, column(seq)]).unwrap();
    });
}

#[test]
fn what_is_flipped_under_an_open_ledger_is_not_read() {
    let test = long();
    let (path, ledger) = (test.path(), &test.ledger);
    let all = || ledger.entries(0, ledger.size(), |_| Ok::<_, LedgerError>(()));
    let measured = || ledger.past().measured(0, ledger.size(), |_, _, _| {});
    // In a full tile, in the last full one, and at the edge.
    for seq in [40, 1_020, 1_090] {
        all().unwrap();
        let honest = body(&Connection::open(&path).unwrap(), seq);
        write_body(&path, seq, &flipped(&honest));
        integrity(all(), seq);
        integrity(measured(), seq);
        integrity(ledger.entry(seq), seq);
        let named = |_, _| Ok::<_, LedgerError>(());
        integrity(ledger.events_with(0, ledger.size(), "none", named), seq);
        let exported = ledger.stored(0, ledger.size(), |_| Ok::<_, LedgerError>(()));
        integrity(exported, seq);
        ledger.entry(seq - 1).unwrap().unwrap();
        write_body(&path, seq, &honest);
        all().unwrap();
    }
}

#[test]
fn a_row_taken_out_under_an_open_ledger_is_missed() {
    let test = long();
    let ledger = &test.ledger;
    for seq in [7, 1_101] {
        without_triggers(&test.path(), |conn| {
            let away = "UPDATE entries SET seq = seq + 100000, author_seq = author_seq + 100000 WHERE seq = ?1";
            conn.execute(away, [column(seq)]).unwrap();
        });
        let all = ledger.entries(0, ledger.size(), |_| Ok::<_, LedgerError>(()));
        integrity(all, seq);
        integrity(ledger.entry(seq), seq);
        without_triggers(&test.path(), |conn| {
            let back = "UPDATE entries SET seq = seq - 100000, author_seq = author_seq - 100000 WHERE seq >= 100000";
            conn.execute(back, []).unwrap();
        });
    }
}

/// A tile that bears out a flipped entry is not under the tile above it.
#[test]
fn a_tile_that_goes_with_a_flipped_entry_is_not_believed() {
    let test = long();
    let seq = 40_u64;
    let line = {
        let read = test.ledger.entry(seq).unwrap().unwrap();
        let it = read.stored;
        let mut line = Vec::new();
        let body = flipped(&it.body);
        write_body(&test.path(), seq, &body);
        entry::write_line(
            &mut line,
            seq,
            it.recorded_at,
            &body,
            &it.author,
            &it.signature,
        );
        line
    };
    without_triggers(&test.path(), |conn| {
        let read = "SELECT hashes FROM tiles WHERE id = 0";
        let mut hashes: Vec<u8> = conn.query_row(read, [], |row| row.get(0)).unwrap();
        hashes[40 * 32..41 * 32].copy_from_slice(&merkle::leaf_hash(&line).0);
        let write = "UPDATE tiles SET hashes = ?1 WHERE id = 0";
        conn.execute(write, [hashes]).unwrap();
    });
    // Another process, which has no tile in memory.
    let open = || {
        let pins = test.folder.path().join("pins");
        let later = ambient(start().plus_seconds(3600));
        Ledger::open(&test.path(), later, &RULEBOOK, options(&pins))
    };
    let ledger = open().unwrap();
    integrity(ledger.entry(seq), 0);
    ledger.state_at(100).unwrap_err();
}

/// Appends, without the program, an entry with a checkpoint that the log key signs.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a draft is written where it is signed"
)]
fn write_around(test: &TestLedger, draft: Draft, signature: Option<[u8; 64]>) -> u64 {
    let ledger = &test.ledger;
    let signed = Signed::sign(PAYLOAD_TYPE, draft.to_body().unwrap(), &test.owner);
    let signature = signature.unwrap_or(*signed.signature());
    let seq = ledger.size();
    let at = ledger.state().keyring.recorded_at.unwrap();
    let mut tiles = MemoryTiles::new();
    let mut push = |seq, at, body: &[u8], author: &_, signature: &[u8; 64]| {
        let mut line = Vec::new();
        entry::write_line(&mut line, seq, at, body, author, signature);
        tiles.push(merkle::leaf_hash(&line));
    };
    ledger
        .stored(0, seq, |it| {
            push(it.seq, it.recorded_at, &it.body, &it.author, &it.signature);
            Ok::<_, LedgerError>(())
        })
        .unwrap();
    push(seq, at, signed.body(), &test.owner.id(), &signature);
    let root = tiles.root();
    let origin = ORIGIN.parse::<clover::ground::note::Origin>().unwrap();
    let vkey = ledger.state().keyring.log_key().unwrap().clone();
    let note = checkpoint::sign(origin.key_name(), seq + 1, root, &[(&vkey, &signer(2))]);
    let note = note.unwrap().encode();
    let conn = Connection::open(test.path()).unwrap();
    conn.execute(
        "INSERT INTO entries (seq, author, author_seq, recorded_at, body, signature) VALUES (?1, 1, ?2, ?3, ?4, ?5)",
        params![
            column(seq),
            column(draft.header.author_seq),
            at.micros(),
            signed.body(),
            &signature[..]
        ],
    )
    .unwrap();
    let keep = "INSERT INTO checkpoints (size, note) VALUES (?1, ?2)";
    conn.execute(keep, params![column(seq + 1), note]).unwrap();
    seq
}

/// The owner's next event, as the program would draft it.
fn next(test: &TestLedger) -> Draft {
    let ledger = &test.ledger;
    let last = ledger.entry(ledger.size() - 1).unwrap().unwrap();
    let mut header = last.event.header;
    header.author_seq += 1;
    header.experiment = None;
    Draft {
        header,
        payload: full::note("by hand").payload,
    }
}

#[test]
fn an_entry_that_its_author_did_not_sign_is_neither_shown_nor_built_on() {
    let mut test = long();
    let pin = test.ledger.pin().unwrap().load().unwrap();
    let pins = test.folder.path().join("pins");
    let seq = write_around(&test, next(&test), Some([7; 64]));
    integrity(test.ledger.refresh(), seq);
    integrity(test.append(&[score(5_000)]), seq);
    // It stays so, whoever asks again.
    integrity(test.ledger.refresh(), seq);
    let open = |pins: &Path| {
        let later = ambient(start().plus_seconds(3600));
        Ledger::open(&test.path(), later, &RULEBOOK, options(pins))
    };
    integrity(open(&pins), seq);
    let elsewhere = test.folder.path().join("other-pins");
    integrity(open(&elsewhere), seq);
    assert_eq!(test.ledger.pin().unwrap().load().unwrap(), pin);
    let report = test.verify(&VerifyOptions::default());
    assert_eq!(report.first.unwrap().rule, RuleName::Signature);
}

#[test]
fn an_entry_that_its_author_signed_is_caught_up_with() {
    let mut test = long();
    let seq = write_around(&test, next(&test), None);
    test.ledger.refresh().unwrap();
    assert_eq!(test.ledger.size(), seq + 1);
    test.append(&[score(5_000)]).unwrap();
}

/// A snapshot is believed where this machine wrote or compared it, however well it goes with tree and size.
#[test]
fn a_snapshot_that_another_wrote_is_compared_with_the_entries() {
    let test = long();
    let open = || {
        let pins = test.folder.path().join("pins");
        let later = ambient(start().plus_seconds(3600));
        Ledger::open(&test.path(), later, &RULEBOOK, options(&pins))
    };
    open().unwrap();
    let conn = Connection::open(test.path()).unwrap();
    let read = "SELECT state FROM snapshots WHERE fold = 'custody'";
    let honest: Vec<u8> = conn.query_row(read, [], |row| row.get(0)).unwrap();
    let text = String::from_utf8(honest.clone()).unwrap();
    let forged = text.replacen("\"Ada\"", "\"Eve\"", 1);
    assert_ne!(forged, text);
    let write = "UPDATE snapshots SET state = ?1 WHERE fold = 'custody'";
    conn.execute(write, [forged.into_bytes()]).unwrap();
    match open().unwrap_err() {
        LedgerError::Integrity { found, .. } => {
            assert!(found.contains("a snapshot of custody"), "{found}");
        }
        other => panic!("{other}"),
    }
    conn.execute(write, [honest]).unwrap();
    // Without a mark, and with one of other snapshots, the entries are folded; the state is the same.
    let state = open().unwrap().state().snapshots();
    for file in std::fs::read_dir(test.folder.path().join("pins")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|end| end == "checked") {
            std::fs::remove_file(path).unwrap();
        }
    }
    assert_eq!(open().unwrap().state().snapshots(), state);
}

/// A false snapshot is found whatever version it names, and so is one of no fold: no program wrote either.
#[test]
fn a_false_snapshot_is_found_whatever_it_names() {
    let version = RULEBOOK.version;
    let older = rulebooks::UNNAMED;
    assert!((rulebooks::NEWEST..=version).contains(&RULEBOOK.newest_since));
    let one_older =
        format!("UPDATE snapshots SET rulebook = {older}, state = x'7b7d' WHERE fold = 'custody'");
    let all_older = format!("UPDATE snapshots SET rulebook = {older}, state = x'7b7d'");
    let of_no_fold = format!(
        "INSERT INTO snapshots (fold, rulebook, size, root, state) \
         SELECT 'nobody', {version}, size, root, state FROM snapshots LIMIT 1"
    );
    let of_no_fold_older =
        of_no_fold.replace(&format!("{version}, size"), &format!("{older}, size"));
    let newer_root = format!("UPDATE snapshots SET rulebook = {version} + 1, root = zeroblob(32)");
    let lacking = "DELETE FROM snapshots WHERE fold = 'custody'".to_owned();
    for change in [
        one_older,
        all_older,
        of_no_fold,
        of_no_fold_older,
        newer_root,
        lacking,
    ] {
        let test = TestLedger::with_experiment();
        let honest = test.verify(&VerifyOptions::default());
        assert_eq!(honest.verdict, Verdict::Pass);
        without_triggers(&test.path(), |conn| {
            assert!(conn.execute(&change, []).unwrap() > 0, "{change}");
        });
        let report = test.verify(&VerifyOptions::default());
        assert_eq!(report.verdict, Verdict::Fail, "{change}");
        assert_eq!(report.first.unwrap().rule, RuleName::Snapshot, "{change}");
    }
}

/// Snapshots of a newer program are not read by this one: it says that it did not check them.
#[test]
fn snapshots_of_a_newer_program_are_named_as_not_checked() {
    let test = TestLedger::with_experiment();
    without_triggers(&test.path(), |conn| {
        conn.execute("UPDATE snapshots SET rulebook = rulebook + 1", [])
            .unwrap();
    });
    let report = test.verify(&VerifyOptions::default());
    assert_eq!(report.verdict, Verdict::Pass);
    assert!(
        report.verdict_line().contains("snapshots NOT CHECKED"),
        "{}",
        report.verdict_line()
    );
}

#[test]
fn a_row_before_the_first_is_named_and_stops_appends() {
    for (table, insert) in [
        (
            "entries.seq",
            "INSERT INTO entries (seq, author, author_seq, recorded_at, body, signature) VALUES (-1, 1, 2, 0, x'7b7d', zeroblob(64))",
        ),
        (
            "checkpoints.size",
            "INSERT INTO checkpoints (size, note) VALUES (-5, x'00')",
        ),
    ] {
        let mut test = TestLedger::with_experiment();
        without_triggers(&test.path(), |conn| {
            conn.execute(insert, []).unwrap();
        });
        let report = test.verify(&VerifyOptions::default());
        assert_eq!(report.verdict, Verdict::Fail, "{table}");
        let named = |of: &&clover::ledger::verify::Finding| of.found.contains(table);
        assert!(report.findings.iter().any(|of| named(&of)), "{report:?}");
        let size = test.ledger.size();
        let refused = test.append(&[score(1)]).unwrap_err().to_string();
        assert!(refused.contains(table), "{refused}");
        assert_eq!(test.ledger.size(), size);
        let all = test.ledger.store().integrity().unwrap();
        assert!(all.iter().any(|(_, _, found)| found.contains(table)));
    }
}

/// Kept digests are of what was read, not of what stands under their name.
#[test]
fn a_blob_of_other_bytes_is_not_given() {
    let mut test = TestLedger::with_experiment();
    test.ledger.put_blobs(&[b"honest".to_vec()]).unwrap();
    let digest = Digest::blake3(b"honest");
    let reader = |test: &TestLedger| {
        test.ledger
            .past()
            .blob(&digest)
            .map(|found| found.is_some())
    };
    assert!(reader(&test).unwrap());
    without_triggers(&test.path(), |conn| {
        let write = "UPDATE blobs SET bytes = x'00'";
        conn.execute(write, []).unwrap();
    });
    reader(&test).unwrap_err();
}
