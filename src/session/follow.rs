//! A copy of a ledger that follows the log as somebody else publishes it.
//!
//! A few batches that are new are judged one by one, as they were at their append, each in a transaction of its own. Where
//! many are, or one does not follow, the published log is loaded beside the copy and verified there as a whole, against
//! its own checkpoint and against what the copy holds; then the copy takes in what it lacks in one transaction. Stopped
//! anywhere, the copy ends at a checkpoint of the log.

use std::io::BufRead;
use std::sync::Arc;

use clover_event::Entry;
use clover_ground::ambient;
use clover_ground::ambient::Ambient;
use clover_ground::digest::Digest;
use clover_ground::note::SignedCheckpoint;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_ledger::LedgerOptions;
use clover_ledger::append::named_blobs;
use clover_ledger::load::LogSource;
use clover_store::OpenOptions;
use clover_workflow::GOVERNED;

use crate::append;
use crate::error::PortError;
use crate::error::SessionError;
use crate::home::Home;
use crate::ports::Watcher;
use crate::ports::Work;
use crate::restore;
use crate::restore::Origin;
use crate::stage::Stage;

/// The folder where a published log is loaded.
const STAGE: &str = "follow";

/// Batches that are judged one by one, at most.
const BATCHES_MAX: usize = 64;

/// Where a published log is read.
pub trait PublishedLog {
    /// Its newest checkpoint.
    fn head(&self) -> &SignedCheckpoint;

    /// The log from an entry on, with the checkpoints that follow it, and all blobs.
    ///
    /// # Errors
    /// When it cannot be read.
    fn parts(&self, from: u64) -> Result<LogSource<'static>, PortError>;

    /// One blob; `None` where it is not there.
    ///
    /// # Errors
    /// When it cannot be read.
    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, PortError>;
}

/// Brings a copy up to a published checkpoint.
///
/// # Errors
/// [`LedgerError::Diverged`] where the published log is another history, [`RestoreError`](restore::RestoreError) where it
/// does not verify, and what files say; then the copy took in nothing that does not follow.
pub fn follow(
    watcher: &mut dyn Watcher,
    ambient: &Arc<Ambient>,
    home: &Home,
    ledger: &mut Ledger,
    published: &dyn PublishedLog,
    store: OpenOptions,
) -> Result<(), SessionError> {
    if !each(watcher, ledger, published)? {
        let origin = Origin {
            head: published.head().clone(),
            log_key: None,
        };
        let folder = Stage::new(home.folder(), STAGE)?;
        let stage = Home::new(folder.folder().to_owned());
        let whole = published.parts(0)?;
        restore::staged(watcher, ambient, &stage, (whole, &origin), store)?;
        agree(ambient, &stage, ledger, store)?;
        ledger.extend(published.parts(ledger.size())?)?;
    }
    ledger.advance_pin()?;
    append::tell_of_pin(watcher, ledger);
    Ok(())
}

/// Takes in batch by batch; false where that is not enough to say that the published log follows.
fn each(
    watcher: &mut dyn Watcher,
    ledger: &mut Ledger,
    published: &dyn PublishedLog,
) -> Result<bool, SessionError> {
    let LogSource {
        lines, checkpoints, ..
    } = published.parts(ledger.size())?;
    if checkpoints.len() > BATCHES_MAX {
        return Ok(false);
    }
    let size = published.head().checkpoint().size;
    let mut lines = lines.split(b'\n');
    for checkpoint in &checkpoints {
        let (mut events, mut blobs, mut at) = (Vec::new(), Vec::new(), None);
        for seq in ledger.size()..checkpoint.checkpoint().size {
            let line = lines.next().and_then(Result::ok);
            let entry = line.and_then(|line| Entry::parse(&line).ok());
            // A batch has one time, and its entries stand in their order.
            let entry = entry.filter(|entry| entry.seq == seq);
            let Some(entry) = entry.filter(|of| at.is_none_or(|at| at == of.recorded_at)) else {
                return Ok(false);
            };
            for (digest, _) in named_blobs(entry.signed.body()) {
                blobs.extend(published.blob(&digest)?);
            }
            at = Some(entry.recorded_at);
            events.push(entry.signed);
        }
        let Some(at) = at else {
            return Ok(false);
        };
        match ledger.follow(events, &blobs, (at, checkpoint)) {
            Ok(()) => {}
            Err(
                LedgerError::Body { .. }
                | LedgerError::Diverged(_)
                | LedgerError::Integrity { .. }
                | LedgerError::Refused { .. },
            ) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        watcher.progress(Work::Loading, ledger.size(), size);
    }
    Ok(true)
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
