//! `clover import ledger DIR`: a ledger made from an export, entry by entry under the same root.
//!
//! The export is verified first, then made into a ledger file, which is verified again before it is put in its place.

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::verify;
use crate::event::payload::Verdict;
use crate::export::source;
use crate::ground::ambient;
use crate::ground::note::SignedCheckpoint;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::ledger::error::Divergence;
use crate::ledger::load::LogSource;
use crate::ledger::pin::Pin;
use crate::ledger::verify::Report;
use crate::session::Home;
use crate::session::restore;
use crate::session::restore::Origin;
use crate::session::restore::PinTerms;
use crate::session::restore::RestoreError;
use crate::view::View;
use crate::view::ledger_copy;

const HELP: &str = "clover import ledger --help";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of an export: jsonl or tiles, with its checkpoints and, where events name blobs, its blobs
    pub export: PathBuf,
    /// Folder of the new ledger
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub into: PathBuf,
    /// The log key that the ledger must have or have had
    #[arg(long, value_name = "VKEY")]
    pub log_key: Option<String>,
    /// Verify the export and make nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let (from, into) = (ctx.path(&args.export), ctx.path(&args.into));
    if ctx.globals.ledger.is_some() {
        let message = "--ledger names a ledger that is there; --into names the folder of a new one";
        let typed = shell::quoted(&args.export.display().to_string());
        let next = format!("clover import ledger {typed} --into DIR");
        return Err(CliError::usage(message, next));
    }
    if ambient::is_file(&from) {
        let typed = shell::quoted(&from.display().to_string());
        let message = format!("{} is a file, expected a folder", from.display());
        let next = format!("unzip {typed} -d DIR && clover import ledger DIR --into NEW");
        return Err(CliError::input(message, next));
    }
    if !ambient::is_dir(&from) {
        let message = format!("{} is no folder of an export", from.display());
        return Err(CliError::not_found(message, "clover export jsonl -o DIR"));
    }
    let head = verify::checkpoint(ctx, &from.join("checkpoint"))?;
    let log_key = args.log_key.as_deref();
    let pin = pin(ctx, &head)?;
    let (report, mut verified) = verified(ctx, &from, &into, log_key)?;
    if report.verdict != Verdict::Pass {
        verified.line("nothing was imported");
        return Ok(verified);
    }
    whole(&report, &from, &head)?;
    if args.dry_run {
        verified.line("dry run: nothing was imported");
        verified.verdict = "dry_run";
        return Ok(verified);
    }
    let (home, ledger) = make(ctx, &from, &into, (head, log_key, pin))?;
    Ok(ledger_copy::imported(&home, &ledger, &report))
}

/// Makes a ledger from what is published in a folder, under one checkpoint of it.
pub(super) fn join(
    ctx: &mut Ctx<'_>,
    from: &Path,
    into: &Path,
    (head, log_key): (SignedCheckpoint, Option<&str>),
) -> Result<Home, CliError> {
    let pin = pin(ctx, &head)?;
    let (report, found) = verified(ctx, from, into, log_key)?;
    if report.verdict != Verdict::Pass {
        let message = format!(
            "{} does not verify: {}",
            from.display(),
            found.text().trim_end()
        );
        let next = format!("clover verify {}", shell::word(&from.display()));
        return Err(CliError::integrity("tampered", message, next));
    }
    whole(&report, from, &head)?;
    let (home, _) = make(ctx, from, into, (head, log_key, pin))?;
    Ok(home)
}

/// What verifying an export finds, where its ledger is to stand in a folder without one.
fn verified(
    ctx: &mut Ctx<'_>,
    from: &Path,
    into: &Path,
    log_key: Option<&str>,
) -> Result<(Report, View), CliError> {
    let home = Home::new(into.join(crate::session::home::FOLDER));
    if ambient::exists(home.folder())? {
        let message = format!("{} exists already", home.folder().display());
        return Err(CliError::refused(message, HELP));
    }
    let options = verify::everything(log_key.map(str::to_owned));
    verify::export(ctx, &options, from)
}

