//! `clover repair open`: everything that a run is held to, from files.

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::repair::run_id;
use crate::cli::workflow;
use crate::event::Kind;
use crate::event::payload::repair::WfBudget;
use crate::event::payload::repair::WfCell;
use crate::event::payload::repair::WfEdits;
use crate::event::payload::repair::WfLocality;
use crate::event::payload::repair::WfPart;
use crate::event::payload::repair::WfStrength;
use crate::event::payload::repair::WfTerms;
use crate::flow::Fault;
use crate::flow::repair::charter::MetaPrompt;
use crate::flow::repair::charter::Verifier;
use crate::flow::repair::edit::Operator;
use crate::flow::task::TaskSet;
use crate::flow::value::Data;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::num::Count;
use crate::num::INTEGER_MAX;
use crate::num::Micro;
use crate::session::SessionError;
use crate::session::ports::KeyNeed;
use crate::session::ports::Keys;
use crate::session::ports::Seat;
use crate::session::wf::found;
use crate::session::wf::open;
use crate::session::wf::open::RepairRequest;
use crate::session::wf::open::RequestedExecutor;
use crate::view::View;
use crate::view::repair as views;

const HELP: &str = "clover repair open --help";
/// How the name of recorded answers begins.
const TABLE: &str = "table=";
/// How the name of the simulator begins; its seed follows.
const SIMULATED: &str = "sim=";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RepairOpenArgs {
    /// Name of the run
    // The usage line says it, and a screen has 24 lines.
    #[arg(hide = true)]
    pub run: String,
    /// The workflow that is repaired, JSON
    #[arg(long, value_name = "FILE")]
    pub program: PathBuf,
    /// The task set that it adapts to; its first items are taken
    #[arg(long, value_name = "FILE")]
    pub tasks: PathBuf,
    /// How many items, 1 to 50
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub items: usize,
    /// What answers for the model: sim=SEED or table=FILE
    #[arg(long, value_name = "EXECUTOR", default_value = "sim=7")]
    pub executor: String,
    /// A simulated model that slips a quarter as often
    #[arg(long)]
    pub strong: bool,
    /// An optimizer that takes the least sure blame first
    #[arg(long)]
    pub weak_optimizer: bool,
    /// The meta prompt, JSON: which operators are allowed
    #[arg(long, value_name = "FILE")]
    pub meta: Option<PathBuf>,
    /// The verifier, JSON; default the rules of the set
    #[arg(long, value_name = "FILE")]
    pub verifier: Option<PathBuf>,
    /// Begin from what an update brought that passed (clover meta show)
    #[arg(long, value_name = "UPDATE")]
    pub update: Option<String>,
    /// What it is for: deploy, train or validate
    #[arg(long, value_name = "PART", default_value = "deploy")]
    pub part: String,
    /// A term, such as calls=500 (schema/REPAIR.md); may be given again
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// The experiment; default the one in use
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Say what would be opened, and record nothing
    #[arg(long)]
    pub plan: bool,
}

fn count(value: u64) -> Count {
    Count::new(value).unwrap_or_default()
}

fn micro(value: i64) -> Micro {
    Micro::new(value).unwrap_or_default()
}

fn terms(args: &RepairOpenArgs) -> Result<WfTerms, CliError> {
    let mut terms = WfTerms {
        beam: count(4),
        budget: WfBudget {
            calls: count(10_000),
            tokens: count(10_000_000),
            usd_micro: count(10_000_000),
        },
        edits: WfLocality {
            ast_nodes: count(12),
            new_llm_calls: count(1),
            prompt_chars: count(400),
            steps_touched: count(2),
        },
        iterations: count(6),
        least_gain_micro: micro(1_000),
        proposals: count(3),
        reruns: count(0),
        stagnation: count(3),
        theta_micro: micro(900_000),
    };
    for text in &args.set {
        let wrong = |expected: String| {
            CliError::usage(format!("--set {text:?}: expected {expected}"), HELP)
        };
        let said = text.split_once('=');
        let (name, value) = said.ok_or_else(|| wrong("NAME=NUMBER".to_owned()))?;
        set(&mut terms, name, value).map_err(wrong)?;
    }
    Ok(terms)
}

/// Sets a term; else what is expected.
fn set(terms: &mut WfTerms, name: &str, value: &str) -> Result<(), String> {
    let whole = || {
        let found = value.parse().ok().and_then(Count::new);
        let expected = || format!("NAME=NUMBER, a whole number from 0 to {INTEGER_MAX}");
        found.ok_or_else(expected)
    };
    let share = || {
        let found = value.parse().ok();
        let found = found.filter(|found| (0..=1_000_000).contains(found));
        let expected = || "NAME=NUMBER, millionths from 0 to 1000000".to_owned();
        found.and_then(Micro::new).ok_or_else(expected)
    };
    match name {
        "beam" => terms.beam = whole()?,
        "calls" => terms.budget.calls = whole()?,
        "chars" => terms.edits.prompt_chars = whole()?,
        "iterations" => terms.iterations = whole()?,
        "least_gain_micro" => terms.least_gain_micro = share()?,
        "new_calls" => terms.edits.new_llm_calls = whole()?,
        "nodes" => terms.edits.ast_nodes = whole()?,
        "proposals" => terms.proposals = whole()?,
        "reruns" => terms.reruns = whole()?,
        "stagnation" => terms.stagnation = whole()?,
        "steps" => terms.edits.steps_touched = whole()?,
        "theta_micro" => terms.theta_micro = share()?,
        "tokens" => terms.budget.tokens = whole()?,
        "usd_micro" => terms.budget.usd_micro = whole()?,
        _ => {
            let all = "beam, calls, chars, iterations, least_gain_micro, new_calls, nodes, proposals, reruns, stagnation, \
                       steps, theta_micro, tokens or usd_micro";
            return Err(all.to_owned());
        }
    }
    Ok(())
}

