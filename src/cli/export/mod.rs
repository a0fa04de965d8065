//! `clover export FORMAT`: the log in a format that needs no Clover, or what it says in the formats of other tools.

mod answers;
mod bundle;

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::record;
use crate::export::ExportCounts;
use crate::export::FORMATS;
use crate::export::Request;
use crate::export::Target;
use crate::export::extract::EXTRACTS;
use crate::export::extract::Extract;
use crate::export::extract::ExtractFormat;
use crate::ground::shell;
use crate::view::View;
use crate::view::ledger_copy;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The format, one of those below
    #[arg(value_parser = formats(), hide_possible_values = true)]
    pub format: String,
    /// A new file or folder; for formats of one file, and for jsonl, also - for standard output
    #[arg(long, short, value_name = "PATH|-")]
    pub out: PathBuf,
    /// Blobs go along unless this is said (jsonl and tiles)
    #[arg(long, conflicts_with = "blobs")]
    pub no_blobs: bool,
    /// Blobs go along, as they do without it
    #[arg(long, hide = true)]
    pub blobs: bool,
    /// Only what was said in this experiment (all formats but jsonl, tiles and ro-crate)
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Of a bundle: withhold entries of a kind, an entry by its position, or `blobs`; may repeat
    #[arg(long, value_name = "KIND|SEQ|blobs")]
    pub redact: Vec<String>,
}

fn formats() -> clap::builder::PossibleValuesParser {
    let logs = FORMATS.iter().map(|format| (format.name(), format.about()));
    let extracts = EXTRACTS.iter().map(|format| (format.name, format.about));
    let whole = std::iter::once((bundle::NAME, bundle::ABOUT));
    let all = whole.chain(logs).chain(extracts);
    all.map(|(name, about)| clap::builder::PossibleValue::new(name).help(about))
        .collect::<Vec<_>>()
        .into()
}

/// Names of the formats, and examples.
pub(super) fn formats_help() -> String {
    let logs: Vec<&str> = FORMATS.iter().map(|format| format.name()).collect();
    let extracts: Vec<&str> = EXTRACTS.iter().map(|format| format.name).collect();
    format!(
        "All that an auditor needs, in one file: {}\nThe log itself: {}\nWhat it says, for other tools: {}\n\n\
         Example:\n  clover export bundle -o audit.clover\n  clover export csv -o tables",
        bundle::NAME,
        logs.join(" "),
        extracts.join(" ")
    )
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    if args.format == bundle::NAME {
        return bundle::run(ctx, args);
    }
    if !args.redact.is_empty() {
        let message = format!("--redact does not go with {}", args.format);
        return Err(CliError::usage(
            message,
            "clover export bundle -o FILE --redact KIND",
        ));
    }
    if let Some(format) = EXTRACTS.iter().find(|format| format.name == args.format) {
        return extract(ctx, args, format);
    }
    if args.experiment.is_some() {
        return Err(whole(&args.format));
    }
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
        return Ok(ledger_copy::exported(
            &facts(format.name(), &exported, None),
            &head,
        ));
    }
    let folder = ctx.path(&args.out);
    let request = Request {
        checkpoint,
        target: Target::Folder(&folder),
        blobs: !args.no_blobs,
    };
    let mut progress = ctx.progress("exported");
    let exported = format.write(&ledger, request, &mut |done, all| progress.at(done, all))?;
    drop(progress);
    let facts = facts(format.name(), &exported, Some(folder.display().to_string()));
    let answer = ledger_copy::exported(&facts, &head);
    if args.format == "jsonl" {
        return Ok(answer.with_next(format!("clover verify {}", shell::word(&folder.display()))));
    }
    Ok(answer)
}

/// Some formats are of the whole log.
fn whole(format: &str) -> CliError {
    let message = format!("--experiment does not go with {format}: the log is exported whole");
    CliError::usage(message, format!("clover export {format} -o DIR"))
}

/// Writes what the log says in a format of other tools.
fn extract(ctx: &mut Ctx<'_>, args: &Args, format: &ExtractFormat) -> Result<View, CliError> {
    let again = format!("clover export {} -o PATH", format.name);
    if args.blobs || args.no_blobs {
        let message = format!(
            "--blobs does not go with {}: only jsonl and tiles carry blobs",
            format.name
        );
        return Err(CliError::usage(message, again));
    }
    let (_, ledger) = home::open_to_read(ctx)?;
    let checkpoint = ledger.head_checkpoint()?;
    let experiment = args
        .experiment
        .as_deref()
        .map(record::experiment_id)
        .transpose()?;
    if let Some(id) = &experiment {
        current::check(ledger.state(), id, "--experiment")?;
    }
    if format.is_whole && experiment.is_some() {
        return Err(whole(format.name));
    }
    let claims = answers::recorded(ctx, &ledger, experiment.as_ref())?;
    let source = Extract {
        ledger: &ledger,
        checkpoint: &checkpoint,
        experiment: experiment.as_ref(),
        answers: &claims,
    };
    let head = checkpoint.checkpoint();
    let facts = |path: Option<String>, items| ledger_copy::ExportFacts {
        format: format.name,
        path,
        entries: head.size,
        items: Some(items),
        blobs: 0,
        files: 1,
    };
    if args.out == Path::new("-") {
        if ctx.globals.json {
            let message = "--json and an export to standard output exclude each other";
            return Err(CliError::usage(message, format!("{again} --json")));
        }
        let items = format.write_to(&source, ctx.stdout())?;
        return Ok(ledger_copy::exported(&facts(None, items), head));
    }
    let path = ctx.path(&args.out);
    let mut progress = ctx.progress("read");
    let items = format.write(&source, &path, &mut |done, all| progress.at(done, all))?;
    drop(progress);
    Ok(ledger_copy::exported(
        &facts(Some(path.display().to_string()), items),
        head,
    ))
}

fn facts(
    format: &'static str,
    exported: &ExportCounts,
    path: Option<String>,
) -> ledger_copy::ExportFacts {
    ledger_copy::ExportFacts {
        format,
        path,
        items: None,
        entries: exported.entries,
        blobs: exported.blobs,
        files: exported.files,
    }
}
