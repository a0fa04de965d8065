//! Retries: signed bodies by author and number and bytes, unsigned commands by natural key and data.

use clover::event::Payload;
use clover::ledger::Command;
use clover::ledger::LedgerError;
use clover::ledger::SignedEvent;
use clover::num::Micro;

use super::world::note;
use crate::support::ORIGIN;
use crate::support::TestLedger;
use crate::support::forge;
use crate::support::score;
use crate::support::signer;
use crate::support::text;

/// A signed note of the owner, numbered `author_seq`.
fn signed(test: &TestLedger, author_seq: u64, words: &str) -> SignedEvent {
    let owner = signer(1);
    let payload = clover::event::payload::record::NoteRecorded {
        blob: None,
        text: text(words),
    };
    let seen = Some((test.ledger.size(), test.ledger.root()));
    let body = forge::body(
        crate::support::start(),
        owner.id(),
        author_seq,
        &payload.into(),
        None,
        ORIGIN,
        seen,
    );
    let bytes = clover::ground::canon::to_bytes(&body).unwrap();
    let message = clover::ground::sign::pae(clover::event::PAYLOAD_TYPE, &bytes);
    SignedEvent::new(bytes, owner.id(), owner.sign(&message))
}

fn refused(error: LedgerError) -> (String, Option<u64>, usize) {
    match error {
        LedgerError::Refused {
            breach,
            in_the_way,
            index,
        } => (breach.to_string(), in_the_way, index),
        other => panic!("{other}"),
    }
}

#[test]
fn a_signed_body_again_equal_lower_higher_conflicting() {
    let mut test = TestLedger::new();
    let one = signed(&test, 1, "one");
    let first = test.ledger.submit(vec![one.clone()]).unwrap();
    assert_eq!((first[0].seq, first[0].already), (1, false));
    let two = signed(&test, 2, "two");
    test.ledger.submit(vec![two.clone()]).unwrap();

    // Lower and identical: the old answer, also in one batch with new ones, and after a reopening.
    let again = test.ledger.submit(vec![one.clone()]).unwrap();
    assert_eq!(
        (again[0].seq, again[0].id, again[0].already),
        (1, first[0].id, true)
    );
    let three = signed(&test, 3, "three");
    let mixed = test
        .ledger
        .submit(vec![one.clone(), three.clone(), two, three.clone()])
        .unwrap();
    let answers: Vec<_> = mixed.iter().map(|it| (it.seq, it.already)).collect();
    assert_eq!(answers, [(1, true), (3, false), (2, true), (3, true)]);

    // Lower with other bytes, even with only another signature.
    let (text, in_the_way, _) = refused(
        test.ledger
            .submit(vec![signed(&test, 1, "other")])
            .unwrap_err(),
    );
    assert!(text.contains("author_seq") && text.contains("seq 1 holds that number"));
    assert_eq!(in_the_way, Some(1));
    let mut bent = *one.signature();
    bent[63] ^= 1;
    let bent = SignedEvent::new(one.body().to_vec(), one.signer(), bent);
    assert!(
        refused(test.ledger.submit(vec![bent]).unwrap_err())
            .0
            .contains("author_seq")
    );

    // Higher: a gap that names the next.
    let (text, ..) = refused(
        test.ledger
            .submit(vec![signed(&test, 7, "gap")])
            .unwrap_err(),
    );
    assert!(text.contains("author_seq: expected 4, found 7"), "{text}");

    // Two bodies of one number in one batch.
    let (text, _, index) = refused(
        test.ledger
            .submit(vec![signed(&test, 4, "a"), signed(&test, 4, "b")])
            .unwrap_err(),
    );
    assert!(text.contains("same batch"), "{text}");
    assert_eq!(index, 1);
    assert_eq!(test.ledger.size(), 4);

    let mut test = test.reopen().unwrap();
    assert!(test.ledger.submit(vec![one]).unwrap()[0].already);
    assert!(test.ledger.submit(vec![three]).unwrap()[0].already);
    assert_eq!(test.ledger.size(), 4);
    let four = signed(&test, 4, "four");
    assert!(!test.ledger.submit(vec![four]).unwrap()[0].already);
    test.check_all();
}

