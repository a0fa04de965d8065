//! Reports that are drawn from the log and not published: gates, estimates, experiments, changes, trails, evidence.

use std::path::Path;
use std::path::PathBuf;

use crate::cli::at;
use crate::cli::blob;
use crate::cli::budget;
use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::gate::gate_id;
use crate::cli::home;
use crate::cli::home::AsOf;
use crate::cli::input;
use crate::cli::record;
use crate::cli::repair;
use crate::cli::report::Rendering;
use crate::cli::report::answered;
use crate::cli::report::given;
use crate::cli::rubric;
use crate::cli::sgd::run_id;
use crate::cli::wallet;
use crate::event::id::ExperimentId;
use crate::export::extract::CsvText;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::report::document::Document;
use crate::report::document::ReportKind;
use crate::report::markdown;
use crate::report::page;
use crate::session::custody::erased;
use crate::session::expiry as dated;
use crate::session::expiry::ExpiryList;
use crate::view::View;
use crate::view::report::change;
use crate::view::report::coverage;
use crate::view::report::descent;
use crate::view::report::documents;
use crate::view::report::erasure;
use crate::view::report::estimate as estimated;
use crate::view::report::evidence;
use crate::view::report::experiment;
use crate::view::report::expiry;
use crate::view::report::expiry::ExpiryScope;
use crate::view::report::gate;
use crate::view::report::made::ReportSource;
use crate::view::report::repair as repaired;
use crate::view::report::retention;
use crate::view::report::samples::DRAWN;
use crate::view::report::samples::DRAWN_MAX;
use crate::view::report::samples::SampleTerms;
use crate::view::report::trail;
use crate::view::report::trail::TrailFilter;

/// A rendering of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum DocumentFormat {
    /// One page: no script, nothing from outside
    Html,
    /// Markdown
    Md,
    /// Canonical JSON of the same
    Json,
    /// One row a line: of a trail and of dates alone
    Csv,
}

/// Where a report goes.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct OutArgs {
    /// Where it goes; its ending gives the format
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The format; without -o it goes to standard output
    #[arg(
        long,
        value_enum,
        value_name = "html|md|json",
        hide_possible_values = true
    )]
    pub format: Option<DocumentFormat>,
}

