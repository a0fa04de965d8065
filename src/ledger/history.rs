//! Entries before the one that is judged, read again: of the file, of a batch that is not written yet, or of lines.

use std::ops::ControlFlow;

use clover_event::Event;
use clover_ground::digest::Digest;
use clover_store::Reader;
use clover_store::StoreError;

use crate::error::LedgerError;
use crate::open::Ledger;
use crate::read;
use crate::verify::BlobSource;

/// Takes an event with its position, and says whether to go on.
pub(super) type Take<'a> = &'a mut dyn FnMut(u64, &Event) -> ControlFlow<()>;

/// Entries before the one that is judged, for what computes again what it says.
pub trait History {
    /// Gives events from `from` on and below `to`, in order, until one is not wanted any more.
    ///
    /// # Errors
    /// [`LedgerError`] when they cannot be read.
    fn events(&self, from: u64, to: u64, take: Take<'_>) -> Result<(), LedgerError>;

    /// As [`History::events`], of entries whose bodies hold a text; others come too where it costs more to leave them out.
    ///
    /// # Errors
    /// [`LedgerError`] when they cannot be read.
    fn events_naming(
        &self,
        from: u64,
        to: u64,
        _text: &str,
        take: Take<'_>,
    ) -> Result<(), LedgerError> {
        self.events(from, to, take)
    }

    /// A blob by its BLAKE3 digest; `None` where it is not at hand.
    ///
    /// # Errors
    /// [`LedgerError`] when it cannot be read.
    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, LedgerError>;
}

impl History for Ledger {
    fn events(&self, from: u64, to: u64, take: Take<'_>) -> Result<(), LedgerError> {
        let stopped = self.entries::<WalkEnd>(from, to.min(self.size()), |read| {
            match take(read.stored.seq, &read.event) {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(()) => Err(WalkEnd::Done),
            }
        });
        ended(stopped)
    }

    fn events_naming(
        &self,
        from: u64,
        to: u64,
        text: &str,
        take: Take<'_>,
    ) -> Result<(), LedgerError> {
        let to = to.min(self.size());
        let stopped =
            self.events_with::<WalkEnd>(from, to, text, |seq, event| match take(seq, &event) {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(()) => Err(WalkEnd::Done),
            });
        ended(stopped)
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, LedgerError> {
        Ok(self.store().reader().blob(digest)?)
    }
}

/// Why a walk ended early.
enum WalkEnd {
    Done,
    Ledger(LedgerError),
}

impl From<LedgerError> for WalkEnd {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error)
    }
}

impl From<StoreError> for WalkEnd {
    fn from(error: StoreError) -> Self {
        Self::Ledger(error.into())
    }
}

fn ended(walk: Result<(), WalkEnd>) -> Result<(), LedgerError> {
    match walk {
        Ok(()) | Err(WalkEnd::Done) => Ok(()),
        Err(WalkEnd::Ledger(error)) => Err(error),
    }
}

/// What stands before an entry that is appended or verified.
pub(super) struct EarlierLog<'a> {
    /// The file, where there is one.
    pub(super) reader: Option<Reader<'a>>,
    /// Entries of the file that count.
    pub(super) stored: u64,
    /// Entries that no file has yet, or that came as lines.
    pub(super) kept: Vec<(u64, &'a Event)>,
    /// Where blobs are, beside the file.
    pub(super) blobs: Option<BlobSource<'a>>,
}

impl History for EarlierLog<'_> {
    fn events(&self, from: u64, to: u64, take: Take<'_>) -> Result<(), LedgerError> {
        if let Some(reader) = self.reader {
            let mut broken = false;
            let walk = reader.entries::<WalkEnd>(from, to.min(self.stored), |stored| {
                // What cannot be decoded has a finding of its own, and says nothing to anybody.
                let Ok(read) = read::decode(stored) else {
                    return Ok(());
                };
                broken = take(read.stored.seq, &read.event).is_break();
                if broken { Err(WalkEnd::Done) } else { Ok(()) }
            });
            ended(walk)?;
            if broken {
                return Ok(());
            }
        }
        for &(seq, event) in &self.kept {
            if (from..to).contains(&seq) && take(seq, event).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, LedgerError> {
        if let Some(reader) = self.reader {
            return Ok(reader.blob(digest)?);
        }
        match self.blobs {
            Some(source) => Ok(source(digest)?),
            None => Ok(None),
        }
    }
}