#[test]
fn a_command_again_with_the_same_data_and_with_other_data() {
    let mut test = TestLedger::with_experiment();
    let first = test.append(&[score(1), score(2)]).unwrap();
    // `at`, `refs` and the author take no part.
    let mut retry = score(1);
    retry.at = Some(crate::support::start());
    retry.refs = vec![first[1].id];
    test.add_key(&signer(3), "Bo", &[clover::event::payload::Role::Scorer])
        .unwrap();
    let other = signer(3);
    let again = test
        .ledger
        .append(&[retry.clone(), score(3)], &other)
        .unwrap();
    assert_eq!((again[0].seq, again[0].already), (first[0].seq, true));
    assert!(!again[1].already);

    let mut changed = score(1);
    if let Payload::ScoreRecorded(score) = &mut changed.payload {
        score.score_micro = Micro::new(5).unwrap();
    }
    let size = test.ledger.size();
    let error = test.append(&[score(4), changed.clone()]).unwrap_err();
    let (text, in_the_way, index) = refused(error);
    assert!(text.contains("natural_key") && text.contains("one score.recorded per natural key"));
    assert_eq!((in_the_way, index), (Some(first[0].seq), 1));
    assert_eq!(test.ledger.size(), size, "nothing of the batch landed");

    // Twice in one batch: the same is one event, different is refused.
    let twice = test.append(&[score(5), score(5)]).unwrap();
    assert_eq!((twice[0].seq, twice[0].already), (size, false));
    assert_eq!((twice[1].seq, twice[1].already), (size, true));
    let mut five = score(6);
    if let Payload::ScoreRecorded(score) = &mut five.payload {
        score.score_micro = Micro::new(-5).unwrap();
    }
    let (text, ..) = refused(test.append(&[score(6), five]).unwrap_err());
    assert!(text.contains("the same batch"), "{text}");

    // The same data in another experiment is another event.
    test.register("exp-2");
    let mut moved = score(1);
    moved.experiment = Some("exp-2".parse().unwrap());
    assert!(!test.append(&[moved]).unwrap()[0].already);

    // Kinds without a natural key repeat.
    let command = Command::new(note(), None);
    let notes = test.append(&[command.clone(), command]).unwrap();
    assert!(notes.iter().all(|appended| !appended.already));
    assert_ne!(notes[0].seq, notes[1].seq);

    let mut test = test.reopen().unwrap();
    assert!(test.append(&[retry]).unwrap()[0].already);
    assert!(test.append(&[changed]).is_err());
    test.check_all();
}

#[test]
fn a_refused_batch_consumes_no_number_and_leaves_everything() {
    let mut test = TestLedger::with_experiment();
    test.append(&[score(1)]).unwrap();
    let owner = signer(1).id();
    let next = |test: &TestLedger| test.ledger.state().keyring.keys[&owner].next_author_seq;
    let before = (test.ledger.size(), test.ledger.root(), next(&test));
    let snapshots = test.ledger.state().snapshots();
    let mut homeless = score(3);
    homeless.experiment = Some("ghost".parse().unwrap());
    let batch: Vec<_> = (10..400).map(score).chain([homeless]).collect();
    assert!(test.append(&batch).is_err());
    assert_eq!(
        (test.ledger.size(), test.ledger.root(), next(&test)),
        before
    );
    assert_eq!(test.ledger.state().snapshots(), snapshots);
    let stored = test.ledger.store().reader();
    assert_eq!(stored.entry_count().unwrap(), before.0);
    assert_eq!(stored.row_count(clover::store::Table::Scores).unwrap(), 1);
    test.append(&[score(10)]).unwrap();
    assert_eq!(next(&test), before.2 + 1);
    test.check_all();
}

#[test]
fn a_clock_far_behind_is_refused_and_a_little_behind_is_held() {
    let mut test = TestLedger::new();
    let head = test.ledger.state().keyring.recorded_at.unwrap();
    test.clock.set(head.plus_seconds(-301));
    let error = test.append(&[Command::new(note(), None)]).unwrap_err();
    assert!(matches!(error, LedgerError::ClockBehind { .. }), "{error}");
    assert_eq!(test.ledger.size(), 1);
    test.clock.set(head.plus_seconds(-299));
    test.append(&[Command::new(note(), None)]).unwrap();
    assert_eq!(test.ledger.state().keyring.recorded_at, Some(head));
    test.check_all();
}
