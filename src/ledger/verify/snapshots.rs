//! Snapshots of folds, which a file keeps beside its entries, held against the folds of those entries.
//!
//! A program writes the snapshots of all its folds together, and reads none that another version wrote. What another version
//! folds cannot be folded here: of its snapshots everything is checked but the states, and the verdict says so.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_store::StoredSnapshot;

use crate::rule_names::RuleName;
use crate::rulebooks;
use crate::verify::checker::Checker;

/// Snapshots with the names of their folds, by the number of entries that they hold.
pub(super) type BySize = BTreeMap<u64, Vec<(String, StoredSnapshot)>>;

/// Judges the snapshots of the size that the walk has reached.
pub(super) fn check(checker: &mut Checker<'_>, size: u64, all: &[(String, StoredSnapshot)]) {
    let due: BTreeMap<&str, Vec<u8>> = checker.state.snapshots().into_iter().collect();
    let (version, least) = (checker.state.rulebook().version, least(checker));
    let root = checker.tiler.root();
    let mut found = Vec::new();
    for (name, snapshot) in all {
        let of = snapshot.rulebook;
        let expected = format!("snapshot {name} of the first {size} entries");
        if of < least {
            let expected =
                format!("snapshot {name} of version {least} or newer, as its rulebook asks");
            found.push((expected, format!("version {of}")));
        } else if snapshot.root != root {
            found.push((expected, "another root".to_owned()));
        } else if of == version {
            match due.get(name.as_str()) {
                None => found.push((format!("no snapshot {name}"), "one of no fold".to_owned())),
                Some(state) if *state != snapshot.state => {
                    found.push((expected, "another state or root".to_owned()));
                }
                Some(_) => {}
            }
        }
    }
    for (expected, words) in found {
        checker
            .findings
            .add(size - 1, RuleName::Snapshot, expected, words);
    }
    let is_whole = due.keys().all(|name| all.iter().any(|(of, _)| of == name));
    if all.iter().all(|(_, of)| of.rulebook == version) && !is_whole {
        let expected = "a snapshot of every fold";
        checker
            .findings
            .add(size - 1, RuleName::Snapshot, expected, "some missing");
    }
    if all.iter().any(|(_, of)| of.rulebook != version) {
        checker.not_checked.push("snapshots".to_owned());
    }
}

/// The oldest version that could write snapshots of a ledger which this rulebook checks.
fn least(checker: &Checker<'_>) -> u32 {
    let in_force = checker.state.keyring.rulebook();
    if in_force >= rulebooks::NEWEST {
        checker.state.rulebook().newest_since
    } else {
        in_force
    }
}

/// Judges those of more entries than there are, and whether all were written together.
pub(super) fn check_rest(checker: &mut Checker<'_>, size: u64, are_of_one: bool, left: &BySize) {
    for (at, snapshots) in left {
        for (name, _) in snapshots {
            let expected = format!("a snapshot of at most {size} entries");
            checker.findings.add(
                size,
                RuleName::Snapshot,
                expected,
                format!("{name} of {at} entries"),
            );
        }
    }
    if !are_of_one {
        checker.findings.add(
            size,
            RuleName::Snapshot,
            "snapshots of one size and one version: a program writes them together",
            "some of another",
        );
    }
}

/// Whether one program wrote snapshots together: they are of one size and one version.
pub(super) fn are_of_one(all: &BySize) -> bool {
    let versions = all.values().flatten().map(|(_, of)| of.rulebook);
    let versions: BTreeSet<u32> = versions.collect();
    all.len() <= 1 && versions.len() <= 1
}
