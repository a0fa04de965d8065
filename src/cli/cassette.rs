//! `clover cassette`: a run of a judge behind HTTP as a file that answers for its model.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::intake_files;
use crate::cli::intake_files::KeptFields;
use crate::cli::intake_files::Scores;
use crate::cli::ports;
use crate::event::id::RunId;
use crate::ground::ambient;
use crate::model::simulate::Tape;
use crate::session::judge::tape;
use crate::session::judge::tape::CassetteExport;
use crate::session::judge::tape::RunBasis;
use crate::view::View;
use crate::view::cassette as views;
use crate::view::cassette::CassetteContent;
use crate::workflow::ask::cassette;
use crate::workflow::ask::cassette::CassetteCall;
use crate::workflow::ask::cassette::CassetteError;

const HELP: &str = "clover cassette export --help";
/// Largest cassette that a double answers from: it stands in memory.
const SERVED_BYTES_MAX: u64 = 1 << 30;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Write a run's asks and answers to a new file, from the ledger and its vault
    #[command(
        override_usage = "clover cassette export <RUN> -o <FILE> [--rows <PATH>]",
        after_help = "It holds private texts: a custodian signs data.read first, and the file is its owner's alone.\nWhere a text was erased or is not here, nothing is written: exit 12 names the calls.\n\nExample:\n  clover cassette export run-7 -o run-7.jsonl"
    )]
    Export(CassetteExportArgs),
    /// Say what a cassette holds, and whether each line has the form
    #[command(after_help = "Example:\n  clover cassette check run-7.jsonl")]
    Check(CassetteCheckArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct CassetteExportArgs {
    /// The run, as its entry names it
    #[arg(value_name = "RUN")]
    pub run: String,
    /// The file to write
    #[arg(short = 'o', long, value_name = "FILE")]
    pub out: PathBuf,
    /// JSON Lines that were judged, where the ledger does not hold them
    #[arg(long, value_name = "PATH")]
    pub rows: Vec<PathBuf>,
    /// Whose responses; default from file name
    #[arg(long, value_name = "ID", requires = "rows")]
    pub policy: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct CassetteCheckArgs {
    /// The cassette
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Export(args) => export(ctx, args),
        Verb::Check(args) => check(ctx, args),
    }
}

/// A run by its name.
pub(super) fn run_id(text: &str) -> Result<RunId, CliError> {
    RunId::new(text).map_err(|error| {
        let message = format!("run {text:?}: {error}");
        CliError::usage(message, "clover log --kind judge_run.opened")
    })
}

fn export(ctx: &mut Ctx<'_>, args: &CassetteExportArgs) -> Result<View, CliError> {
    let run = run_id(&args.run)?;
    let (home, mut ledger) = home::open_to_write(ctx)?;
    if ledger.is_slate() {
        return Err(ports::first_on_record());
    }
    let basis = RunBasis::of(&ledger, &run)?;
    let rows = if args.rows.is_empty() {
        Vec::new()
    } else {
        let pepper = home.vault(&ctx.ambient())?.pepper()?;
        let policy = args.policy.as_deref();
        intake_files::rows(
            ctx,
            &pepper,
            &args.rows,
            policy,
            (Scores::Asked, KeptFields::default()),
        )?
    };
    let path = ctx.path(&args.out);
    if ambient::exists(&path)? {
        let message = format!("{} exists already", args.out.display());
        return Err(CliError::refused(message, HELP));
    }
    let run = run.to_string();
    let exported = tape::export(&mut ctx.ports(), (&home, &mut ledger), &basis, rows, &path)?;
    match exported {
        CassetteExport::Missing(missing) => Ok(views::incomplete(run, &missing)),
        CassetteExport::Written(calls, ordered) => {
            let file = args.out.display().to_string();
            Ok(views::written(run, calls, (file, ordered)))
        }
    }
}

/// A line that is none, with its file.
fn wrong(file: &std::path::Path, error: &CassetteError) -> CliError {
    CliError::input(format!("{}: {error}", file.display()), HELP)
}

fn check(ctx: &mut Ctx<'_>, args: &CassetteCheckArgs) -> Result<View, CliError> {
    let mut found = CassetteContent {
        file: args.file.display().to_string(),
        ..CassetteContent::default()
    };
    let mut last = None;
    let reader = ambient::reader(&ctx.path(&args.file))?;
    let read = cassette::each::<CassetteError>(reader, |_, call| {
        let key = call.key();
        found.asks += u64::from(last != Some(key));
        last = Some(key);
        found.calls += 1;
        found.answers += u64::from(call.body.is_some());
        Ok(())
    });
    read.map_err(|error| wrong(&args.file, &error))?;
    Ok(views::content(&found))
}

/// A cassette for a double to answer from.
pub(super) fn tape(ctx: &mut Ctx<'_>, file: &std::path::Path) -> Result<Tape, CliError> {
    let path = ctx.path(file);
    let bytes = ambient::size(&path)?;
    if bytes > SERVED_BYTES_MAX {
        let message = format!("{}: expected at most 1 GiB to answer from", file.display());
        return Err(CliError::input(message, HELP));
    }
    let mut calls: Vec<CassetteCall> = Vec::new();
    let read = cassette::each::<CassetteError>(ambient::reader(&path)?, |_, call| {
        calls.push(call);
        Ok(())
    });
    read.map_err(|error| wrong(file, &error))?;
    Ok(Tape::new(calls))
}
