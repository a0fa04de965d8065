//! Blobs by the BLAKE3 digest of their bytes.

use clover_ground::digest::Digest;
use rusqlite::OptionalExtension as _;
use rusqlite::params;

use crate::Reader;
use crate::StoreError;
use crate::WriteTxn;
use crate::entries::Ascending;
use crate::entries::digest;

const SELECT: &str = "SELECT bytes FROM blobs WHERE digest = ?1";
const LENGTH: &str = "SELECT length(bytes) FROM blobs WHERE digest = ?1";
const ALL: &str = "SELECT id, digest, bytes FROM blobs ORDER BY id";
const COUNT: &str = "SELECT count(*) FROM blobs";
const IDS: &str = "SELECT id FROM blobs ORDER BY id";
const INSERT: &str = "INSERT INTO blobs (id, digest, bytes) VALUES ((SELECT coalesce(max(id), 0) + 1 FROM blobs), ?1, ?2)";

impl Reader<'_> {
    /// A blob's bytes, which are those of its digest.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] where other bytes stand under the digest.
    pub fn blob(self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let mut statement = self.conn.prepare_cached(SELECT)?;
        let found = statement.query_row([&digest.0[..]], |row| row.get::<_, Vec<u8>>(0));
        let found = found.optional()?;
        match found {
            Some(bytes) if Digest::blake3(&bytes) != *digest => Err(StoreError::Damaged(format!(
                "blob {digest} has bytes of another digest"
            ))),
            found => Ok(found),
        }
    }

    /// A blob's length in bytes.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn blob_len(self, digest: &Digest) -> Result<Option<u64>, StoreError> {
        let length: Option<i64> = self
            .conn
            .prepare_cached(LENGTH)?
            .query_row([&digest.0[..]], |row| row.get(0))
            .optional()?;
        length
            .map(|length| super::entries::count(length, "length of a blob"))
            .transpose()
    }

    /// How many blobs are stored.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn blob_count(self) -> Result<u64, StoreError> {
        super::entries::count(
            self.conn
                .prepare_cached(COUNT)?
                .query_row([], |row| row.get(0))?,
            "count of blobs",
        )
    }

    /// Whether blobs are numbered from 1 without gaps. Where they are not, the next one cannot be stored.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn blobs_are_numbered(self) -> Result<bool, StoreError> {
        let mut statement = self.conn.prepare_cached(IDS)?;
        let mut rows = statement.query([])?;
        for expected in 1.. {
            match rows.next()? {
                None => break,
                Some(row) if row.get::<_, i64>(0)? != expected => return Ok(false),
                Some(_) => {}
            }
        }
        Ok(true)
    }

    /// Streams every blob as (digest, bytes) in order of arrival.
    ///
    /// # Errors
    /// [`StoreError`], or what `take` returns.
    pub fn blobs<E: From<StoreError>>(
        self,
        mut take: impl FnMut(Digest, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut statement = self.conn.prepare_cached(ALL).map_err(StoreError::from)?;
        let mut rows = statement.query([]).map_err(StoreError::from)?;
        let mut order = Ascending::default();
        while let Some(row) = rows.next().map_err(StoreError::from)? {
            order.next(row.get::<_, i64>(0).map_err(StoreError::from)?, "blobs")?;
            let get = || -> Result<_, StoreError> {
                let blob = |at| {
                    row.get_ref(at)?
                        .as_blob()
                        .map_err(|error| StoreError::Damaged(error.to_string()))
                };
                Ok((digest(blob(1)?, "blobs.digest")?, blob(2)?))
            };
            let (found, bytes) = get()?;
            take(found, bytes)?;
        }
        Ok(())
    }
}

impl WriteTxn<'_> {
    /// Stores bytes under their BLAKE3 digest; storing the same bytes again changes nothing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn put_blob(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::blake3(bytes);
        if self.reader().blob_len(&digest)?.is_none() {
            self.txn
                .prepare_cached(INSERT)?
                .execute(params![&digest.0[..], bytes])?;
        }
        Ok(digest)
    }
}
