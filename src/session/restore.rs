//! A ledger made from an export, entry by entry under the same root.
//!
//! The export is loaded beside the place where it is to stand, verified there as a ledger file, and put in its place by one
//! rename: a ledger that does not verify is never seen.

use std::path::Path;
use std::sync::Arc;

use clover_ground::ambient;
use clover_ground::ambient::Ambient;
use clover_ground::note::SignedCheckpoint;
use clover_ground::note::VerifierKey;
use clover_ledger::Ledger;
use clover_ledger::LedgerOptions;
use clover_ledger::RuleName;
use clover_ledger::load;
use clover_ledger::load::LogSource;
use clover_ledger::pin::PinError;
use clover_ledger::verify::VerifyError;
use clover_ledger::verify::VerifyOptions;
use clover_ledger::verify::verify_store;
use clover_store::OpenOptions;
use clover_store::Store;
use clover_workflow::GOVERNED;

use crate::append;
use crate::error::SessionError;
use crate::home::FOLDER;
use crate::home::Home;
use crate::ports::Watcher;
use crate::ports::Work;
use crate::stage::Aside;
use crate::stage::AsideKind;

/// Why no ledger is made.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// What was loaded does not verify.
    #[error(
        "as a ledger, seq {seq} {rule}: expected {expected}, found {found}; nothing was imported"
    )]
    Finding {
        /// The entry.
        seq: u64,
        /// The rule.
        rule: RuleName,
        /// What it would accept.
        expected: String,
        /// What it found.
        found: String,
    },
    /// The pin cannot be kept.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// What was loaded cannot be verified.
    #[error(transparent)]
    Verify(#[from] VerifyError),
}

/// Which export, and against what it is held.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Its newest checkpoint.
    pub head: SignedCheckpoint,
    /// The log key that it must have or have had.
    pub log_key: Option<VerifierKey>,
}

/// Makes the ledger file of a home in the folder `into`.
///
/// # Errors
/// [`RestoreError`], and what files say; then nothing stands in `into` that did not before.
pub fn restore(
    watcher: &mut dyn Watcher,
    ambient: &Arc<Ambient>,
    into: &Path,
    (parts, origin): (LogSource<'_>, &Origin),
    store: OpenOptions,
) -> Result<Home, SessionError> {
    let home = Home::new(into.join(FOLDER));
    let aside = Aside::new(ambient, into, AsideKind::Import)?;
    staged(watcher, ambient, aside.home(), (parts, origin), store)?;
    aside.place(&home)?;
    Ok(home)
}

/// Loads an export into a folder of its own, and verifies what stands there.
pub(crate) fn staged(
    watcher: &mut dyn Watcher,
    ambient: &Arc<Ambient>,
    stage: &Home,
    (parts, origin): (LogSource<'_>, &Origin),
    store: OpenOptions,
) -> Result<(), SessionError> {
    ambient::create_private_dirs(stage.folder())?;
    let size = origin.head.checkpoint().size;
    load::load(stage.database(), store, &GOVERNED, parts, &mut |done| {
        watcher.progress(Work::Loading, done, size);
    })?;
    verified(watcher, ambient, stage, Some(origin), store)
}

/// Verifies the ledger file of a home that nobody sees yet.
pub(crate) fn verified(
    watcher: &mut dyn Watcher,
    ambient: &Arc<Ambient>,
    stage: &Home,
    origin: Option<&Origin>,
    store: OpenOptions,
) -> Result<(), SessionError> {
    let reading = OpenOptions {
        read_only: true,
        ..store
    };
    let options = VerifyOptions {
        against: origin.map_or_else(Vec::new, |origin| {
            vec![("the checkpoint".to_owned(), origin.head.clone())]
        }),
        log_key: origin.and_then(|origin| origin.log_key.clone()),
        ..VerifyOptions::default()
    };
    let store = Store::open(stage.database(), reading)?;
    let progress = &mut |done, all| watcher.progress(Work::Verifying, done, all);
    let report = verify_store(&store, &options, &GOVERNED, ambient, progress);
    let report = report.map_err(RestoreError::from)?;
    match report.findings.into_iter().next() {
        None => Ok(()),
        Some(finding) => {
            let error = RestoreError::Finding {
                seq: finding.seq,
                rule: finding.rule,
                expected: finding.expected,
                found: finding.found,
            };
            Err(error.into())
        }
    }
}

/// Whether a pin is kept of a restored ledger, and whether it stands for a log key from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinTerms {
    /// A pin is kept.
    pub keep: bool,
    /// The export was verified against a log key that its own files did not give.
    pub vouch: bool,
}

/// Opens a restored ledger, and pins it.
///
/// # Errors
/// [`RestoreError::Pin`], and what the ledger says; the ledger stands all the same.
pub fn open(
    watcher: &mut dyn Watcher,
    ambient: Arc<Ambient>,
    home: &Home,
    options: LedgerOptions,
    pin: PinTerms,
) -> Result<Ledger, SessionError> {
    let ledger = Ledger::open_anew(home.database(), ambient, &GOVERNED, options)?;
    if pin.keep {
        ledger.advance_pin()?;
    }
    if pin.vouch
        && let Some(pin) = ledger.pin()
    {
        pin.vouch().map_err(RestoreError::from)?;
    }
    append::tell_of_pin(watcher, &ledger);
    Ok(ledger)
}
