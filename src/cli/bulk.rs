//! `clover append --bulk FILE`: many events of one key from JSON Lines, as fast as they can be signed.
//!
//! One object a line: `{"kind":…,"data":{…},"experiment":…,"refs":[…],"at":…}`, the last three optional. One
//! thread reads and parses the next batch on all cores while the one before is signed and appended. A
//! batch is one transaction: it lands whole or not at all, and the same command afterwards goes on where
//! it stopped, since what is recorded answers as such.

use std::io::BufRead;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::mpsc;

use rayon::prelude::*;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::input;
use crate::cli::record;
use crate::cli::submit;
use crate::cli::ui;
use crate::ground::ambient;
use crate::ledger::Command;
use crate::ledger::LedgerError;
use crate::session::intake::bulk as session;
use crate::session::intake::bulk::BATCH;
use crate::session::intake::bulk::BulkError;
use crate::session::intake::bulk::EventBatch;
use crate::session::intake::bulk::Tally;
use crate::view::View;
use crate::view::appended;
use crate::view::appended::EventsRead;

/// Longest line; a body of 32 KiB never needs as much.
const LINE_LEN_MAX: usize = 256 * 1024;
/// Commands that a dry run shows.
const SHOWN_MAX: usize = 100;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// JSON Lines {"kind":…,"data":{…},"experiment":…,"refs":[…],"at":…}, or - for standard input
    #[arg(long, value_name = "FILE|-")]
    pub bulk: PathBuf,
    /// Print the first canonical unsigned bodies and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Commands of one batch with the lines they stand on.
type Batch = EventBatch<Command>;

/// Why a batch could not be read.
pub(super) struct Unread {
    pub error: CliError,
}

/// An error with its line, and with what stands recorded nevertheless.
pub(super) fn stopped(stopped: BulkError, source: &str) -> CliError {
    let done = stopped.tally.appended + stopped.tally.already;
    let error = CliError::from(*stopped.error);
    let mut error = match stopped.line {
        Some(line) => of_line(error, line, source),
        None => error,
    };
    if done > 0 {
        error.message = format!(
            "{}\nthe {} events before this batch are recorded; the same command goes on from there",
            error.message,
            ui::thousands(done),
        );
    }
    error
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let source = args.bulk.display().to_string();
    let total = match args.bulk.to_str() {
        Some("-") => 0,
        _ => ambient::size(&ctx.path(&args.bulk))?,
    };
    let reader = ctx.reader(&args.bulk)?;
    if args.dry_run {
        return dry_run(ctx, reader, &source);
    }
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let tally = std::thread::scope(|scope| {
        let (to_append, batches) = mpsc::sync_channel(1);
        let source = source.as_str();
        scope.spawn(move || read_batches(reader, source, &to_append));
        let mut batches = batches.into_iter().peekable();
        let first = match batches.peek() {
            Some(Ok(batch)) => batch.events[0].payload.clone(),
            // No event at all, or an error that the loop below reports.
            _ => return drain(batches).map(|()| Tally::default()),
        };
        let signer = record::signer(ctx, &ledger, &first)?;
        let batches = batches.map(|batch| batch.map_err(|Unread { error }| error.into()));
        let done = session::append(&mut ctx.ports(), &mut ledger, &signer, batches, total);
        done.map_err(|error| stopped(error, source))
    })?;
    Ok(appended::file(&ledger, &tally))
}

/// Reports why there is no first batch, if there is a reason.
fn drain(batches: impl Iterator<Item = Result<Batch, Unread>>) -> Result<(), CliError> {
    for batch in batches {
        batch.map_err(|Unread { error }| error)?;
    }
    Ok(())
}

/// Names the file and line of the event that was refused.
pub(super) fn at_line(error: LedgerError, lines: &[u64], source: &str) -> CliError {
    let line = session::refused(&error).and_then(|index| lines.get(index).copied());
    let error = CliError::from(error);
    match line {
        Some(line) => of_line(error, line, source),
        None => error,
    }
}

fn of_line(error: CliError, line: u64, source: &str) -> CliError {
    let mut error = error.at(&format!("{source}:{line}"));
    if error.data.is_object() {
        error.data["line"] = json!(line);
        error.data["file"] = json!(source);
    } else {
        error.data = json!({"file": source, "line": line});
    }
    error
}

