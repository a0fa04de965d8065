//! Reading: entries, events by id, as-of state, proofs, and following the log.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::sync::mpsc;

use clover_event::Event;
use clover_event::header;
use clover_event::id::EventId;
use clover_ground::digest::Digest;
use clover_ground::merkle;
use clover_ground::merkle::Tiler;
use clover_ground::note::ProofFile;
use clover_ground::note::SignedCheckpoint;
use clover_ground::time::Timestamp;
use clover_store::Reader;
use clover_store::Store;
use clover_store::StoredEntry;
use rayon::prelude::*;

use crate::append;
use crate::append::SPREAD_MIN;
use crate::checkpoint;
use crate::error::LedgerError;
use crate::keyring::Keyring;
use crate::open;
use crate::open::Ledger;
use crate::past::Past;
use crate::under::KnownTiles;
use crate::under::Under;

/// A log entry with its decoded event.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEntry {
    /// As it stands in the file.
    pub stored: StoredEntry,
    /// What it says.
    pub event: Event,
}

pub(super) fn decode(stored: StoredEntry) -> Result<LogEntry, LedgerError> {
    let event = event(stored.seq, &stored.body)?;
    Ok(LogEntry { stored, event })
}

/// The event of a body.
pub(super) fn event(seq: u64, body: &[u8]) -> Result<Event, LedgerError> {
    let integrity = |found: String| LedgerError::Integrity { seq, found };
    let decoded = header::decode(body).map_err(|error| integrity(error.to_string()))?;
    let event = decoded.into_event();
    event.map_err(|error| integrity(error.to_string()))
}

/// Entries of which the rows are read one after the other for each value that is looked for among them, at most: past that it
/// is faster to find each value.
const IN_A_ROW: u64 = 6;
/// Entries that one thread reads in a row before it takes the next that no other has taken: at least and at most so many.
const STRETCH: (u64, u64) = (16, 4_096);

/// What an entry measured, with the natural key under which it did.
pub(super) type Measurement = Option<(Digest, i64)>;

/// What the entries at these ascending positions measured, ascending. On this thread alone, as an append asks while the
/// others sign.
pub(super) fn measured(
    under: Under<'_>,
    seqs: &[u64],
) -> Result<Vec<(u64, Measurement)>, LedgerError> {
    under.at(seqs)?.iter().map(read_stored).collect()
}

fn read_stored(stored: &StoredEntry) -> Result<(u64, Measurement), LedgerError> {
    Ok((stored.seq, read_measured(stored.seq, &stored.body)?))
}

pub(super) fn read_measured(seq: u64, body: &[u8]) -> Result<Measurement, LedgerError> {
    header::measured_admitted(body).map_err(|found| LedgerError::Integrity { seq, found })
}

/// What the entries `from..to` measured, as they themselves say.
fn measured_between(
    under: Under<'_>,
    (from, to): (u64, u64),
) -> Result<Vec<(u64, Measurement)>, LedgerError> {
    let mut found = Vec::new();
    under.entries::<LedgerError>(from, to, |stored| {
        found.push(read_stored(&stored)?);
        Ok(())
    })?;
    Ok(found)
}

/// Values of a ledger file by natural key, each with the entry that recorded it. What an entry recorded never changes, so an
/// append to the same file that is made of these reads none of them again. Likewise which entries gave a digest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedValues {
    file: PathBuf,
    in_order: Option<Arc<InOrder>>,
    values: Vec<Arc<Values>>,
}

/// Values in the order in which they are asked for: each is looked for where the last was found and a little further on.
#[derive(Debug)]
struct InOrder {
    next: AtomicUsize,
    values: Vec<Value>,
}

/// How much further.
const FURTHER: usize = 32;

