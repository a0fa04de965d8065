//! What stands in the log, for computations that read rows: entries and blobs, nothing else.

use std::fmt;

use crate::event::Event;
use crate::ground::digest::Digest;
use crate::ledger::error::LedgerError;
use crate::ledger::open::Ledger;
use crate::ledger::read;
use crate::ledger::read::Read;
use crate::store::Reader;
use crate::store::StoreError;

/// Entries and blobs as they stand.
#[derive(Clone)]
pub struct Past<'r> {
    reader: Reader<'r>,
}

impl fmt::Debug for Past<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Past")
    }
}

/// Why a stream of entries ended early.
enum Stop<E> {
    Caller(E),
    Ledger(LedgerError),
}

impl<E> From<StoreError> for Stop<E> {
    fn from(error: StoreError) -> Self {
        Self::Ledger(error.into())
    }
}

impl<'r> Past<'r> {
    pub(super) fn new(reader: Reader<'r>) -> Self {
        Self { reader }
    }

    /// Streams entries `from..to` in order.
    ///
    /// # Errors
    /// [`LedgerError`], or what `take` returns.
    pub fn entries<E: From<LedgerError>>(
        &self,
        from: u64,
        to: u64,
        mut take: impl FnMut(Read) -> Result<(), E>,
    ) -> Result<(), E> {
        let result = self.reader.entries(from, to, |stored| {
            let entry = read::decode(stored).map_err(Stop::Ledger)?;
            take(entry).map_err(Stop::Caller)
        });
        result.map_err(|stop| match stop {
            Stop::Ledger(error) => error.into(),
            Stop::Caller(error) => error,
        })
    }

    /// Streams the events of those of the entries `from..to` in order whose bodies hold `text` somewhere, with their
    /// positions; the rest is not decoded.
    ///
    /// # Errors
    /// [`LedgerError`], or what `take` returns.
    pub fn events_with<E: From<LedgerError>>(
        &self,
        from: u64,
        to: u64,
        text: &str,
        mut take: impl FnMut(u64, Event) -> Result<(), E>,
    ) -> Result<(), E> {
        let finder = memchr::memmem::Finder::new(text.as_bytes());
        let result = self.reader.bodies_between(from, to, |seq, body| {
            if finder.find(body).is_none() {
                return Ok(());
            }
            let event = read::event(seq, body).map_err(Stop::Ledger)?;
            take(seq, event).map_err(Stop::Caller)
        });
        result.map_err(|stop| match stop {
            Stop::Ledger(error) => error.into(),
            Stop::Caller(error) => error,
        })
    }

    /// What the entries `from..to` measured, in order: of each its position, its natural key and the value, as the entry itself
    /// says.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn measured(
        &self,
        from: u64,
        to: u64,
        mut take: impl FnMut(u64, Digest, i64),
    ) -> Result<(), LedgerError> {
        self.reader.bodies_between(from, to, |seq, body| {
            if let Some((key, value)) = read::read_measured(seq, body)? {
                take(seq, key, value);
            }
            Ok(())
        })
    }

    /// A blob by its BLAKE3 digest.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, LedgerError> {
        Ok(self.reader.blob(digest)?)
    }
}

impl Ledger {
    /// What stands in the log.
    pub fn past(&self) -> Past<'_> {
        Past::new(self.store.reader())
    }
}
