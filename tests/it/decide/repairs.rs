//! Feedback of a repair: whoever names a critic is held to outputs and rules as everybody else is.

use clover::event::id::RunId;
use clover::event::payload::meta::MetaPair;
use clover::event::payload::meta::MetaTarget;
use clover::event::payload::meta::MetaVerdict;
use clover::event::payload::repair_feedback::WfFeedbackGiven;
use clover::ledger::Command;
use clover::ledger::LedgerError;
use clover::ledger::RuleName;
use clover::num::Micro;
use clover::num::draws::Draws;
use clover::projection::wf::WfRun;
use clover::projection::wf::WfRuns;
use clover::projection::wf::learnt::CASES_MIN;
use clover::workflow::wf::measure;
use clover::workflow::wf::outer;

use crate::support::TestLedger;
use crate::support::child;
use crate::support::repaired;
use crate::support::signer;

const EXP: &str = "exp-1";

fn append(test: &mut TestLedger, said: WfFeedbackGiven) -> Result<(), LedgerError> {
    let command = Command::new(said, Some(EXP.parse().unwrap()));
    let appended = test.ledger.append(&[command], &signer(repaired::KEYS.1));
    appended.map(drop)
}

/// Given feedback that a critic took part in; when its flags are not what outputs and rules give; then it is refused, though its
/// parts and its digest follow from these flags.
#[test]
fn a_critic_does_not_make_flags_true() {
    let mut test = TestLedger::new();
    test.register(EXP);
    let (honest, kind) = repaired::criticised(&mut test, EXP);
    assert!(honest.flags.iter().any(|flag| !flag.ok), "{honest:?}");
    assert!(!honest.critic.is_empty());
    let refused = append(&mut test, kind).unwrap_err();
    let LedgerError::Refused { breach, .. } = &refused else {
        panic!("{refused}");
    };
    assert_eq!(breach.rule, RuleName::Recompute, "{refused}");
    append(&mut test, honest).unwrap();
    test.check_all();
}

/// Given runs that pass and are of no use; then the cases that follow from the record are all of them, those of the trigger that
/// was admitted; other classes have too few cases, and an answer to each class has its own place.
#[test]
fn a_trigger_follows_from_the_record() {
    let mut test = TestLedger::new();
    test.register(EXP);
    repaired::tell(&mut test, EXP);
    let runs = test.ledger.state().fold::<WfRuns>();
    let (experiment, useful) = (EXP.parse().unwrap(), Micro::new(900_000).unwrap());
    let said = &runs.triggers[&"passes-in-vain".parse().unwrap()];
    for class in outer::CLASSES {
        let found = outer::cases(runs, &experiment, (class, useful));
        if class == said.class {
            assert_eq!(found, said.cases);
        } else {
            assert!(found.len() < CASES_MIN, "{class}: {found:?}");
        }
    }
    assert_eq!(outer::target_of(said.class), MetaTarget::Verifier);
}

/// A run of another name, whose winner is worth everything or nothing.
fn ended(run: &WfRun, name: &RunId, is_of_use: bool) -> WfRun {
    let mut run = run.clone();
    run.said.run = name.clone();
    let winner = run.end.as_ref().unwrap().winner.unwrap();
    let worth = Micro::new(if is_of_use { 1_000_000 } else { 0 }).unwrap();
    let of = run.candidates.get_mut(&winner).unwrap();
    of.utilities.as_mut().unwrap().fill(worth);
    run
}

/// Given updates that change nothing, each tried on 40 pairs of which both runs are of use with the same probability; then the
/// gate of success is reached in a share of at most its level plus two errors of the simulation, and so an update passes.
#[test]
fn null_updates_pass_at_most_at_their_level() {
    let updates = if child::slow() { 2_000 } else { 200 };
    let mut test = TestLedger::new();
    test.register(EXP);
    repaired::tell(&mut test, EXP);
    let runs = test.ledger.state().fold::<WfRuns>();
    let base = &runs.by_id[&repaired::RUN.parse().unwrap()];
    let mut said = runs.updates[&repaired::UPDATE.parse().unwrap()]
        .said
        .clone();
    let name = |at: usize, arm: &str| -> RunId { format!("null-{at}-{arm}").parse().unwrap() };
    let pairs = (0..40).map(|at| MetaPair {
        new: name(at, "new"),
        old: name(at, "old"),
    });
    said.pairs = pairs.collect();
    let (mut reached, mut passed) = (0_u32, 0_u32);
    for at in 0..updates {
        let mut draws = Draws::of([30; 32], at);
        let mut trial = WfRuns::default();
        for pair in &said.pairs {
            for run in [&pair.new, &pair.old] {
                let run = ended(base, run, draws.coin());
                trial.by_id.insert(run.said.run.clone(), run);
            }
        }
        let found = measure::validated(&trial, &said).unwrap();
        reached += u32::from(found.success.reached);
        passed += u32::from(found.verdict == MetaVerdict::Pass);
    }
    let (alpha, count) = (0.05, updates as f64);
    let error = (alpha * (1.0 - alpha) / count).sqrt();
    println!("of {updates} null updates: success reached in {reached}, {passed} passed");
    assert!(
        f64::from(reached) / count <= alpha + 2.0 * error,
        "{reached} of {updates}"
    );
    assert!(passed <= reached);
}
