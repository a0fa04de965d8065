//! Entries: append in order, read by position or as a stream.

use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ground::time::Timestamp;
use rusqlite::OptionalExtension as _;
use rusqlite::Row;
use rusqlite::params;

use crate::Fault;
use crate::Part;
use crate::Reader;
use crate::RowsIn;
use crate::StoreError;

const INSERT: &str = "INSERT OR FAIL INTO entries (seq, author, author_seq, recorded_at, body, signature) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const SELECT_LONG: &str = "SELECT seq, author, author_seq, recorded_at, body, signature FROM entries \
     WHERE seq >= ?1 AND seq < ?2 ORDER BY seq";
const SELECT_RANGE: &str = "SELECT e.seq, a.key_id, e.author_seq, e.recorded_at, e.body, e.signature \
     FROM entries e LEFT JOIN authors a ON a.id = e.author WHERE e.seq >= ?1 AND e.seq < ?2 ORDER BY e.seq";
const SELECT_AUTHOR_SEQ: &str = "SELECT seq FROM entries WHERE author = ?1 AND author_seq = ?2";
const COUNT: &str = "SELECT coalesce(max(seq) + 1, 0) FROM entries";
/// Of each table that is read by position: the rule that judges it, its first position, the least that there can be, and how
/// it is called.
const STRAYS: [(Part, &str, i64, &str); 2] = [
    (
        Part::Entries,
        "SELECT min(seq) FROM entries",
        0,
        "entries.seq",
    ),
    (
        Part::Checkpoints,
        "SELECT min(size) FROM checkpoints",
        1,
        "checkpoints.size",
    ),
];
const AUTHORS: &str = "SELECT id, key_id FROM authors ORDER BY id";
const AUTHOR_ID: &str = "SELECT id FROM authors WHERE key_id = ?1";
const INSERT_AUTHOR: &str =
    "INSERT INTO authors (id, key_id) VALUES ((SELECT coalesce(max(id), 0) + 1 FROM authors), ?1)";

/// An entry, borrowed: to be appended, or as it stands in the file with nothing about it believed.
#[derive(Clone, Copy, Debug)]
pub struct EntryRef<'a> {
    /// Position.
    pub seq: u64,
    /// The signing key.
    pub author: KeyId,
    /// The column that repeats the body's counter.
    pub author_seq: u64,
    /// When the ledger took it in.
    pub recorded_at: Timestamp,
    /// The signed bytes.
    pub body: &'a [u8],
    /// The signature.
    pub signature: &'a [u8; 64],
}

impl EntryRef<'_> {
    /// The same, owned.
    pub fn to_stored(self) -> StoredEntry {
        StoredEntry {
            seq: self.seq,
            author: self.author,
            author_seq: self.author_seq,
            recorded_at: self.recorded_at,
            body: self.body.to_vec(),
            signature: *self.signature,
        }
    }
}

/// An entry as it stands in the file, with nothing about it believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    /// Position.
    pub seq: u64,
    /// The envelope's key.
    pub author: KeyId,
    /// The column that repeats the body's counter.
    pub author_seq: u64,
    /// When the ledger took it in.
    pub recorded_at: Timestamp,
    /// The signed bytes.
    pub body: Vec<u8>,
    /// The signature.
    pub signature: [u8; 64],
}

impl StoredEntry {
    /// The same, borrowed.
    pub fn as_ref(&self) -> EntryRef<'_> {
        EntryRef {
            seq: self.seq,
            author: self.author,
            author_seq: self.author_seq,
            recorded_at: self.recorded_at,
            body: &self.body,
            signature: &self.signature,
        }
    }
}

pub(super) fn sql_int(value: u64) -> i64 {
    i64::try_from(value).expect("BUG: positions stay below 2^53")
}

pub(super) fn count(value: i64, what: &'static str) -> Result<u64, StoreError> {
    u64::try_from(value).map_err(|_| StoreError::Damaged(format!("{what} is {value}")))
}

pub(super) fn digest(bytes: &[u8], what: &'static str) -> Result<Digest, StoreError> {
    let found = bytes.len();
    bytes
        .try_into()
        .map(Digest)
        .map_err(|_| StoreError::Damaged(format!("{what} has {found} bytes, not 32")))
}

/// Holds rows of an untrusted table to the order of their keys. A damaged tree may hold the same page under
/// many parents, and a walk over it would hardly ever end.
pub(super) struct Ascending<T>(Option<T>);

impl<T> Default for Ascending<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: PartialOrd> Ascending<T> {
    /// Takes note of the next key.
    pub(super) fn next(&mut self, key: T, table: &'static str) -> Result<(), StoreError> {
        if self.0.as_ref().is_some_and(|last| *last >= key) {
            return Err(StoreError::Damaged(format!("{table} are not in order")));
        }
        self.0 = Some(key);
        Ok(())
    }
}

