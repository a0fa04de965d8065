//! Fold snapshots: caches of state, bound to rulebook version, size and root.

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

const SELECT: &str = "SELECT rulebook, size, root, state FROM snapshots WHERE fold = ?1";
const NAMES: &str = "SELECT fold FROM snapshots ORDER BY fold";
const UPSERT: &str = "INSERT INTO snapshots (fold, rulebook, size, root, state) VALUES (?1, ?2, ?3, ?4, ?5) \
     ON CONFLICT (fold) DO UPDATE SET rulebook = excluded.rulebook, size = excluded.size, root = excluded.root, \
     state = excluded.state";

/// A stored fold state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSnapshot {
    /// Version of the rulebook that folded it.
    pub rulebook: u32,
    /// Entries folded.
    pub size: u64,
    /// Root of the tree of that size.
    pub root: Digest,
    /// Canonical JSON of the state.
    pub state: Vec<u8>,
}

impl Reader<'_> {
    /// The snapshot of a fold.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn snapshot(self, fold: &str) -> Result<Option<StoredSnapshot>, StoreError> {
        let mut statement = self.conn.prepare_cached(SELECT)?;
        let row = statement.query_row([fold], |row| {
            Ok((
                row.get(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, Vec<u8>>(2)?,
                row.get(3)?,
            ))
        });
        let Some((rulebook, size, root, state)) = row.optional()? else {
            return Ok(None);
        };
        let root = digest(&root, "snapshots.root")?;
        Ok(Some(StoredSnapshot {
            rulebook,
            size: count(size, "snapshots.size")?,
            root,
            state,
        }))
    }

    /// Names of all stored snapshots.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn snapshot_names(self) -> Result<Vec<String>, StoreError> {
        let mut statement = self.conn.prepare_cached(NAMES)?;
        let mut rows = statement.query([])?;
        let (mut order, mut names) = (Ascending::default(), Vec::new());
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            order.next(name.clone(), "snapshots")?;
            names.push(name);
        }
        Ok(names)
    }
}

impl WriteTxn<'_> {
    /// Replaces the snapshot of a fold.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn put_snapshot(&self, fold: &str, snapshot: &StoredSnapshot) -> Result<(), StoreError> {
        self.txn.prepare_cached(UPSERT)?.execute(params![
            fold,
            snapshot.rulebook,
            sql_int(snapshot.size),
            &snapshot.root.0[..],
            snapshot.state
        ])?;
        Ok(())
    }
}
