//! A folder that several people share: one publishes the log in it, the others hand in what they signed.
//!
//! ```text
//! DIR/log/      the log as tiles, with checkpoints and blobs; its checkpoint is written last
//! DIR/outbox/   what waits to be recorded, a file each
//! DIR/writer    which copy of the ledger publishes
//! DIR/lock      held while it does
//! ```

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use clover_ground::ambient;
use clover_ground::ambient::Ambient;
use clover_ground::ambient::AmbientError;
use clover_ground::ambient::FileLock;
use clover_ground::digest::Digest;
use clover_ground::time::Timestamp;
use serde::Deserialize;
use serde::Serialize;

use crate::error::SessionError;
use crate::home::Home;
use crate::outbox::Outbox;

/// Why a folder is not published in.
#[derive(Debug, thiserror::Error)]
pub enum SharedError {
    /// Another copy of the ledger publishes there.
    #[error(
        "another copy of this ledger publishes in {} since {since}: two writers would make two histories",
        folder.display()
    )]
    Claimed {
        /// The folder.
        folder: PathBuf,
        /// Since when.
        since: Timestamp,
    },
    /// The file that names the writer says something else.
    #[error("{}: {found}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        found: String,
    },
}

/// Which copy of a ledger publishes in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Writer {
    /// What its home drew once.
    seat: String,
    /// Since when.
    since: Timestamp,
}

/// A shared folder.
#[derive(Clone, Debug)]
pub struct SharedFolder {
    folder: PathBuf,
}

impl SharedFolder {
    /// The folder at a path.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The published log.
    pub fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// What waits to be recorded.
    pub fn outbox(&self) -> Outbox {
        Outbox::new(self.folder.join("outbox"))
    }

    fn writer_path(&self) -> PathBuf {
        self.folder.join("writer")
    }

    /// Keeps other writers out until it is dropped.
    ///
    /// # Errors
    /// [`AmbientError::Locked`] when another holds it for longer than `wait`.
    pub fn lock(&self, wait: Duration) -> Result<FileLock, AmbientError> {
        ambient::create_dirs(&self.folder)?;
        ambient::lock(&self.folder.join("lock"), wait)
    }

    /// Sees to it that the copy of the ledger in a home is the one that publishes here: the first that claims the folder
    /// is, until another takes over.
    ///
    /// # Errors
    /// [`SharedError::Claimed`] without `takes_over`.
    ///
    /// # Panics
    /// Never: the record of a writer is JSON.
    pub fn claim(
        &self,
        ambient: &Ambient,
        home: &Home,
        takes_over: bool,
    ) -> Result<(), SessionError> {
        let (path, own) = (self.writer_path(), home.seat(ambient)?);
        let writer = Writer {
            seat: own,
            since: ambient.now(),
        };
        let bytes = serde_json::to_vec(&writer).expect("BUG: a seat is JSON");
        match ambient::write_new(&path, &bytes, 0o644) {
            Ok(()) => return Ok(()),
            Err(AmbientError::Exists(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let found: Writer = serde_json::from_slice(&ambient::read(&path)?).map_err(|error| {
            SharedError::Damaged {
                path: path.clone(),
                found: format!(
                    "expected the copy that publishes here, found no such record: {error}"
                ),
            }
        })?;
        if found.seat == writer.seat {
            return Ok(());
        }
        if !takes_over {
            let claimed = SharedError::Claimed {
                folder: self.folder.clone(),
                since: found.since,
            };
            return Err(claimed.into());
        }
        Ok(ambient::replace(&path, &bytes, true)?)
    }
}

/// Draws the name of a copy of a ledger.
pub(crate) fn draw_seat(ambient: &Ambient) -> Result<String, AmbientError> {
    Ok(Digest::blake3(&ambient.random::<32>()?).to_hex())
}
