//! Reading: entries, events by id, as-of state, proofs, and following the log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use rayon::prelude::*;

use crate::event::Event;
use crate::event::header;
use crate::event::id::EventId;
use crate::ground::digest::Digest;
use crate::ground::merkle;
use crate::ground::merkle::ReadError;
use crate::ground::merkle::TileSource;
use crate::ground::note::ProofFile;
use crate::ground::note::SignedCheckpoint;
use crate::ledger::append;
use crate::ledger::append::SPREAD_MIN;
use crate::ledger::catch_up;
use crate::ledger::error::LedgerError;
use crate::ledger::open;
use crate::ledger::open::Ledger;
use crate::ledger::past::Past;
use crate::ledger::state::State;
use crate::store::Reader;
use crate::store::StoreError;
use crate::store::StoredEntry;

/// Tiles from the store: full ones as stored, the edge rebuilt from entries and the tiles below.
#[derive(Clone, Copy, Debug)]
pub struct StoreTiles<'a> {
    reader: Reader<'a>,
}

impl<'a> StoreTiles<'a> {
    /// Over one state of the file.
    pub fn new(reader: Reader<'a>) -> Self {
        Self { reader }
    }

    pub(super) fn error(error: ReadError<StoreError>) -> LedgerError {
        match error {
            ReadError::Source(error) => error.into(),
            other => LedgerError::Integrity {
                seq: 0,
                found: other.to_string(),
            },
        }
    }
}

impl TileSource for StoreTiles<'_> {
    type Error = StoreError;

    fn tile(&self, level: u8, index: u64, width: u16) -> Result<Arc<[Digest]>, StoreError> {
        if width == merkle::TILE_WIDTH
            && let Some(hashes) = self.reader.tile(level, index)?
        {
            return Ok(hashes.into());
        }
        let (from, to) = (index * 256, index * 256 + u64::from(width));
        let Some(below) = level.checked_sub(1) else {
            let mut leaves = Vec::with_capacity(usize::from(width));
            self.reader.entries(from, to, |stored| {
                leaves.push(open::leaf(&stored));
                Ok::<_, StoreError>(())
            })?;
            return Ok(leaves.into());
        };
        Ok(self.reader.tile_roots(below, from, to)?.into())
    }
}

/// A log entry with its decoded event.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// As it stands in the file.
    pub stored: StoredEntry,
    /// What it says.
    pub event: Event,
}

pub(super) fn decode(stored: StoredEntry) -> Result<Read, LedgerError> {
    let integrity = |found: String| LedgerError::Integrity {
        seq: stored.seq,
        found,
    };
    let decoded = header::decode(&stored.body).map_err(|error| integrity(error.to_string()))?;
    let event = decoded
        .into_event()
        .map_err(|error| integrity(error.to_string()))?;
    Ok(Read { stored, event })
}

/// What an entry measured, with the natural key under which it did.
pub(super) type Measured = Option<(Digest, i64)>;

/// What the entries at these ascending positions measured; a position without an entry is left out.
pub(super) fn measured(
    reader: Reader<'_>,
    seqs: &[u64],
) -> Result<BTreeMap<u64, Measured>, LedgerError> {
    let bodies = reader.bodies(seqs)?;
    let read = |(seq, body): (u64, Vec<u8>)| {
        let integrity = |found: String| LedgerError::Integrity { seq, found };
        let decoded =
            header::decode_admitted(&body).map_err(|error| integrity(error.to_string()))?;
        let event = decoded
            .into_event()
            .map_err(|error| integrity(error.to_string()))?;
        Ok((seq, event.natural_key().zip(event.payload.measured())))
    };
    if bodies.len() < SPREAD_MIN {
        return bodies.into_iter().map(read).collect();
    }
    bodies.into_par_iter().map(read).collect()
}

/// Values by natural key, each with the entry that recorded it.
pub(super) type Values = BTreeMap<Digest, (u64, i64)>;

/// The values that were read last. What an entry recorded never changes, so the append that is made of them takes these
/// and reads no entry twice.
#[derive(Debug, Default)]
pub(super) struct LastRead(Mutex<Values>);

