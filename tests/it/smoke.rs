//! The shortest path through every floor.

use crate::support::TestLedger;
use crate::support::score;

#[test]
fn scores_are_appended_verified_and_known_again() {
    let mut test = TestLedger::with_experiment();
    let commands: Vec<_> = (0..3000).map(score).collect();
    let first = test.append(&commands).unwrap();
    assert!(first.iter().all(|appended| !appended.already));
    test.check_all();
    let again = test.append(&commands).unwrap();
    assert!(
        again
            .iter()
            .zip(&first)
            .all(|(again, first)| again.already && again.seq == first.seq)
    );
    let mut test = test.reopen().unwrap();
    for n in 3000..3010 {
        test.append(&[score(n)]).unwrap();
    }
    test.check_all();
    let mut test = test.reopen().unwrap();
    assert_eq!(test.ledger.size(), 3012);
    assert!(
        test.append(&commands)
            .unwrap()
            .iter()
            .all(|appended| appended.already)
    );
    test.check_all();
}
