//! The digest index: which entry first gave an event id, a natural key, a seal or a charge.
//!
//! It is filled in sorted batches by a cursor and may lag behind the log; what lies past the cursor is
//! the caller's to remember.

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
use crate::kinds;

const LOOKUP: &str = "SELECT seq FROM digest_index WHERE digest = ?1";
const PAGE: &str =
    "SELECT digest, seq FROM digest_index WHERE digest > ?1 ORDER BY digest LIMIT ?2";
const INSERT: &str = "INSERT OR IGNORE INTO digest_index (digest, seq) VALUES (?1, ?2)";
/// Names of the cursors that a file may hold.
const CURSORS_KNOWN: [&str; 2] = ["digest_index", kinds::CURSOR];
const CURSOR: &str = "SELECT through FROM cursors WHERE name = 'digest_index'";
const CURSORS: &str = "SELECT name FROM cursors ORDER BY name";
const SET_CURSOR: &str = "INSERT INTO cursors (name, through) VALUES ('digest_index', ?1) \
     ON CONFLICT (name) DO UPDATE SET through = excluded.through";

impl Reader<'_> {
    /// Entries whose digests the index holds.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn index_through(self) -> Result<u64, StoreError> {
        let found = self
            .conn
            .prepare_cached(CURSOR)?
            .query_row([], |row| row.get(0))
            .optional()?;
        found.map_or(Ok(0), |through| count(through, "cursors.through"))
    }

    /// Cursors that belong to nothing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn stray_cursors(self) -> Result<u64, StoreError> {
        let mut statement = self.conn.prepare_cached(CURSORS)?;
        let mut rows = statement.query([])?;
        let (mut order, mut strays) = (Ascending::default(), 0);
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            strays += u64::from(!CURSORS_KNOWN.contains(&name.as_str()));
            order.next(name, "cursors")?;
        }
        Ok(strays)
    }

    /// The entry that first gave each digest, in the order asked. Ask in sorted order: neighbours share
    /// pages.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn find_digests<'d>(
        self,
        digests: impl IntoIterator<Item = &'d Digest>,
    ) -> Result<Vec<Option<u64>>, StoreError> {
        let mut statement = self.conn.prepare_cached(LOOKUP)?;
        let find = |digest: &Digest| -> Result<Option<u64>, StoreError> {
            let mut rows = statement.query([&digest.0[..]])?;
            match rows.next()? {
                Some(row) => Ok(Some(count(row.get(0)?, "digest_index.seq")?)),
                None => Ok(None),
            }
        };
        digests.into_iter().map(find).collect()
    }

    /// Up to `limit` rows of the index past `after`, in digest order.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn index_page(
        self,
        after: Option<Digest>,
        limit: usize,
    ) -> Result<Vec<(Digest, u64)>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut statement = self.conn.prepare_cached(PAGE)?;
        let after: &[u8] = after.as_ref().map_or(&[], |digest| &digest.0);
        let mut rows = statement.query(params![after, limit])?;
        let (mut order, mut page) = (Ascending::default(), Vec::new());
        while let Some(row) = rows.next()? {
            let bytes = row
                .get_ref(0)?
                .as_blob()
                .map_err(|error| StoreError::Damaged(error.to_string()))?;
            let digest = digest(bytes, "digest_index.digest")?;
            order.next(digest, "digests of the index")?;
            page.push((digest, count(row.get(1)?, "digest_index.seq")?));
        }
        Ok(page)
    }
}

impl WriteTxn<'_> {
    /// Adds digests, sorted by the caller, and moves the cursor. A digest that is there keeps its first
    /// entry.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn index_digests<'d>(
        &self,
        digests: impl IntoIterator<Item = (&'d Digest, u64)>,
        through: u64,
    ) -> Result<(), StoreError> {
        let mut insert = self.txn.prepare_cached(INSERT)?;
        for (digest, seq) in digests {
            insert.execute(params![&digest.0[..], sql_int(seq)])?;
        }
        self.txn
            .prepare_cached(SET_CURSOR)?
            .execute([sql_int(through)])?;
        Ok(())
    }
}
