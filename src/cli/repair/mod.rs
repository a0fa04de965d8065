//! `clover repair`: mend a workflow where nobody knows what is right, and say afterwards what that was worth.

mod open;
mod refusals;

use std::path::PathBuf;

pub(super) use self::open::tasks;
use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::event::id::RunId;
use crate::ground::ambient;
use crate::ground::digest::Digest;
use crate::projection::wf::WfRun;
use crate::projection::wf::WfRuns;
use crate::session::SessionError;
use crate::session::wf::RepairBench;
use crate::session::wf::found;
use crate::session::wf::outcomes_of;
use crate::session::wf::plan_of;
use crate::session::wf::running::RepairPause;
use crate::view::Exit;
use crate::view::View;
use crate::view::repair as views;
use crate::view::repair_candidate as candidates;
use crate::view::repair_measures as measured;
use crate::workflow::wf::course;
use crate::workflow::wf::measure;
use crate::workflow::wf::measures;

const SHOW: &str = "clover repair show --help";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Open a run: the workflow, its tasks, the verifier and what may be spent are recorded
    #[command(
        override_usage = "clover repair open RUN --program <FILE> --tasks <FILE> [OPTIONS]",
        after_help = "Example:\n  clover repair open shop-1 --program shop/workflow.json --tasks shop/local.jsonl"
    )]
    Open(open::RepairOpenArgs),
    /// Go on until the run ends; one that was cut goes on
    #[command(
        after_help = "Exit 130: somebody stopped it.\n\nExample:\n  clover repair run shop-1"
    )]
    Run(RepairRunArgs),
    /// Try pairs of edits after a run: of a blamed step, and of a drawn one; beta needs them
    #[command(
        after_help = "Before what is right is opened: then it is too late.\n\n\
                      Example:\n  clover repair pair shop-1 --pairs 3"
    )]
    Pair(RepairPairArgs),
    /// Every run, and what is due in each
    #[command(after_help = "Example:\n  clover repair status")]
    Status,
    /// One run: its candidates and turns; or one candidate, its workflow, or its steps on an item
    #[command(
        after_help = "Example:\n  clover repair show shop-1 --candidate winner --item local-0"
    )]
    Show(RepairShowArgs),
    /// Say what each candidate was worth, once the run has ended
    #[command(after_help = "Example:\n  clover repair score shop-1")]
    Score(RepairRunArgs),
    /// How far scores without ground truth can be believed, over runs that were scored
    #[command(after_help = "Example:\n  clover repair measure --useful 0.9")]
    Measure(MeasureArgs),
    /// End a run by a person's word
    #[command(after_help = "Example:\n  clover repair stop shop-1")]
    Stop(RepairRunArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct RepairRunArgs {
    /// The run
    pub run: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct RepairPairArgs {
    /// The run
    pub run: String,
    /// Most pairs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub pairs: u64,
}

#[derive(Debug, clap::Args)]
pub(super) struct RepairShowArgs {
    /// The run
    pub run: String,
    /// One candidate: the first digits of its id, or winner, or first
    #[arg(long, value_name = "ID")]
    pub candidate: Option<String>,
    /// Its steps on an item
    #[arg(long, value_name = "ITEM", requires = "candidate")]
    pub item: Option<String>,
    /// Write its workflow to a new file
    #[arg(
        short = 'o',
        long,
        value_name = "FILE",
        requires = "candidate",
        conflicts_with = "item"
    )]
    pub out: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct MeasureArgs {
    /// The experiment; default the one in use
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Least worth of a workflow that is of use, 0 to 1
    #[arg(long, value_name = "WORTH", default_value_t = 0.9)]
    pub useful: f64,
    /// Utilities so close are no pair
    #[arg(long, value_name = "GAP", default_value_t = measure::EPSILON)]
    pub epsilon: f64,
    /// Least gain of a proposal that counts
    #[arg(long, value_name = "GAIN", default_value_t = measure::LEAST_GAIN)]
    pub gain: f64,
    /// Level of the intervals
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    pub level: f64,
    /// Runs of this family alone
    #[arg(long, value_name = "NAME")]
    pub family: Option<String>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Open(args) => open::open(ctx, args),
        Verb::Run(args) => go(ctx, args),
        Verb::Pair(args) => {
            let mut bench = bench(ctx, &args.run)?;
            let ports = &mut ctx.ports().with_interrupts()?;
            let pause = bench.pair(ports, args.pairs)?;
            paused(&bench, pause)
        }
        Verb::Status => {
            let (_, ledger, at) = home::view(ctx)?;
            Ok(views::list(at.state(&ledger)))
        }
        Verb::Show(args) => show(ctx, args),
        Verb::Score(args) => {
            let mut bench = bench(ctx, &args.run)?;
            bench.worth(&mut ctx.ports())?;
            shown(&bench)
        }
        Verb::Measure(args) => measure(ctx, args),
        Verb::Stop(args) => {
            let mut bench = bench(ctx, &args.run)?;
            bench.stop(&mut ctx.ports())?;
            shown(&bench)
        }
    }
}

