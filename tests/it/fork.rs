//! Copies that went their own way, files put back, and handles that do not know of each other.

use std::path::Path;

use clover::event::Kind;
use clover::event::payload::Role;
use clover::event::payload::Roles;
use clover::event::payload::Verdict;
use clover::event::payload::custody::Separation;
use clover::ground::note::SignedCheckpoint;
use clover::ground::sign::Signer;
use clover::ledger::CreateLedger;
use clover::ledger::KindQuery;
use clover::ledger::Ledger;
use clover::ledger::LedgerError;
use clover::ledger::RuleName;
use clover::ledger::error::Divergence;
use clover::ledger::verify;
use clover::ledger::verify::First;
use clover::ledger::verify::Report;
use clover::ledger::verify::VerifyOptions;
use clover::session::listing;
use clover::store::CreateOptions;
use clover::store::OpenOptions;
use clover::store::Store;
use clover::workflow::RULEBOOK;

use crate::support::ORIGIN;
use crate::support::TestLedger;
use crate::support::ambient;
use crate::support::full;
use crate::support::options;
use crate::support::score;
use crate::support::signer;
use crate::support::start;

/// A handle of its own on a ledger file.
fn open(db: &Path, pins: &Path) -> Result<Ledger, LedgerError> {
    let ambient = ambient(start().plus_seconds(60));
    Ledger::open(db, ambient, &RULEBOOK, options(pins))
}

/// Copies the ledger's files as they lie, the log beside the database included.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for name in ["ledger.db", "ledger.db-wal"] {
        std::fs::remove_file(to.join(name)).ok();
        if from.join(name).exists() {
            std::fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
    std::fs::remove_file(to.join("ledger.db-shm")).ok();
    std::fs::create_dir_all(to.join("pins")).unwrap();
    for pin in std::fs::read_dir(from.join("pins")).unwrap() {
        let pin = pin.unwrap().path();
        std::fs::copy(&pin, to.join("pins").join(pin.file_name().unwrap())).unwrap();
    }
}

fn note(words: &str) -> [clover::ledger::Command; 1] {
    [full::note(words)]
}

fn against(db: &Path, outside: &SignedCheckpoint) -> Report {
    let store = Store::open(db, OpenOptions::default()).unwrap();
    let options = VerifyOptions {
        against: vec![("the pin".to_owned(), outside.clone())],
        ..VerifyOptions::default()
    };
    verify::verify_store(
        &store,
        &options,
        &RULEBOOK,
        &ambient(start()),
        &mut |_, _| {},
    )
    .unwrap()
}

#[test]
fn yesterdays_copy_is_refused_against_todays_pin() {
    let mut test = TestLedger::with_experiment();
    test.append(&[score(1)]).unwrap();
    let yesterday = test.folder.path().join("yesterday");
    copy(test.folder.path(), &yesterday);
    test.append(&[score(2)]).unwrap();
    test.append(&[score(3), score(4)]).unwrap();
    let pin = test.ledger.pin().unwrap().load().unwrap().unwrap();
    let TestLedger { folder, ledger, .. } = test;
    drop(ledger);
    let folder = folder.path();

    // In place of today's, and where it lies: today's pin knows better.
    let refused = open(&yesterday.join("ledger.db"), &folder.join("pins")).unwrap_err();
    let expected = Divergence::RolledBack {
        pinned: 6,
        found: 3,
    };
    match &refused {
        LedgerError::Diverged(found) => assert_eq!(*found, expected),
        other => panic!("{other}"),
    }
    assert!(refused.to_string().starts_with("rolled_back: 6 entries"));
    // Under its own pin it is a valid prefix: nothing can tell.
    assert_eq!(
        open(&yesterday.join("ledger.db"), &yesterday.join("pins"))
            .unwrap()
            .size(),
        3
    );
    let report = against(&yesterday.join("ledger.db"), &pin);
    assert_eq!(report.verdict, Verdict::Fail);
    assert_eq!(report.divergence.unwrap().as_str(), "rolled_back");
    assert_eq!(
        report.first,
        Some(First {
            seq: 3,
            rule: RuleName::Size
        })
    );
    assert!(
        report
            .verdict_line()
            .starts_with("FAILED  rolled_back: 1 finding")
    );
    // A fresh ledger in place of the old one is refused too.
    let owner = signer(1);
    let create = CreateLedger {
        origin: ORIGIN.parse().unwrap(),
        holder: "Ada".parse().unwrap(),
        human: true,
        roles: Roles::new(Role::ALL).unwrap(),
        separation: Separation::Solo,
        rulebook: clover::ledger::rulebooks::NEWEST,
        owner: &owner,
        layout: CreateOptions::default(),
    };
    let fresh = folder.join("fresh.db");
    let made = Ledger::create(
        &fresh,
        create,
        ambient(start()),
        &RULEBOOK,
        options(&folder.join("pins")),
    );
    assert!(matches!(
        made.unwrap_err(),
        LedgerError::Diverged(Divergence::RolledBack { found: 0, .. })
    ));
    assert!(!fresh.exists(), "no file is left behind");
}

