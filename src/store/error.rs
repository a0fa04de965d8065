//! What can go wrong with the ledger file, told apart by what a person would do next.

use std::path::PathBuf;

use rusqlite::ErrorCode;
use rusqlite::ffi;

/// A failed read or write of the ledger file. Nothing is ever half-written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process held the file for longer than the busy timeout.
    #[error("the ledger is locked by another process")]
    Busy,
    /// The head moved since it was read: another process appended first.
    #[error("the head moved to {found} entries while {expected} were expected")]
    HeadMoved {
        /// The size that the caller had read.
        expected: u64,
        /// The size that stands there.
        found: u64,
    },
    /// `SQLite` found its file damaged.
    #[error("the file is damaged: {0}")]
    Corrupt(String),
    /// A stored value has another form than the ledger writes.
    #[error("a stored value is damaged: {0}")]
    Damaged(String),
    /// A file stands where a new ledger was to be made.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// No space left.
    #[error("the disk is full")]
    Full,
    /// The system failed to read or write.
    #[error("reading or writing the file failed: {0}")]
    Io(String),
    /// A rollback journal lies beside the file, and no ledger has one: its changes go through `-wal`.
    #[error(
        "{} is a rollback journal, which no ledger has; SQLite would change the ledger by it: move it away, then verify",
        .0.display()
    )]
    Journal(PathBuf),
    /// Another file, or another application's database.
    #[error("{} is not a ledger: {found}", path.display())]
    NotALedger {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: String,
    },
    /// No file.
    #[error("{} does not exist", .0.display())]
    NotFound(PathBuf),
    /// The file or its folder cannot be written.
    #[error("the ledger is read-only")]
    ReadOnly,
    /// Any other answer of `SQLite`.
    #[error("SQLite: {0}")]
    Sqlite(String),
    /// A file of a newer program.
    #[error("the file has schema version {found}, this program knows {known}")]
    Version {
        /// `user_version` of the file.
        found: i64,
        /// Newest migration here.
        known: i64,
    },
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        match error {
            rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy,
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::Corrupt(text),
                ErrorCode::DiskFull => Self::Full,
                // The index of the WAL cannot grow: SQLite says so in its own way when no space is left.
                ErrorCode::SystemIoFailure
                    if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE =>
                {
                    Self::Full
                }
                ErrorCode::ReadOnly => Self::ReadOnly,
                ErrorCode::SystemIoFailure
                    if failure.extended_code == ffi::SQLITE_IOERR_SHORT_READ =>
                {
                    Self::Corrupt(text)
                }
                ErrorCode::SystemIoFailure | ErrorCode::CannotOpen => Self::Io(text),
                _ => Self::Sqlite(text),
            },
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..) => Self::Damaged(text),
            _ => Self::Sqlite(text),
        }
    }
}