pub(super) fn run_id(text: &str) -> Result<RunId, CliError> {
    text.parse()
        .map_err(|error| CliError::usage(format!("run {text:?}: {error}"), "clover repair status"))
}

/// Refuses a number that is no share.
pub(super) fn check_share(name: &str, value: f64, help: &'static str) -> Result<(), CliError> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    let message = format!("{name}: expected a number from 0 to 1, found {value}");
    Err(CliError::usage(message, help))
}

fn bench(ctx: &mut Ctx<'_>, run: &str) -> Result<RepairBench, CliError> {
    let id = run_id(run)?;
    let (home, ledger) = home::open_to_write(ctx)?;
    Ok(RepairBench::new(home, ledger, id)?)
}

fn shown(bench: &RepairBench) -> Result<View, CliError> {
    let run = bench.run().map_err(SessionError::from)?;
    Ok(views::run(run))
}

fn go(ctx: &mut Ctx<'_>, args: &RepairRunArgs) -> Result<View, CliError> {
    let mut bench = bench(ctx, &args.run)?;
    let ports = &mut ctx.ports().with_interrupts()?;
    let pause = bench.go(ports)?;
    paused(&bench, pause)
}

fn paused(bench: &RepairBench, pause: RepairPause) -> Result<View, CliError> {
    let mut view = shown(bench)?;
    if pause == RepairPause::Cut {
        view.exit = Exit::Interrupted;
    }
    Ok(view)
}

/// A candidate by the first digits of its id, or by what it is.
fn candidate(run: &WfRun, text: &str) -> Result<Digest, CliError> {
    let next = || format!("clover repair show {}", run.said.run);
    let winner = || run.end.as_ref().and_then(|end| end.winner);
    let found: Vec<Digest> = match text {
        "winner" => winner().into_iter().collect(),
        "first" => vec![run.said.program_digest],
        _ => {
            let all = run.order.iter();
            all.filter(|id| id.to_hex().starts_with(text))
                .copied()
                .collect()
        }
    };
    match found.as_slice() {
        [one] => Ok(*one),
        [] => {
            let message = format!("run {} has no candidate {text:?}", run.said.run);
            Err(CliError::not_found(message, next()))
        }
        _ => {
            let message = format!("--candidate {text:?}: more than one begins so");
            Err(CliError::usage(message, next()))
        }
    }
}

fn show(ctx: &mut Ctx<'_>, args: &RepairShowArgs) -> Result<View, CliError> {
    let id = run_id(&args.run)?;
    let (_, ledger, at) = home::view(ctx)?;
    let state = at.state(&ledger);
    let run = found(state, &id).map_err(SessionError::from)?;
    let Some(wanted) = &args.candidate else {
        return Ok(views::run(run));
    };
    let wanted = candidate(run, wanted)?;
    let unmet = |unmet| SessionError::from(crate::session::wf::RepairError::from(unmet));
    let workflow = course::workflow(run, &wanted).map_err(unmet)?;
    if let Some(item) = &args.item {
        let plan = plan_of(&ledger, run)?;
        let at = plan.set.items.iter().position(|of| of.id == *item);
        let all = outcomes_of((&ledger, state.size), run, &plan, &|of| *of == wanted)?;
        let outcome = at.and_then(|at| all.get(&wanted)?.get(at)?.first());
        let (Some(at), Some(outcome)) = (at, outcome) else {
            let message = format!("run {id} has no execution of it on item {item:?}");
            return Err(CliError::not_found(message, SHOW));
        };
        return Ok(candidates::traced(run, &wanted, &plan, at, outcome));
    }
    if let Some(out) = &args.out {
        let path = ctx.path(out);
        ambient::write_new(&path, workflow.print().as_bytes(), 0o644)?;
    }
    let first = course::workflow(run, &run.said.program_digest).map_err(unmet)?;
    Ok(candidates::candidate(
        run,
        &wanted,
        (&first, &workflow),
        args.out.as_deref(),
    ))
}

fn measure(ctx: &mut Ctx<'_>, args: &MeasureArgs) -> Result<View, CliError> {
    let (home, ledger, at) = home::view(ctx)?;
    let state = at.state(&ledger);
    let experiment = current::experiment(ctx, &home, state, args.experiment.as_deref())?;
    let terms = measures::MeasureTerms {
        useful: args.useful,
        epsilon: args.epsilon,
        least_gain: args.gain,
        level: args.level,
    };
    let within = [
        ("--useful", args.useful),
        ("--epsilon", args.epsilon),
        ("--gain", args.gain),
    ];
    for (name, value) in within {
        check_share(name, value, "clover repair measure --help")?;
    }
    let family = args.family.as_deref();
    let runs = measures::scored(state, &experiment, family);
    let unscored = measures::unscored(state, &experiment, family);
    let found = measures::of(&runs, terms);
    let found = found
        .map_err(|error| CliError::usage(format!("{error}"), "clover repair measure --help"))?;
    // Triggers are of all runs of an experiment.
    let runs = family.is_none().then(|| state.fold::<WfRuns>());
    Ok(measured::measured(
        &experiment,
        (&found, unscored),
        (terms, runs),
    ))
}
