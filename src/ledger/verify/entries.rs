//! The walk of a file's entries where its other tables cannot be read.

use std::sync::Arc;

use crate::ground::ambient::Ambient;
use crate::ground::note::SignedCheckpoint;
use crate::ledger::Rulebook;
use crate::ledger::rule_names::RuleName;
use crate::ledger::verify::Progress;
use crate::ledger::verify::VerifyError;
use crate::ledger::verify::VerifyOptions;
use crate::ledger::verify::file::walk_rules;
use crate::ledger::verify::integrity::take_integrity;
use crate::ledger::verify::judge::Judge;
use crate::ledger::verify::report::Report;
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
    if size > 0 {
        walk_rules(
            entries,
            size,
            &mut judge,
            (options, rulebook, &mut *progress),
        )?;
    }
    let position = judge.position();
    progress(position, size);
    take_integrity(&mut judge, store.another()?.integrity());
    let expected = "a file whose tables can all be read";
    judge
        .findings
        .add(position, RuleName::Sqlite, expected, broken.to_string());
    judge.finish()
}