#[test]
fn two_copies_that_went_on_are_a_fork() {
    let mut test = TestLedger::with_experiment();
    let other = test.folder.path().join("other");
    copy(test.folder.path(), &other);
    test.append(&[score(1)]).unwrap();
    let mut forked = open(&other.join("ledger.db"), &other.join("pins")).unwrap();
    forked.append(&[score(2)], &signer(1)).unwrap();
    forked.append(&[score(3)], &signer(1)).unwrap();
    let pin = test.ledger.pin().unwrap().load().unwrap().unwrap();
    drop(forked);
    for (db, pins, size) in [
        (other.join("ledger.db"), test.folder.path().join("pins"), 3),
        (test.path(), other.join("pins"), 4),
    ] {
        match open(&db, &pins).unwrap_err() {
            LedgerError::Diverged(Divergence::Forked { size: found, .. }) => {
                assert_eq!(found, size);
            }
            // The shorter copy lies behind the longer one's pin; it cannot show the root it never had.
            LedgerError::Diverged(Divergence::RolledBack { pinned, .. }) => {
                assert_eq!((size, pinned), (4, 4));
            }
            other => panic!("{other}"),
        }
    }
    let report = against(&other.join("ledger.db"), &pin);
    assert_eq!(report.divergence.unwrap().as_str(), "forked");
    assert_eq!(
        report.first,
        Some(First {
            seq: 2,
            rule: RuleName::Root
        })
    );
    // Both heads are signed by the one log key: together they are the proof.
    let mut forked = open(&other.join("ledger.db"), &other.join("pins")).unwrap();
    let theirs = forked.checkpoint_at(3).unwrap().unwrap();
    let key = forked.state().keyring.log_key().unwrap().key().clone();
    theirs.verify(std::slice::from_ref(&key)).unwrap();
    pin.verify(std::slice::from_ref(&key)).unwrap();
    assert_eq!(
        clover::ground::note::compare(pin.checkpoint(), theirs.checkpoint()),
        clover::ground::note::Comparison::Fork
    );
    forked.refresh().unwrap();
}