/// Fills batches until the file ends or a line is wrong.
pub(super) fn read_batches(
    mut reader: Box<dyn BufRead + Send>,
    source: &str,
    to: &mpsc::SyncSender<Result<Batch, Unread>>,
) {
    let (mut line, mut bytes) = (0, 0);
    loop {
        let read = read_lines(reader.as_mut(), source, &mut line, &mut bytes);
        let (lines, is_last) = match read {
            Ok(read) => read,
            Err(error) => {
                // The receiver is gone only when it failed first; then its error counts.
                to.send(Err(Unread { error })).ok();
                return;
            }
        };
        if !lines.is_empty() {
            let batch = parse(&lines, source, bytes);
            let failed = batch.is_err();
            if to.send(batch).is_err() || failed {
                return;
            }
        }
        if is_last {
            return;
        }
    }
}

type BulkLines = Vec<(u64, Vec<u8>)>;

/// Up to a batch of non-empty lines with their numbers, and whether the file ended.
fn read_lines(
    reader: &mut (dyn BufRead + Send),
    source: &str,
    line: &mut u64,
    bytes: &mut u64,
) -> Result<(BulkLines, bool), CliError> {
    let mut lines = Vec::new();
    while lines.len() < BATCH {
        let mut text = Vec::with_capacity(256);
        let mut limited = reader.take(LINE_LEN_MAX as u64 + 1);
        let read = limited.read_until(b'\n', &mut text).map_err(|error| {
            CliError::input(
                format!("cannot read {source}: {error}"),
                "clover append --help",
            )
        })?;
        if read == 0 {
            return Ok((lines, true));
        }
        *line += 1;
        *bytes += read as u64;
        while matches!(text.last(), Some(b'\n' | b'\r')) {
            text.pop();
        }
        if text.len() >= LINE_LEN_MAX {
            let message = format!("{source}:{line}: a line of more than {LINE_LEN_MAX} bytes");
            return Err(CliError::input(message, "clover blob put FILE"));
        }
        if !text.iter().all(u8::is_ascii_whitespace) {
            lines.push((*line, text));
        }
    }
    Ok((lines, false))
}

fn parse(lines: &BulkLines, source: &str, bytes: u64) -> Result<Batch, Unread> {
    let parsed: Vec<_> = lines
        .par_iter()
        .with_min_len(64)
        .map(|(line, text)| input::command(text).map_err(|fault| (*line, fault)))
        .collect();
    let mut commands = Vec::with_capacity(parsed.len());
    for command in parsed {
        match command {
            Ok(command) => commands.push(command),
            Err((line, fault)) => {
                let error = fault.into_error(source, line, "clover schema");
                return Err(Unread { error });
            }
        }
    }
    Ok(Batch {
        events: commands,
        lines: lines.iter().map(|(line, _)| *line).collect(),
        bytes,
    })
}

fn dry_run(
    ctx: &mut Ctx<'_>,
    reader: Box<dyn BufRead + Send>,
    source: &str,
) -> Result<View, CliError> {
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let (to_show, batches) = mpsc::channel();
    // The file is read whole, so that a wrong line anywhere is found.
    let read = std::thread::scope(|scope| {
        scope.spawn(move || read_all(reader, source, &to_show));
        batches.into_iter().collect::<Result<Vec<_>, CliError>>()
    })?;
    let count = read.iter().map(|(count, _)| count).sum::<usize>();
    ctx.note(&format!("{} events read", ui::thousands(count as u64)));
    let view = match read.into_iter().next() {
        None => appended::bodies(&[]),
        Some((_, first)) => {
            let signer = record::signer(ctx, &ledger, &first[0].payload)?;
            submit::append(ctx, &mut ledger, &first, &signer, true)?
        }
    };
    let read = count as u64;
    Ok(appended::and(view, &EventsRead { read }))
}

/// Reads every batch and gives its number of commands, and the first few.
fn read_all(
    reader: Box<dyn BufRead + Send>,
    source: &str,
    to: &mpsc::Sender<Result<(usize, Vec<Command>), CliError>>,
) {
    let (to_count, batches) = mpsc::sync_channel(1);
    std::thread::scope(|scope| {
        scope.spawn(move || read_batches(reader, source, &to_count));
        for batch in batches {
            let counted = batch.map(|mut batch| {
                let count = batch.events.len();
                batch.events.truncate(SHOWN_MAX);
                (count, batch.events)
            });
            // The receiver collects until this end is dropped.
            to.send(counted.map_err(|Unread { error }| error)).ok();
        }
    });
}
