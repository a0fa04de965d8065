//! `clover import events FILE`: events signed elsewhere or kept with `record --out`, and entry lines of an
//! export. What is recorded byte for byte answers as such, so a retry is safe.

use std::io::BufRead;
use std::io::Read as _;
use std::path::Path;
use std::path::PathBuf;

use crate::cli::bulk;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::import_labels;
use crate::cli::import_ledger;
use crate::cli::import_rows;
use crate::cli::import_tools;
use crate::cli::intake;
use crate::cli::intake_logged;
use crate::cli::intake_verbs;
use crate::event::Entry;
use crate::event::entry;
use crate::event::entry::LINE_LEN_MAX;
use crate::event::header;
use crate::ground::ambient;
use crate::ledger::SignedEvent;
use crate::session::error::PortError;
use crate::session::intake::bulk as session;
use crate::session::intake::bulk::BATCH;
use crate::session::intake::bulk::EventBatch;
use crate::view::View;
use crate::view::appended;
use crate::workflow::import::form::FileForm;
use crate::workflow::import::tools::Tool;

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
    /// Record scores of a log of Inspect: an archive, or its JSON
    #[command(after_help = "Example:\n  clover import inspect logs/arena.eval --field domain")]
    Inspect(import_tools::InspectArgs),
    /// Record scores of results of promptfoo
    #[command(after_help = "Example:\n  clover import promptfoo results.json --field topic")]
    Promptfoo(import_tools::PromptfooArgs),
    /// Record scores, or labels, of Langfuse: pages of its API, JSON Lines or CSV
    #[command(
        after_help = "Example:\n  clover import langfuse scores.json --policy base --score helpful"
    )]
    Langfuse(import_tools::LangfuseArgs),
    /// Record scores of records of OpenAI evals
    #[command(after_help = "Example:\n  clover import openai-evals run.jsonl --score correct")]
    OpenaiEvals(import_tools::FilesArgs),
    /// Record scores of log files of OpenTelemetry, as OTLP/JSON
    #[command(after_help = "Example:\n  clover import otel logs.jsonl --score helpful")]
    Otel(import_tools::FilesArgs),
    /// Record labels without scores, for rows that the ledger holds
    #[command(after_help = "Example:\n  clover import labels labels.csv --rater ada")]
    Labels(import_labels::LabelsArgs),
    /// Take in prompts and responses without scores, for `clover judge run`
    #[command(
        after_help = "Example:\n  clover import rows rows.csv --map response=answer --policy base --field domain"
    )]
    Rows(import_rows::RowsArgs),
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

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Events(args) => events(ctx, args),
        Verb::Cje(args) => intake::cje(ctx, args),
        Verb::Csv(args) => intake::csv(ctx, args),
        Verb::Labels(args) => import_labels::run(ctx, args),
        Verb::Rows(args) => import_rows::run(ctx, args),
        Verb::Logged(args) => intake_logged::logged(ctx, args),
        Verb::Inspect(args) => import_tools::inspect(ctx, args),
        Verb::Promptfoo(args) => import_tools::promptfoo(ctx, args),
        Verb::Langfuse(args) => import_tools::langfuse(ctx, args),
        Verb::OpenaiEvals(args) => import_tools::files(ctx, Tool::OpenaiEvals, args),
        Verb::Otel(args) => import_tools::files(ctx, Tool::Otel, args),
        Verb::Ledger(args) => import_ledger::run(ctx, args),
    }
}

const HELP: &str = "clover import events --help";

/// Refuses an export of another tool, which holds no events, with the command that makes rows of it.
fn check_form(ctx: &mut Ctx<'_>, file: &Path) -> Result<(), CliError> {
    let path = ctx.path(file);
    if file == Path::new("-") || !ambient::is_file(&path) {
        return Ok(());
    }
    let mut start = [0; 64];
    let read = ctx.reader(file)?.read(&mut start).unwrap_or(0);
    let start = String::from_utf8_lossy(&start[..read]);
    if !start.starts_with(['{', '[']) && !start.starts_with("PK\u{3}\u{4}")
        || start.starts_with("{\"payload")
        || start.starts_with("{\"envelope")
    {
        return Ok(());
    }
    let bytes = ctx.read(file)?;
    let form = FileForm::of(&bytes);
    let Some(next) = intake_verbs::rows_of(form, file) else {
        return Ok(());
    };
    let message = format!(
        "{}: expected signed events, found {}",
        file.display(),
        form.name()
    );
    Err(CliError::input(message, next))
}

fn events(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    check_form(ctx, &args.file)?;
    let source = args.file.display().to_string();
    let reader = ctx.reader(Path::new(&args.file))?;
    let mut lines = EventLines {
        reader,
        source: source.clone(),
        number: 0,
    };
    let (_, mut ledger) = home::open_to_write(ctx)?;
    if args.dry_run {
        let mut bodies = Vec::new();
        while let Some((number, event)) = lines.next_event()? {
            bodies.push(checked_body(&event, &source, number)?);
        }
        return Ok(appended::checked(bodies));
    }
    let submitted = session::submit(&mut ctx.ports(), &mut ledger, lines);
    let tally = submitted.map_err(|error| bulk::stopped(error, &source))?;
    Ok(appended::file(&ledger, &tally))
}

/// Events of a file, one a line.
struct EventLines {
    reader: Box<dyn BufRead + Send>,
    source: String,
    number: u64,
}

impl EventLines {
    /// The next event with its line; `None` after the last.
    fn next_event(&mut self) -> Result<Option<(u64, SignedEvent)>, CliError> {
        while let Some(line) = self.next_line()? {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let number = self.number;
            let event = parse(&line).map_err(|message| {
                CliError::input(format!("{}:{number}: {message}", self.source), HELP)
            })?;
            return Ok(Some((number, event)));
        }
        Ok(None)
    }

    /// The next line without its end; `None` after the last.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, CliError> {
        let (source, number) = (&self.source, self.number + 1);
        let mut line = Vec::new();
        let mut limited = self.reader.as_mut().take(LINE_LEN_MAX as u64 + 2);
        let read = limited
            .read_until(b'\n', &mut line)
            .map_err(|error| CliError::input(format!("cannot read {source}: {error}"), HELP))?;
        if read == 0 {
            return Ok(None);
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > LINE_LEN_MAX {
            let message = format!("{source}:{number}: a line of more than {LINE_LEN_MAX} bytes");
            return Err(CliError::input(message, HELP));
        }
        self.number = number;
        Ok(Some(line))
    }

    fn batch(&mut self) -> Result<Option<EventBatch<SignedEvent>>, CliError> {
        let (mut events, mut lines) = (Vec::new(), Vec::new());
        while events.len() < BATCH
            && let Some((number, event)) = self.next_event()?
        {
            events.push(event);
            lines.push(number);
        }
        let batch = EventBatch {
            events,
            lines,
            bytes: 0,
        };
        Ok(Some(batch).filter(|batch| !batch.events.is_empty()))
    }
}

impl Iterator for EventLines {
    type Item = Result<EventBatch<SignedEvent>, PortError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batch().map_err(PortError::from).transpose()
    }
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
