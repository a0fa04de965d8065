//! What rulebook 18 asks of peeks, by both verifiers.

use crate::support::tampered::Sample;
use crate::support::tampered_chosen::unsealed_after;
use crate::support::verifiers;

#[test]
fn a_quarter_allows_three_unsealings_over_all_accounts() {
    for (others, refused) in [(0, false), (2, false), (3, true)] {
        let (world, at) = unsealed_after(others);
        let case = Sample::forged("unsealed", "", &world, None).case;
        let place = (at as u64, "sealing".to_owned());
        let ours = verifiers::ours(&case);
        assert_eq!(ours.all.contains(&place), refused, "{others}: {ours:?}");
        if verifiers::python() {
            let folder = tempfile::tempdir().unwrap();
            case.write(folder.path());
            let theirs = verifiers::theirs(&case.arguments(folder.path()));
            assert_eq!(theirs, ours, "{others}");
        }
    }
}