impl PartialEq for InOrder {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl Eq for InOrder {}

impl InOrder {
    fn get(&self, key: &Digest) -> Option<(u64, i64)> {
        let from = self.next.load(Ordering::Relaxed);
        let mut near = self.values.get(from..)?.iter().take(FURTHER);
        let at = from + near.position(|(of, _, _)| of == key)?;
        self.next.store(at, Ordering::Relaxed);
        let (_, seq, value) = self.values[at];
        Some((seq, value))
    }
}

/// A key, the entry that recorded a value under it, and the value. Until one is found, the entry is [`NONE`].
type Value = (Digest, u64, i64);
const NONE: u64 = u64::MAX;

#[derive(Debug, Default, PartialEq, Eq)]
struct Values {
    /// Ascending by key.
    sorted: Vec<Value>,
    /// For each beginning of a key, as many bits as name about as many beginnings as there are values: how many values stand
    /// before it. Keys are digests and spread evenly.
    starts: Vec<u32>,
}

/// The first `bits` bits of a digest.
fn beginning(digest: &Digest, bits: u32) -> usize {
    let [a, b, c, d, ..] = digest.0;
    (u32::from_be_bytes([a, b, c, d]) >> (32 - bits)) as usize
}

impl Values {
    /// Of these keys, none found yet.
    fn of(keys: &[Digest]) -> Self {
        let mut sorted: Vec<Value> = keys.iter().map(|key| (*key, NONE, 0)).collect();
        sorted.par_sort_unstable_by_key(|(key, _, _)| *key);
        sorted.dedup_by_key(|(key, _, _)| *key);
        let bits = Self::bits(sorted.len());
        let mut starts = vec![0; (1 << bits) + 1];
        for (key, _, _) in &sorted {
            starts[beginning(key, bits) + 1] += 1;
        }
        let mut before = 0;
        for start in &mut starts {
            before += *start;
            *start = before;
        }
        Self { sorted, starts }
    }

    fn bits(len: usize) -> u32 {
        len.max(2).ilog2().min(24)
    }

    fn place(&self, key: &Digest) -> Option<usize> {
        let at = beginning(key, Self::bits(self.sorted.len()));
        let [from, to] = [at, at + 1].map(|at| self.starts.get(at).copied());
        let from = from? as usize;
        let mut near = self.sorted.get(from..to? as usize)?.iter();
        Some(from + near.position(|(of, _, _)| of == key)?)
    }

    fn get(&self, key: &Digest) -> Option<(u64, i64)> {
        let (_, seq, value) = self.sorted[self.place(key)?];
        (seq != NONE).then_some((seq, value))
    }

    /// What the entry at `seq` recorded under a key, if that is wanted; the first of several entries counts.
    fn fill(&mut self, seq: u64, (key, value): (Digest, i64)) {
        if let Some(at) = self.place(&key)
            && self.sorted[at].1 > seq
        {
            self.sorted[at] = (key, seq, value);
        }
    }

    /// Finds them by the entries that gave them first, according to `find`.
    fn look_up(
        &mut self,
        under: Under<'_>,
        find: impl FnOnce(&[Digest]) -> Result<Vec<Option<u64>>, LedgerError>,
    ) -> Result<(), LedgerError> {
        let keys: Vec<Digest> = self.sorted.iter().map(|(key, _, _)| *key).collect();
        let given = find(&keys)?.into_iter().zip(keys);
        // What others appended meanwhile is not known here yet.
        let given = given.filter_map(|(seq, key)| Some((seq?, key)));
        let given = given.filter(|(seq, _)| *seq < under.size());
        let mut given: Vec<(u64, Digest)> = given.collect();
        given.sort_unstable();
        let mut seqs: Vec<u64> = given.iter().map(|(seq, _)| *seq).collect();
        seqs.dedup();
        let entries = under.at(&seqs)?;
        let read = entries.par_iter().with_min_len(SPREAD_MIN).map(read_stored);
        for (seq, said) in read.collect::<Result<Vec<_>, LedgerError>>()? {
            if let Some(said) = said.filter(|(key, _)| given.binary_search(&(seq, *key)).is_ok()) {
                self.fill(seq, said);
            }
        }
        Ok(())
    }

    /// Finds them among the entries `since..to`, read in a row by as many threads as there are cores, each with a connection
    /// of its own.
    fn scan(
        &mut self,
        store: &Store,
        (tree, kept): (&Tiler, &KnownTiles),
        (since, to): (u64, u64),
    ) -> Result<(), LedgerError> {
        let threads = rayon::current_num_threads();
        let share = (to - since) / (4 * threads as u64).max(1);
        let stretch = share.clamp(STRETCH.0, STRETCH.1);
        let stores = (0..threads).map(|_| store.another());
        let stores: Vec<Store> = stores.collect::<Result<_, _>>()?;
        let next = AtomicU64::new(since);
        std::thread::scope(|scope| {
            let (to_fill, found) = mpsc::sync_channel(threads);
            for store in stores {
                let (next, to_fill) = (&next, to_fill.clone());
                scope.spawn(move || {
                    loop {
                        let from = next.fetch_add(stretch, Ordering::Relaxed);
                        if from >= to {
                            return;
                        }
                        let end = to.min(from + stretch);
                        let under = Under::new(store.reader(), tree, kept);
                        let found = measured_between(under, (from, end));
                        let failed = found.is_err();
                        // Nobody fills any more only where another thread failed; then that error counts.
                        if to_fill.send(found).is_err() || failed {
                            return;
                        }
                    }
                });
            }
            drop(to_fill);
            let mut found = found.into_iter();
            found.try_for_each(|found| {
                self.fill_all(found?);
                Ok(())
            })
        })
    }

