//! `clover rubric`: the rubric that an experiment starts from, what differs between two, and rules that never fire.

use std::io::BufRead as _;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::input::Fault;
use crate::cli::iterate::bench;
use crate::cli::record;
use crate::event::id::ExperimentId;
use crate::event::payload::rubric::RubricRegistered;
use crate::ground::ambient;
use crate::ground::shell;
use crate::ground::yaml::NodePosition;
use crate::ground::yaml::YamlError;
use crate::ledger::Command;
use crate::ledger::State;
use crate::num::Micro;
use crate::projection::rubrics::RubricRegistration;
use crate::rubric::Rubric;
use crate::rubric::evidence::Evidence;
use crate::rubric::prompt::Firing;
use crate::session::deploy;
use crate::session::deploy::PromptName;
use crate::view::View;
use crate::view::rubric as views;
use crate::view::rubric::RuleCounts;
use crate::workflow::dead;
use crate::workflow::iterate::course::CourseError;
use crate::workflow::patches;

const NEXT: &str = "clover rubric show EXPERIMENT";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Write a rubric to begin with, with what each leaf means
    #[command(after_help = "Example:\n  clover rubric new -o rubric.yaml")]
    New(RubricNewArgs),
    /// Register the rubric that an experiment starts from
    #[command(after_help = "Example:\n  clover rubric register rubric.yaml --experiment arena")]
    Register(RubricRegisterArgs),
    /// Show a rubric: YAML in its fixed form, hash, rules that can fire
    #[command(after_help = "Example:\n  clover rubric show rubric.yaml")]
    Show(RubricShowArgs),
    /// What one rubric has and another has not
    #[command(after_help = "Example:\n  clover rubric diff arena rubric.yaml")]
    Diff(RubricDiffArgs),
    /// Registered rubrics
    #[command(after_help = "Example:\n  clover rubric list")]
    List,
    /// Rules that fire on fewer than one row in a thousand, over the rows of the last two iterations
    #[command(
        after_help = "Example:\n  clover rubric dead arena\n  clover rubric dead rubric.yaml --raw raw.jsonl"
    )]
    Dead(DeadArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct RubricNewArgs {
    /// The file; default standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct RubricRegisterArgs {
    /// The rubric, YAML; - for standard input
    pub file: PathBuf,
    /// The experiment that starts from it; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct RubricShowArgs {
    /// A file, or an experiment, as in arena or arena@1.0
    #[arg(value_name = "FILE|EXPERIMENT[@VERSION]")]
    pub rubric: String,
    /// Show what the judge is told instead
    #[arg(long)]
    pub prompt: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct RubricDiffArgs {
    /// The older one: a file, or an experiment, as in arena or arena@1.0
    #[arg(value_name = "FILE|EXPERIMENT[@VERSION]")]
    pub old: String,
    /// The newer one
    #[arg(value_name = "FILE|EXPERIMENT[@VERSION]")]
    pub new: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct DeadArgs {
    /// A file, or an experiment, as in arena or arena@1.0
    #[arg(value_name = "FILE|EXPERIMENT[@VERSION]")]
    pub rubric: String,
    /// Raw answers instead, one {"base":0.8,"evidence":{…}} a line; once for each iteration
    #[arg(long, value_name = "FILE", conflicts_with = "experiment")]
    pub raw: Vec<PathBuf>,
    /// Whose iterations, for a rubric from a file
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::New(args) => new(ctx, args),
        Verb::Register(args) => register(ctx, args),
        Verb::Show(args) => show(ctx, args),
        Verb::Diff(args) => compared(ctx, &args.old, &args.new),
        Verb::List => list(ctx),
        Verb::Dead(args) => dead(ctx, args),
    }
}

fn new(ctx: &Ctx<'_>, args: &RubricNewArgs) -> Result<View, CliError> {
    if let Some(output) = &args.output {
        ambient::write_new(&ctx.path(output), views::TEMPLATE.as_bytes(), 0o644)?;
    }
    Ok(views::new(args.output.as_deref()))
}

/// A fault of a document at its place.
pub(super) fn fault(source: &str, place: NodePosition, message: String, next: &str) -> CliError {
    let fault = Fault {
        line: place.line.max(1),
        column: place.column,
        field: place.path,
        message,
    };
    fault.into_error(source, 1, next)
}

/// What a file is called in errors.
pub(super) fn source(file: &Path) -> String {
    if file == Path::new("-") {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    }
}

/// A document as text.
pub(super) fn document(ctx: &mut Ctx<'_>, file: &Path, next: &str) -> Result<String, CliError> {
    let bytes = ctx.read(file)?;
    String::from_utf8(bytes).map_err(|_| {
        let message = "expected UTF-8".to_owned();
        fault(&source(file), NodePosition::default(), message, next)
    })
}

/// The rubric of a file, as it is registered.
pub(super) fn parsed(ctx: &mut Ctx<'_>, file: &Path) -> Result<RubricRegistered, CliError> {
    let yaml = document(ctx, file, NEXT)?;
    let next = "clover rubric register --help";
    let wrong = |error: YamlError| fault(&source(file), error.place, error.message, next);
    if let Some((line, marked)) = views::unfilled(&yaml) {
        let place = NodePosition {
            line,
            ..NodePosition::default()
        };
        let message = format!("this line is not filled: {marked}");
        let next = format!("clover rubric show {}", shell::word(&file.display()));
        return Err(fault(&source(file), place, message, &next));
    }
    patches::register(&yaml).map_err(wrong)
}

fn register(ctx: &mut Ctx<'_>, args: &RubricRegisterArgs) -> Result<View, CliError> {
    let payload = parsed(ctx, &args.file)?;
    let (home, ledger) = home::open_to_read(ctx)?;
    let named = args.experiment.as_deref();
    let experiment = current::experiment(ctx, &home, ledger.state(), named)?;
    drop(ledger);
    let (hash, version) = (payload.rubric_hash, payload.version.clone());
    let name = experiment.to_string();
    let answer = record::one(ctx, Command::new(payload, Some(experiment)), args.dry_run)?;
    let of = (version.as_str(), hash);
    Ok(views::registered(answer, args.dry_run, &name, of))
}

/// A rubric from a file, or from the ledger.
pub(super) fn find(ctx: &mut Ctx<'_>, name: &str) -> Result<Rubric, CliError> {
    let file = Path::new(name);
    let path = ctx.path(file);
    // A folder is no rubric: an experiment of the same name is meant.
    if name == "-" || (ambient::exists(&path)? && !ambient::is_dir(&path)) {
        let bytes = ctx.read(file)?;
        let wrong = |error: YamlError| fault(&source(file), error.place, error.message, NEXT);
        return Rubric::parse(&bytes).map_err(wrong);
    }
    let (_, ledger, view) = home::view(ctx)?;
    let found = named(view.state(&ledger), name);
    let found = found.map_err(|error| CliError {
        message: format!("no file, and {}", error.message),
        ..error
    })?;
    patches::rubric_of(found.1).ok_or_else(|| {
        let message = format!("the rubric of {name} cannot be read");
        CliError::not_found(message, "clover verify")
    })
}

/// The name of a registered rubric, as in `arena` or `arena@1.0`.
pub(super) fn name(text: &str) -> Result<PromptName, CliError> {
    let (experiment, version) = match text.split_once('@') {
        Some((experiment, version)) => (experiment, Some(version.to_owned())),
        None => (text, None),
    };
    let experiment = record::experiment_id(experiment)?;
    Ok(PromptName {
        experiment,
        version,
    })
}

/// A rubric of the ledger by its name.
pub(super) fn named<'a>(
    state: &'a State,
    text: &str,
) -> Result<(ExperimentId, &'a RubricRegistration), CliError> {
    let name = name(text)?;
    let found = deploy::registered(state, &name)?;
    Ok((name.experiment, found))
}

fn show(ctx: &mut Ctx<'_>, args: &RubricShowArgs) -> Result<View, CliError> {
    let rubric = find(ctx, &args.rubric)?;
    Ok(views::show(&rubric, args.prompt))
}

/// What one rubric has and another has not, with the code length of the difference.
pub(super) fn compared(ctx: &mut Ctx<'_>, old: &str, new: &str) -> Result<View, CliError> {
    let (old, new) = (find(ctx, old)?, find(ctx, new)?);
    Ok(views::diff(&old, &new))
}

fn list(ctx: &mut Ctx<'_>) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    Ok(views::list(view.state(&ledger)))
}

/// One raw answer of a judge.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw<'a> {
    #[serde(borrow)]
    base: &'a RawValue,
    #[serde(borrow)]
    evidence: &'a RawValue,
}

