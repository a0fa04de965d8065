//! What stands in the log, for computations that read rows: entries and blobs, nothing else.

use std::collections::BTreeSet;
use std::fmt;

use clover_event::Event;
use clover_ground::digest::Digest;
use rayon::prelude::*;

use crate::claim;
use crate::error::LedgerError;
use crate::open::Ledger;
use crate::read;
use crate::read::LogEntry;
use crate::under::Under;

/// Entries from which on it is worth to decode them on all cores.
const DECODED_TOGETHER: usize = 256;

/// Entries and blobs as they stand, each entry held against the signed head.
#[derive(Clone)]
pub struct Past<'r> {
    under: Under<'r>,
}

impl fmt::Debug for Past<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Past")
    }
}

impl<'r> Past<'r> {
    pub(super) fn new(under: Under<'r>) -> Self {
        Self { under }
    }

    /// Streams entries `from..to` in order.
    ///
    /// # Errors
    /// [`LedgerError`], or what `take` returns.
    pub fn entries<E: From<LedgerError>>(
        &self,
        from: u64,
        to: u64,
        mut take: impl FnMut(LogEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        self.under.chunks(from, to, |entries| {
            if entries.len() < DECODED_TOGETHER {
                let mut decoded = entries.into_iter().map(read::decode);
                return decoded.try_for_each(|entry| take(entry?));
            }
            let decoded: Vec<_> = entries.into_par_iter().map(read::decode).collect();
            decoded.into_iter().try_for_each(|entry| take(entry?))
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
        self.under.entries(from, to, |stored| {
            if finder.find(&stored.body).is_none() {
                return Ok(());
            }
            let event = read::event(stored.seq, &stored.body)?;
            take(stored.seq, event)
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
        self.under.entries(from, to, |stored| {
            if let Some((key, value)) = read::read_measured(stored.seq, &stored.body)? {
                take(stored.seq, key, value);
            }
            Ok(())
        })
    }

    /// Digests of the blobs that the first `to` entries name.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn blobs_named(&self, to: u64) -> Result<BTreeSet<Digest>, LedgerError> {
        let mut named = BTreeSet::new();
        self.under.entries(0, to, |stored| {
            named.extend(
                claim::blobs(&stored.body)
                    .into_iter()
                    .map(|(digest, _)| digest),
            );
            Ok::<_, LedgerError>(())
        })?;
        Ok(named)
    }

    /// A blob by its BLAKE3 digest.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, LedgerError> {
        Ok(self.under.reader().blob(digest)?)
    }
}

impl Ledger {
    /// What stands in the log.
    pub fn past(&self) -> Past<'_> {
        Past::new(self.under(self.store.reader()))
    }
}
