//! `clover import events FILE`: events signed elsewhere or kept with `record --out`, and entry lines of an
//! export. What is recorded byte for byte answers as such, so a retry is safe.

use std::path::Path;
use std::path::PathBuf;

use serde_json::json;

use crate::cli::bulk;
use crate::cli::bulk::Tally;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::import_ledger;
use crate::cli::intake;
use crate::cli::intake_logged;
use crate::cli::submit;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::event::Entry;
use crate::event::entry;
use crate::event::entry::LINE_LEN_MAX;
use crate::event::header;
use crate::ledger::Ledger;
use crate::ledger::SignedEvent;

/// Events of one transaction.
const BATCH: usize = 16_384;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Append signed events from a file
    #[command(after_help = "Example:\n  clover import events charge.json")]
    Events(Args),
    /// Record scores and labels from JSON Lines, one event each
    #[command(
        after_help = "Example:\n  clover import cje fresh_draws/ --labels --experiment arena"
    )]
    Cje(intake::CjeArgs),
    /// Record logged responses with teacher-forced log-probabilities
    #[command(after_help = "Example:\n  clover import logged logs.jsonl --policy base --labels")]
    Logged(intake_logged::LoggedArgs),
    /// Record scores and labels from comma-separated values, one event each
    #[command(
        after_help = "Example:\n  clover import csv scores.csv --map judge_score=score,prompt_id=id --policy base"
    )]
    Csv(intake::CsvArgs),
    /// Make a ledger from an export of it: the same entries under the same root
    #[command(after_help = "Example:\n  clover import ledger export/ --into copy/")]
    Ledger(import_ledger::Args),
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// DSSE envelopes or entry lines, one a line; - for standard input
    pub file: PathBuf,
    /// Check the lines, print the bodies and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<Answer, CliError> {
    match verb {
        Verb::Events(args) => events(ctx, args),
        Verb::Cje(args) => intake::cje(ctx, args),
        Verb::Csv(args) => intake::csv(ctx, args),
        Verb::Logged(args) => intake_logged::logged(ctx, args),
        Verb::Ledger(args) => import_ledger::run(ctx, args),
    }
}

fn events(ctx: &mut Ctx<'_>, args: &Args) -> Result<Answer, CliError> {
    let source = args.file.display().to_string();
    let mut lines = ctx.reader(Path::new(&args.file))?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let (mut tally, mut events, mut numbers) = (Tally::default(), Vec::new(), Vec::new());
    let mut bodies = Vec::new();
    let mut number = 0;
    loop {
        let line = next_line(lines.as_mut(), &source, number + 1).map_err(|e| tally.explain(e))?;
        let is_last = line.is_none();
        if let Some(line) = line {
            number += 1;
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let event = parse(&line).map_err(|message| {
                let message = format!("{source}:{number}: {message}");
                tally.explain(CliError::input(message, "clover import events --help"))
            })?;
            if args.dry_run {
                bodies.push(checked_body(&event, &source, number)?);
                continue;
            }
            events.push(event);
            numbers.push(number);
        }
        if events.len() == BATCH || is_last {
            submit(&mut ledger, &mut events, &mut numbers, &mut tally, &source)?;
        }
        if is_last {
            break;
        }
    }
    if args.dry_run {
        let mut answer = Answer::new(ui::lines(&bodies), json!({"bodies": bodies}));
        answer.verdict = "dry_run";
        return Ok(answer);
    }
    ledger.settle()?;
    submit::warn_of_pin(ctx, &ledger);
    Ok(tally.answer(&ledger))
}

fn submit(
    ledger: &mut Ledger,
    events: &mut Vec<SignedEvent>,
    numbers: &mut Vec<u64>,
    tally: &mut Tally,
    source: &str,
) -> Result<(), CliError> {
    if events.is_empty() {
        return Ok(());
    }
    let appended = ledger
        .submit(std::mem::take(events))
        .map_err(|error| tally.explain(bulk::at_line(error, numbers, source)))?;
    tally.add(&appended);
    numbers.clear();
    Ok(())
}

/// The next line without its end; `None` after the last.
fn next_line(
    lines: &mut (dyn std::io::BufRead + Send),
    source: &str,
    number: u64,
) -> Result<Option<Vec<u8>>, CliError> {
    use std::io::BufRead as _;
    use std::io::Read as _;
    let mut line = Vec::new();
    let mut limited = lines.take(LINE_LEN_MAX as u64 + 2);
    let read = limited.read_until(b'\n', &mut line).map_err(|error| {
        CliError::input(
            format!("cannot read {source}: {error}"),
            "clover import events --help",
        )
    })?;
    if read == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > LINE_LEN_MAX {
        let message = format!("{source}:{number}: a line of more than {LINE_LEN_MAX} bytes");
        return Err(CliError::input(message, "clover import events --help"));
    }
    Ok(Some(line))
}

fn parse(line: &[u8]) -> Result<SignedEvent, String> {
    let parsed = if line.starts_with(b"{\"envelope\":") {
        Entry::parse(line).map(|entry| entry.signed)
    } else {
        entry::parse_envelope(line)
    };
    parsed.map_err(|error| error.to_string())
}

fn checked_body(event: &SignedEvent, source: &str, number: u64) -> Result<String, CliError> {
    let fault =
        |message: String| CliError::input(format!("{source}:{number}: {message}"), "clover schema");
    let decoded = header::decode(event.body()).map_err(|error| fault(error.to_string()))?;
    decoded
        .into_event()
        .map_err(|error| fault(error.to_string()))?;
    Ok(String::from_utf8_lossy(event.body()).into_owned())
}