/// Makes the ledger of an export that was verified.
fn make(
    ctx: &mut Ctx<'_>,
    from: &Path,
    into: &Path,
    (head, log_key, keep): (SignedCheckpoint, Option<&str>, bool),
) -> Result<(Home, Ledger), CliError> {
    let origin = Origin {
        log_key: log_key.map(verify::log_key).transpose()?,
        head,
    };
    let made = (parts(from, &origin.head)?, &origin);
    let store = home::store_options(ctx, false);
    let ambient = ctx.ambient();
    let home = restore::restore(&mut ctx.ports(), &ambient, into, made, store)?;
    let options = home::options(ctx, None, true);
    let vouch = log_key.is_some();
    let pin = PinTerms { keep, vouch };
    let ledger = restore::open(&mut ctx.ports(), ambient, &home, options, pin)?;
    Ok((home, ledger))
}

/// Whether a pin is kept here. A pin that is ahead of the export, or that another log of the same name left, stands
/// against it: the ledger could not be opened.
fn pin(ctx: &Ctx<'_>, head: &SignedCheckpoint) -> Result<bool, CliError> {
    let Some(pins) = home::pins(ctx) else {
        return Ok(false);
    };
    let origin = head.checkpoint().origin.as_str();
    let pinned = Pin::new(&pins, origin).load();
    let pinned =
        pinned.map_err(|error| CliError::integrity("pin", error.to_string(), "clover doctor"))?;
    let found = head.checkpoint().size;
    match pinned.map(|pinned| pinned.checkpoint().size) {
        Some(pinned) if pinned > found => {
            let rolled = CliError::from(Divergence::RolledBack { pinned, found });
            Err(rolled.with_next("clover export jsonl -o DIR"))
        }
        _ => Ok(true),
    }
}

/// An export without blobs that its events name, or without the checkpoints kept, makes no whole ledger.
fn whole(report: &Report, from: &Path, head: &SignedCheckpoint) -> Result<(), CliError> {
    let again = "clover export jsonl -o DIR";
    if report.not_checked.iter().any(|what| what == "blobs") {
        let message = format!(
            "{}: events name blobs, and there is no folder of them",
            from.display()
        );
        return Err(CliError::input(message, again));
    }
    let kept = source::checkpoints(from)?;
    if kept.last() != Some(head) {
        let found = kept.last().map_or("none".to_owned(), |last| {
            format!("the last of size {}", last.checkpoint().size)
        });
        let message = format!(
            "{}: expected every checkpoint kept up to size {}, found {found}",
            from.join(source::CHECKPOINTS).display(),
            head.checkpoint().size
        );
        return Err(CliError::input(message, again));
    }
    if let Some(blob) = source::broken_blob(&from.join(source::BLOBS))? {
        let message = format!(
            "{}: expected bytes of that digest, found others",
            blob.display()
        );
        return Err(CliError::integrity("tampered", message, again));
    }
    if source::is_tiles(from)
        && let Some(tile) = source::broken_tile(from, head.checkpoint().size)?
    {
        let message = format!("{tile}: expected the hashes of these entries, found others");
        return Err(CliError::integrity(
            "tampered",
            message,
            "clover verify DIR",
        ));
    }
    Ok(())
}

/// What the ledger file is made from.
fn parts<'a>(from: &Path, head: &SignedCheckpoint) -> Result<LogSource<'a>, CliError> {
    let lines: Box<dyn std::io::BufRead + Send> = if source::is_tiles(from) {
        source::tiles(from, head.checkpoint().size)
    } else {
        ambient::reader(&from.join("ledger.jsonl"))?
    };
    Ok(LogSource {
        lines,
        checkpoints: source::checkpoints(from)?,
        blobs: Box::new(source::blobs(&from.join(source::BLOBS))?),
    })
}

impl From<RestoreError> for CliError {
    fn from(error: RestoreError) -> Self {
        let message = error.to_string();
        match error {
            RestoreError::Finding { .. } => {
                Self::integrity("tampered", message, "clover verify DIR")
            }
            RestoreError::Pin(_) => Self::integrity("pin", message, "clover doctor"),
            RestoreError::Verify(error) => error.into(),
        }
    }
}
