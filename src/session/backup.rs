//! A backup of all that somebody needs to go on elsewhere: the ledger, the key of its log, the vault and their own keys.
//!
//! Each is an age file of its own, so that the stock `age` opens it. Nothing leaves this machine in clear: copies are made in
//! the ledger's private folder and encrypted from there.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use clover_event::Payload;
use clover_ground::ambient;
use clover_ground::ambient::Ambient;
use clover_ground::note::SignedCheckpoint;
use clover_ground::seal;
use clover_ground::seal::AgeError;
use clover_ground::seal::Identity;
use clover_ground::seal::Recipient;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_ledger::LedgerOptions;
use clover_ledger::error::Divergence;
use clover_ledger::pin::Pin;
use clover_store::OpenOptions;
use clover_workflow::GOVERNED;
use zeroize::Zeroizing;

use crate::error::SessionError;
use crate::home::DATABASE;
use crate::home::FOLDER;
use crate::home::Home;
use crate::home::HomeOptions;
use crate::keys::files;
use crate::ports::Watcher;
use crate::ports::Work;
use crate::restore;
use crate::restore::RestoreError;
use crate::stage::Aside;
use crate::stage::AsideKind;
use crate::stage::Stage;

/// Ends the name of every file of such a backup.
const END: &str = "age";
/// Folder of a person's own keys in it.
const KEYS: &str = "keys";
/// The vault in it.
pub const VAULT: &str = "vault.db";
/// The log key in it.
const LOG_KEY: &str = "log.key";

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A key file of that name holds another key.
    #[error("{} exists already and holds another key", .0.display())]
    KeyExists(PathBuf),
    /// A file that every backup has is not there.
    #[error("{} holds no {name}.age", folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
        /// The file.
        name: &'static str,
    },
    /// A file cannot be opened.
    #[error("{}: {source}", path.display())]
    Sealed {
        /// The file.
        path: PathBuf,
        /// Why.
        source: AgeError,
    },
}

/// Writes the ledger of a home, with all that belongs to it, into a new folder; answers with the names of the files.
///
/// # Errors
/// What files, ledger and vault say; then the folder is not there.
pub fn back_up(
    watcher: &mut dyn Watcher,
    ambient: &Ambient,
    of: (&Home, &Ledger),
    keys: &[PathBuf],
    recipients: &[Recipient],
    target: &Path,
) -> Result<Vec<String>, SessionError> {
    let private = Stage::new(of.0.folder(), "backup")?;
    let stage = ambient::unfinished(target);
    let made = sealed(
        watcher,
        ambient,
        of,
        keys,
        recipients,
        (private.folder(), &stage),
    );
    let placed = made.and_then(|names| {
        ambient::rename(&stage, target)?;
        Ok(names)
    });
    if placed.is_err() {
        // What was never made need not be removed.
        ambient::remove_tree(&stage).ok();
    }
    placed
}

fn sealed(
    watcher: &mut dyn Watcher,
    ambient: &Ambient,
    (home, ledger): (&Home, &Ledger),
    keys: &[PathBuf],
    recipients: &[Recipient],
    (private, stage): (&Path, &Path),
) -> Result<Vec<String>, SessionError> {
    ambient::create_private_dirs(&stage.join(KEYS))?;
    let mut names = Vec::new();
    let mut put = |name: &str, bytes: &[u8]| -> Result<(), SessionError> {
        let sealed = ambient.with_entropy(|entropy| seal::encrypt(bytes, recipients, entropy))?;
        let name = format!("{name}.{END}");
        ambient::write_new(&stage.join(&name), &sealed, 0o600)?;
        names.push(name);
        Ok(())
    };
    // The vault before the ledger: a subject that is erased in between is erased again where the backup is restored.
    if let Some(vault) = home.known_vault(ambient)? {
        let copy = private.join(VAULT);
        vault.backup(&copy)?;
        put(VAULT, &Zeroizing::new(ambient::read(&copy)?))?;
    }
    let copy = private.join(DATABASE);
    ledger.store().backup(&copy, |done, all| {
        watcher.progress(Work::Copying, done, all);
    })?;
    put(DATABASE, &ambient::read(&copy)?)?;
    if ambient::exists(&home.log_key())? {
        let log_key = Zeroizing::new(ambient::read_secret(&home.log_key())?);
        put(LOG_KEY, &log_key)?;
    }
    for key in keys {
        let Some(name) = key.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let bytes = Zeroizing::new(ambient::read(key)?);
        put(&format!("{KEYS}/{name}"), &bytes)?;
    }
    Ok(names)
}

