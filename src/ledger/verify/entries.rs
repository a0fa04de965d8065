//! The walk of a file's entries where its other tables cannot be read.

use std::sync::Arc;

use clover_ground::ambient::Ambient;
use clover_ground::note::SignedCheckpoint;
use clover_store::Store;
use clover_store::StoreError;

use crate::Rulebook;
use crate::rule_names::RuleName;
use crate::verify::Progress;
use crate::verify::VerifyError;
use crate::verify::VerifyOptions;
use crate::verify::checker::Checker;
use crate::verify::file::walk_rules;
use crate::verify::integrity::take_integrity;
use crate::verify::report::Report;

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
    let mut checker = Checker::new(options, rulebook, ambient, None)?;
    // Without the table of entries there is none.
    let size = entries.reader().entry_count().unwrap_or(0);
    let head = entries.reader().head().ok().flatten();
    checker.expect_head(head.and_then(|head| SignedCheckpoint::parse(&head.note).ok()));
    if size > 0 {
        walk_rules(
            entries,
            size,
            &mut checker,
            (options, rulebook, &mut *progress),
        )?;
    }
    let position = checker.position();
    progress(position, size);
    take_integrity(&mut checker, store.another()?.integrity());
    let expected = "a file whose tables can all be read";
    checker
        .findings
        .add(position, RuleName::Sqlite, expected, broken.to_string());
    checker.finish()
}
