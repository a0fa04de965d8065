//! Opening, creating, migrating and checking the file; transactions; online backup.

use std::ops::Deref;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use clover_ground::ambient;
use rusqlite::Connection;
use rusqlite::OpenFlags;
use rusqlite::Transaction;
use rusqlite::TransactionBehavior;
use rusqlite::config::DbConfig;

use crate::StoreError;

/// `PRAGMA application_id` of a ledger file: "Clvr".
pub(super) const APPLICATION_ID: i64 = 0x436c_7672;

/// Migrations in order; `user_version` counts those applied. A test pins each file's digest.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/0001_create_ledger.sql"),
    include_str!("../../migrations/0002_index_kinds.sql"),
    // The next migration goes here.
];

/// The oldest migration whose file is read as it stands; whatever writes to a file brings it up to date first.
const READ_MIN: i64 = 1;

/// How a commit is synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Every commit reaches the disk before it is acknowledged.
    #[default]
    Full,
    /// A power loss may undo the newest commits; no pin is written.
    Relaxed,
}

/// How to make a new file.
#[derive(Clone, Copy, Debug)]
pub struct CreateOptions {
    /// `SQLite` page size in bytes: a power of two from 512 to 65,536.
    pub page_size: u32,
}

impl Default for CreateOptions {
    fn default() -> Self {
        Self { page_size: 4096 }
    }
}

/// How to open a file.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// How long to wait for other processes.
    pub busy_timeout: Duration,
    /// How commits are synced.
    pub durability: Durability,
    /// Refuse to write.
    pub read_only: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            busy_timeout: Duration::from_secs(60),
            durability: Durability::Full,
            read_only: false,
        }
    }
}

/// An open ledger file.
#[derive(Debug)]
pub struct Store {
    pub(super) conn: Connection,
    path: PathBuf,
    options: OpenOptions,
}

/// Reads; of one state throughout when it belongs to a transaction.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    pub(super) conn: &'a Connection,
}

/// The one write transaction (`BEGIN IMMEDIATE`); rolled back unless committed.
#[derive(Debug)]
pub struct WriteTxn<'a> {
    pub(super) txn: Transaction<'a>,
}

/// Rows from which on their order is judged here instead of by the file's triggers.
const JUDGED_HERE_MIN: usize = 256;

/// Takes entries and rows of read models in, each only where it is next.
///
/// The file's triggers hold every writer to that, row by row; but `SQLite` gives each statement that has a
/// trigger and names its row a journal of its own, which costs more than the row. For many rows the triggers
/// of this connection rest until the end, and what they would refuse is refused here.
#[derive(Debug)]
pub struct RowsIn<'t> {
    pub(super) conn: &'t Connection,
    /// The triggers rest.
    pub(super) judges: bool,
}

impl RowsIn<'_> {
    /// Reads inside the transaction.
    pub fn reader(&self) -> Reader<'_> {
        Reader { conn: self.conn }
    }

    /// Wakes the triggers.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn end(mut self) -> Result<(), StoreError> {
        self.wake()
    }

    fn wake(&mut self) -> Result<(), StoreError> {
        if std::mem::take(&mut self.judges) {
            let on = DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER;
            self.conn.set_db_config(on, true)?;
        }
        Ok(())
    }
}

impl Drop for RowsIn<'_> {
    fn drop(&mut self) {
        // Only a call that failed gets here with the triggers at rest; its error is the one that counts.
        self.wake().ok();
    }
}

impl WriteTxn<'_> {
    /// Reads inside the transaction.
    pub fn reader(&self) -> Reader<'_> {
        Reader { conn: &self.txn }
    }

    /// Takes entries and rows of read models in, about `rows` of each.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn rows(&self, rows: usize) -> Result<RowsIn<'_>, StoreError> {
        let judges = rows >= JUDGED_HERE_MIN;
        if judges {
            let off = DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER;
            self.txn.set_db_config(off, false)?;
        }
        let conn = &self.txn;
        Ok(RowsIn { conn, judges })
    }

    /// Makes everything since the beginning durable at once.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was written.
    pub fn commit(self) -> Result<(), StoreError> {
        Ok(self.txn.commit()?)
    }
}

