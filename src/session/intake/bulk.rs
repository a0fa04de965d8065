//! Many events at once, batch by batch. A batch is one transaction: it lands whole or not at all. The same events again go
//! on where it stopped, since what is recorded answers as such.

use clover_ground::sign::Signer;
use clover_ledger::AppendedEvent;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_ledger::SignedEvent;

use crate::append;
use crate::error::PortError;
use crate::error::SessionError;
use crate::ports::Watcher;
use crate::ports::Work;

/// Events of one transaction, at most.
pub const BATCH: usize = 16_384;

/// Events of one transaction, with the lines they stand on.
#[derive(Clone, Debug)]
pub struct EventBatch<E> {
    /// The events: commands, or events that are signed already.
    pub events: Vec<E>,
    /// The line of each, from 1.
    pub lines: Vec<u64>,
    /// Bytes of the source that are read so far.
    pub bytes: u64,
}

/// What was appended so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events that are new.
    pub appended: u64,
    /// Events that were there.
    pub already: u64,
    /// The lowest position of a new one.
    pub first: Option<u64>,
    /// The highest position of a new one.
    pub last: Option<u64>,
}

impl Tally {
    fn add(&mut self, appended: &[AppendedEvent]) {
        for one in appended {
            if one.already {
                self.already += 1;
                continue;
            }
            self.appended += 1;
            self.first = Some(self.first.unwrap_or(one.seq).min(one.seq));
            self.last = self.last.max(Some(one.seq));
        }
    }
}

/// Why not every event was appended.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct BulkError {
    /// What stands nevertheless.
    pub tally: Tally,
    /// The line of the event that was refused.
    pub line: Option<u64>,
    /// What was wrong.
    pub error: Box<SessionError>,
}

/// Appends commands by one key; `all` is how many bytes the source has, 0 where nobody knows it.
///
/// # Errors
/// [`BulkError`].
pub fn append(
    watcher: &mut dyn Watcher,
    ledger: &mut Ledger,
    signer: &Signer,
    batches: impl Iterator<Item = Result<EventBatch<Command>, PortError>>,
    all: u64,
) -> Result<Tally, BulkError> {
    let mut append = |ledger: &mut Ledger, commands: Vec<Command>| ledger.append(commands, signer);
    each(watcher, ledger, batches, all, &mut append)
}

/// Appends events that are signed already.
///
/// # Errors
/// [`BulkError`].
pub fn submit(
    watcher: &mut dyn Watcher,
    ledger: &mut Ledger,
    batches: impl Iterator<Item = Result<EventBatch<SignedEvent>, PortError>>,
) -> Result<Tally, BulkError> {
    each(watcher, ledger, batches, 0, &mut Ledger::submit)
}

type Append<'a, E> =
    &'a mut dyn FnMut(&mut Ledger, Vec<E>) -> Result<Vec<AppendedEvent>, LedgerError>;

fn each<E>(
    watcher: &mut dyn Watcher,
    ledger: &mut Ledger,
    batches: impl Iterator<Item = Result<EventBatch<E>, PortError>>,
    all: u64,
    append: Append<'_, E>,
) -> Result<Tally, BulkError> {
    let mut tally = Tally::default();
    for batch in batches {
        let batch = batch.map_err(|error| BulkError {
            tally,
            line: None,
            error: Box::new(SessionError::from(error)),
        })?;
        let appended = append(ledger, batch.events).map_err(|error| BulkError {
            tally,
            line: refused(&error).and_then(|at| batch.lines.get(at).copied()),
            error: Box::new(error.into()),
        })?;
        tally.add(&appended);
        watcher.progress(Work::Appending, batch.bytes, all);
    }
    let settled = ledger.settle();
    settled.map_err(|error| BulkError {
        tally: Tally::default(),
        line: None,
        error: Box::new(error.into()),
    })?;
    append::tell_of_pin(watcher, ledger);
    Ok(tally)
}

/// The position in its batch of the event that an error is about.
pub fn refused(error: &LedgerError) -> Option<usize> {
    match error {
        LedgerError::Body { index, .. } | LedgerError::Refused { index, .. } => Some(*index),
        _ => None,
    }
}