fn raw(line: &str) -> Result<(Micro, Evidence), String> {
    let raw: Raw<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let (base, rounded) = Micro::parse(raw.base.get()).map_err(|error| format!("base: {error}"))?;
    if rounded {
        return Err("base: expected at most six decimals".to_owned());
    }
    let evidence = Evidence::from_json(raw.evidence.get().as_bytes());
    Ok((
        base,
        evidence.map_err(|error| format!("evidence: {error}"))?,
    ))
}

/// How often each rule fired over a file, and rows without a score.
fn fired(ctx: &mut Ctx<'_>, rubric: &Rubric, file: &Path) -> Result<(Firing, u64), CliError> {
    let (rules, mut firing, mut missing) = (rubric.rules(), Firing::new(rubric), 0);
    let next = "clover rubric dead --help";
    let reader = ctx.reader(file)?;
    for (at, line) in (1..).zip(reader.lines()) {
        let line = line.map_err(|error| CliError::input(error.to_string(), next))?;
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |message: String| {
            let place = NodePosition {
                line: at,
                column: 0,
                path: String::new(),
            };
            fault(&source(file), place, message, next)
        };
        let (base, evidence) = raw(&line).map_err(wrong)?;
        match rules.score(base, &evidence) {
            Ok(scored) => firing.add(&scored),
            Err(crate::rubric::engine::EngineError::EvidenceMissing { .. }) => missing += 1,
            Err(error) => return Err(wrong(error.to_string())),
        }
    }
    Ok((firing, missing))
}

