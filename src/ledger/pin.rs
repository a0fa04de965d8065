//! The pin: the last checkpoint this person's machine saw, kept outside the ledger's folder.
//!
//! A valid prefix of a log is a valid log, so a truncated or rolled-back file is caught only against
//! something that lies elsewhere. The pin is the signed note itself in
//! `<pins>/<sha256 of the origin>`. It moves forward only, under a lock file, by rename without fsync: it may
//! lag behind the log, never lead it.
//!
//! Several copies of one ledger may lie on one machine, and a copy that follows another is behind it most of the time. Such a
//! copy has a pin of its own, `<pin>.copy-<sha256 of its file>`, made when it was first brought up to what the machine saw.

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use clover_ground::ambient;
use clover_ground::ambient::AmbientError;
use clover_ground::digest::Digest;
use clover_ground::note::SignedCheckpoint;

/// How long a pin that another process moves is waited for. The append before it stands: a pin may lag.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Between the name of a machine's pin and the digest of the copy's file.
const COPY: &str = ".copy-";

/// Where one origin's pin lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    path: PathBuf,
    /// The pin of all copies on this machine, where this is the pin of one.
    machine: Option<PathBuf>,
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
            machine: None,
        }
    }

    /// The pin of one copy of `origin`, the ledger file `file`.
    pub fn of_copy(pins: &Path, origin: &str, file: &Path) -> Self {
        let machine = Self::new(pins, origin).path;
        let mut path = machine.as_os_str().to_owned();
        path.push(COPY);
        path.push(Digest::sha256(file.as_os_str().as_encoded_bytes()).to_hex());
        Self {
            path: path.into(),
            machine: Some(machine),
        }
    }

    /// The pin that the ledger file `file` is held against: its own, where it has one, else that of the machine.
    ///
    /// # Errors
    /// [`PinError`]: whether it has one cannot be looked up.
    pub fn in_use(pins: &Path, origin: &str, file: &Path) -> Result<Self, PinError> {
        let own = Self::of_copy(pins, origin, file);
        Ok(if ambient::exists(&own.path)? {
            own
        } else {
            Self::new(pins, origin)
        })
    }

    /// The pin of all copies on this machine, where this is the pin of one.
    pub fn of_machine(&self) -> Option<Self> {
        self.machine.as_ref().map(|path| Self {
            path: path.clone(),
            machine: None,
        })
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
        let machine = self.machine.as_ref().unwrap_or(&self.path);
        if machine.file_name() != Some(std::ffi::OsStr::new(&name)) {
            return Err(damaged(format!("it is of origin {origin}")));
        }
        Ok(Some(checkpoint))
    }

    /// Whether somebody knew this ledger from elsewhere than from the file that was pinned: whoever made it, or checked it
    /// against a log key. A pin that was first taken from a file says only that the file was not changed since.
    pub fn is_vouched(&self) -> bool {
        // What cannot be looked up is not vouched for.
        matches!(ambient::exists(&self.unvouched()), Ok(false))
    }

    /// Takes note that the ledger is known from elsewhere.
    ///
    /// # Errors
    /// [`PinError`].
    pub fn vouch(&self) -> Result<(), PinError> {
        removed(&self.unvouched())
    }

    fn unvouched(&self) -> PathBuf {
        // Who made a ledger is known of the ledger, not of one copy.
        let machine = self.machine.as_ref().unwrap_or(&self.path);
        let mut path = machine.as_os_str().to_owned();
        path.push(".unvouched");
        path.into()
    }

    /// Removes it, where there is one.
    ///
    /// # Errors
    /// [`PinError`].
    pub fn forget(&self) -> Result<(), PinError> {
        removed(&self.path)
    }

    /// Puts a pin of entries that are lost aside, so that an older log can be pinned again. Answers with its new file.
    ///
    /// # Errors
    /// [`PinError`].
    pub fn set_aside(&self, lost: &SignedCheckpoint) -> Result<PathBuf, PinError> {
        let mut aside = self.path.as_os_str().to_owned();
        aside.push(format!(".lost-{}", lost.checkpoint().size));
        let aside = PathBuf::from(aside);
        ambient::replace_private(&aside, &lost.encode(), true)?;
        ambient::remove(&self.path)?;
        Ok(aside)
    }

    /// Moves the pin to `checkpoint` unless it already stands at that size or beyond. The pin of a copy takes that of the
    /// machine along.
    ///
    /// # Errors
    /// [`PinError`].
    pub fn advance(&self, checkpoint: &SignedCheckpoint) -> Result<(), PinError> {
        if let Some(machine) = self.of_machine() {
            machine.advance(checkpoint)?;
        }
        if let Some(folder) = self.path.parent() {
            ambient::create_private_dirs(folder)?;
        }
        let mut lock = self.path.as_os_str().to_owned();
        lock.push(".lock");
        let _held = ambient::lock(Path::new(&lock), LOCK_WAIT)?;
        match self.load()? {
            Some(pinned) if pinned.checkpoint().size >= checkpoint.checkpoint().size => {
                return Ok(());
            }
            Some(_) => {}
            None if self.machine.is_some() => {}
            None => ambient::replace_private(&self.unvouched(), b"", false)?,
        }
        Ok(ambient::replace_private(
            &self.path,
            &checkpoint.encode(),
            false,
        )?)
    }
}

fn removed(path: &Path) -> Result<(), PinError> {
    match ambient::remove(path) {
        Ok(()) | Err(AmbientError::NotFound(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The origin that the ledger file at `file` had when it was last pinned, where it is another than `found`.
///
/// # Errors
/// [`PinError`].
pub fn replaced(pins: &Path, file: &Path, found: &str) -> Result<Option<String>, PinError> {
    let known = PinFile::new(pins, file).load()?;
    Ok(known.filter(|known| known != found))
}

/// Where it is kept which ledger a file was when it was last pinned.
#[derive(Clone, Debug)]
pub(super) struct PinFile {
    path: PathBuf,
}

impl PinFile {
    /// Of the ledger file at `file`, in the folder `pins`.
    pub(super) fn new(pins: &Path, file: &Path) -> Self {
        let name = Digest::sha256(file.as_os_str().as_encoded_bytes()).to_hex();
        Self {
            path: pins.join(format!("{name}.place")),
        }
    }

    /// The origin that the file had.
    pub(super) fn load(&self) -> Result<Option<String>, AmbientError> {
        match ambient::read(&self.path) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(AmbientError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Keeps the origin that the file has.
    pub(super) fn keep(&self, origin: &str) -> Result<(), AmbientError> {
        if self.load()?.as_deref() == Some(origin) {
            return Ok(());
        }
        if let Some(folder) = self.path.parent() {
            ambient::create_private_dirs(folder)?;
        }
        ambient::replace_private(&self.path, origin.as_bytes(), false)
    }
}