fn cell(args: &RepairOpenArgs, meta: &MetaPrompt) -> WfCell {
    let only = meta.operators.iter().all(|of| *of == Operator::EditPrompt);
    let strength = |is_strong| {
        if is_strong {
            WfStrength::Strong
        } else {
            WfStrength::Weak
        }
    };
    WfCell {
        edits: if only {
            WfEdits::Prompt
        } else {
            WfEdits::Structure
        },
        executor: strength(args.strong),
        optimizer: strength(!args.weak_optimizer),
        outer: false,
    }
}

/// A document of a file, read by one of the readers of the language.
fn read<T>(
    ctx: &mut Ctx<'_>,
    file: &Path,
    parse: impl FnOnce(&str) -> Result<T, Fault>,
) -> Result<T, CliError> {
    let text = crate::cli::rubric::document(ctx, file, HELP)?;
    parse(&text).map_err(|found| workflow::fault(file, 1, found, HELP))
}

fn executor(ctx: &mut Ctx<'_>, args: &RepairOpenArgs) -> Result<RequestedExecutor, CliError> {
    let seed = args.executor.strip_prefix(SIMULATED);
    if let Some(seed) = seed.and_then(|seed| seed.parse().ok()) {
        return Ok(RequestedExecutor::Simulator(seed));
    }
    let file = args.executor.strip_prefix(TABLE).ok_or_else(|| {
        let message = format!("expected sim=SEED or table=FILE, found {:?}", args.executor);
        CliError::usage(message, HELP)
    })?;
    let (_, lines) = workflow::recorded(ctx, Path::new(file), HELP)?;
    Ok(RequestedExecutor::Table(
        lines,
        "recorded answers".to_owned(),
    ))
}

/// The first items of a task set: its first line, the set with them, and their lines.
pub(in crate::cli) fn tasks(
    ctx: &mut Ctx<'_>,
    file: &Path,
    most: usize,
    help: &str,
) -> Result<(Data, TaskSet, Vec<String>), CliError> {
    let lines = workflow::lines(ctx, file)?;
    let head = lines.first().map_or("", |(_, line)| line.as_str());
    let wrong = |found| workflow::fault(file, 1, found, help);
    let mut set = TaskSet::head(head).map_err(wrong)?;
    let context = TaskSet::head_document(head).map_err(wrong)?;
    let mut kept = Vec::new();
    for (at, line) in lines.into_iter().skip(1).take(most) {
        let item = crate::flow::item::Item::parse(&line, at);
        set.items
            .push(item.map_err(|found| workflow::fault(file, at, found, help))?);
        kept.push(line);
    }
    Ok((context, set, kept))
}

fn request(
    ctx: &mut Ctx<'_>,
    args: &RepairOpenArgs,
    experiment: crate::event::id::ExperimentId,
) -> Result<RepairRequest, CliError> {
    let program = workflow::workflow(ctx, &args.program)?;
    let (context, set, kept) = tasks(ctx, &args.tasks, args.items, HELP)?;
    let kept = kept.iter().map(|line| format!("{line}\n")).collect();
    let meta = match &args.meta {
        Some(file) => read(ctx, file, MetaPrompt::parse)?,
        None => MetaPrompt::default(),
    };
    let verifier = match &args.verifier {
        Some(file) => read(ctx, file, Verifier::parse)?,
        None => Verifier::default(),
    };
    let part: Result<WfPart, _> = args.part.parse();
    let part = part.map_err(|error| CliError::usage(format!("--part: {error}"), HELP))?;
    Ok(RepairRequest {
        run: run_id(&args.run)?,
        experiment,
        context,
        set,
        lines: kept,
        program,
        templates: Vec::new(),
        cell: cell(args, &meta),
        meta,
        verifier,
        terms: terms(args)?,
        executor: executor(ctx, args)?,
        part,
        update: None,
        salt: Digest::sha256(&ctx.ambient().random::<32>()?),
    })
}

pub(super) fn open(ctx: &mut Ctx<'_>, args: &RepairOpenArgs) -> Result<View, CliError> {
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let named = args.experiment.as_deref();
    let experiment = current::experiment(ctx, &home, ledger.state(), named)?;
    let mut request = request(ctx, args, experiment)?;
    if let Some(update) = &args.update {
        let update = crate::cli::meta::update_id(update)?;
        open::begin_from(ledger.state(), &update, &mut request).map_err(SessionError::from)?;
    }
    let ports = &mut ctx.ports();
    if args.plan {
        let mut key = |seat, kind| {
            let key = ports.signer(ledger.state(), KeyNeed::of(seat, kind));
            key.map(|key| key.id()).map_err(SessionError::from)
        };
        let keys = (
            key(Seat::Optimizer, Kind::WfCandidateAdded)?,
            key(Seat::Runner, Kind::WfFeedbackGiven)?,
        );
        let (said, _) = open::plan(&ledger, &request, keys)?;
        return Ok(views::planned(&said, &request.experiment));
    }
    let appended = open::open(ports, &home, &mut ledger, &request)?;
    let run = found(ledger.state(), &request.run).map_err(SessionError::from)?;
    let mut view = views::run(run).with_events(&[appended]);
    view.next = vec![format!("clover repair run {}", shell::word(&request.run))];
    Ok(view)
}