/// A read transaction: one state of the file until dropped.
#[derive(Debug)]
pub struct ReadTxn<'a> {
    txn: Transaction<'a>,
}

impl ReadTxn<'_> {
    /// Reads inside the transaction.
    pub fn reader(&self) -> Reader<'_> {
        Reader { conn: &self.txn }
    }
}

impl Deref for ReadTxn<'_> {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        &self.txn
    }
}

impl Store {
    /// Makes a new ledger file with an empty log.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when something stands there.
    pub fn create(
        path: &Path,
        create: CreateOptions,
        options: OpenOptions,
    ) -> Result<Self, StoreError> {
        if exists(path)? {
            return Err(StoreError::Exists(path.to_owned()));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(path, flags)?;
        conn.pragma_update(None, "page_size", create.page_size)?;
        conn.pragma_update(None, "application_id", APPLICATION_ID)?;
        configure(&conn, options)?;
        let mut store = Self {
            conn,
            path: path.to_owned(),
            options,
        };
        store.migrate()?;
        Ok(store)
    }

    /// Opens an existing ledger file and brings its schema up to date.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::NotALedger`], [`StoreError::Version`] and failures of the
    /// file.
    pub fn open(path: &Path, options: OpenOptions) -> Result<Self, StoreError> {
        if !exists(path)? {
            return Err(StoreError::NotFound(path.to_owned()));
        }
        if let Some(found) = ambient::irregular(path) {
            return Err(StoreError::NotALedger {
                path: path.to_owned(),
                found: format!("{found}, expected a regular file"),
            });
        }
        check_beside(path)?;
        let conn = connect(path, options)?;
        let mut store = Self {
            conn,
            path: path.to_owned(),
            options,
        };
        store.check_identity()?;
        configure(&store.conn, options)?;
        if !options.read_only {
            store.migrate()?;
        }
        Ok(store)
    }

    /// A second connection to the same file, for another thread; it never writes.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn another(&self) -> Result<Self, StoreError> {
        let store = Self::open(
            &self.path,
            OpenOptions {
                read_only: true,
                ..self.options
            },
        )?;
        store.conn.pragma_update(None, "cache_size", -8_192)?;
        Ok(store)
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How commits are synced.
    pub fn durability(&self) -> Durability {
        self.options.durability
    }

    /// Reads, each statement of the newest state.
    pub fn reader(&self) -> Reader<'_> {
        Reader { conn: &self.conn }
    }