    fn fill_all(&mut self, measured: Vec<(u64, Measurement)>) {
        for (seq, said) in measured {
            if let Some(said) = said {
                self.fill(seq, said);
            }
        }
    }
}

impl RecordedValues {
    /// Reads what was measured under these keys, of the entries under a head: from an entry on, where these are few for as
    /// many keys, else nothing; without one wherever `find` says.
    fn read(
        (store, reader): (&Store, Reader<'_>),
        (tree, kept): (&Tiler, &KnownTiles),
        keys: &[Digest],
        since: Option<u64>,
        find: impl FnOnce(Reader<'_>, &[Digest]) -> Result<Vec<Option<u64>>, LedgerError>,
    ) -> Result<Self, LedgerError> {
        let under = Under::new(reader, tree, kept);
        let mut values = Values::of(keys);
        match since {
            None => values.look_up(under, |keys| find(reader, keys))?,
            Some(from) => {
                let to = under.size();
                if from < to && to - from <= IN_A_ROW * keys.len() as u64 {
                    values.scan(store, (tree, kept), (from, to))?;
                }
            }
        }
        Ok(Self {
            file: store.path().to_owned(),
            in_order: None,
            values: vec![Arc::new(values)],
        })
    }

    /// These and others of the same file.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        if self == Self::default() {
            return other;
        }
        let other = other.of(&self.file);
        self.in_order = self.in_order.or(other.in_order);
        self.values.extend(other.values);
        self
    }

    /// These, and what is asked for one after the other: of each a key, the entry that gave it first, and the value that it
    /// recorded, 0 where it recorded none. What is asked for otherwise is found as before.
    #[must_use]
    pub fn in_order(mut self, values: Vec<(Digest, u64, i64)>) -> Self {
        let next = AtomicUsize::new(0);
        self.in_order = Some(Arc::new(InOrder { next, values }));
        self
    }

    /// These where they were read from that file, else none.
    pub(super) fn of(self, file: &Path) -> Self {
        if self.file == file {
            return self;
        }
        Self::default()
    }

    /// The entry that recorded a value under this key, and the value.
    pub fn get(&self, key: &Digest) -> Option<(u64, i64)> {
        let in_order = self.in_order.as_ref().and_then(|of| of.get(key));
        in_order.or_else(|| self.values.iter().find_map(|values| values.get(key)))
    }

    /// The entry that gave this digest first.
    pub(super) fn giver(&self, digest: &Digest) -> Option<u64> {
        self.get(digest).map(|(giver, _)| giver)
    }
}

/// Reads recorded values on another thread, of a ledger that goes on appending.
#[derive(Debug)]
pub struct Reading {
    store: Store,
    keyring: Keyring,
    kept: KnownTiles,
}

impl Reading {
    /// The tree of the newest checkpoint, which a log key of this ledger must have signed.
    fn tree(&self, reader: Reader<'_>) -> Result<Tiler, LedgerError> {
        let head = reader.head()?.ok_or_else(open::no_head)?;
        let head = open::parse_checkpoint(&head)?;
        let (size, root) = (head.checkpoint().size, head.checkpoint().root);
        if !checkpoint::is_own(&head, &self.keyring) {
            let found = "a head that no log key known here signed".to_owned();
            return Err(LedgerError::Integrity { seq: size, found });
        }
        let tree = open::resume(reader, size)?;
        if tree.root() == root {
            return Ok(tree);
        }
        let found = "entries that are not under the signed head".to_owned();
        Err(LedgerError::Integrity { seq: size, found })
    }

    /// As [`Ledger::measured`], by what the index has taken in.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn measured(
        &self,
        since: Option<u64>,
        keys: &[Digest],
    ) -> Result<RecordedValues, LedgerError> {
        let read = self.store.read()?;
        let tree = self.tree(read.reader())?;
        let (file, tree) = ((&self.store, read.reader()), (&tree, &self.kept));
        let find = |reader: Reader<'_>, keys: &[Digest]| Ok(reader.find_digests(keys)?);
        RecordedValues::read(file, tree, keys, since, find)
    }
}