/// A ledger that was restored.
#[derive(Debug)]
pub struct Restoration {
    /// Where it is.
    pub home: Home,
    /// The ledger.
    pub ledger: Ledger,
    /// Key files that were written; those that were there are not among them.
    pub keys: Vec<PathBuf>,
    /// Subjects that were erased since the vault was copied, and are erased again.
    pub erased: u64,
    /// Files that the backup had not, and that a whole one has.
    pub missing: Vec<&'static str>,
    /// What this machine saw of entries that are lost, where the restoration was to go on without them.
    pub lost: Option<LostEntries>,
}

/// What is to happen where this machine saw entries that a backup does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaterEntries {
    /// Nothing is restored.
    Wanted,
    /// The person says that no copy of them is left.
    Lost,
}

/// Entries that this machine saw, and of which no copy is left.
#[derive(Clone, Debug)]
pub struct LostEntries {
    /// The newest checkpoint that was seen.
    pub seen: SignedCheckpoint,
    /// Where it is kept.
    pub file: PathBuf,
}

/// Restores a backup into a folder without a ledger, and a person's keys into the folder of keys. What is restored is
/// verified as a whole, and held against the pin, before it stands there.
///
/// # Errors
/// [`BackupError`], [`RestoreError`], [`LedgerError::Diverged`] where a newer ledger was seen here,
/// and what files say; then no ledger stands in the folder.
pub fn restore(
    watcher: &mut dyn Watcher,
    ambient: &Arc<Ambient>,
    (from, into, keys): (&Path, &Path, &Path),
    identity: &Identity,
    (options, later): (&HomeOptions, LaterEntries),
) -> Result<Restoration, SessionError> {
    let home = Home::new(into.join(FOLDER));
    let aside = Aside::new(ambient, into, AsideKind::Restore)?;
    let missing = unsealed((from, aside.home()), identity)?;
    restore::verified(watcher, ambient, aside.home(), None, options.store)?;
    let lost = unreached(ambient, aside.home(), (options, later))?;
    let pins = options.pins.clone().filter(|_| lost.is_none());
    let erased = erased_again(ambient, aside.home(), (options.store, pins))?;
    let keys = own_keys(from, keys, identity)?;
    aside.place(&home)?;
    let lost = lost.map(PassedPin::set_aside).transpose()?;
    if let (Some((lost, _)), Some(pins)) = (&lost, &options.pins) {
        // A copy that stood here is gone with its entries.
        let origin = lost.seen.checkpoint().origin.as_str();
        let own = Pin::of_copy(pins, origin, home.database());
        own.forget().map_err(RestoreError::from)?;
    }
    let opened = LedgerOptions {
        store: options.store,
        log_key: None,
        pins: options.pins.clone(),
    };
    let ledger = Ledger::open_anew(home.database(), ambient.clone(), &GOVERNED, opened)?;
    ledger.advance_pin()?;
    if let (Some(pin), Some((_, true))) = (ledger.pin(), &lost) {
        pin.vouch().map_err(RestoreError::from)?;
    }
    Ok(Restoration {
        home,
        ledger,
        keys,
        erased,
        missing,
        lost: lost.map(|(lost, _)| lost),
    })
}

/// A pin that is ahead of what is restored.
struct PassedPin {
    pin: Pin,
    seen: SignedCheckpoint,
}

impl PassedPin {
    /// Puts it aside; tells also whether the ledger was known from elsewhere than from its file.
    fn set_aside(self) -> Result<(LostEntries, bool), SessionError> {
        let is_vouched = self.pin.is_vouched();
        let file = self.pin.set_aside(&self.seen);
        let file = file.map_err(RestoreError::from)?;
        let seen = self.seen;
        Ok((LostEntries { seen, file }, is_vouched))
    }
}

