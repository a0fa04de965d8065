//! The index of kinds: where the entries of each kind stand, as runs of neighbours.
//!
//! It is filled by a cursor and may lag behind the log. A file that was last written before there was such an index has none,
//! and its cursor stands at 0.

use rusqlite::OptionalExtension as _;
use rusqlite::params;

use crate::Reader;
use crate::StoreError;
use crate::WriteTxn;
use crate::entries::Ascending;
use crate::entries::count;
use crate::entries::sql_int;

/// Name of the cursor.
pub(super) const CURSOR: &str = "kind_runs";
/// The migration that made the table.
const SINCE: i64 = 2;

const THROUGH: &str = "SELECT through FROM cursors WHERE name = 'kind_runs'";
const SET_THROUGH: &str = "INSERT INTO cursors (name, through) VALUES ('kind_runs', ?1) \
     ON CONFLICT (name) DO UPDATE SET through = excluded.through";
const INSERT: &str = "INSERT OR REPLACE INTO kind_runs (kind, first, entries) VALUES (?1, ?2, ?3)";
const BEFORE: &str = "SELECT first, entries FROM kind_runs WHERE kind = ?1 AND first < ?2 \
     ORDER BY first DESC LIMIT ?3";
const FROM: &str = "SELECT first, entries FROM kind_runs WHERE kind = ?1 AND first >= ?2 \
     ORDER BY first LIMIT ?3";
const NEXT_KIND: &str = "SELECT kind FROM kind_runs WHERE kind > ?1 ORDER BY kind LIMIT 1";

/// Entries of one kind that follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindRun<'a> {
    /// The kind's text.
    pub kind: &'a str,
    /// The first of them.
    pub first: u64,
    /// How many.
    pub entries: u64,
}

impl Reader<'_> {
    /// Entries that the index of kinds holds.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn kinds_through(self) -> Result<u64, StoreError> {
        if !self.has_kinds()? {
            return Ok(0);
        }
        let mut statement = self.conn.prepare_cached(THROUGH)?;
        let found = statement.query_row([], |row| row.get(0)).optional()?;
        found.map_or(Ok(0), |through| count(through, "cursors.through"))
    }

    fn has_kinds(self) -> Result<bool, StoreError> {
        let mut version = self.conn.prepare_cached("PRAGMA user_version")?;
        let version: i64 = version.query_row([], |row| row.get(0))?;
        Ok(version >= SINCE)
    }

    /// Up to `limit` runs of a kind that begin below `before`, the last first: of each its first entry, and how many there are.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn kind_runs_before(
        self,
        kind: &str,
        before: u64,
        limit: u64,
    ) -> Result<Vec<(u64, u64)>, StoreError> {
        let mut runs = self.runs(BEFORE, kind, before, limit)?;
        runs.reverse();
        in_order(&runs)?;
        runs.reverse();
        Ok(runs)
    }

    /// Up to `limit` runs of a kind that begin at `from` or above, ascending.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn kind_runs_from(
        self,
        kind: &str,
        from: u64,
        limit: u64,
    ) -> Result<Vec<(u64, u64)>, StoreError> {
        let runs = self.runs(FROM, kind, from, limit)?;
        in_order(&runs)?;
        Ok(runs)
    }

    fn runs(
        self,
        sql: &str,
        kind: &str,
        at: u64,
        limit: u64,
    ) -> Result<Vec<(u64, u64)>, StoreError> {
        let mut runs = Vec::new();
        if !self.has_kinds()? {
            return Ok(runs);
        }
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query(params![kind, sql_int(at), sql_int(limit)])?;
        while let Some(row) = rows.next()? {
            let first = count(row.get(0)?, "kind_runs.first")?;
            runs.push((first, count(row.get(1)?, "kind_runs.entries")?));
        }
        Ok(runs)
    }

    /// The kinds that the index names, ascending.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn indexed_kinds(self) -> Result<Vec<String>, StoreError> {
        let mut kinds: Vec<String> = Vec::new();
        if !self.has_kinds()? {
            return Ok(kinds);
        }
        let (mut order, mut last) = (Ascending::default(), String::new());
        let mut statement = self.conn.prepare_cached(NEXT_KIND)?;
        while let Some(kind) = statement
            .query_row([&last], |row| row.get::<_, String>(0))
            .optional()?
        {
            order.next(kind.clone(), "kinds of the index")?;
            last.clone_from(&kind);
            kinds.push(kind);
        }
        Ok(kinds)
    }
}

fn in_order(runs: &[(u64, u64)]) -> Result<(), StoreError> {
    let mut order = Ascending::default();
    let mut each = runs.iter();
    each.try_for_each(|(first, _)| order.next(*first, "runs of a kind"))
}

impl WriteTxn<'_> {
    /// Adds runs that follow the cursor, and moves it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn index_kinds<'k>(
        &self,
        runs: impl IntoIterator<Item = KindRun<'k>>,
        through: u64,
    ) -> Result<(), StoreError> {
        let mut insert = self.txn.prepare_cached(INSERT)?;
        for run in runs {
            insert.execute(params![run.kind, sql_int(run.first), sql_int(run.entries)])?;
        }
        let mut set = self.txn.prepare_cached(SET_THROUGH)?;
        set.execute([sql_int(through)])?;
        Ok(())
    }
}
