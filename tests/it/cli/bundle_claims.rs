//! Bundles that are older than the pin, and bundles of another history.

use super::bundled::two_experiments;
use super::copy_tree;

const NOTE: &str = "record note.recorded --key owner --data";

/// What the verdict says of a bundle that is older than the pin by one entry, where no ledger is at hand.
const OLDER: &str = "older than the pin by 1 entry: whether it is its beginning NOT CHECKED";

#[test]
fn a_copy_that_is_older_than_the_pin_is_no_rollback() {
    let mut desk = two_experiments();
    desk.ok("export bundle -o audit.clover");
    desk.ok("export bundle -o part.clover --experiment one");
    desk.ok("export jsonl -o lines");
    let copies = ["audit.clover", "part.clover", "lines"];
    desk.ok(&format!("{NOTE} {{\"text\":\"later\"}}"));
    // The ledger at hand shows that they are its beginning.
    for copy in copies {
        let ran = desk.ok(&format!("verify {copy}"));
        assert!(
            !ran.out.contains("older than the pin by 1 entry: whether"),
            "{}",
            ran.out
        );
        assert!(
            ran.out.contains("the ledger at hand begins with it"),
            "{}",
            ran.out
        );
    }
    // Elsewhere nothing does, and the verdict says so.
    let (here, there) = (desk.at.clone(), desk.path("elsewhere"));
    copy_tree(&here, &there);
    std::fs::remove_dir_all(there.join(".clover")).unwrap();
    desk.at = there;
    for copy in copies {
        let ran = desk.ok(&format!("verify {copy}"));
        assert!(ran.out.contains(OLDER), "{}", ran.out);
    }
    let ran = desk.ok("verify audit.clover --no-pin");
    assert!(!ran.out.contains("older"), "{}", ran.out);
}

#[test]
fn a_copy_of_another_history_is_found_by_pin_or_ledger() {
    let mut desk = two_experiments();
    let (here, twin) = (desk.at.clone(), desk.path("twin"));
    copy_tree(&here, &twin);
    desk.ok(&format!("{NOTE} {{\"text\":\"here\"}}"));
    desk.at.clone_from(&twin);
    desk.state = "twins-machine";
    desk.ok(&format!("{NOTE} {{\"text\":\"there\"}}"));
    let other = desk.path("other.clover").display().to_string();
    desk.ok(&format!("export bundle -o {other}"));
    desk.ok(&format!("{NOTE} {{\"text\":\"more\"}}"));
    let longer = desk.path("longer.clover").display().to_string();
    desk.ok(&format!("export bundle -o {longer}"));
    desk.at.clone_from(&here);
    desk.state = "state";
    // As long as the pin, and longer.
    for bundle in [&other, &longer] {
        let ran = desk.run(&format!("verify {bundle}"));
        assert_eq!(ran.code, 3, "{}", ran.out);
        assert!(ran.out.contains("FAILED  forked: "), "{}", ran.out);
    }
    // Shorter: the ledger at hand has another beginning. Without it nobody looked.
    desk.ok(&format!("{NOTE} {{\"text\":\"later\"}}"));
    let ran = desk.run(&format!("verify {other}"));
    assert_eq!(ran.code, 3, "{}", ran.out);
    assert!(
        ran.out.contains("FAILED  forked: 1 finding") && ran.out.contains("(root)"),
        "{}",
        ran.out
    );
    desk.at = desk.path("elsewhere");
    std::fs::create_dir_all(&desk.at).unwrap();
    let ran = desk.ok(&format!("verify {other}"));
    assert!(ran.out.contains(OLDER), "{}", ran.out);
}
