//! Checkpoints and full tiles of the tree.

use clover_ground::digest::Digest;
use rusqlite::OptionalExtension as _;
use rusqlite::params;

use crate::Reader;
use crate::StoreError;
use crate::WriteTxn;
use crate::entries::Ascending;
use crate::entries::count;
use crate::entries::digest;
use crate::entries::sql_int;

const HEAD: &str = "SELECT size, note FROM checkpoints ORDER BY size DESC LIMIT 1";
const AT: &str = "SELECT size, note FROM checkpoints WHERE size = ?1";
const FROM: &str = "SELECT size, note FROM checkpoints WHERE size >= ?1 ORDER BY size";
const NEXT: &str = "SELECT size, note FROM checkpoints WHERE size > ?1 ORDER BY size LIMIT 1";
const TILE_IDS: &str = "SELECT id FROM tiles ORDER BY id";
const INSERT: &str = "INSERT INTO checkpoints (size, note) VALUES (?1, ?2)";
const INSERT_TILE: &str = "INSERT INTO tiles (id, root, hashes) VALUES (?1, ?2, ?3)";
const TILE: &str = "SELECT hashes FROM tiles WHERE id = ?1";
const TILE_ROOTS: &str = "SELECT id, root FROM tiles WHERE id >= ?1 AND id < ?2 ORDER BY id";
const TILE_BYTES: &str = "SELECT root, hashes FROM tiles WHERE id = ?1";

const LEVEL: i64 = 1 << 48;

/// A kept checkpoint: its size and the exact bytes of its signed note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCheckpoint {
    /// Entries under it.
    pub size: u64,
    /// The signed note.
    pub note: Vec<u8>,
}

/// Root and hashes of a tile, as bytes.
type TileBytes = (Vec<u8>, Vec<u8>);

fn tile_id(level: u8, index: u64) -> i64 {
    i64::from(level) * LEVEL + sql_int(index)
}

impl Reader<'_> {
    /// The newest checkpoint.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn head(self) -> Result<Option<StoredCheckpoint>, StoreError> {
        self.one_checkpoint(HEAD, &[])
    }

    /// The checkpoint of exactly this size.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn checkpoint(self, size: u64) -> Result<Option<StoredCheckpoint>, StoreError> {
        self.one_checkpoint(AT, &[&sql_int(size)])
    }

    fn one_checkpoint(
        self,
        sql: &str,
        params: &[&dyn rusqlite::ToSql],
    ) -> Result<Option<StoredCheckpoint>, StoreError> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let row = statement
            .query_row(params, |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))
            .optional()?;
        row.map(|(size, note)| {
            Ok(StoredCheckpoint {
                size: count(size, "checkpoints.size")?,
                note,
            })
        })
        .transpose()
    }

    /// The first checkpoint of a size above `after`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn next_checkpoint(self, after: u64) -> Result<Option<StoredCheckpoint>, StoreError> {
        self.one_checkpoint(NEXT, &[&sql_int(after)])
    }

    /// How many full tiles are stored.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn tile_count(self) -> Result<u64, StoreError> {
        let mut statement = self.conn.prepare_cached(TILE_IDS)?;
        let mut rows = statement.query([])?;
        let (mut order, mut found) = (Ascending::default(), 0);
        while let Some(row) = rows.next()? {
            order.next(row.get::<_, i64>(0)?, "tiles")?;
            found += 1;
        }
        Ok(found)
    }

    /// Streams checkpoints of `size >= from` in order.
    ///
    /// # Errors
    /// [`StoreError`], or what `take` returns.
    pub fn checkpoints<E: From<StoreError>>(
        self,
        from: u64,
        mut take: impl FnMut(StoredCheckpoint) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut statement = self.conn.prepare_cached(FROM).map_err(StoreError::from)?;
        let mut rows = statement.query([sql_int(from)]).map_err(StoreError::from)?;
        let mut order = Ascending::default();
        while let Some(row) = rows.next().map_err(StoreError::from)? {
            let size: i64 = row.get(0).map_err(StoreError::from)?;
            order.next(size, "checkpoints")?;
            let note = row.get(1).map_err(StoreError::from)?;
            take(StoredCheckpoint {
                size: count(size, "checkpoints.size")?,
                note,
            })?;
        }
        Ok(())
    }

    /// The 256 hashes of a full tile.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn tile(self, level: u8, index: u64) -> Result<Option<Vec<Digest>>, StoreError> {
        let mut statement = self.conn.prepare_cached(TILE)?;
        let bytes: Option<Vec<u8>> = statement
            .query_row([tile_id(level, index)], |row| row.get(0))
            .optional()?;
        bytes.map(|bytes| tile_hashes(&bytes)).transpose()
    }

    /// Roots of the full tiles `from..to` of a level: the hashes of the level above.
    ///
    /// # Errors
    /// [`StoreError`], [`StoreError::Damaged`] when one is missing.
    pub fn tile_roots(self, level: u8, from: u64, to: u64) -> Result<Vec<Digest>, StoreError> {
        let mut statement = self.conn.prepare_cached(TILE_ROOTS)?;
        let mut rows = statement.query([tile_id(level, from), tile_id(level, to)])?;
        let mut roots = Vec::new();
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            let next = from + u64::try_from(roots.len()).unwrap_or(u64::MAX);
            if id != tile_id(level, next) {
                return Err(StoreError::Damaged(format!(
                    "tile {level}/{next} is missing"
                )));
            }
            let bytes: Vec<u8> = row.get(1)?;
            roots.push(digest(&bytes, "tiles.root")?);
        }
        let end = from + u64::try_from(roots.len()).unwrap_or(u64::MAX);
        if end != to {
            return Err(StoreError::Damaged(format!(
                "tile {level}/{end} is missing"
            )));
        }
        Ok(roots)
    }

    /// Root and bytes of a full tile as they stand.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn tile_bytes(self, level: u8, index: u64) -> Result<Option<TileBytes>, StoreError> {
        let mut statement = self.conn.prepare_cached(TILE_BYTES)?;
        Ok(statement
            .query_row([tile_id(level, index)], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?)
    }
}

fn tile_hashes(bytes: &[u8]) -> Result<Vec<Digest>, StoreError> {
    let (hashes, rest) = bytes.as_chunks::<32>();
    if hashes.len() != 256 || !rest.is_empty() {
        return Err(StoreError::Damaged(format!(
            "a tile has {} bytes, not 8192",
            bytes.len()
        )));
    }
    Ok(hashes.iter().map(|hash| Digest(*hash)).collect())
}

impl WriteTxn<'_> {
    /// Keeps a checkpoint; it becomes the head.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn put_checkpoint(&self, checkpoint: &StoredCheckpoint) -> Result<(), StoreError> {
        self.txn
            .prepare_cached(INSERT)?
            .execute(params![sql_int(checkpoint.size), checkpoint.note])?;
        Ok(())
    }

    /// Keeps a full tile.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn put_tile(
        &self,
        level: u8,
        index: u64,
        root: &Digest,
        hashes: &[Digest],
    ) -> Result<(), StoreError> {
        let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.0).collect();
        self.txn.prepare_cached(INSERT_TILE)?.execute(params![
            tile_id(level, index),
            &root.0[..],
            bytes
        ])?;
        Ok(())
    }
}
