//! A copy of a ledger that follows the log as somebody else publishes it.
//!
//! The published log is loaded beside the copy and verified there as a whole, against its own checkpoint and against what
//! the copy holds. Then the copy takes in what it lacks, in one transaction: stopped anywhere, it is what it was before.

use std::sync::Arc;

use clover_ground::ambient;
use clover_ground::ambient::Ambient;
use clover_ledger::Ledger;
use clover_ledger::LedgerOptions;
use clover_ledger::load::Parts;
use clover_store::OpenOptions;
use clover_workflow::GOVERNED;

use crate::append;
use crate::error::SessionError;
use crate::home::Home;
use crate::ports::Watcher;
use crate::restore;
use crate::restore::Origin;
use crate::stage::Stage;

/// The folder where a published log is loaded.
const STAGE: &str = "follow";

/// Brings a copy up to a published checkpoint. `whole` is the published log from its first entry, `rest` what follows the
/// head of the copy.
///
/// # Errors
/// [`LedgerError::Diverged`](clover_ledger::LedgerError::Diverged) where the published log is another history,
/// [`RestoreError`](restore::RestoreError) where it does not verify, and what files say; then the copy is what it was.
pub fn follow(
    watcher: &mut dyn Watcher,
    ambient: &Arc<Ambient>,
    home: &Home,
    ledger: &mut Ledger,
    (whole, rest, origin): (Parts<'_>, Parts<'_>, &Origin),
    store: OpenOptions,
) -> Result<(), SessionError> {
    let folder = Stage::new(home.folder(), STAGE)?;
    let stage = Home::new(folder.folder().to_owned());
    restore::staged(watcher, ambient, &stage, (whole, origin), store)?;
    agree(ambient, &stage, ledger, store)?;
    ledger.extend(rest)?;
    ledger.advance_pin()?;
    append::tell_of_pin(watcher, ledger);
    Ok(())
}

/// Removes what a run that was stopped left beside the copy.
///
/// # Errors
/// What files say.
pub fn clear(home: &Home) -> Result<(), SessionError> {
    if ambient::exists(&home.folder().join(STAGE))? {
        drop(Stage::new(home.folder(), STAGE)?);
    }
    Ok(())
}

/// Holds the published log, as it was loaded, against the newest checkpoint of the copy.
fn agree(
    ambient: &Arc<Ambient>,
    stage: &Home,
    ledger: &Ledger,
    store: OpenOptions,
) -> Result<(), SessionError> {
    let options = LedgerOptions {
        store: OpenOptions {
            read_only: true,
            ..store
        },
        log_key: None,
        pins: None,
    };
    let staged = Ledger::open_anew(stage.database(), ambient.clone(), &GOVERNED, options)?;
    Ok(staged.agree(&ledger.head_checkpoint()?)?)
}
