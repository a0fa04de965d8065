//! The walk of a file's entries where its other tables cannot be read.

use std::sync::Arc;

use crate::ground::ambient::Ambient;
use crate::ground::note::SignedCheckpoint;
use crate::ledger::Rulebook;
use crate::ledger::verify::Progress;
use crate::ledger::verify::VerifyError;
use crate::ledger::verify::VerifyOptions;
use crate::ledger::verify::file::read_entries;
use crate::ledger::verify::judge::Judge;
use crate::ledger::verify::report::Report;
use crate::ledger::verify::work;
use crate::ledger::verify::work::Raw;
use crate::store::EntryRef;
use crate::store::Store;
use crate::store::StoreError;

/// Verifies the entries of a file whose other tables cannot be read: what stands in the way is a finding, and the walk goes on.
///
/// # Errors
/// [`VerifyError`] when the system fails.
pub(super) fn verify_entries(
    store: &Store,
    options: &VerifyOptions,
    rulebook: &'static Rulebook,
    ambient: &Arc<Ambient>,
    (progress, broken): (Progress<'_>, &StoreError),
) -> Result<Report, VerifyError> {
    let entries = store.another()?;
    let mut judge = Judge::new(options, rulebook, ambient, None)?;
    // Without the table of entries there is none.
    let size = entries.reader().entry_count().unwrap_or(0);
    let head = entries.reader().head().ok().flatten();
    judge.expect_head(head.and_then(|head| SignedCheckpoint::parse(&head.note).ok()));
    let source = move |give: &mut dyn FnMut(Raw) -> bool| {
        let mut give = |entry: Result<EntryRef<'_>, String>| {
            give(match entry {
                Ok(entry) => Raw::Stored(entry.to_stored()),
                Err(why) => Raw::Unreadable(why),
            })
        };
        if size > 0 {
            read_entries(&entries, size, &mut give);
        }
        Ok(())
    };
    work::run(source, options, rulebook, |digested| {
        judge.take(digested)?;
        if judge.position().is_multiple_of(1024) {
            progress(judge.position(), size);
        }
        Ok(())
    })?;
    let position = judge.position();
    progress(position, size);
    match store.another()?.integrity() {
        Ok(all) => {
            for (rule, expected, found) in all {
                judge.findings.add(position, rule, expected, found);
            }
        }
        Err(error) => {
            let (rule, expected) = ("sqlite", "integrity_check: ok");
            judge
                .findings
                .add(position, rule, expected, error.to_string());
        }
    }
    let expected = "a file whose tables can all be read";
    judge
        .findings
        .add(position, "sqlite", expected, broken.to_string());
    judge.finish()
}
