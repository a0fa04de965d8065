//! What rulebooks ask of peeks, of labels that are kept back, and of steps that come too late, by both verifiers.

use crate::support::forger::World;
use crate::support::tampered::Sample;
use crate::support::tampered_chosen::stopped_at;
use crate::support::tampered_chosen::unsealed_after;
use crate::support::tampered_held;
use crate::support::tampered_stopped;
use crate::support::verifiers;

/// Whether both verifiers find a rule broken at a place.
fn is_found((world, at): (World, usize), rule: &str) -> bool {
    let case = Sample::forged("chosen", "", &world, None).case;
    let ours = verifiers::ours(&case);
    if verifiers::python() {
        let folder = tempfile::tempdir().unwrap();
        case.write(folder.path());
        let theirs = verifiers::theirs(&case.arguments(folder.path()));
        assert_eq!(theirs, ours);
    }
    ours.all.contains(&(at as u64, rule.to_owned()))
}

#[test]
fn a_quarter_allows_three_unsealings_over_all_accounts() {
    for (others, refused) in [(0, false), (2, false), (3, true)] {
        assert_eq!(is_found(unsealed_after(others), "sealing"), refused);
    }
}

/// The labels of the story are to be revealed by the first of January.
#[test]
fn an_iteration_stops_without_a_label_that_was_kept_back_past_its_day() {
    let early = stopped_at("2026-12-31T00:00:00.000000Z");
    assert!(is_found(early, "acceptance"));
    let late = stopped_at("2027-01-02T00:00:00.000000Z");
    assert!(!is_found(late, "acceptance"));
}

/// Rulebook 25 let each of these steps pass; the samples of `audits/` show what 26 finds in them.
#[test]
fn what_one_key_says_of_runs_is_asked_by_rulebook_26_alone() {
    hold(&tampered_held::unasked());
}

/// Rulebooks 17 and 18 let each of these steps pass; the samples of `audits/` show what 19 finds in them.
#[test]
fn what_comes_too_late_is_asked_by_rulebook_19_alone() {
    hold(&tampered_stopped::unasked());
}

/// Both verifiers find nothing.
fn hold(samples: &[Sample]) {
    for sample in samples {
        let ours = verifiers::ours(&sample.case);
        assert_eq!(ours.first, None, "{}", sample.name);
        if verifiers::python() {
            let folder = tempfile::tempdir().unwrap();
            sample.case.write(folder.path());
            let theirs = verifiers::theirs(&sample.case.arguments(folder.path()));
            assert_eq!(theirs, ours, "{}", sample.name);
        }
    }
}