#[test]
fn a_ledger_with_its_own_keys_under_the_same_name_is_forged() {
    let mut test = TestLedger::with_experiment();
    test.append(&[score(1)]).unwrap();
    let pin = test.ledger.pin().unwrap().load().unwrap().unwrap();
    let forged = test.folder.path().join("forged.db");
    let owner = signer(21);
    let create = CreateLedger {
        origin: ORIGIN.parse().unwrap(),
        holder: "Ada".parse().unwrap(),
        human: true,
        roles: Roles::new(Role::ALL).unwrap(),
        separation: Separation::Solo,
        rulebook: clover::ledger::rulebooks::NEWEST,
        owner: &owner,
        layout: CreateOptions::default(),
    };
    let mut own = options(&test.folder.path().join("forged-pins"));
    own.log_key = Some(signer(22));
    let mut ledger = Ledger::create(&forged, create, ambient(start()), &RULEBOOK, own).unwrap();
    for n in 0..5 {
        ledger.append(&note(&format!("note {n}")), &owner).unwrap();
    }
    drop(ledger);
    // Alone it is self-consistent, and says that nobody vouched for it.
    let store = Store::open(&forged, OpenOptions::default()).unwrap();
    let alone = verify::verify_store(
        &store,
        &VerifyOptions::default(),
        &RULEBOOK,
        &ambient(start()),
        &mut |_, _| {},
    )
    .unwrap();
    assert_eq!(alone.verdict, Verdict::Pass);
    assert!(alone.verdict_line().contains("identity NOT CHECKED"));
    let mut reading = options(&test.folder.path().join("pins"));
    reading.log_key = None;
    let refused = Ledger::open(&forged, ambient(start()), &RULEBOOK, reading).unwrap_err();
    assert!(
        matches!(
            refused,
            LedgerError::Diverged(Divergence::ForeignKey { size: 3 })
        ),
        "{refused}"
    );
    let report = against(&forged, &pin);
    assert_eq!(report.verdict, Verdict::Fail);
    assert_eq!(report.divergence.unwrap().as_str(), "forged");
    assert!(report.verdict_line().starts_with("FAILED  forged"));
    // With the wrong log key at hand it does not open to be written.
    let wrong = open(&forged, &test.folder.path().join("forged-pins")).unwrap_err();
    assert!(matches!(wrong, LedgerError::LogKey(_)), "{wrong}");
}

#[test]
fn two_handles_in_one_process_never_fork() {
    let mut test = TestLedger::with_experiment();
    let pins = test.folder.path().join("pins");
    let mut other = open(&test.path(), &pins).unwrap();
    let owner = signer(1);
    let mut seqs = Vec::new();
    for round in 0..20_u64 {
        let batch: Vec<_> = (0..=round % 3).map(|n| score(round * 10 + n)).collect();
        let first = test.append(&batch).unwrap();
        // The same commands through the other handle are known; new ones are appended after.
        let mut again = batch.clone();
        again.push(score(round * 10 + 5));
        let second = other.append(&again, &owner).unwrap();
        for (a, b) in first.iter().zip(&second) {
            assert_eq!((a.seq, a.id), (b.seq, b.id));
            assert!(!a.already && b.already);
        }
        seqs.extend(first.iter().map(|it| it.seq));
        seqs.push(second.last().unwrap().seq);
        assert!(!second.last().unwrap().already);
    }
    assert_eq!(seqs, (2..2 + seqs.len() as u64).collect::<Vec<_>>());
    test.ledger.refresh().unwrap();
    assert_eq!(test.ledger.root(), other.root());
    assert_eq!(test.ledger.state().snapshots(), other.state().snapshots());
    test.check_all();
}

#[test]
fn a_handle_lists_what_stands_under_its_own_head() {
    let mut test = TestLedger::with_experiment();
    let pins = test.folder.path().join("pins");
    test.append(&[score(0), score(1)]).unwrap();
    let mut other = open(&test.path(), &pins).unwrap();
    let of = KindQuery {
        kind: Kind::ScoreRecorded,
        takes: &|_| true,
    };
    let listed = |ledger: &Ledger| {
        let newest = listing::newest(ledger, &of, u64::MAX, 100).unwrap();
        let mut all = 0;
        listing::each::<LedgerError>(ledger, &of, (0, u64::MAX), |_| {
            all += 1;
            Ok(true)
        })
        .unwrap();
        assert_eq!(newest.len(), all);
        all
    };
    // One lengthens the run that stands under the head of the other, and one begins another run above it.
    for batch in [vec![score(2)], vec![full::note("between"), score(3)]] {
        test.append(&batch).unwrap();
        assert_eq!(listed(&other), 2);
    }
    other.refresh().unwrap();
    assert_eq!(listed(&other), 4);
}