/// Counts over the newest iterations of an experiment that read rows, oldest first.
fn counted(
    ctx: &mut Ctx<'_>,
    args: &DeadArgs,
    rubric: &Rubric,
) -> Result<Vec<RuleCounts>, CliError> {
    let as_of = ctx.as_of;
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let named = args.experiment.as_deref();
    let named = named.unwrap_or_else(|| args.rubric.split('@').next().unwrap_or_default());
    let next = "clover rubric dead RUBRIC --experiment ID";
    let experiment: ExperimentId = named.parse().map_err(|_| {
        let message =
            format!("{named} is a file: expected --experiment, whose iterations are counted");
        CliError::usage(message, next)
    })?;
    let below = as_of.map_or(ledger.size(), |seq| seq.saturating_add(1));
    let turns = dead::turns(
        &ledger,
        (state, &experiment),
        rubric,
        (below, below),
        dead::TURNS,
    );
    let mut turns = turns.map_err(|error| bench::failed(CourseError::Rows(error)))?;
    if turns.is_empty() {
        let message = format!("no iteration of {experiment} has read rows");
        return Err(CliError::not_found(message, "clover iterate list"));
    }
    turns.reverse();
    let counted = turns.into_iter().map(|turn| RuleCounts {
        name: turn.iteration.to_string(),
        firing: turn.firing,
        missing: turn.without,
    });
    Ok(counted.collect())
}

fn dead(ctx: &mut Ctx<'_>, args: &DeadArgs) -> Result<View, CliError> {
    let rubric = find(ctx, &args.rubric)?;
    let mut all = Vec::new();
    for file in &args.raw {
        let (firing, missing) = fired(ctx, &rubric, file)?;
        all.push(RuleCounts {
            name: source(file),
            firing,
            missing,
        });
    }
    if all.is_empty() {
        all = counted(ctx, args, &rubric)?;
    }
    Ok(views::dead(&rubric, &all))
}
