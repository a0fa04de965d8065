//! Reading under the signed head: every entry that is read is hashed and held against the tree.
//!
//! The tree in memory has the root that the log key signed. A stored tile is believed once its root is the hash that the
//! tile above it holds, up to what is in memory; an entry is believed once its leaf is the one of its tile. So whoever
//! changes the file while a number is computed, and changes it back, stops the computation instead of choosing its result.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use clover_ground::digest::Digest;
use clover_ground::merkle;
use clover_ground::merkle::LEAVES_AT_ONCE;
use clover_ground::merkle::ReadError;
use clover_ground::merkle::TILE_WIDTH;
use clover_ground::merkle::Tile;
use clover_ground::merkle::TileSource;
use clover_ground::merkle::Tiler;
use clover_store::Reader;
use clover_store::StoreError;
use clover_store::StoredEntry;
use rayon::prelude::*;

use crate::error::LedgerError;
use crate::lines::LeafLines;

/// Tiles kept in memory; past that those of the lowest level are read and checked again.
const KEPT_MAX: usize = 2_048;
/// Entries read before the first are handed over, and at most: few where the caller may stop early.
const AHEAD: (usize, usize) = (16, 2_048);

/// Full tiles that were found to be under a signed head. A log only grows, so they stay what they are.
#[derive(Debug, Default)]
pub(super) struct KnownTiles(Mutex<Tiles>);

/// Hashes by level and index.
type Tiles = BTreeMap<(u8, u64), Arc<[Digest]>>;

impl KnownTiles {
    fn get(&self, level: u8, index: u64) -> Option<Arc<[Digest]>> {
        let tiles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tiles.get(&(level, index)).cloned()
    }

    fn put(&self, level: u8, index: u64, hashes: &Arc<[Digest]>) {
        let mut tiles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tiles.len() >= KEPT_MAX {
            tiles.retain(|(level, _), _| *level > 0);
        }
        tiles.insert((level, index), hashes.clone());
    }

    /// Keeps tiles of entries that this process itself takes into the log.
    pub(super) fn put_all(&self, tiles: &[Tile]) {
        for tile in tiles {
            self.put(tile.level, tile.index, &tile.hashes.as_slice().into());
        }
    }
}

/// The entries of a file that are under a signed head, and no others.
#[derive(Clone, Copy)]
pub(super) struct Under<'a> {
    reader: Reader<'a>,
    tree: &'a Tiler,
    kept: &'a KnownTiles,
}

/// Why a stream of entries ended early.
enum StreamEnd<E> {
    Caller(E),
    Ledger(LedgerError),
}

impl<E> From<StoreError> for StreamEnd<E> {
    fn from(error: StoreError) -> Self {
        Self::Ledger(error.into())
    }
}

fn other(seq: u64, found: impl Into<String>) -> LedgerError {
    let found = found.into();
    LedgerError::Integrity { seq, found }
}

/// The root over the hashes of a full tile.
fn root_of(hashes: &[Digest]) -> Option<Digest> {
    let tiles = Tiler::new().extend(hashes);
    tiles.first().map(|tile| tile.root)
}

/// Leaf hashes of these entries, on all cores where there are many.
fn leaves(entries: &[StoredEntry]) -> Vec<Digest> {
    let of = |some: &[StoredEntry]| {
        let mut lines = LeafLines::default();
        for stored in some {
            lines.push(&stored.as_ref());
        }
        lines.leaves()
    };
    if entries.len() <= 4 * LEAVES_AT_ONCE {
        return entries.chunks(LEAVES_AT_ONCE).flat_map(of).collect();
    }
    let some = entries.par_chunks(LEAVES_AT_ONCE);
    some.flat_map_iter(of).collect()
}

impl<'a> Under<'a> {
    /// What `reader` reads of the log that has this tree.
    pub(super) fn new(reader: Reader<'a>, tree: &'a Tiler, kept: &'a KnownTiles) -> Self {
        Self { reader, tree, kept }
    }

