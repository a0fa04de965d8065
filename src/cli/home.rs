//! Where a ledger lies, and opening it.
//!
//! Verbs search upward for it from the current folder. A rotation of the log key that was cut
//! short between append and rename is finished on opening.

use std::path::PathBuf;
use std::time::Duration;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::rulebook;
use crate::cli::slate;
use crate::ground::ambient;
use crate::ground::shell;
use crate::ground::sign::Signer;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::LedgerOptions;
use crate::ledger::State;
use crate::ledger::error::Divergence;
use crate::session::Home;
use crate::session::home::DATABASE;
use crate::session::home::FOLDER;
use crate::session::keys::files;
use crate::store::OpenOptions;
use crate::store::Store;
use crate::workflow::GOVERNED;

/// What `--ledger` or `CLOVER_LEDGER` may name: the folder around `.clover`, `.clover` itself, a backup's
/// folder, or a ledger file.
fn named(path: PathBuf) -> Result<Home, CliError> {
    let inner = path.join(FOLDER);
    if ambient::exists(&inner.join(DATABASE))? {
        return Ok(Home::new(inner));
    }
    if ambient::is_dir(&path) {
        let home = Home::new(path);
        if ambient::exists(home.database())? {
            return Ok(home);
        }
        let message = format!("no ledger in {}", home.folder().display());
        let next = format!("clover init {}", shell::word(&home.folder().display()));
        return Err(CliError::not_found(message, next));
    }
    if ambient::exists(&path)? {
        return Ok(Home::of_database(path));
    }
    let message = format!("{} does not exist", path.display());
    Err(CliError::not_found(message, "clover init"))
}

/// Finds the ledger that a command is about.
pub(super) fn find(ctx: &Ctx<'_>) -> Result<Home, CliError> {
    if let Some(path) = &ctx.globals.ledger {
        return named(ctx.path(path));
    }
    if let Some(path) = ctx.variable("CLOVER_LEDGER") {
        return named(ctx.path(path));
    }
    let mut folder = Some(ctx.folder());
    while let Some(at) = folder {
        let inner = at.join(FOLDER);
        if ambient::exists(&inner.join(DATABASE))? {
            return Ok(Home::new(inner));
        }
        folder = at.parent();
    }
    let message = format!("no ledger in {} or above it", ctx.folder().display());
    Err(CliError::not_found(message, "clover init"))
}

/// What follows where no folder for pins is known.
pub(super) const NO_PIN: &str = "no pin is kept: neither XDG_STATE_HOME nor HOME is set";

/// The folder of pins, outside every ledger's own.
pub(super) fn pins(ctx: &Ctx<'_>) -> Option<PathBuf> {
    let state = ctx.variable("XDG_STATE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(ctx.variable("HOME")?).join(".local/state"));
    Some(state.or_else(home)?.join("clover/pins"))
}

pub(super) fn store_options(ctx: &Ctx<'_>, read_only: bool) -> OpenOptions {
    OpenOptions {
        busy_timeout: Duration::from_secs(ctx.globals.busy_timeout),
        read_only,
        ..OpenOptions::default()
    }
}

pub(super) fn options(
    ctx: &mut Ctx<'_>,
    log_key: Option<Signer>,
    read_only: bool,
) -> LedgerOptions {
    let pins = pins(ctx);
    if pins.is_none() {
        ctx.warn(NO_PIN);
    }
    LedgerOptions {
        store: store_options(ctx, read_only),
        log_key,
        pins,
    }
}

/// Opens a ledger, and asks before another one is taken at the path of a known one.
pub(super) fn open_asking(
    ctx: &mut Ctx<'_>,
    home: &Home,
    options: impl Fn(&mut Ctx<'_>) -> Result<LedgerOptions, CliError>,
    yes: bool,
) -> Result<Result<Ledger, LedgerError>, CliError> {
    let (database, first) = (home.database(), options(ctx)?);
    let opened = Ledger::open(database, ctx.ambient(), &GOVERNED, first);
    let Err(LedgerError::Diverged(Divergence::Replaced { known, found })) = &opened else {
        return Ok(opened);
    };
    if !yes && !ctx.can_ask() {
        return Ok(opened);
    }
    let question = format!("the ledger here was {known}, this file is {found}: take it instead?");
    ctx.confirm(&question, yes, "clover checkpoint pin")?;
    let again = options(ctx)?;
    Ok(Ledger::open_anew(database, ctx.ambient(), &GOVERNED, again))
}

/// Opens the ledger to read it.
pub(super) fn open_to_read(ctx: &mut Ctx<'_>) -> Result<(Home, Ledger), CliError> {
    let home = find(ctx)?;
    let options = options(ctx, None, true);
    let ledger = Ledger::open(home.database(), ctx.ambient(), &GOVERNED, options)?;
    Ok((home, ledger))
}

/// Opens the ledger to append to it: where the log is written, its file; on a copy that follows a shared folder, a slate.
pub(super) fn open_to_write(ctx: &mut Ctx<'_>) -> Result<(Home, Ledger), CliError> {
    if find(ctx)?.is_reader()? {
        let (home, ledger, _) = slate::open(ctx)?;
        return Ok((home, ledger));
    }
    open_as_writer(ctx)
}

/// Opens the ledger where its log is written, and finishes a rotation of its log key that was cut short.
pub(super) fn open_as_writer(ctx: &mut Ctx<'_>) -> Result<(Home, Ledger), CliError> {
    let home = find(ctx)?;
    // Told apart before anything is opened: a file that is no ledger has no log key to miss.
    drop(Store::open(home.database(), store_options(ctx, true))?);
    ambient::check_writable(home.database())?;
    let first = |ctx: &mut Ctx<'_>| {
        let log_key = files::read_log_key(&home.log_key())?;
        Ok(options(ctx, Some(log_key), false))
    };
    let opened = open_asking(ctx, &home, first, false)?;
    let next = home.next_log_key();
    match opened {
        Ok(mut ledger) => {
            rulebook::offer(ctx, &ledger);
            if ctx.globals.clock_ahead {
                ledger.allow_clock_ahead();
            }
            Ok((home, ledger))
        }
        Err(LedgerError::LogKey(_)) if ambient::exists(&next)? => {
            let second = options(ctx, Some(files::read_log_key(&next)?), false);
            let mut ledger = Ledger::open(home.database(), ctx.ambient(), &GOVERNED, second)?;
            if ctx.globals.clock_ahead {
                ledger.allow_clock_ahead();
            }
            ambient::rename(&next, &home.log_key())?;
            ctx.note("the rotation of the log key is finished: log.key.next became log.key");
            Ok((home, ledger))
        }
        Err(error) => Err(error.into()),
    }
}

/// State at the head, or after the entry that `at` names.
pub(super) enum AsOf {
    /// The head.
    Head,
    /// Earlier.
    Earlier(Box<State>),
}

/// Opens the ledger to read the state that the command is about.
pub(super) fn view(ctx: &mut Ctx<'_>) -> Result<(Home, Ledger, AsOf), CliError> {
    let (home, ledger) = open_to_read(ctx)?;
    let view = match ctx.as_of {
        None => AsOf::Head,
        Some(seq) => AsOf::Earlier(Box::new(ledger.state_shown(seq + 1)?)),
    };
    Ok((home, ledger, view))
}

impl AsOf {
    pub(super) fn state<'a>(&'a self, ledger: &'a Ledger) -> &'a State {
        match self {
            Self::Head => ledger.state(),
            Self::Earlier(state) => state,
        }
    }
}
