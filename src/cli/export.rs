//! `clover export FORMAT`: the log in a format that needs no Clover.

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::export::ExportCounts;
use crate::export::FORMATS;
use crate::export::Request;
use crate::export::Target;
use crate::ground::shell;
use crate::view::View;
use crate::view::ledger_copy;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The format: jsonl (entry lines, checkpoint, blobs) or tiles (a static transparency log)
    #[arg(value_parser = formats())]
    pub format: String,
    /// A new folder; for jsonl also - for the lines alone
    #[arg(long, short, value_name = "DIR|-")]
    pub out: PathBuf,
    /// Blobs too
    #[arg(long)]
    pub blobs: bool,
}

fn formats() -> clap::builder::PossibleValuesParser {
    FORMATS
        .iter()
        .map(|format| format.name())
        .collect::<Vec<_>>()
        .into()
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let named = FORMATS.iter().find(|format| format.name() == args.format);
    let format = named.ok_or_else(|| CliError::usage("no such format", "clover export --help"))?;
    let (_, ledger) = home::open_to_read(ctx)?;
    let checkpoint = ledger.head_checkpoint()?;
    let head = checkpoint.checkpoint().clone();
    if args.out == Path::new("-") {
        if ctx.globals.json {
            let message = "--json and an export to standard output exclude each other";
            return Err(CliError::usage(
                message,
                "clover export jsonl -o DIR --json",
            ));
        }
        let request = Request {
            checkpoint,
            target: Target::Stream(ctx.stdout()),
            blobs: false,
        };
        let exported = format.write(&ledger, request, &mut |_, _| {})?;
        return Ok(ledger_copy::exported(&facts(&exported, None), &head));
    }
    let folder = ctx.path(&args.out);
    let request = Request {
        checkpoint,
        target: Target::Folder(&folder),
        blobs: args.blobs,
    };
    let mut progress = ctx.progress("exported");
    let exported = format.write(&ledger, request, &mut |done, all| progress.at(done, all))?;
    drop(progress);
    let facts = facts(&exported, Some(folder.display().to_string()));
    let answer = ledger_copy::exported(&facts, &head);
    if args.format == "jsonl" {
        return Ok(answer.with_next(format!("clover verify {}", shell::word(&folder.display()))));
    }
    Ok(answer)
}

fn facts(exported: &ExportCounts, folder: Option<String>) -> ledger_copy::ExportFacts {
    ledger_copy::ExportFacts {
        folder,
        entries: exported.entries,
        blobs: exported.blobs,
        files: exported.files,
    }
}