impl LastRead {
    fn keep(&self, values: Values) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = values;
    }

    pub(super) fn take(&mut self) -> Values {
        std::mem::take(self.0.get_mut().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Ledger {
    /// What was measured under each of these natural keys, in the order asked; `None` where nothing was.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn measured(&self, keys: &[Digest]) -> Result<Vec<Option<i64>>, LedgerError> {
        let mut sorted = keys.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let read = self.store.read()?;
        let found = append::find(&self.head, read.reader(), &sorted)?;
        let mut seqs: Vec<u64> = found.iter().copied().flatten().collect();
        seqs.sort_unstable();
        seqs.dedup();
        let measured = measured(read.reader(), &seqs)?;
        let of = |(key, seq): (Digest, Option<u64>)| {
            let (said, value) = (*measured.get(&seq?)?)?;
            (said == key).then_some((key, (seq?, value)))
        };
        let values: Values = sorted.into_iter().zip(found).filter_map(of).collect();
        let of = |key: &Digest| values.get(key).map(|(_, value)| *value);
        let asked = keys.iter().map(of).collect();
        self.last_read.keep(values);
        Ok(asked)
    }

    /// One entry by position.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn entry(&self, seq: u64) -> Result<Option<Read>, LedgerError> {
        self.store.reader().entry(seq)?.map(decode).transpose()
    }

    /// The position of an event by its id.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn find(&self, id: EventId) -> Result<Option<u64>, LedgerError> {
        if let Some(seq) = self.head.tail.get(&id.0) {
            return Ok(Some(seq));
        }
        let found = self.store.reader().find_digests([&id.0])?;
        let Some(seq) = found.into_iter().next().flatten() else {
            return Ok(None);
        };
        // The index also knows natural keys; only an entry whose body hashes to the id is the event.
        Ok(self
            .entry(seq)?
            .filter(|read| read.event.id == id)
            .map(|_| seq))
    }

    /// The entry that first gave `digest`: an event id, a natural key, a seal or a charge.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn giver(&self, digest: &Digest) -> Result<Option<u64>, LedgerError> {
        if let Some(seq) = self.head.tail.get(digest) {
            return Ok(Some(seq));
        }
        let found = self.store.reader().find_digests([digest])?;
        Ok(found.into_iter().next().flatten())
    }

    /// Streams entries `from..to` in order.
    ///
    /// # Errors
    /// [`LedgerError`], or what `take` returns.
    pub fn entries<E: From<LedgerError>>(
        &self,
        from: u64,
        to: u64,
        take: impl FnMut(Read) -> Result<(), E>,
    ) -> Result<(), E> {
        let read = self.store.read().map_err(LedgerError::from)?;
        Past::new(read.reader()).entries(from, to, take)
    }

    /// Streams those of the entries `from..to` in order whose bodies hold `text` somewhere; the rest is not decoded.
    ///
    /// # Errors
    /// [`LedgerError`], or what `take` returns.
    pub fn entries_with<E: From<LedgerError>>(
        &self,
        from: u64,
        to: u64,
        text: &str,
        take: impl FnMut(Read) -> Result<(), E>,
    ) -> Result<(), E> {
        let read = self.store.read().map_err(LedgerError::from)?;
        Past::new(read.reader()).entries_with(from, to, text, take)
    }

    /// State after the first `size` entries, from the recorded facts alone.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when the entries do not match the signed head.
    pub fn state_at(&self, size: u64) -> Result<State, LedgerError> {
        let read = self.store.read()?;
        let mut head = open::Head::empty(self.rulebook);
        head.known = u64::MAX;
        catch_up::fold_to(&mut head, read.reader(), size.min(self.size()))?;
        let expected = self.root_at(head.size())?;
        if head.root() != expected {
            let found = "entries that are not under the signed head".to_owned();
            return Err(LedgerError::Integrity {
                seq: head.size().saturating_sub(1),
                found,
            });
        }
        Ok(head.state)
    }

    /// An offline proof that entry `seq` is under `checkpoint`, a checkpoint of this log.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn prove(&self, seq: u64, checkpoint: SignedCheckpoint) -> Result<ProofFile, LedgerError> {
        let tiles = StoreTiles::new(self.store.reader());
        let size = checkpoint.checkpoint().size;
        let hashes = merkle::inclusion_proof(&tiles, seq, size).map_err(StoreTiles::error)?;
        ProofFile::new(None, seq, hashes, checkpoint).map_err(|error| LedgerError::Integrity {
            seq,
            found: error.to_string(),
        })
    }

    /// Hashes that prove the log of `first` entries to be a prefix of the log of `second`.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn prove_consistency(&self, first: u64, second: u64) -> Result<Vec<Digest>, LedgerError> {
        let tiles = StoreTiles::new(self.store.reader());
        merkle::consistency_proof(&tiles, first, second).map_err(StoreTiles::error)
    }

    /// The signed checkpoint of exactly `size` entries, when one was kept.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn checkpoint_at(&self, size: u64) -> Result<Option<SignedCheckpoint>, LedgerError> {
        self.store
            .reader()
            .checkpoint(size)?
            .as_ref()
            .map(open::parse_checkpoint)
            .transpose()
    }
}
