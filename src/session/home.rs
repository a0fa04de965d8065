//! The folder of a ledger: its file, its keys, its vault.
//!
//! `DIR/.clover/` (0700) holds `ledger.db`, `log.key` (0600) and, once there is something private, `vault.db`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use clover_event::id::ExperimentId;
use clover_ground::ambient;
use clover_ground::ambient::Ambient;
use clover_ground::ambient::AmbientError;
use clover_ledger::Ledger;
use clover_ledger::LedgerOptions;
use clover_store::OpenOptions;
use clover_store::Vault;
use clover_workflow::GOVERNED;

use crate::error::SessionError;
use crate::keys::files;
use crate::shared;

/// Name of the folder.
pub const FOLDER: &str = ".clover";
/// Name of the ledger file in it.
pub const DATABASE: &str = "ledger.db";

/// How files are opened, and where it is kept what was seen of which log.
#[derive(Clone, Debug, Default)]
pub struct HomeOptions {
    /// The database.
    pub store: OpenOptions,
    /// The folder of pins; `None` keeps none.
    pub pins: Option<PathBuf>,
}

/// The folder of one ledger.
#[derive(Clone, Debug)]
pub struct Home {
    folder: PathBuf,
    database: PathBuf,
}

impl Home {
    /// The home in a folder.
    pub fn new(folder: PathBuf) -> Self {
        let database = folder.join(DATABASE);
        Self { folder, database }
    }

    /// The home around a ledger file of any name.
    pub fn of_database(database: PathBuf) -> Self {
        let folder = database.parent().unwrap_or(Path::new(".")).to_owned();
        Self { folder, database }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The ledger file.
    pub fn database(&self) -> &Path {
        &self.database
    }

    /// The key that signs checkpoints.
    pub fn log_key(&self) -> PathBuf {
        self.folder.join("log.key")
    }

    /// The key that a rotation is about to put in its place.
    pub fn next_log_key(&self) -> PathBuf {
        self.folder.join("log.key.next")
    }

    /// Keys of subjects.
    pub fn vault_path(&self) -> PathBuf {
        self.folder.join("vault.db")
    }

    /// Where the experiment is kept that commands are about when they name none.
    fn experiment_path(&self) -> PathBuf {
        self.folder.join("experiment")
    }

    /// What [`Home::remember_experiment`] kept, as it stands in the file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn remembered_experiment(&self) -> Result<Option<String>, SessionError> {
        let path = self.experiment_path();
        if !ambient::exists(&path)? {
            return Ok(None);
        }
        let bytes = ambient::read(&path)?;
        Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned()))
    }

    /// Keeps the experiment that commands are about when they name none. It decides nothing: each command still says
    /// in its events which experiment it is about.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn remember_experiment(&self, id: &ExperimentId) -> Result<(), SessionError> {
        let line = format!("{id}\n");
        Ok(ambient::replace(
            &self.experiment_path(),
            line.as_bytes(),
            false,
        )?)
    }

    /// Keeps none any more.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn forget_experiment(&self) -> Result<(), SessionError> {
        let path = self.experiment_path();
        if ambient::exists(&path)? {
            ambient::remove(&path)?;
        }
        Ok(())
    }

    /// Where the answers to the guide's questions are kept.
    pub fn guide_path(&self) -> PathBuf {
        self.folder.join("guide")
    }

    /// What [`Home::remember_answers`] kept: options of `clover guide`, word by word.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn remembered_answers(&self) -> Result<Vec<String>, SessionError> {
        let path = self.guide_path();
        if !ambient::exists(&path)? {
            return Ok(Vec::new());
        }
        let bytes = ambient::read(&path)?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.lines().map(ToOwned::to_owned).collect())
    }

    /// Keeps the answers to the guide's questions, as the options that give them. They decide nothing.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn remember_answers(&self, words: &[String]) -> Result<(), SessionError> {
        let mut lines = String::new();
        // A word with a line break would be read as two: such an answer is asked for again.
        for word in words.iter().filter(|word| !word.contains('\n')) {
            lines.push_str(word);
            lines.push('\n');
        }
        Ok(ambient::replace(
            &self.guide_path(),
            lines.as_bytes(),
            false,
        )?)
    }

    /// Where it is kept which folder this copy is synced with.
    fn shared_path(&self) -> PathBuf {
        self.folder.join("shared")
    }

    /// The folder that this copy was last synced with.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn shared(&self) -> Result<Option<PathBuf>, SessionError> {
        let path = self.shared_path();
        if !ambient::exists(&path)? {
            return Ok(None);
        }
        let bytes = ambient::read(&path)?;
        Ok(Some(PathBuf::from(OsString::from_vec(bytes))))
    }

    /// Keeps the folder that this copy is synced with.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn remember_shared(&self, folder: &Path) -> Result<(), SessionError> {
        let bytes = folder.as_os_str().as_bytes();
        Ok(ambient::replace(&self.shared_path(), bytes, false)?)
    }

    /// Whether this copy follows a log that another publishes: it has no log key.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn is_reader(&self) -> Result<bool, SessionError> {
        let is_writer = ambient::exists(&self.log_key())? || ambient::exists(&self.next_log_key())?;
        Ok(!is_writer && self.shared()?.is_some())
    }

    /// The name of this copy of the ledger, drawn once.
    ///
    /// # Errors
    /// When it can be neither read nor written.
    pub fn seat(&self, ambient: &Ambient) -> Result<String, SessionError> {
        let path = self.folder.join("seat");
        if !ambient::exists(&path)? {
            ambient::write_new(&path, shared::draw_seat(ambient)?.as_bytes(), 0o600)?;
        }
        Ok(String::from_utf8_lossy(&ambient::read(&path)?).into_owned())
    }

    /// Opens the ledger to write, with the log key that lies beside it.
    ///
    /// # Errors
    /// [`SessionError::Keys`] without a log key, and [`SessionError::Ledger`].
    pub fn open(
        &self,
        ambient: &Arc<Ambient>,
        options: &HomeOptions,
    ) -> Result<Ledger, SessionError> {
        let options = LedgerOptions {
            store: options.store,
            log_key: Some(files::read_log_key(&self.log_key())?),
            pins: options.pins.clone(),
        };
        let ledger = Ledger::open(&self.database, ambient.clone(), &GOVERNED, options)?;
        Ok(ledger)
    }

    /// Opens the vault, making it when it is not there.
    ///
    /// # Errors
    /// When it cannot be made or opened.
    pub fn vault(&self, ambient: &Ambient) -> Result<Vault, SessionError> {
        let path = self.vault_path();
        if !ambient::exists(&path)? {
            // SQLite takes an empty file for a new database, so no moment leaves it open to others.
            match ambient::write_new(&path, b"", 0o600) {
                // Another process makes it at the same moment.
                Ok(()) | Err(AmbientError::Exists(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Vault::open(&path, &ambient.random()?)?)
    }

    /// The vault, when there is one.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn known_vault(&self, ambient: &Ambient) -> Result<Option<Vault>, SessionError> {
        if ambient::exists(&self.vault_path())? {
            self.vault(ambient).map(Some)
        } else {
            Ok(None)
        }
    }
}