    /// The file itself, for what is not an entry.
    pub(super) fn reader(&self) -> Reader<'a> {
        self.reader
    }

    /// Entries under the head.
    pub(super) fn size(&self) -> u64 {
        self.tree.size()
    }

    /// The hashes of a tile.
    fn hashes(&self, level: u8, index: u64) -> Result<Arc<[Digest]>, LedgerError> {
        let first = index.saturating_mul(u64::from(TILE_WIDTH));
        let named = || format!("tile {level}/{index}, which is not under the signed head");
        let full = merkle::full_tiles(level, self.size());
        if index >= full {
            let edge = self.tree.partial().get(usize::from(level));
            let edge = edge.filter(|_| index == full);
            let edge = edge.ok_or_else(|| other(first, named()))?;
            return Ok(edge.as_slice().into());
        }
        if let Some(kept) = self.kept.get(level, index) {
            return Ok(kept);
        }
        let width = u64::from(TILE_WIDTH);
        let above = self.hashes(level + 1, index / width)?;
        let at = usize::try_from(index % width).unwrap_or(usize::MAX);
        let stored = self.reader.tile(level, index)?;
        let stored = stored.filter(|hashes| root_of(hashes).as_ref() == above.get(at));
        let stored: Arc<[Digest]> = stored.ok_or_else(|| other(first, named()))?.into();
        self.kept.put(level, index, &stored);
        Ok(stored)
    }

    /// Holds entries, which follow one another, against their leaves.
    fn check(&self, entries: &[StoredEntry]) -> Result<(), LedgerError> {
        let width = u64::from(TILE_WIDTH);
        let mut tile: Option<(u64, Arc<[Digest]>)> = None;
        for (stored, leaf) in entries.iter().zip(leaves(entries)) {
            let index = stored.seq / width;
            let hashes = match &tile {
                Some((at, hashes)) if *at == index => hashes,
                _ => &tile.insert((index, self.hashes(0, index)?)).1,
            };
            let at = usize::try_from(stored.seq % width).unwrap_or(usize::MAX);
            if hashes.get(at) != Some(&leaf) {
                let found = "an entry that is not under the signed head";
                return Err(other(stored.seq, found));
            }
        }
        Ok(())
    }

    /// Streams the entries `from..to` that are under the head to `take`, each of them: a gap is an error.
    ///
    /// # Errors
    /// [`LedgerError`], or what `take` returns.
    pub(super) fn entries<E: From<LedgerError>>(
        &self,
        from: u64,
        to: u64,
        mut take: impl FnMut(StoredEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        self.chunks(from, to, |entries| {
            entries.into_iter().try_for_each(&mut take)
        })
    }

    /// As [`Under::entries`], many at a time.
    ///
    /// # Errors
    /// [`LedgerError`], or what `take` returns.
    pub(super) fn chunks<E: From<LedgerError>>(
        &self,
        from: u64,
        to: u64,
        mut take: impl FnMut(Vec<StoredEntry>) -> Result<(), E>,
    ) -> Result<(), E> {
        let to = to.min(self.size());
        let (mut next, mut ahead) = (from, AHEAD.0);
        let mut waiting: Vec<StoredEntry> = Vec::new();
        let mut give = |waiting: Vec<StoredEntry>| {
            self.check(&waiting).map_err(StreamEnd::Ledger)?;
            take(waiting).map_err(StreamEnd::Caller)
        };
        let read = self.reader.entries(from, to, |stored| {
            if stored.seq != next {
                return Err(StreamEnd::Ledger(other(next, "no entry")));
            }
            next += 1;
            waiting.push(stored);
            if waiting.len() < ahead {
                return Ok(());
            }
            ahead = AHEAD.1.min(2 * ahead);
            give(std::mem::take(&mut waiting))
        });
        let read = read.and_then(|()| {
            if next < to {
                return Err(StreamEnd::Ledger(other(next, "no entry")));
            }
            give(waiting)
        });
        read.map_err(|stop| match stop {
            StreamEnd::Ledger(error) => error.into(),
            StreamEnd::Caller(error) => error,
        })
    }

    /// One entry, where the log is that long.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub(super) fn entry(&self, seq: u64) -> Result<Option<StoredEntry>, LedgerError> {
        let mut found = None;
        self.entries(seq, seq.saturating_add(1), |stored| {
            found = Some(stored);
            Ok::<_, LedgerError>(())
        })?;
        Ok(found)
    }

    /// The entries at these positions, in the order asked: best ascending, since neighbours share pages.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub(super) fn at(&self, seqs: &[u64]) -> Result<Vec<StoredEntry>, LedgerError> {
        let read = |seq: &u64| {
            let stored = self.reader.entry(*seq)?;
            stored.ok_or_else(|| other(*seq, "no entry where the index points"))
        };
        let found: Vec<StoredEntry> = seqs.iter().map(read).collect::<Result<_, _>>()?;
        self.check(&found)?;
        Ok(found)
    }

    /// What went wrong in reading a proof or a root from tiles.
    pub(super) fn error(error: ReadError<LedgerError>) -> LedgerError {
        match error {
            ReadError::Source(error) => error,
            error => other(0, error.to_string()),
        }
    }
}

impl TileSource for Under<'_> {
    type Error = LedgerError;

    /// A tile as it was when it had this width: hashes are only ever added.
    fn tile(&self, level: u8, index: u64, width: u16) -> Result<Arc<[Digest]>, LedgerError> {
        let hashes = self.hashes(level, index)?;
        match hashes.get(..usize::from(width)) {
            Some(all) if all.len() == hashes.len() => Ok(hashes),
            Some(first) => Ok(first.into()),
            None => Err(other(
                index.saturating_mul(u64::from(TILE_WIDTH)),
                format!("tile {level}/{index} of {} hashes", hashes.len()),
            )),
        }
    }
}
