//! Keys of a ledger: new ones with their files, ends, and the key that signs checkpoints.

pub mod addition;
pub mod ending;
pub mod files;
pub mod request;
pub mod rotation;

use std::path::PathBuf;

use clover_event::id::HolderId;
use clover_ground::keyfile::KeyFileError;

use crate::keys::request::RequestError;

/// Why a key was not added, ended or changed.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A holder's name looks like another's.
    #[error(
        "holder \"{holder}\" looks like \"{other}\", who holds keys here: two would count as one person"
    )]
    LookAlike {
        /// The new name.
        holder: HolderId,
        /// The known one.
        other: HolderId,
    },
    /// The key that signs checkpoints is not there.
    #[error("the log key {} is missing: this ledger can be read, not written", .0.display())]
    LogKeyMissing(PathBuf),
    /// The key that signs checkpoints cannot be read.
    #[error("the log key {}: {source}", path.display())]
    LogKeyUnreadable {
        /// Its file.
        path: PathBuf,
        /// Why.
        source: KeyFileError,
    },
    /// A log key cannot be written as a file.
    #[error(transparent)]
    LogKeyUnwritable(KeyFileError),
    /// The log key is changed where the log is written.
    #[error("the log key is rotated where the log is written, and this is a reader's copy")]
    NotTheWriter,
    /// A request for a key is not admitted.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// An author key cannot be written as a file.
    #[error(transparent)]
    Unwritable(KeyFileError),
}
