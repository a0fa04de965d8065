//! A new ledger: log key, first entry and the folder that gets its name when all of it stands.

use std::path::PathBuf;
use std::sync::Arc;

use clover_ground::ambient;
use clover_ground::ambient::Ambient;
use clover_ledger::CreateLedger;
use clover_ledger::Ledger;
use clover_ledger::LedgerOptions;
use clover_ledger::error::Divergence;
use clover_ledger::error::LedgerError;
use clover_ledger::pin;
use clover_ledger::pin::Pin;
use clover_ledger::pin::PinError;
use clover_store::OpenOptions;
use clover_store::Store;
use clover_store::StoreError;
use clover_workflow::GOVERNED;

use crate::error::SessionError;
use crate::home::FOLDER;
use crate::home::Home;
use crate::home::HomeOptions;
use crate::keys::files;

/// Why no ledger is made.
#[derive(Debug, thiserror::Error)]
pub enum FoundingError {
    /// Something stands there.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// The pin of the log cannot be read.
    #[error(transparent)]
    Pin(PinError),
}

/// A ledger that was made.
#[derive(Debug)]
pub struct NewLedger {
    /// The ledger, open.
    pub ledger: Ledger,
    /// Where an unfinished ledger was put that stood in its place.
    pub aside: Option<PathBuf>,
    /// Why no pin was kept, where one was wanted.
    pub unpinned: Option<String>,
    /// The log that lay at this place before, of which a pin is kept.
    pub replaced: Option<String>,
}

/// Whether a ledger may be made in a home; answers with whether an unfinished one stands there.
///
/// # Errors
/// [`FoundingError::Exists`].
pub fn check_free(home: &Home, store: &OpenOptions) -> Result<bool, SessionError> {
    let is_unfinished = is_unfinished(home, store)?;
    if ambient::exists(home.folder())? && !is_unfinished {
        return Err(FoundingError::Exists(home.database().to_owned()).into());
    }
    Ok(is_unfinished)
}

/// Makes a ledger in a home, with a log key of its own, and pins it. Whoever stops this halfway leaves nothing under the
/// home's name.
///
/// # Errors
/// [`FoundingError`]; [`LedgerError::Diverged`] where a pin says that a log of this origin was seen before.
pub fn found(
    ambient: &Arc<Ambient>,
    home: &Home,
    create: CreateLedger<'_>,
    options: &HomeOptions,
) -> Result<NewLedger, SessionError> {
    let is_unfinished = check_free(home, &options.store)?;
    check_unpinned(&create, options)?;
    let replaced = match &options.pins {
        Some(pins) => pin::replaced(pins, home.database(), create.origin.as_str()),
        None => Ok(None),
    };
    let replaced = replaced.map_err(FoundingError::Pin)?;
    let stage = Home::new(ambient::unfinished(home.folder()));
    clear(home)?;
    let staged = staged(ambient, &stage, create, options);
    let placed = staged.and_then(|()| {
        // An empty folder is taken over by the rename itself.
        let mut aside = None;
        if is_unfinished && !ambient::list(home.folder())?.is_empty() {
            let free = free(home)?;
            ambient::rename(home.folder(), &free)?;
            aside = Some(free);
        }
        ambient::rename(stage.folder(), home.folder())?;
        Ok(aside)
    });
    let aside = match placed {
        Ok(aside) => aside,
        Err(error) => {
            // What was never made need not be removed.
            ambient::remove_tree(stage.folder()).ok();
            return Err(error);
        }
    };
    // Whoever makes a ledger where another lay knows that it is another.
    let opened = LedgerOptions {
        store: options.store,
        log_key: Some(files::read_log_key(&home.log_key())?),
        pins: options.pins.clone(),
    };
    let ledger = Ledger::open_anew(home.database(), ambient.clone(), &GOVERNED, opened)?;
    let unpinned = pinned(&ledger).err();
    Ok(NewLedger {
        ledger,
        aside,
        unpinned,
        replaced,
    })
}

/// Whoever made a ledger knows which one it is.
fn pinned(ledger: &Ledger) -> Result<(), String> {
    ledger.advance_pin().map_err(|error| error.to_string())?;
    let pin = ledger.pin();
    pin.map_or(Ok(()), |pin| pin.vouch().map_err(|error| error.to_string()))
}

/// Whether a folder holds no more than the beginning of a ledger: what an earlier program left when it was stopped. Nothing
/// was ever appended there.
fn is_unfinished(home: &Home, store: &OpenOptions) -> Result<bool, SessionError> {
    if !ambient::is_dir(home.folder()) {
        return Ok(false);
    }
    if !ambient::exists(home.database())? {
        return Ok(!ambient::exists(&home.vault_path())?);
    }
    if ambient::irregular(home.database()).is_some() {
        return Ok(false);
    }
    if ambient::size(home.database())? == 0 {
        return Ok(true);
    }
    let reading = OpenOptions {
        read_only: true,
        ..*store
    };
    match Store::open(home.database(), reading) {
        Ok(store) => Ok(store.reader().entry_count()? == 0),
        Err(StoreError::Version { found: 0, .. }) => Ok(true),
        // Something else stands there.
        Err(_) => Ok(false),
    }
}

/// A pin says that a log of this origin was seen before: another cannot begin under its name.
fn check_unpinned(create: &CreateLedger<'_>, options: &HomeOptions) -> Result<(), SessionError> {
    let Some(pins) = &options.pins else {
        return Ok(());
    };
    let pinned = Pin::new(pins, create.origin.as_str()).load();
    match pinned.map_err(FoundingError::Pin)? {
        Some(pinned) => {
            let pinned = pinned.checkpoint().size;
            Err(LedgerError::from(Divergence::RolledBack { pinned, found: 0 }).into())
        }
        None => Ok(()),
    }
}

/// Removes what was stopped and left beside a ledger's folder.
fn clear(home: &Home) -> Result<(), SessionError> {
    let Some(parent) = home.folder().parent() else {
        return Ok(());
    };
    for path in ambient::list(parent)? {
        let name = path.file_name().and_then(|name| name.to_str());
        let process = name
            .and_then(|name| name.strip_prefix(FOLDER)?.strip_prefix('.'))
            .and_then(|name| name.strip_suffix(ambient::UNFINISHED));
        if process.is_some_and(|process| process.bytes().all(|byte| byte.is_ascii_digit())) {
            ambient::remove_tree(&path)?;
        }
    }
    Ok(())
}

/// A name that is free, for what is put aside: nothing that may hold a key is removed.
fn free(home: &Home) -> Result<PathBuf, SessionError> {
    let mut number = 1_u32;
    loop {
        let name = format!("{FOLDER}.unfinished-{number}");
        let path = home.folder().with_file_name(name);
        if !ambient::exists(&path)? {
            return Ok(path);
        }
        number += 1;
    }
}

/// Log key and database, in a folder of their own.
fn staged(
    ambient: &Arc<Ambient>,
    stage: &Home,
    create: CreateLedger<'_>,
    options: &HomeOptions,
) -> Result<(), SessionError> {
    ambient::create_private_dirs(stage.folder())?;
    let log_key = files::draw(ambient)?;
    files::write_log_key(ambient, &stage.log_key(), &log_key)?;
    let options = LedgerOptions {
        store: options.store,
        log_key: Some(log_key),
        pins: None,
    };
    // Closed before its folder gets its name: SQLite keeps the names of its files.
    drop(Ledger::create(
        stage.database(),
        create,
        ambient.clone(),
        &GOVERNED,
        options,
    )?);
    Ok(())
}