#[test]
fn two_handles_on_two_threads_lose_nothing() {
    let mut test = TestLedger::with_experiment();
    test.add_key(&signer(3), "Bo", &[Role::Scorer]).unwrap();
    let (db, pins) = (test.path(), test.folder.path().join("pins"));
    let write = |who: u8, from: u64| {
        let mut ledger = open(&db, &pins).unwrap();
        let signer: Signer = signer(who);
        (0..50)
            .map(|n| ledger.append(&[score(from + n)], &signer).unwrap()[0].seq)
            .collect::<Vec<_>>()
    };
    let mut seqs = std::thread::scope(|scope| {
        let threads = [scope.spawn(|| write(1, 0)), scope.spawn(|| write(3, 1_000))];
        threads.map(|thread| thread.join().unwrap()).concat()
    });
    seqs.sort_unstable();
    assert_eq!(seqs, (3..103).collect::<Vec<_>>());
    test.ledger.refresh().unwrap();
    test.check_all();
}

#[test]
fn a_stale_handle_catches_up_before_it_appends() {
    let mut test = TestLedger::with_experiment();
    let pins = test.folder.path().join("pins");
    let mut stale = open(&test.path(), &pins).unwrap();
    let scores: Vec<_> = (0..2_500).map(score).collect();
    for batch in scores.chunks(500) {
        test.append(batch).unwrap();
    }
    test.register("exp-2");
    assert_eq!(stale.size(), 2);
    let mut moved = score(1);
    moved.experiment = Some("exp-2".parse().unwrap());
    let appended = stale.append(&[score(7), moved], &signer(1)).unwrap();
    assert!(appended[0].already, "known from the other handle's batch");
    assert_eq!((appended[1].seq, appended[1].already), (2_503, false));
    test.ledger.refresh().unwrap();
    assert_eq!(test.ledger.root(), stale.root());
    test.check_all();
}

#[test]
fn a_file_put_back_under_an_open_handle_is_noticed() {
    let mut test = TestLedger::with_experiment();
    let backup = test.folder.path().join("backup.db");
    test.ledger.store().backup(&backup, |_, _| {}).unwrap();
    test.append(&[score(1)]).unwrap();
    let stale = test.ledger.size();
    // Overwritten through SQLite, as a restore of a backup would.
    let mut conn = rusqlite::Connection::open(test.path()).unwrap();
    conn.restore("main", &backup, None::<fn(rusqlite::backup::Progress)>)
        .unwrap();
    drop(conn);
    assert_eq!(test.ledger.size(), stale);
    let refused = test.append(&[score(2)]).unwrap_err();
    assert!(
        matches!(
            refused,
            LedgerError::Diverged(Divergence::RolledBack {
                pinned: 3,
                found: 2
            })
        ),
        "{refused}"
    );
    assert!(test.reopen().is_err());
}

#[test]
fn a_crash_after_any_batch_loses_nothing_acknowledged() {
    let mut test = TestLedger::with_experiment();
    let (mut sizes, crash) = (Vec::new(), test.folder.path().join("crash"));
    let mut lagging = None;
    for batch in 0..8_u64 {
        let commands: Vec<_> = (0..40).map(|n| score(batch * 40 + n)).collect();
        test.append(&commands).unwrap();
        sizes.push(test.ledger.size());
        // What lies on the disk the moment after: no connection was closed, nothing was written back.
        let before = lagging.replace(std::fs::read(test.ledger.pin().unwrap().path()).unwrap());
        copy(test.folder.path(), &crash);
        if let Some(older) = before {
            // The pin may lag behind, never lead.
            let name = test.ledger.pin().unwrap().path().file_name().unwrap();
            std::fs::write(crash.join("pins").join(name), older).unwrap();
        }
        let mut survivor = open(&crash.join("ledger.db"), &crash.join("pins")).unwrap();
        assert_eq!(survivor.size(), test.ledger.size());
        assert_eq!(survivor.root(), test.ledger.root());
        assert_eq!(
            survivor.state().snapshots(),
            test.ledger.state().snapshots()
        );
        let owner = signer(1);
        let again = survivor.append(&commands, &owner).unwrap();
        assert!(again.iter().all(|it| it.already));
        survivor.append(&note("after"), &owner).unwrap();
        let pinned = survivor.pin().unwrap().load().unwrap().unwrap();
        drop(survivor);
        let report = against(&crash.join("ledger.db"), &pinned);
        assert_eq!(report.verdict, Verdict::Pass, "{:#?}", report.findings);
    }
    assert_eq!(sizes.last(), Some(&322));
}
