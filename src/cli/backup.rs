//! `clover backup DEST`: a copy of the ledger while it is in use. Log key and author keys never go along.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::wallet;
use crate::ground::ambient;
use crate::ground::seal::AgeError;
use crate::ground::seal::Recipient;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::LedgerOptions;
use crate::session::Home;
use crate::session::backup;
use crate::session::home::DATABASE;
use crate::view::View;
use crate::view::ledger_copy;
use crate::view::ledger_copy::Backup;
use crate::workflow::GOVERNED;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of the copy
    pub dest: PathBuf,
    /// Subject keys too: whoever has the copy can read what is private, and erasure does not reach it
    #[arg(long)]
    pub with_vault: bool,
    /// Everything to go on elsewhere: ledger, log key, vault and your keys, each encrypted with age
    #[arg(long, requires = "to", conflicts_with = "with_vault")]
    pub all: bool,
    /// The age recipient who can open it, as age-keygen prints one; may be given several times
    #[arg(long, value_name = "RECIPIENT", requires = "all")]
    pub to: Vec<String>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let (home, ledger) = home::open_to_read(ctx)?;
    if args.all {
        return everything(ctx, args, (&home, &ledger));
    }
    let target = Home::new(ctx.path(&args.dest));
    if ambient::exists(target.database())? {
        let message = format!("{} exists already", target.database().display());
        return Err(CliError::refused(message, "clover backup OTHER-FOLDER"));
    }
    let files = placed(ctx, args, (&home, &ledger), &target)?;
    let mut left_out = vec![OWN_KEYS.to_owned()];
    if ambient::exists(&home.log_key())? {
        left_out.insert(0, "log.key".to_owned());
    }
    if ambient::exists(&home.vault_path())? && !args.with_vault {
        left_out.push("vault.db".to_owned());
    }
    let bytes = ambient::size(target.database())?;
    let made = Backup {
        folder: target.folder(),
        files,
        left_out,
        bytes,
    };
    let answer = ledger_copy::backed_up(&ledger, made);
    Ok(answer.with_next(format!(
        "clover verify {}",
        shell::word(&target.database().display())
    )))
}

/// Copies a ledger, with its vault where that was asked for, and puts both in their place: the vault first, so that a folder
/// with a ledger has all that was asked for. A command that is stopped leaves a private folder beside, and no ledger.
fn placed(
    ctx: &mut Ctx<'_>,
    args: &Args,
    of: (&Home, &Ledger),
    target: &Home,
) -> Result<Vec<String>, CliError> {
    ambient::create_private_dirs(target.folder())?;
    let stage = ambient::unfinished(target.folder());
    // What a stopped process of this number left is no copy.
    if ambient::exists(&stage)? {
        ambient::remove_tree(&stage)?;
    }
    let made = staged(ctx, args, of, (&Home::new(stage.clone()), target));
    // What was never made need not be removed.
    ambient::remove_tree(&stage).ok();
    made
}

fn staged(
    ctx: &mut Ctx<'_>,
    args: &Args,
    (home, ledger): (&Home, &Ledger),
    (stage, target): (&Home, &Home),
) -> Result<Vec<String>, CliError> {
    ambient::create_private_dirs(stage.folder())?;
    let mut progress = ctx.progress("pages copied");
    ledger
        .store()
        .backup(stage.database(), |done, all| progress.at(done, all))?;
    drop(progress);
    hold(ctx, stage)?;
    let mut files = vec![DATABASE.to_owned()];
    // The vault after the ledger: the key of a subject that is erased in between goes nowhere.
    if args.with_vault
        && let Some(vault) = home.known_vault(&ctx.ambient())?
    {
        vault.backup(&stage.vault_path())?;
        ambient::set_mode(&stage.vault_path(), 0o600)?;
        ambient::rename(&stage.vault_path(), &target.vault_path())?;
        files.push("vault.db".to_owned());
    }
    ambient::rename(stage.database(), target.database())?;
    Ok(files)
}

const OWN_KEYS: &str = "your keys";

/// A backup of everything, encrypted.
fn everything(
    ctx: &mut Ctx<'_>,
    args: &Args,
    (home, ledger): (&Home, &Ledger),
) -> Result<View, CliError> {
    let recipients = args.to.iter().map(|text| {
        text.parse().map_err(|error: AgeError| {
            CliError::usage(format!("--to {text:?}: {error}"), "clover backup --help")
        })
    });
    let recipients = recipients.collect::<Result<Vec<Recipient>, _>>()?;
    let target = ctx.path(&args.dest);
    if ambient::exists(&target)? {
        let message = format!("{} exists already", target.display());
        return Err(CliError::refused(message, "clover backup OTHER-FOLDER"));
    }
    let known = &ledger.state().keyring.keys;
    let mut keys = Vec::new();
    for file in wallet::files(ctx)? {
        if !known.contains_key(&file.id) {
            continue;
        }
        for end in ["pem", "pub", "age"] {
            let path = file.path.with_extension(end);
            if ambient::exists(&path)? {
                keys.push(path);
            }
        }
    }
    let (ambient, of) = (ctx.ambient(), (home, ledger));
    let ports = &mut ctx.ports();
    let files = backup::back_up(ports, &ambient, of, &keys, &recipients, &target)?;
    let mut bytes = 0;
    for name in &files {
        bytes += ambient::size(&target.join(name))?;
    }
    let left_out = ["pins", "events that wait in your outbox"];
    let made = Backup {
        folder: &target,
        files,
        left_out: left_out.map(str::to_owned).to_vec(),
        bytes,
    };
    let answer = ledger_copy::backed_up(ledger, made);
    Ok(answer.with_next(format!(
        "clover restore {} --identity FILE --into DIR",
        shell::word(&target.display())
    )))
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
