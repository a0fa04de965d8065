//! The pin: the last checkpoint this person's machine saw, kept outside the ledger's folder.
//!
//! A valid prefix of a log is a valid log, so a truncated or rolled-back file is caught only against
//! something that lies elsewhere. The pin is the signed note itself in
//! `<pins>/<sha256 of the origin>`. It moves forward only, under a lock file, by rename without fsync: it may
//! lag behind the log, never lead it.

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use crate::ground::ambient;
use crate::ground::ambient::AmbientError;
use crate::ground::digest::Digest;
use crate::ground::note::SignedCheckpoint;

/// How long a pin that another process moves is waited for. The append before it stands: a pin may lag.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Where one origin's pin lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    path: PathBuf,
}

/// A pin file that is there and cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The file failed.
    #[error(transparent)]
    Ambient(#[from] AmbientError),
    /// Not a checkpoint of this origin.
    #[error("the pin {} is damaged: {found}", path.display())]
    Damaged {
        /// The pin file.
        path: PathBuf,
        /// What was found.
        found: String,
    },
}

impl Pin {
    /// The pin of `origin` in the folder `pins`.
    pub fn new(pins: &Path, origin: &str) -> Self {
        Self {
            path: pins.join(Digest::sha256(origin.as_bytes()).to_hex()),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The pinned checkpoint, when there is one.
    ///
    /// # Errors
    /// [`PinError`]: a pin that cannot be read is never taken for none.
    pub fn load(&self) -> Result<Option<SignedCheckpoint>, PinError> {
        let bytes = match ambient::read(&self.path) {
            Ok(bytes) => bytes,
            Err(AmbientError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let damaged = |found: String| PinError::Damaged {
            path: self.path.clone(),
            found,
        };
        let checkpoint =
            SignedCheckpoint::parse(&bytes).map_err(|error| damaged(error.to_string()))?;
        let origin = &checkpoint.checkpoint().origin;
        let name = Digest::sha256(origin.as_str().as_bytes()).to_hex();
        if self.path.file_name() != Some(std::ffi::OsStr::new(&name)) {
            return Err(damaged(format!("it is of origin {origin}")));
        }
        Ok(Some(checkpoint))
    }

    /// Moves the pin to `checkpoint` unless it already stands at that size or beyond.
    ///
    /// # Errors
    /// [`PinError`].
    pub fn advance(&self, checkpoint: &SignedCheckpoint) -> Result<(), PinError> {
        if let Some(folder) = self.path.parent() {
            ambient::create_private_dirs(folder)?;
        }
        let mut lock = self.path.as_os_str().to_owned();
        lock.push(".lock");
        let _held = ambient::lock(Path::new(&lock), LOCK_WAIT)?;
        if let Some(pinned) = self.load()?
            && pinned.checkpoint().size >= checkpoint.checkpoint().size
        {
            return Ok(());
        }
        Ok(ambient::replace_private(
            &self.path,
            &checkpoint.encode(),
            false,
        )?)
    }
}
