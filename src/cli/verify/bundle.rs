//! `clover verify BUNDLE`: the log in it, whole or in part, and the files beside it.

use std::cell::RefCell;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::verify;
use crate::cli::verify::Args;
use crate::export::bundle;
use crate::export::bundle::OpenBundle;
use crate::ground::digest::Digest;
use crate::ground::note::SignedCheckpoint;
use crate::ledger::verify as log;
use crate::ledger::verify::EntryLines;
use crate::ledger::verify::Report;
use crate::ledger::verify::VerifyOptions;
use crate::workflow::GOVERNED;

/// Checks the log in a bundle, then every other file of it.
pub(super) fn check(
    ctx: &mut Ctx<'_>,
    args: &Args,
    mut opened: OpenBundle,
    options: &mut VerifyOptions,
) -> Result<Report, CliError> {
    refuse(args)?;
    let contents = opened.contents()?;
    let is_part = opened.is_part()?;
    let note = opened.checkpoint()?;
    let own = match SignedCheckpoint::parse(&note) {
        Ok(own) => Some(own),
        Err(error) => {
            let name = "checkpoint".to_owned();
            options.unreadable.push((name, error.to_string()));
            None
        }
    };
    let named = own.as_ref().map(|own| own.checkpoint().origin.to_string());
    let origin = named.unwrap_or_else(|| contents.origin.clone());
    let pin = if args.no_pin {
        None
    } else {
        verify::pinned(ctx, &origin)?
    };
    options.since = verify::since(ctx, args, pin.as_ref())?;
    let (kept, mut broken) = opened.kept()?;
    options.kept = kept;
    options.pin = pin;
    // Blobs are looked up while the lines are read.
    let beside = OpenBundle::open(opened.path())?.map(RefCell::new);
    let read_blob = |digest: &Digest| match &beside {
        Some(beside) => beside.borrow_mut().blob(digest),
        None => Ok(None),
    };
    let lines = EntryLines {
        lines: opened.lines()?,
        checkpoint: own,
        blobs: (!contents.redacted.iter().any(|left_out| left_out == "blobs"))
            .then_some(&read_blob as log::BlobSource<'_>),
    };
    let ambient = ctx.ambient();
    let mut progress = ctx.progress("verified");
    let mut at = |done, all| progress.at(done, all);
    let report = if is_part {
        log::verify_part(lines, options, &GOVERNED, &ambient, &mut at)
    } else {
        log::verify_lines(lines, options, &GOVERNED, &ambient, &mut at)
    };
    drop(progress);
    let mut report = report?;
    broken.extend(opened.broken_files()?);
    broken.extend(opened.disagreements(&contents, &report)?);
    report.add_bundle_findings(broken);
    report
        .not_checked
        .extend(bundle::not_checked(&contents, &report));
    verify::hold_older(ctx, &mut report);
    verify::vouch(ctx, args, Some(&origin), &mut report)?;
    Ok(report)
}

/// Refuses options that mean an export beside other files.
fn refuse(args: &Args) -> Result<(), CliError> {
    let named = if args.checkpoint.is_some() {
        "--checkpoint"
    } else if args.blobs.is_some() {
        "--blobs"
    } else {
        return Ok(());
    };
    let message = format!("{named} does not go with a bundle: it carries its own");
    Err(CliError::usage(
        message,
        "clover verify FILE --against CHECKPOINT",
    ))
}