/// From how many entries on the keys are read once instead of joined to each row.
const LONG: u64 = 64;

/// Where a row's author comes from.
enum Authors {
    Joined,
    Listed(Vec<KeyId>),
}

impl Authors {
    fn of(&self, row: &Row<'_>, seq: u64) -> Result<KeyId, StoreError> {
        let unknown = || StoreError::Damaged(format!("entry {seq} names no known author"));
        match self {
            Self::Joined => {
                let key = row.get_ref(1)?.as_blob().map_err(|_| unknown())?;
                Ok(KeyId(digest(key, "authors.key_id")?))
            }
            Self::Listed(keys) => {
                let id: i64 = row.get(1)?;
                let at = usize::try_from(id)
                    .ok()
                    .and_then(|id| id.checked_sub(1))
                    .ok_or_else(unknown)?;
                keys.get(at).copied().ok_or_else(unknown)
            }
        }
    }
}

fn entry<'r>(row: &'r Row<'_>, seq: i64, authors: &Authors) -> Result<EntryRef<'r>, StoreError> {
    let seq = count(seq, "entries.seq")?;
    let author = authors.of(row, seq)?;
    let micros: i64 = row.get(3)?;
    let recorded_at = Timestamp::from_micros(micros);
    let blob = |at| {
        let column = row.get_ref(at)?.as_blob();
        column.map_err(|error| StoreError::Damaged(error.to_string()))
    };
    let signature = blob(5)?;
    Ok(EntryRef {
        seq,
        author,
        author_seq: count(row.get(2)?, "entries.author_seq")?,
        recorded_at: recorded_at
            .ok_or_else(|| StoreError::Damaged(format!("entry {seq} has recorded_at {micros}")))?,
        body: blob(4)?,
        signature: signature.try_into().map_err(|_| {
            StoreError::Damaged(format!(
                "entry {seq} has a signature of {} bytes",
                signature.len()
            ))
        })?,
    })
}

