//! `clover workflow`: workflows of model calls, checked, shown, run and compared. None of it needs a ledger.

use std::collections::BTreeSet;
use std::io::BufRead as _;
use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::input;
use crate::cli::rubric::document;
use crate::cli::rubric::source;
use crate::flow;
use crate::flow::Bounds;
use crate::flow::Fault;
use crate::flow::Workflow;
use crate::flow::executor::Executor;
use crate::flow::executor::ExecutorFault;
use crate::flow::executor::simulator::SimulatedModel;
use crate::flow::executor::simulator::Strength;
use crate::flow::executor::table::Recorder;
use crate::flow::executor::table::Recording;
use crate::flow::executor::table::Table;
use crate::flow::item::Item;
use crate::flow::task::Family;
use crate::flow::task::Split;
use crate::flow::task::TaskSet;
use crate::ground::ambient;
use crate::view::View;
use crate::view::workflow as views;
use crate::view::workflow_run;

const CHECK: &str = "clover workflow check --help";
const RUN: &str = "clover workflow run --help";
/// How the name of a recorded table begins.
const TABLE: &str = "table=";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Write a first workflow, and two sets of tasks: one that it fits, one that breaks it
    #[command(after_help = "Example:\n  clover workflow new invoices -o shop")]
    New(WorkflowNewArgs),
    /// Say whether a file is a workflow, or the line and column of what is wrong
    #[command(after_help = "Example:\n  clover workflow check shop/workflow.json")]
    Check(WorkflowCheckArgs),
    /// Show the steps of a workflow, or draw them
    #[command(after_help = "Example:\n  clover workflow show shop/workflow.json -o shop.svg")]
    Show(WorkflowShowArgs),
    /// Run a workflow over inputs, and say what each step did
    #[command(
        after_help = "sim: each line's member sim says what the simulated model does.\ntable=FILE: recorded answers by the digest of their request, as --record writes them.\nA task set: its rules and, where it says what is right, the utility are said of each item.\nExit 10 marks a run that crashed, or ended with a hard flag false or not checked.\n\nExample:\n  clover workflow run shop/workflow.json --input shop/local.jsonl --executor sim"
    )]
    Run(WorkflowRunArgs),
    /// What one workflow has and another has not, in words or as a JSON patch
    #[command(after_help = "Example:\n  clover workflow diff shop/workflow.json mended.json")]
    Diff(WorkflowDiffArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct WorkflowNewArgs {
    /// The family of tasks
    #[arg(value_name = "invoices|replies|tables|tickets")]
    pub family: String,
    /// The folder, which may not hold these files yet
    #[arg(short = 'o', long, value_name = "DIR")]
    pub out: PathBuf,
    /// Items of each set, up to 10000
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub items: u16,
    /// The seed of the sets
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub seed: u64,
}

#[derive(Debug, clap::Args)]
pub(super) struct WorkflowCheckArgs {
    /// The workflow, JSON; - for standard input
    pub file: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(super) struct WorkflowShowArgs {
    /// The workflow, JSON; - for standard input
    pub file: PathBuf,
    /// Draw it in this file
    #[arg(short = 'o', long, value_name = "F.svg")]
    pub out: Option<PathBuf>,
    /// Print the document in its fixed form instead
    #[arg(long, conflicts_with = "out")]
    pub source: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct WorkflowRunArgs {
    /// The workflow, JSON
    pub file: PathBuf,
    /// JSON Lines of {"id":…,"input":{…}}, after the first line of a task set where there is one
    #[arg(long, value_name = "FILE")]
    pub input: PathBuf,
    /// What answers for the model
    #[arg(long, value_name = "sim|table=FILE")]
    pub executor: String,
    /// Run this item alone, and show each step
    #[arg(long, value_name = "ID")]
    pub item: Option<String>,
    /// The seed of the simulated model
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub seed: u64,
    /// A simulated model that slips a quarter as often
    #[arg(long)]
    pub strong: bool,
    /// Keep all answers in a new file, for table=FILE
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct WorkflowDiffArgs {
    /// The older one, JSON
    pub old: PathBuf,
    /// The newer one
    pub new: PathBuf,
    /// Print the JSON patch (RFC 6902) alone
    #[arg(long)]
    pub patch: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::New(args) => new(ctx, args),
        Verb::Check(args) => {
            let workflow = workflow(ctx, &args.file)?;
            Ok(views::checked(&workflow, &source(&args.file)))
        }
        Verb::Show(args) => show(ctx, args),
        Verb::Run(args) => ran(ctx, args),
        Verb::Diff(args) => {
            let (old, new) = (workflow(ctx, &args.old)?, workflow(ctx, &args.new)?);
            Ok(views::diff(
                &flow::difference::between(&old, &new),
                args.patch,
            ))
        }
    }
}

/// A fault of a text that begins on a line of a file.
pub(super) fn fault(file: &Path, first_line: usize, fault: Fault, next: &str) -> CliError {
    let place = input::Fault {
        line: fault.at.line,
        column: fault.at.column,
        field: fault.path,
        message: fault.kind.to_string(),
    };
    place.into_error(&source(file), first_line as u64, next)
}

/// The workflow of a file.
pub(super) fn workflow(ctx: &mut Ctx<'_>, file: &Path) -> Result<Workflow, CliError> {
    let text = document(ctx, file, CHECK)?;
    Workflow::parse(&text).map_err(|found| fault(file, 1, found, CHECK))
}

fn new(ctx: &Ctx<'_>, args: &WorkflowNewArgs) -> Result<View, CliError> {
    let family = Family::ALL
        .into_iter()
        .find(|of| of.as_str() == args.family);
    let family = family.ok_or_else(|| {
        let message = format!(
            "expected invoices, replies, tables or tickets, found {:?}",
            args.family
        );
        CliError::usage(message, "clover workflow new --help")
    })?;
    let items = usize::from(args.items);
    let folder = ctx.path(&args.out);
    ambient::create_dirs(&folder)?;
    let mut files = Vec::new();
    let texts = [
        ("workflow.json", family.first_program().to_owned()),
        (
            "general.jsonl",
            family.lines(Split::General, args.seed, items),
        ),
        ("local.jsonl", family.lines(Split::Local, args.seed, items)),
    ];
    for (name, _) in &texts {
        if ambient::exists(&folder.join(name))? {
            let message = format!("{} exists already", args.out.join(name).display());
            return Err(CliError::refused(message, "clover workflow new --help"));
        }
    }
    for (name, text) in texts {
        ambient::write_new(&folder.join(name), text.as_bytes(), 0o644)?;
        files.push(args.out.join(name).display().to_string());
    }
    Ok(views::begun(family, &args.out, files, items))
}

fn show(ctx: &mut Ctx<'_>, args: &WorkflowShowArgs) -> Result<View, CliError> {
    let workflow = workflow(ctx, &args.file)?;
    let name = source(&args.file);
    if let Some(out) = &args.out {
        if out.extension().is_none_or(|end| end != "svg") {
            let message = format!("expected a name that ends in .svg, found {}", out.display());
            return Err(CliError::usage(message, "clover workflow show --help"));
        }
        let svg = views::drawing(&workflow, &name).svg();
        ambient::write_new(&ctx.path(out), svg.as_bytes(), 0o644)?;
    }
    Ok(views::show(
        &workflow,
        &name,
        args.source,
        args.out.as_deref(),
    ))
}

/// Lines of a file that hold something, with their numbers.
pub(super) fn lines(ctx: &mut Ctx<'_>, file: &Path) -> Result<Vec<(usize, String)>, CliError> {
    let mut all = Vec::new();
    let reader = ctx.reader(file)?;
    for (at, line) in (1..).zip(reader.lines()) {
        let line =
            line.map_err(|error| CliError::input(format!("{}:{at}: {error}", source(file)), RUN))?;
        if !line.trim().is_empty() {
            all.push((at, line));
        }
    }
    Ok(all)
}

/// The items of a file: a task set with its rules, or a line each, which is a set without rules.
fn items(ctx: &mut Ctx<'_>, args: &WorkflowRunArgs) -> Result<TaskSet, CliError> {
    let lines = lines(ctx, &args.input)?;
    let is_set = lines
        .first()
        .is_some_and(|(_, line)| flow::task::is_head(line));
    let mut set = match (is_set, lines.first()) {
        (true, Some((at, head))) => {
            TaskSet::head(head).map_err(|found| fault(&args.input, *at, found, RUN))?
        }
        _ => TaskSet::of_items(Vec::new()),
    };
    let (mut items, mut ids) = (Vec::new(), BTreeSet::new());
    for (at, line) in lines.iter().skip(usize::from(is_set)) {
        let item = Item::parse(line, *at);
        let item = item.map_err(|found| fault(&args.input, *at, found, RUN))?;
        if !ids.insert(item.id.clone()) {
            let message = format!(
                "{}:{at}: the id {:?} stands twice: expected one item of each id",
                source(&args.input),
                item.id
            );
            return Err(CliError::input(message, RUN));
        }
        items.push(item);
    }
    if let Some(id) = &args.item {
        items.retain(|item| item.id == *id);
    }
    if items.is_empty() {
        let of = args
            .item
            .as_ref()
            .map_or("item".to_owned(), |id| format!("item {id:?}"));
        let message = format!("{} has no {of}", source(&args.input));
        return Err(CliError::input(message, RUN));
    }
    set.items = items;
    Ok(set)
}

/// The table of recorded answers that an executor names, if it names one.
fn table(ctx: &mut Ctx<'_>, executor: &str) -> Result<Option<Table>, CliError> {
    if executor == "sim" {
        return Ok(None);
    }
    let file = executor.strip_prefix(TABLE).ok_or_else(|| {
        let message = format!("expected sim or table=FILE, found {executor:?}");
        CliError::usage(message, RUN)
    })?;
    let (table, _) = recorded(ctx, Path::new(file), RUN)?;
    Ok(Some(table))
}

/// Recorded answers of a file, and its lines; `help` is what a refusal points to.
pub(super) fn recorded(
    ctx: &mut Ctx<'_>,
    file: &Path,
    help: &'static str,
) -> Result<(Table, String), CliError> {
    let (mut table, mut kept) = (Table::default(), String::new());
    for (at, line) in lines(ctx, file)? {
        let added = table.add_line(&line);
        added.map_err(|found| fault(file, at, found, help))?;
        kept.push_str(&line);
        kept.push('\n');
    }
    Ok((table, kept))
}

fn ran(ctx: &mut Ctx<'_>, args: &WorkflowRunArgs) -> Result<View, CliError> {
    let workflow = workflow(ctx, &args.file)?;
    let mut table = table(ctx, &args.executor)?;
    let set = items(ctx, args)?;
    let strength = if args.strong {
        Strength::Strong
    } else {
        Strength::Weak
    };
    let (mut runs, mut recording) = (Vec::new(), Recording::default());
    for item in &set.items {
        recording.begin(&item.id);
        if let Some(table) = &mut table {
            table.begin(&item.id);
        }
        let mut one = |executor: &mut dyn Executor| {
            let mut recorder = Recorder::new(executor, &mut recording);
            flow::run(&workflow, &item.inputs, &mut recorder, Bounds::default(), 0)
        };
        let outcome = match (&mut table, &item.model) {
            (Some(table), _) => one(table),
            (None, Some(model)) => one(&mut SimulatedModel::new(
                args.seed, strength, &item.id, model,
            )),
            (None, None) => Err(ExecutorFault::NotSimulated(item.id.clone())),
        };
        let outcome = outcome.map_err(|found| stopped(&item.id, &found))?;
        runs.push((item.id.clone(), outcome));
    }
    if let Some(file) = &args.record {
        let text = recording
            .lines
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>();
        ambient::write_new(&ctx.path(file), text.as_bytes(), 0o600)?;
    }
    let executor = if table.is_some() { "table" } else { "sim" };
    Ok(workflow_run::ran(&workflow, executor, &runs, &set))
}

/// Why nothing answers for the model.
fn stopped(item: &str, found: &ExecutorFault) -> CliError {
    let message = match found {
        ExecutorFault::NotRecorded { .. } => {
            format!("item {item:?}: {found}: record the answers of this workflow first")
        }
        ExecutorFault::NotSimulated(_) => format!("{found}: or give --executor table=FILE"),
        ExecutorFault::Spent => format!("item {item:?}: {found}"),
    };
    CliError::input(message, RUN)
}