/// The pin of this ledger where it is ahead of the backup and its later entries are lost.
///
/// # Errors
/// [`LedgerError::Diverged`]: it is ahead and they are wanted, or it is of another history.
fn unreached(
    ambient: &Arc<Ambient>,
    stage: &Home,
    (options, later): (&HomeOptions, LaterEntries),
) -> Result<Option<PassedPin>, SessionError> {
    let Some(pins) = &options.pins else {
        return Ok(None);
    };
    let ledger = opened(ambient, stage, (options.store, None))?;
    let pin = Pin::new(pins, &ledger.state().keyring.origin);
    let Some(seen) = pin.load().map_err(RestoreError::from)? else {
        return Ok(None);
    };
    match ledger.agree(&seen) {
        Ok(()) => Ok(None),
        Err(LedgerError::Diverged(Divergence::RolledBack { .. }))
            if later == LaterEntries::Lost =>
        {
            Ok(Some(PassedPin { pin, seen }))
        }
        Err(error) => Err(error.into()),
    }
}

/// The ledger of a home, to be read, held against its log key and the pin, if one is to be asked.
fn opened(
    ambient: &Arc<Ambient>,
    stage: &Home,
    (store, pins): (OpenOptions, Option<PathBuf>),
) -> Result<Ledger, SessionError> {
    let log_key = if ambient::exists(&stage.log_key())? {
        Some(files::read_log_key(&stage.log_key())?)
    } else {
        None
    };
    let options = LedgerOptions {
        store: OpenOptions {
            read_only: true,
            ..store
        },
        log_key,
        pins,
    };
    let ledger = Ledger::open_anew(stage.database(), ambient.clone(), &GOVERNED, options)?;
    Ok(ledger)
}

/// The content of one file of a backup; `None` where it is not there.
fn open(path: &Path, identity: &Identity) -> Result<Option<Zeroizing<Vec<u8>>>, SessionError> {
    if !ambient::exists(path)? {
        return Ok(None);
    }
    let opened = seal::decrypt(&ambient::read(path)?, std::slice::from_ref(identity));
    let opened = opened.map_err(|source| BackupError::Sealed {
        path: path.to_owned(),
        source,
    })?;
    Ok(Some(Zeroizing::new(opened)))
}

/// Opens the files of the ledger into a folder of their own; gives the names of those that are not there.
fn unsealed(
    (from, stage): (&Path, &Home),
    identity: &Identity,
) -> Result<Vec<&'static str>, SessionError> {
    ambient::create_private_dirs(stage.folder())?;
    let mut missing = Vec::new();
    for (name, is_needed) in [(DATABASE, true), (LOG_KEY, false), (VAULT, false)] {
        match open(&from.join(format!("{name}.{END}")), identity)? {
            Some(bytes) => ambient::write_new(&stage.folder().join(name), &bytes, 0o600)?,
            None if is_needed => {
                let folder = from.to_owned();
                return Err(BackupError::Missing { folder, name }.into());
            }
            None => missing.push(name),
        }
    }
    Ok(missing)
}

/// Holds what was restored against pin and log key, and destroys keys of subjects that the ledger says are erased.
fn erased_again(
    ambient: &Arc<Ambient>,
    stage: &Home,
    held: (OpenOptions, Option<PathBuf>),
) -> Result<u64, SessionError> {
    let ledger = opened(ambient, stage, held)?;
    let Some(vault) = stage.known_vault(ambient)? else {
        return Ok(0);
    };
    let mut subjects = Vec::new();
    let size = ledger.size();
    ledger.entries::<LedgerError>(0, size, |read| {
        if let Payload::SubjectErased(of) = read.event.payload {
            subjects.push(of.subject);
        }
        Ok(())
    })?;
    let mut erased = 0;
    for subject in &subjects {
        erased += u64::from(vault.destroy_subject(subject)?);
    }
    Ok(erased)
}

/// Writes a person's keys where they are kept; answers with those that were not there.
fn own_keys(from: &Path, folder: &Path, identity: &Identity) -> Result<Vec<PathBuf>, SessionError> {
    let mut new = Vec::new();
    for path in ambient::list(&from.join(KEYS))? {
        if path.extension().is_none_or(|end| end != END) {
            continue;
        }
        let (Some(name), Some(bytes)) = (path.file_stem(), open(&path, identity)?) else {
            continue;
        };
        let to = folder.join(name);
        if !ambient::exists(&to)? {
            new.push((to, bytes));
        } else if ambient::read(&to)? != *bytes {
            return Err(BackupError::KeyExists(to).into());
        }
    }
    ambient::create_private_dirs(folder)?;
    for (to, bytes) in &new {
        ambient::write_new(to, bytes, 0o600)?;
    }
    Ok(new.into_iter().map(|(to, _)| to).collect())
}