    /// Begins to read one state of the file.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn read(&self) -> Result<ReadTxn<'_>, StoreError> {
        Ok(ReadTxn {
            txn: Transaction::new_unchecked(&self.conn, TransactionBehavior::Deferred)?,
        })
    }

    /// Takes the write lock, waiting up to the busy timeout.
    ///
    /// # Errors
    /// [`StoreError::Busy`], [`StoreError::ReadOnly`] and failures of the file.
    pub fn begin(&self) -> Result<WriteTxn<'_>, StoreError> {
        if self.options.read_only {
            return Err(StoreError::ReadOnly);
        }
        Ok(WriteTxn {
            txn: Transaction::new_unchecked(&self.conn, TransactionBehavior::Immediate)?,
        })
    }

    /// Refuses files that are no ledger.
    fn check_identity(&self) -> Result<(), StoreError> {
        let found = match self.pragma("application_id") {
            Ok(APPLICATION_ID) => return self.check_version(),
            Ok(0) => "a database of no application".to_owned(),
            Ok(other) => format!("a database of application {other:#x}"),
            Err(StoreError::Corrupt(_)) => "not a SQLite database".to_owned(),
            Err(other) => return Err(other),
        };
        Err(StoreError::NotALedger {
            path: self.path.clone(),
            found,
        })
    }

    fn check_version(&self) -> Result<(), StoreError> {
        let (found, known) = (self.pragma("user_version")?, migrations_known());
        if found > known {
            return Err(StoreError::Version { found, known });
        }
        if self.options.read_only && found < READ_MIN {
            return Err(StoreError::Version { found, known });
        }
        Ok(())
    }

    fn pragma(&self, name: &str) -> Result<i64, StoreError> {
        Ok(self.conn.pragma_query_value(None, name, |row| row.get(0))?)
    }

    /// Applies the migrations that are missing, each in a transaction of its own.
    fn migrate(&mut self) -> Result<(), StoreError> {
        for (version, sql) in (1..).zip(MIGRATIONS) {
            if self.pragma("user_version")? >= version {
                continue;
            }
            let txn = self.begin()?;
            let found: i64 = txn
                .txn
                .pragma_query_value(None, "user_version", |row| row.get(0))?;
            if found < version {
                txn.txn.execute_batch(sql)?;
                txn.txn.pragma_update(None, "user_version", version)?;
            }
            txn.commit()?;
        }
        Ok(())
    }

    /// Writes a copy of one state of the file to `target`, which must not exist.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn backup(
        &self,
        target: &Path,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<(), StoreError> {
        if exists(target)? {
            return Err(StoreError::Exists(target.to_owned()));
        }
        let mut to = Connection::open(target)?;
        let backup = rusqlite::backup::Backup::new(&self.conn, &mut to)?;
        loop {
            let step = backup.step(4096)?;
            let state = backup.progress();
            let pages = |count: i32| u64::try_from(count).unwrap_or(0);
            progress(
                pages(state.pagecount - state.remaining),
                pages(state.pagecount),
            );
            match step {
                rusqlite::backup::StepResult::Done => break,
                rusqlite::backup::StepResult::More => {}
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        drop(backup);
        to.pragma_update(None, "journal_mode", "WAL")?;
        to.close().map_err(|(_, error)| error)?;
        Ok(())
    }
}

/// Version of the `SQLite` library inside the program.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

fn migrations_known() -> i64 {
    i64::try_from(MIGRATIONS.len()).expect("BUG: few migrations")
}

pub(super) fn schema_rows(conn: &Connection) -> Result<Vec<String>, StoreError> {
    let mut statement = conn.prepare(
        "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema ORDER BY rowid",
    )?;
    let rows = statement.query_map([], |row| {
        let part = |at| row.get::<_, String>(at);
        Ok(format!(
            "{} {} {} {}",
            part(0)?,
            part(1)?,
            part(2)?,
            part(3)?
        ))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Whether a file stands there.
pub(super) fn exists(path: &Path) -> Result<bool, StoreError> {
    ambient::exists(path).map_err(|error| StoreError::Io(error.to_string()))
}

/// The file of `SQLite` beside a database: `-journal`, `-wal` or `-shm`.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Refuses files beside the ledger that `SQLite` could not use, or that would change the ledger when it does.
fn check_beside(path: &Path) -> Result<(), StoreError> {
    for end in ["-journal", "-wal", "-shm"] {
        let file = beside(path, end);
        if let Some(found) = ambient::irregular(&file) {
            return Err(StoreError::NotALedger {
                path: file,
                found: format!("{found}, expected a regular file of SQLite or none"),
            });
        }
    }
    let journal = beside(path, "-journal");
    // An empty one changes nothing, and SQLite removes it.
    match ambient::size(&journal) {
        Ok(1..) => Err(StoreError::Journal(journal)),
        _ => Ok(()),
    }
}

fn connect(path: &Path, options: OpenOptions) -> Result<Connection, StoreError> {
    let access = if options.read_only {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    } else {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    };
    let conn = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    if !options.read_only {
        return Ok(conn);
    }
    // A WAL database in a folder that cannot be written needs shared memory it cannot make; with no WAL
    // beside it, it is complete and can be read as an immutable file.
    let probe: Result<i64, _> =
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0));
    match probe {
        Err(rusqlite::Error::SqliteFailure(failure, _))
            if failure.code == rusqlite::ErrorCode::CannotOpen => {}
        _ => return Ok(conn),
    }
    if exists(&beside(path, "-wal")).unwrap_or(true) {
        return Ok(conn);
    }
    let uri = format!("file:{}?immutable=1", percent_encode(path));
    Ok(Connection::open_with_flags(
        uri,
        access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI,
    )?)
}

fn percent_encode(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    let encode = |byte: &u8| {
        if plain(*byte) {
            char::from(*byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    path.as_os_str().as_bytes().iter().map(encode).collect()
}

fn configure(conn: &Connection, options: OpenOptions) -> Result<(), StoreError> {
    conn.busy_timeout(options.busy_timeout)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    conn.set_prepared_statement_cache_capacity(64);
    if !options.read_only {
        conn.pragma_update(None, "journal_mode", "WAL")?;
        conn.pragma_update(None, "wal_autocheckpoint", 4096)?;
        conn.pragma_update(None, "journal_size_limit", 64 << 20)?;
    }
    let synchronous = match options.durability {
        Durability::Full => "FULL",
        Durability::Relaxed => "NORMAL",
    };
    conn.pragma_update(None, "synchronous", synchronous)?;
    conn.pragma_update(None, "recursive_triggers", true)?;
    conn.pragma_update(None, "cell_size_check", true)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.pragma_update(None, "cache_size", -32_768)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use clover_ground::digest::Digest;
    use clover_ground::sign::KeyId;
    use clover_ground::time::Timestamp;

    use super::*;
    use crate::EntryRef;
    use crate::RowChange;
    use crate::ScoreRow;

    #[test]
    fn released_migrations_never_change() {
        let pinned = [
            "9e89b7882f6bfcd00a0c2ec6261c1ea4f4d79554b9cee51dc8712b0a93b3b62f",
            "9b7ea8cb14624a5956073d1bde5a3e02cb8a1de753935d246c3242d03fd4b7fb",
        ];
        assert_eq!(pinned.len(), MIGRATIONS.len());
        for (sql, pin) in MIGRATIONS.iter().zip(pinned) {
            assert_eq!(
                Digest::sha256(sql.as_bytes()).to_hex(),
                pin,
                "add a new migration instead of editing one"
            );
        }
    }

    #[test]
    fn few_rows_and_many_are_held_to_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let create = CreateOptions::default();
        let store = Store::create(&path, create, OpenOptions::default()).unwrap();
        let entry = |seq, author_seq| EntryRef {
            seq,
            author: KeyId(Digest([7; 32])),
            author_seq,
            recorded_at: Timestamp::EPOCH,
            body: b"{}",
            signature: &[9; 64],
        };
        let score = |seq| {
            RowChange::Score(ScoreRow {
                seq,
                experiment: "e",
                judge: "j",
                policy: "p",
                item: "i",
                draw: 0,
                score_micro: 5,
            })
        };
        let guarded = |txn: &WriteTxn<'_>| {
            let removed = txn.txn.execute("DELETE FROM entries", []);
            let text = removed.unwrap_err().to_string();
            assert!(text.contains("append-only"), "{text}");
        };
        for many in [1, JUDGED_HERE_MIN] {
            let txn = store.begin().unwrap();
            let rows = txn.rows(many).unwrap();
            assert_eq!(rows.judges, many > 1);
            rows.append_entries([entry(0, 0), entry(1, 1)]).unwrap();
            rows.insert_rows(&[score(1)]).unwrap();
            // Before the next, after it, a gap within a part, and a number that the author gave before.
            for wrong in [
                vec![entry(1, 2)],
                vec![entry(3, 2)],
                vec![entry(0, 2)],
                vec![entry(2, 1)],
            ] {
                rows.append_entries(wrong).unwrap_err();
            }
            rows.append_entries([entry(2, 2), entry(4, 3)]).unwrap_err();
            assert_eq!(rows.reader().entry_count().unwrap(), 3);
            for wrong in [vec![score(1)], vec![score(0)], vec![score(3), score(2)]] {
                rows.insert_rows(&wrong).unwrap_err();
            }
            rows.end().unwrap();
            guarded(&txn);
            // Whoever gives up halfway leaves the triggers awake.
            drop(txn.rows(many).unwrap());
            guarded(&txn);
        }
    }
}
