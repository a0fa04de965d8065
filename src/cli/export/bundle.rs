//! `clover export bundle`: all that an auditor takes away, in one file or folder.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::export::Args;
use crate::cli::home;
use crate::cli::record;
use crate::cli::report::answered;
use crate::cli::report::publications;
use crate::cli::show;
use crate::event::Kind;
use crate::event::id::ExperimentId;
use crate::export::bundle;
use crate::export::bundle::BundleRequest;
use crate::export::bundle::Redaction;
use crate::export::file_name::FolderNames;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::projection::experiments::Experiments;
use crate::projection::gates::Gates;
use crate::projection::iterations::Iterations;
use crate::projection::tallies::Tallies;
use crate::report::document::Document;
use crate::report::page;
use crate::session::reports;
use crate::view::View;
use crate::view::ledger_copy;
use crate::view::report::experiment;
use crate::view::report::gate;
use crate::view::report::iteration;
use crate::view::report::made::ReportSource;
use crate::view::report::retention;

/// The name of the format.
pub(super) const NAME: &str = "bundle";
/// What it is, in one line.
pub(super) const ABOUT: &str =
    "log, keys, blobs, reports, verifier and pages, in one file (.clover, .zip) or folder";

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    if args.out == Path::new("-") {
        let message = "a bundle goes into a file or a folder, not to standard output";
        return Err(CliError::usage(message, "clover export bundle -o FILE"));
    }
    let (_, ledger) = home::open_to_read(ctx)?;
    let state = ledger.state();
    let experiment = args
        .experiment
        .as_deref()
        .map(record::experiment_id)
        .transpose()?;
    if let Some(id) = &experiment {
        current::check(state, id, "--experiment")?;
    }
    let mut redactions = Vec::new();
    for text in &args.redact {
        redactions.push(redaction(ctx, &ledger, text)?);
    }
    redactions.extend(args.no_blobs.then_some(Redaction::Blobs));
    let checkpoint = ledger.head_checkpoint()?;
    // Reports and blobs quote entries, so that one of them would tell what is withheld.
    let is_quoted = |of: &Redaction| !matches!(of, Redaction::Blobs);
    let reports = if redactions.iter().any(is_quoted) {
        if !redactions.contains(&Redaction::Blobs) {
            redactions.push(Redaction::Blobs);
        }
        Vec::new()
    } else {
        reports(ctx, (&ledger, state), experiment.as_ref())?
    };
    let request = BundleRequest {
        ledger: &ledger,
        checkpoint: &checkpoint,
        experiment: experiment.as_ref(),
        redactions: &redactions,
        reports: &reports,
    };
    let path = ctx.path(&args.out);
    let mut progress = ctx.progress("bundled");
    let (contents, files) = request.write(&path, &mut |done, all| progress.at(done, all))?;
    drop(progress);
    let next = format!("clover verify {}", shell::word(&path.display()));
    let facts = ledger_copy::BundleFacts {
        format: NAME,
        path: path.display().to_string(),
        entries: contents.size,
        withheld: contents.withheld,
        redacted: contents.redacted,
        blobs: contents.blobs,
        without: contents.without,
        reports: contents.reports,
        files,
        is_one_file: bundle::is_archive_name(&path),
    };
    Ok(ledger_copy::bundled(&facts, contents.root).with_next(next))
}

/// What is to be left out.
fn redaction(ctx: &Ctx<'_>, ledger: &Ledger, text: &str) -> Result<Redaction, CliError> {
    let refuse = |message: String| Err(CliError::usage(message, "clover schema"));
    if text == "blobs" {
        return Ok(Redaction::Blobs);
    }
    let is_entry = text.parse::<u64>().is_ok() || Digest::from_hex(text).is_some();
    let (redaction, kind) = if is_entry {
        let read = show::find(ctx, ledger, text)?;
        (Redaction::Entry(read.stored.seq), read.event.kind())
    } else if let Ok(kind) = text.parse::<Kind>() {
        (Redaction::Kind(kind), kind)
    } else {
        return refuse(format!(
            "--redact {text:?}: expected a kind of event, a position, an event id, or blobs"
        ));
    };
    if !Redaction::may_withhold(kind) {
        return refuse(format!(
            "--redact {text}: {kind} cannot be withheld: nobody could check who may sign without it"
        ));
    }
    Ok(redaction)
}

/// Reports of iterations, of gates and of experiments as pages, and of retention where texts were erased; of published ones the
/// bytes too that were signed.
fn reports(
    ctx: &mut Ctx<'_>,
    (ledger, state): (&Ledger, &State),
    experiment: Option<&ExperimentId>,
) -> Result<Vec<(String, Vec<u8>)>, CliError> {
    let through = ledger.size().saturating_sub(1);
    let source = ReportSource {
        ledger,
        state,
        from_seq: 0,
        through_seq: through,
    };
    let is_meant = |id: &ExperimentId| experiment.is_none_or(|of| of == id);
    let mut files = Vec::new();
    let mut names: BTreeMap<&str, FolderNames> = BTreeMap::new();
    let mut page = |kind: &'static str, id: &str, document: &Document| {
        let name = names.entry(kind).or_default().encode(id);
        files.push((
            format!("{kind}-{name}.html"),
            page::html(document).into_bytes(),
        ));
        name
    };
    for id in state.fold::<Experiments>().by_id.keys() {
        if is_meant(id) {
            let chronicle = source.chronicle(Some(id))?;
            let said = answered::of_chronicle(ctx, id, &chronicle)?;
            let document = experiment::document(&source, id, (&chronicle, &said))?;
            page("experiment", id.as_str(), &document);
        }
    }
    for (id, of) in &state.fold::<Gates>().by_id {
        if of.experiment.as_ref().is_some_and(is_meant) {
            page("gate", id.as_str(), &gate::document(&source, id)?);
        }
    }
    if experiment.is_none() && state.fold::<Tallies>().of_kind(Kind::SubjectErased) > 0 {
        page("retention", "ledger", &retention::document(&source)?);
    }
    let mut names_of = BTreeMap::new();
    for (id, it) in &state.fold::<Iterations>().by_id {
        if is_meant(&it.experiment) {
            let bundle = reports::gathered(ledger, state, (&it.experiment, id), through)?;
            let name = page(
                "iteration",
                id.as_str(),
                &iteration::document(&source, &bundle)?,
            );
            names_of.insert(id.clone(), name);
        }
    }
    // The newest of each iteration whose bytes are at hand.
    let mut newest = BTreeMap::new();
    for (_, _, said) in publications(ledger, through)? {
        let Some(name) = names_of.get(&said.iteration) else {
            continue;
        };
        if let Some(bytes) = ledger.store().reader().blob(&said.bundle.blake3)? {
            newest.insert(format!("{}{name}.json", bundle::PUBLISHED), bytes.clone());
        }
    }
    files.extend(newest);
    Ok(files)
}
