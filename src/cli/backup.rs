//! `clover backup DEST`: a copy of the ledger while it is in use. Log key and author keys never go along.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::ground::ambient;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::LedgerOptions;
use crate::session::Home;
use crate::view::View;
use crate::view::ledger_copy;
use crate::workflow::GOVERNED;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of the copy
    pub dest: PathBuf,
    /// Subject keys too: whoever has the copy can read what is private, and erasure does not reach it
    #[arg(long)]
    pub with_vault: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let (home, ledger) = home::open_to_read(ctx)?;
    let target = Home::new(ctx.path(&args.dest));
    if ambient::exists(target.database())? {
        let message = format!("{} exists already", target.database().display());
        return Err(CliError::refused(message, "clover backup OTHER-FOLDER"));
    }
    ambient::create_private_dirs(target.folder())?;
    let mut progress = ctx.progress("pages copied");
    ledger
        .store()
        .backup(target.database(), |done, all| progress.at(done, all))?;
    drop(progress);
    hold(ctx, &target)?;
    let mut files = vec![crate::session::home::DATABASE];
    if args.with_vault
        && let Some(vault) = home.known_vault(&ctx.ambient())?
    {
        vault.backup(&target.vault_path())?;
        ambient::set_mode(&target.vault_path(), 0o600)?;
        files.push("vault.db");
    }
    let bytes = ambient::size(target.database())?;
    Ok(ledger_copy::backed_up(&ledger, &target, files, bytes))
}

/// Reads the copy under its signed head. A copy of something else is none, and does not stay.
fn hold(ctx: &mut Ctx<'_>, target: &Home) -> Result<(), CliError> {
    let options = LedgerOptions {
        store: home::store_options(ctx, true),
        log_key: None,
        pins: home::pins(ctx),
    };
    let opened = Ledger::open(target.database(), ctx.ambient(), &GOVERNED, options);
    let held = opened.and_then(|copy| copy.stored(0, copy.size(), |_| Ok(())));
    held.map_err(
        |error: LedgerError| match ambient::remove(target.database()) {
            Ok(()) => error.into(),
            Err(left) => left.into(),
        },
    )
}
