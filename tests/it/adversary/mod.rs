//! What adversaries can do: a search over short sequences of legal events, and attackers who write around the program.

mod attackers;
mod confirm;
mod gate;
mod hand;
mod release;
mod search;

use std::time::Instant;

use clover::ledger::rulebooks;
use clover::ledger::rulebooks::Question;
use search::Allowed;
use search::Plan;
use search::Run;
use search::Tally;
use search::World;

use crate::support::verifiers;

/// What a rulebook lets pass, since it does not ask a question.
fn not_asked(rulebook: u32) -> Vec<Allowed> {
    let all: [(Question, &'static str, &'static [&'static str]); 5] = [
        (
            Question::ConfirmRows,
            "rows",
            &["reveal", "unseal", "judge"],
        ),
        (Question::SealedBefore, "rows", &["late"]),
        (
            Question::PeekAccount,
            "payers",
            &["open side", "open shared"],
        ),
        (Question::PeekAccount, "left", &["open side", "open shared"]),
        (Question::OneOrder, "orders", &["supersede", "amend"]),
    ];
    let all = all.into_iter();
    let all = all.filter(|(question, ..)| question.since() > rulebook);
    all.map(|(question, field, letters)| Allowed {
        field,
        letters,
        keys: 1,
        why: question.words(),
    })
    .collect()
}

/// The worlds under a rulebook.
fn worlds(rulebook: u32) -> Vec<World> {
    let all = [
        confirm::before(),
        confirm::after(),
        gate::before(),
        gate::after(),
        gate::lowered(),
        release::before(),
    ];
    let under = |mut world: World| {
        world.rulebook = rulebook;
        world.allowed.extend(not_asked(rulebook));
        world
    };
    all.into_iter().map(under).collect()
}

fn is_long() -> bool {
    std::env::var_os("RUN_SLOW_TESTS").is_some()
}

/// Searches the worlds of a rulebook, far where slow tests are wanted; gives what no line allows.
fn searched(rulebook: u32) -> Vec<String> {
    let begun = Instant::now();
    let (mut sequences, mut holes) = (0, Vec::new());
    for world in worlds(rulebook) {
        let plan = Plan {
            seed: 18,
            widths: [99, 99, 12, 6, 3, 2],
            most: world.most[usize::from(is_long())],
        };
        let started = Instant::now();
        let tally = search::search(&world, plan);
        report(&world, &tally, started);
        sequences += tally.sequences;
        let found = world.holes(&tally).into_iter();
        holes.extend(
            found.map(|(field, to, words)| {
                format!("{}: {field} becomes {to} by {words}", world.name)
            }),
        );
    }
    println!(
        "rulebook {rulebook}: {sequences} sequences in {:?}",
        begun.elapsed()
    );
    holes
}

#[test]
fn no_short_sequence_changes_evidence_budget_or_grade_unseen() {
    let holes = searched(rulebooks::UNNAMED);
    assert!(holes.is_empty(), "{}", holes.join("\n"));
}

fn report(world: &World, tally: &Tally, started: Instant) {
    println!(
        "{}: {} sequences, {} that change something, {:?}",
        world.name,
        tally.sequences,
        tally.changed,
        started.elapsed()
    );
    for one in &world.allowed {
        println!(
            "  {} may differ by {}: {}",
            one.field,
            one.letters.join(", "),
            one.why
        );
    }
    println!("  refused {:?}", tally.refused);
    println!("  stopped {:?}", tally.stopped);
    for ((field, to), all) in &tally.minimal {
        for sequence in all {
            println!("  {field} becomes {to} by {}", world.words(sequence));
        }
    }
}

/// What the search calls legal, both verifiers do too once it is signed.
#[test]
fn legal_sequences_verify_once_they_are_signed() {
    let mut cases = Vec::new();
    for world in worlds(rulebooks::UNNAMED) {
        let plan = Plan {
            seed: 19,
            widths: [5, 4, 3, 2, 2, 2],
            most: 12,
        };
        let tally = search::search(&world, plan);
        for sequence in tally.sample.iter().take(8) {
            let mut run = Run::of(&world, true);
            for at in sequence {
                let letter = &world.letters[*at];
                let said = run.spell(letter);
                assert!(matches!(said, Some(Ok(_))), "{}", world.words(sequence));
            }
            let case = run.case(&world);
            let ours = verifiers::ours(&case);
            assert_eq!(
                ours.first,
                None,
                "{}: {}",
                world.name,
                world.words(sequence)
            );
            cases.push(case);
        }
    }
    assert!(!cases.is_empty());
    if verifiers::python() {
        for (case, theirs) in cases.iter().zip(verifiers::theirs_of_many(&cases)) {
            let theirs = theirs.unwrap();
            assert_eq!(theirs.first, None, "{} bytes", case.ledger.len());
        }
    }
}

/// Under the newest rulebook nothing is left of what an older one did not ask.
#[test]
fn the_newest_rulebook_shuts_what_the_older_did_not_ask() {
    let holes = searched(rulebooks::NEWEST);
    assert!(holes.is_empty(), "{}", holes.join("\n"));
}