impl Reader<'_> {
    /// Entries in the log.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn entry_count(self) -> Result<u64, StoreError> {
        count(
            self.conn
                .prepare_cached(COUNT)?
                .query_row([], |row| row.get(0))?,
            "max(seq)",
        )
    }

    /// A row before the first entry or checkpoint of any log, where there is one: reads by position pass it by, and a row of
    /// `entries` still takes its author's number. Gives where it stands, what was expected and what stands there.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn stray(self) -> Result<Option<Fault>, StoreError> {
        for (part, sql, least, column) in STRAYS {
            let first: Option<i64> = self
                .conn
                .prepare_cached(sql)?
                .query_row([], |row| row.get(0))?;
            if let Some(first) = first.filter(|first| *first < least) {
                let expected = format!("no row below {column} {least}");
                return Ok(Some((part, expected, format!("a row of {column} {first}"))));
            }
        }
        Ok(None)
    }

    /// One entry.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn entry(self, seq: u64) -> Result<Option<StoredEntry>, StoreError> {
        let mut found = None;
        self.entries(seq, seq + 1, |entry| {
            found = Some(entry);
            Ok::<_, StoreError>(())
        })?;
        Ok(found)
    }

    /// Streams entries `from..to` in order to `take`; a gap simply does not come.
    ///
    /// # Errors
    /// [`StoreError`], or what `take` returns.
    pub fn entries<E: From<StoreError>>(
        self,
        from: u64,
        to: u64,
        mut take: impl FnMut(StoredEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        self.try_entries(from, to, |entry| take(entry?.to_stored()))
    }

    /// As [`Reader::entries`], but hands over what cannot be read instead of stopping at it.
    ///
    /// # Errors
    /// [`StoreError`] when `SQLite` cannot go on, or what `take` returns.
    pub fn try_entries<E: From<StoreError>>(
        self,
        from: u64,
        to: u64,
        mut take: impl FnMut(Result<EntryRef<'_>, StoreError>) -> Result<(), E>,
    ) -> Result<(), E> {
        // A damaged table of authors damages entries one by one, where they are joined to it.
        let listed = if to.saturating_sub(from) < LONG {
            None
        } else {
            self.authors().ok()
        };
        let (sql, authors) = match listed {
            Some(keys) => (SELECT_LONG, Authors::Listed(keys)),
            None => (SELECT_RANGE, Authors::Joined),
        };
        let mut statement = self.conn.prepare_cached(sql).map_err(StoreError::from)?;
        let mut rows = statement
            .query([sql_int(from), sql_int(to)])
            .map_err(StoreError::from)?;
        let mut order = Ascending::default();
        while let Some(row) = rows.next().map_err(StoreError::from)? {
            let seq = row.get(0).map_err(StoreError::from)?;
            order.next(seq, "entries")?;
            take(entry(row, seq, &authors))?;
        }
        Ok(())
    }

    /// The first of `entries` that does not stand in the file byte for byte.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn first_difference<'e>(
        self,
        entries: impl Iterator<Item = EntryRef<'e>>,
    ) -> Result<Option<u64>, StoreError> {
        let mut entries = entries.peekable();
        let Some(first) = entries.peek().map(|entry| entry.seq) else {
            return Ok(None);
        };
        let authors = self.authors()?;
        let mut statement = self.conn.prepare_cached(SELECT_LONG)?;
        let mut rows = statement.query([sql_int(first), i64::MAX])?;
        for entry in entries {
            let Some(row) = rows.next()? else {
                return Ok(Some(entry.seq));
            };
            let author: i64 = row.get(1)?;
            let author = usize::try_from(author)
                .ok()
                .and_then(|id| authors.get(id.checked_sub(1)?));
            let integers = [sql_int(entry.author_seq), entry.recorded_at.micros()];
            let same = row.get::<_, i64>(0)? == sql_int(entry.seq)
                && author == Some(&entry.author)
                && [row.get::<_, i64>(2)?, row.get::<_, i64>(3)?] == integers
                && row.get_ref(4)?.as_blob() == Ok(entry.body)
                && row.get_ref(5)?.as_blob() == Ok(&entry.signature[..]);
            if !same {
                return Ok(Some(entry.seq));
            }
        }
        Ok(None)
    }

    /// The position of an author's numbered event.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn seq_of(self, author: KeyId, author_seq: u64) -> Result<Option<u64>, StoreError> {
        let Some(id) = self.author_id(author)? else {
            return Ok(None);
        };
        let mut statement = self.conn.prepare_cached(SELECT_AUTHOR_SEQ)?;
        let seq = statement
            .query_row([id, sql_int(author_seq)], |row| row.get(0))
            .optional()?;
        seq.map(|seq| count(seq, "entries.seq")).transpose()
    }

    /// Every key in the `authors` table, in order of its number (from 1).
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn authors(self) -> Result<Vec<KeyId>, StoreError> {
        let mut statement = self.conn.prepare_cached(AUTHORS)?;
        let mut rows = statement.query([])?;
        let mut keys = Vec::new();
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            if usize::try_from(id) != Ok(keys.len() + 1) {
                return Err(StoreError::Damaged(format!(
                    "authors.id {id} at place {}",
                    keys.len() + 1
                )));
            }
            let bytes: Vec<u8> = row.get(1)?;
            keys.push(KeyId(digest(&bytes, "authors.key_id")?));
        }
        Ok(keys)
    }

    fn author_id(self, author: KeyId) -> Result<Option<i64>, StoreError> {
        let mut statement = self.conn.prepare_cached(AUTHOR_ID)?;
        Ok(statement
            .query_row([&author.0.0[..]], |row| row.get(0))
            .optional()?)
    }
}

impl RowsIn<'_> {
    /// Appends entries at the end.
    ///
    /// # Errors
    /// [`StoreError`]; whatever is not next is refused.
    pub fn append_entries<'e>(
        &self,
        entries: impl IntoIterator<Item = EntryRef<'e>>,
    ) -> Result<(), StoreError> {
        let mut next = if self.judges {
            Some(self.reader().entry_count()?)
        } else {
            None
        };
        let mut insert = self.conn.prepare_cached(INSERT)?;
        let mut last: Option<(KeyId, i64)> = None;
        for entry in entries {
            if let Some(next) = &mut next {
                if entry.seq != *next {
                    return Err(out_of_order("entries", entry.seq));
                }
                *next += 1;
            }
            let author = match last {
                Some((key, id)) if key == entry.author => id,
                _ => self.author_number(entry.author)?,
            };
            last = Some((entry.author, author));
            insert.execute(params![
                sql_int(entry.seq),
                author,
                sql_int(entry.author_seq),
                entry.recorded_at.micros(),
                entry.body,
                &entry.signature[..],
            ])?;
        }
        Ok(())
    }

    fn author_number(&self, author: KeyId) -> Result<i64, StoreError> {
        if let Some(id) = self.reader().author_id(author)? {
            return Ok(id);
        }
        self.conn
            .prepare_cached(INSERT_AUTHOR)?
            .execute([&author.0.0[..]])?;
        Ok(self.conn.last_insert_rowid())
    }
}

/// What is not next in a table of history.
pub(super) fn out_of_order(table: &str, seq: u64) -> StoreError {
    StoreError::Sqlite(format!("out of order: {table} {seq}"))
}