/// Which entries a report reads.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RangeArgs {
    /// First entry, or the first of a day
    #[arg(long, value_name = "SEQ|TIME")]
    pub from: Option<String>,
    /// Last entry, or the last of a day
    #[arg(long, value_name = "SEQ|TIME")]
    pub to: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ReportGateArgs {
    /// The gate: its manifest's name
    #[arg(value_name = "ID")]
    pub id: String,
    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ReportRepairArgs {
    /// The run
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Least worth of a workflow that is of use, 0 to 1
    #[arg(long, value_name = "WORTH", default_value_t = 0.9)]
    pub useful: f64,
    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ReportSgdArgs {
    /// The run
    #[arg(value_name = "RUN")]
    pub run: String,
    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct OfExperimentArgs {
    /// The experiment; else the one that commands are about
    #[arg(value_name = "EXPERIMENT")]
    pub experiment: Option<String>,
    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ReportChangeArgs {
    /// As in arena@1.1; without a version, the one in force
    #[arg(value_name = "EXPERIMENT[@VERSION]")]
    pub prompt: String,
    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ReportErasureArgs {
    /// The subject, or the position or id of its subject.erased; else the newest
    #[arg(value_name = "SUBJECT|SEQ|ID")]
    pub named: Option<String>,
    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ReportExpiryArgs {
    /// Only what is before this day or time
    #[arg(long, value_name = "DATE")]
    pub before: Option<String>,
    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ReportTrailArgs {
    #[command(flatten)]
    pub range: RangeArgs,
    /// Only this kind, each entry by itself
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// Only this key: a name, an id or a holder
    #[arg(long, value_name = "KEY")]
    pub author: Option<String>,
    /// Only this experiment
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct EvidenceArgs {
    /// Only this experiment, and what belongs to none
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    #[command(flatten)]
    pub range: RangeArgs,
    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SampledArgs {
    #[command(flatten)]
    pub evidence: EvidenceArgs,
    /// A word of the auditor's that fixes the samples; else the root of the log
    #[arg(long, value_name = "WORD", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub seed: Option<String>,
    /// Entries to draw for each criterion, 1 to 500
    #[arg(long, value_name = "N", default_value_t = DRAWN as u64, value_parser = clap::value_parser!(u64).range(1..=DRAWN_MAX as u64))]
    pub drawn: u64,
}

impl OutArgs {
    fn format(&self) -> Result<Option<DocumentFormat>, CliError> {
        match (self.format, &self.out) {
            (Some(format), _) => Ok(Some(format)),
            (None, Some(path)) => DocumentFormat::of(path).map(Some),
            (None, None) => Ok(None),
        }
    }
}

impl DocumentFormat {
    fn of(path: &Path) -> Result<Self, CliError> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("html" | "htm") => Ok(Self::Html),
            Some("md" | "markdown") => Ok(Self::Md),
            Some("json") => Ok(Self::Json),
            Some("csv") => Ok(Self::Csv),
            _ => Err(CliError::usage(
                format!(
                    "{}: expected a name in .html, .md or .json, or --format",
                    path.display()
                ),
                "clover report --help",
            )),
        }
    }

    fn render(self, document: &Document) -> Result<Vec<u8>, CliError> {
        match self {
            Self::Html => Ok(page::html(document).into_bytes()),
            Self::Md => Ok(markdown::markdown(document).into_bytes()),
            Self::Json => Ok(document.to_bytes()),
            Self::Csv => Err(CliError::usage(
                "only a trail and dates are written as CSV",
                "clover report trail -o trail.csv",
            )),
        }
    }
}

/// Gives a document out: to a file, to standard output, or its head.
fn answer(
    ctx: &mut Ctx<'_>,
    (document, args): (&Document, &OutArgs),
    command: &str,
    csv: Option<Vec<u8>>,
) -> Result<View, CliError> {
    let Some(format) = args.format()? else {
        return Ok(documents::summary(document, command));
    };
    let bytes = match (format, csv) {
        (DocumentFormat::Csv, Some(csv)) => csv,
        _ => format.render(document)?,
    };
    Ok(match given(ctx, args.out.as_deref(), &bytes)? {
        Rendering::Shown(text) => documents::given(document, text),
        Rendering::Written(file, bytes) => documents::written(document, &file, bytes),
    })
}

/// The first and the last entry of a range.
fn range(ctx: &Ctx<'_>, ledger: &Ledger, args: &RangeArgs) -> Result<(u64, u64), CliError> {
    let head = head(ctx, ledger);
    let from = args.from.as_ref().map(|text| at::first_of(ledger, text));
    let to = args.to.as_ref().map(|text| at::last_of(ledger, text));
    let (from, to) = (
        from.transpose()?.unwrap_or(0),
        to.transpose()?.unwrap_or(head).min(head),
    );
    if from > to {
        let message = format!("the range is empty: --from is entry {from}, --to entry {to}");
        return Err(CliError::usage(message, "clover log"));
    }
    Ok((from, to))
}

fn head(ctx: &Ctx<'_>, ledger: &Ledger) -> u64 {
    ctx.as_of.unwrap_or(ledger.size().saturating_sub(1))
}

/// The state at the end of a range.
fn state_at(ctx: &Ctx<'_>, ledger: &Ledger, at: AsOf, through: u64) -> Result<AsOf, CliError> {
    if through == head(ctx, ledger) {
        return Ok(at);
    }
    Ok(AsOf::Earlier(Box::new(ledger.state_shown(through + 1)?)))
}

/// What a report of everything up to the last entry is made of.
fn whole<'a>(ctx: &Ctx<'_>, ledger: &'a Ledger, at: &'a AsOf) -> ReportSource<'a> {
    ReportSource {
        ledger,
        state: at.state(ledger),
        from_seq: 0,
        through_seq: head(ctx, ledger),
    }
}

pub(super) fn of_gate(ctx: &mut Ctx<'_>, args: &ReportGateArgs) -> Result<View, CliError> {
    let id = gate_id(&args.id)?;
    let (_, ledger, at) = home::view(ctx)?;
    let source = whole(ctx, &ledger, &at);
    let document = gate::document(&source, &id)?;
    let command = format!("clover report gate {}", shell::word(&id));
    answer(ctx, (&document, &args.out), &command, None)
}

pub(super) fn of_descent(ctx: &mut Ctx<'_>, args: &ReportSgdArgs) -> Result<View, CliError> {
    let id = run_id(&args.run)?;
    let (_, ledger, at) = home::view(ctx)?;
    let source = whole(ctx, &ledger, &at);
    let document = descent::document(&source, &id)?;
    let command = format!("clover report sgd {}", shell::word(&id));
    answer(ctx, (&document, &args.out), &command, None)
}

pub(super) fn of_repair(ctx: &mut Ctx<'_>, args: &ReportRepairArgs) -> Result<View, CliError> {
    let id = repair::run_id(&args.run)?;
    repair::check_share("--useful", args.useful, "clover report repair --help")?;
    let (_, ledger, at) = home::view(ctx)?;
    let source = whole(ctx, &ledger, &at);
    let document = repaired::document(&source, &id, args.useful)?;
    let command = format!("clover report repair {}", shell::word(&id));
    answer(ctx, (&document, &args.out), &command, None)
}

pub(super) fn of_estimates(ctx: &mut Ctx<'_>, args: &OfExperimentArgs) -> Result<View, CliError> {
    let (home, ledger, at) = home::view(ctx)?;
    let state = at.state(&ledger);
    let id = current::experiment(ctx, &home, state, args.experiment.as_deref())?;
    current::check(state, &id, "the command")?;
    let source = whole(ctx, &ledger, &at);
    let chronicle = source.chronicle(Some(&id))?;
    let mut said = answered::of_chronicle(ctx, &id, &chronicle)?;
    said.extend(answered::of_compared(ctx, &id, &chronicle)?);
    let document = estimated::document(&source, &id, (&chronicle, &said))?;
    let command = format!("clover report estimate {}", shell::word(&id));
    answer(ctx, (&document, &args.out), &command, None)
}

pub(super) fn of_experiment(ctx: &mut Ctx<'_>, args: &OfExperimentArgs) -> Result<View, CliError> {
    let (home, ledger, at) = home::view(ctx)?;
    let state = at.state(&ledger);
    let id = current::experiment(ctx, &home, state, args.experiment.as_deref())?;
    known(state, &id)?;
    let source = whole(ctx, &ledger, &at);
    let chronicle = source.chronicle(Some(&id))?;
    let said = answered::of_chronicle(ctx, &id, &chronicle)?;
    let document = experiment::document(&source, &id, (&chronicle, &said))?;
    let command = format!("clover report experiment {}", shell::word(&id));
    answer(ctx, (&document, &args.out), &command, None)
}

/// An experiment that was registered, closed ones too.
fn known(state: &crate::ledger::State, id: &ExperimentId) -> Result<(), CliError> {
    let all = state.fold::<crate::projection::experiments::Experiments>();
    if all.by_id.contains_key(id) {
        return Ok(());
    }
    Err(CliError::not_found(
        format!("no experiment {id}"),
        "clover experiment list",
    ))
}

pub(super) fn of_change(ctx: &mut Ctx<'_>, args: &ReportChangeArgs) -> Result<View, CliError> {
    let (_, ledger, at) = home::view(ctx)?;
    let (experiment, version) = rubric::named(at.state(&ledger), &args.prompt)?;
    let source = whole(ctx, &ledger, &at);
    let document = change::document(&source, &experiment, version)?;
    let command = format!("clover report change {}", shell::word(&args.prompt));
    answer(ctx, (&document, &args.out), &command, None)
}

pub(super) fn of_erasure(ctx: &mut Ctx<'_>, args: &ReportErasureArgs) -> Result<View, CliError> {
    let named = match args.named.as_deref() {
        None => (None, None),
        Some(text) => match text.parse::<u64>() {
            Ok(seq) => (None, Some(seq)),
            Err(_) => (Some(blob::digest("subject", text)?), None),
        },
    };
    let (home, ledger, at) = home::view(ctx)?;
    let source = whole(ctx, &ledger, &at);
    let erasure = erased::named(&ledger, named, source.through_seq)?;
    let story = erased::story(&home, &ledger, &erasure, source.through_seq)?;
    let document = erasure::document(&source, &story)?;
    let command = format!("clover report erasure {}", story.seq);
    answer(ctx, (&document, &args.out), &command, None)
}

pub(super) fn of_expiry(ctx: &mut Ctx<'_>, args: &ReportExpiryArgs) -> Result<View, CliError> {
    let before = args.before.as_deref().map(record::time).transpose()?;
    let (_, ledger, at) = home::view(ctx)?;
    let source = whole(ctx, &ledger, &at);
    let now = budget::now(ctx, &ledger, source.state);
    let list = dated::list(&ledger, source.state, now)?;
    let scope = ExpiryScope { before, now };
    let csv = match args.out.format()? {
        Some(DocumentFormat::Csv) => Some(dates(&list, scope)),
        _ => None,
    };
    let document = expiry::document(&source, &list, scope)?;
    answer(ctx, (&document, &args.out), "clover report expiry", csv)
}

/// Dates as CSV: one a row, with the entry that says it.
fn dates(list: &ExpiryList, scope: ExpiryScope) -> Vec<u8> {
    let mut columns = expiry::COLUMNS.map(|(key, _)| key).to_vec();
    columns.push("seq");
    let mut out = CsvText::new(&columns);
    for of in scope.of(list) {
        let words = expiry::words(of, scope.now);
        let seq = of.events.first().map_or(String::new(), u64::to_string);
        let mut row: Vec<&str> = words.iter().map(String::as_str).collect();
        row.push(&seq);
        out.row(&row);
    }
    out.into_bytes()
}

pub(super) fn of_trail(ctx: &mut Ctx<'_>, args: &ReportTrailArgs) -> Result<View, CliError> {
    let (_, ledger, at) = home::view(ctx)?;
    let kind = args.kind.as_deref().map(input::kind).transpose();
    let author = args.author.as_deref();
    let author = author.map(|key| wallet::resolve(ctx, at.state(&ledger), key));
    let filter = TrailFilter {
        kind: kind
            .map_err(|message| CliError::usage(format!("--kind: {message}"), "clover schema"))?,
        author: author.transpose()?,
        experiment: args
            .experiment
            .as_deref()
            .map(record::experiment_id)
            .transpose()?,
    };
    let (from_seq, through_seq) = range(ctx, &ledger, &args.range)?;
    let at = state_at(ctx, &ledger, at, through_seq)?;
    let source = ReportSource {
        ledger: &ledger,
        state: at.state(&ledger),
        from_seq,
        through_seq,
    };
    if let Some(id) = &filter.experiment {
        known(source.state, id)?;
    }
    let csv = match args.out.format()? {
        Some(DocumentFormat::Csv) => Some(rows(&source, &filter)?),
        _ => None,
    };
    let document = trail::document(&source, &filter)?;
    answer(ctx, (&document, &args.out), "clover report trail", csv)
}

/// A trail as CSV: one entry a row.
fn rows(source: &ReportSource<'_>, filter: &TrailFilter) -> Result<Vec<u8>, CliError> {
    let mut out = CsvText::new(&[
        "seq",
        "recorded_at",
        "kind",
        "experiment",
        "holder",
        "roles",
        "author",
        "event",
        "leaf",
        "says",
    ]);
    for of in trail::lines(source, filter, false)? {
        out.row(&[
            &of.seq.to_string(),
            &of.recorded_at,
            of.kind.as_str(),
            &of.experiment,
            &of.holder,
            &of.roles,
            &of.author.to_string(),
            &of.id,
            &of.leaf,
            &of.said,
        ]);
    }
    Ok(out.into_bytes())
}

pub(super) fn of_evidence(
    ctx: &mut Ctx<'_>,
    kind: ReportKind,
    args: &EvidenceArgs,
) -> Result<View, CliError> {
    evidence_of(ctx, kind, (args, &SampleTerms::default()))
}

/// Evidence with samples.
pub(super) fn of_samples(
    ctx: &mut Ctx<'_>,
    kind: ReportKind,
    args: &SampledArgs,
) -> Result<View, CliError> {
    let terms = SampleTerms {
        drawn: usize::try_from(args.drawn).unwrap_or(DRAWN_MAX),
        seed: args.seed.clone(),
    };
    evidence_of(ctx, kind, (&args.evidence, &terms))
}

fn evidence_of(
    ctx: &mut Ctx<'_>,
    kind: ReportKind,
    (args, terms): (&EvidenceArgs, &SampleTerms),
) -> Result<View, CliError> {
    let (_, ledger, at) = home::view(ctx)?;
    let experiment = args
        .experiment
        .as_deref()
        .map(record::experiment_id)
        .transpose()?;
    let (from_seq, through_seq) = range(ctx, &ledger, &args.range)?;
    let at = state_at(ctx, &ledger, at, through_seq)?;
    let source = ReportSource {
        ledger: &ledger,
        state: at.state(&ledger),
        from_seq,
        through_seq,
    };
    if let Some(id) = &experiment {
        known(source.state, id)?;
    }
    let document = match kind {
        ReportKind::Coverage => coverage::document(&source, experiment.as_ref())?,
        ReportKind::Retention => retention::document(&source)?,
        _ => evidence::document(&source, kind, (experiment.as_ref(), terms))?,
    };
    let command = format!("clover report {}", kind.as_str());
    answer(ctx, (&document, &args.out), &command, None)
}