impl Ledger {
    /// What was measured under these natural keys, wherever something was. With `since`, only what is found by reading what
    /// was measured from that entry on in a row, and nothing where that would take longer than to find each.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn measured(
        &self,
        since: Option<u64>,
        keys: &[Digest],
    ) -> Result<RecordedValues, LedgerError> {
        let read = self.store.read()?;
        let file = (&self.store, read.reader());
        let tree = (&self.head.tiler, &self.head.kept);
        let find = |reader: Reader<'_>, keys: &[Digest]| append::find(&self.head, reader, keys);
        RecordedValues::read(file, tree, keys, since, find)
    }

    /// Begins to read values beside what is appended.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn reading(&mut self) -> Result<Reading, LedgerError> {
        self.settle()?;
        let store = self.store.another()?;
        let mut keyring = self.head.state.keyring.clone();
        if let Some(slate) = &self.head.slate {
            keyring.log_keys.push((self.size(), slate.key().clone()));
        }
        Ok(Reading {
            store,
            keyring,
            kept: KnownTiles::default(),
        })
    }

    /// What of `reader`'s file is under the head.
    pub(super) fn under<'a>(&'a self, reader: Reader<'a>) -> Under<'a> {
        self.head.under(reader)
    }

    /// One entry by position.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn entry(&self, seq: u64) -> Result<Option<LogEntry>, LedgerError> {
        let stored = self.under(self.store.reader()).entry(seq)?;
        stored.map(decode).transpose()
    }

    /// Streams the entries `from..to` in order as they stand in the file.
    ///
    /// # Errors
    /// [`LedgerError`], or what `take` returns.
    pub fn stored<E: From<LedgerError>>(
        &self,
        from: u64,
        to: u64,
        take: impl FnMut(StoredEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        let read = self.store.read().map_err(LedgerError::from)?;
        self.under(read.reader()).entries(from, to, take)
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

    /// The newest entry that was recorded at a time or before.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn newest_by(&self, time: Timestamp) -> Result<Option<u64>, LedgerError> {
        let under = self.under(self.store.reader());
        // Entries below `low` were recorded by then, those from `high` on were not.
        let (mut low, mut high) = (0, self.size());
        while low < high {
            let middle = low + (high - low) / 2;
            let stored = under.entry(middle)?;
            if stored.is_some_and(|stored| stored.recorded_at <= time) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low.checked_sub(1))
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
        take: impl FnMut(LogEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        let read = self.store.read().map_err(LedgerError::from)?;
        Past::new(self.under(read.reader())).entries(from, to, take)
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
        take: impl FnMut(u64, Event) -> Result<(), E>,
    ) -> Result<(), E> {
        let read = self.store.read().map_err(LedgerError::from)?;
        Past::new(self.under(read.reader())).events_with(from, to, text, take)
    }

    /// An offline proof that entry `seq` is under `checkpoint`, a checkpoint of this log.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn prove(&self, seq: u64, checkpoint: SignedCheckpoint) -> Result<ProofFile, LedgerError> {
        let tiles = self.under(self.store.reader());
        let size = checkpoint.checkpoint().size;
        let hashes = merkle::inclusion_proof(&tiles, seq, size).map_err(Under::error)?;
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
        let tiles = self.under(self.store.reader());
        merkle::consistency_proof(&tiles, first, second).map_err(Under::error)
    }

    /// The signed checkpoint of exactly `size` entries, when one was kept: of this log, and of these entries.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn checkpoint_at(&self, size: u64) -> Result<Option<SignedCheckpoint>, LedgerError> {
        let Some(stored) = self.store.reader().checkpoint(size)? else {
            return Ok(None);
        };
        let kept = open::parse_checkpoint(&stored)?;
        match self.agree(&kept) {
            Ok(()) => Ok(Some(kept)),
            Err(LedgerError::Diverged(how)) => Err(LedgerError::Integrity {
                seq: size.saturating_sub(1),
                found: format!("a kept checkpoint that is not of this log: {how}"),
            }),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_whole_key() {
        for len in [0, 1, 2, 3, 1000] {
            let key = |n: u64| Digest::sha256(&n.to_be_bytes());
            // Two keys that differ in their last byte alone, and one twice.
            let mut twin = key(0);
            twin.0[31] ^= 1;
            let mut keys: Vec<_> = (0..len).map(key).collect();
            keys.extend([twin, twin]);
            let mut values = Values::of(&keys);
            assert_eq!(values.get(&twin), None);
            values.fill(7, (twin, 9));
            values.fill(8, (twin, 10));
            for n in 0..len {
                values.fill(n, (key(n), -5));
            }
            values.fill(3, (key(2000), 1));
            assert_eq!(values.get(&twin), Some((7, 9)));
            for n in (0..len + 50).chain([2000]) {
                let found = (n < len).then_some((n, -5));
                assert_eq!(values.get(&key(n)), found, "{n} of {len}");
            }
        }
        assert_eq!(Values::default().get(&Digest([255; 32])), None);
    }
}
