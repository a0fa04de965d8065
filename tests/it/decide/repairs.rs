//! Feedback of a repair: whoever names a critic is held to outputs and rules as everybody else is.

use clover::event::payload::meta::MetaTarget;
use clover::event::payload::repair_feedback::WfFeedbackGiven;
use clover::ledger::Command;
use clover::ledger::LedgerError;
use clover::ledger::RuleName;
use clover::num::Micro;
use clover::projection::wf::WfRuns;
use clover::projection::wf::learnt::CASES_MIN;
use clover::workflow::wf::outer;

use crate::support::TestLedger;
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
