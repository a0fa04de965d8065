//! `clover meta`: learn from repairs whose truth is known, by updates that are tried before they take effect.

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::repair;
use crate::event::id::ExperimentId;
use crate::event::id::MetaPlanId;
use crate::event::id::UpdateId;
use crate::ground::digest::Digest;
use crate::num::Micro;
use crate::projection::wf::WfRuns;
use crate::session::SessionError;
use crate::session::wf::crossed;
use crate::session::wf::crossed::CrossedBench;
use crate::session::wf::crossed::CrossedRequest;
use crate::session::wf::meta::MetaBench;
use crate::session::wf::meta_plan;
use crate::session::wf::meta_plan::MetaRequest;
use crate::session::wf::running::RepairPause;
use crate::view::Exit;
use crate::view::View;
use crate::view::meta as views;
use crate::view::meta_cells as cells;

const HELP: &str = "clover meta run --help";
const EXPERIMENT_HELP: &str = "clover meta experiment --help";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Propose an update that runs call for, try it on pairs of runs, and let its gates decide
    #[command(
        override_usage = "clover meta run UPDATE --tasks <FILE> [OPTIONS]",
        after_help = "The same command goes on after a stop. Exit 130: somebody stopped it.\n\n\
                      Example:\n  clover meta run stricter-1 --tasks more/local.jsonl --pairs 40"
    )]
    Run(MetaRunArgs),
    /// Repair the same tasks in sixteen cells, with an update and without it, and close what was predicted of them
    #[command(
        override_usage = "clover meta experiment PLAN --update <UPDATE> --tasks <FILE> [OPTIONS]",
        after_help = "The same command goes on after a stop. Exit 130: somebody stopped it.\n\n\
                      Example:\n  clover meta experiment cells-1 --update stricter-1 --tasks more/local.jsonl --plan"
    )]
    Experiment(MetaExperimentArgs),
    /// Every update and plan; or one update with its gates, or one plan with its cells and claims
    #[command(after_help = "Example:\n  clover meta show stricter-1")]
    Show(MetaShowArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct MetaRunArgs {
    /// Name of the update
    pub update: String,
    /// Tasks of the same context; items that no run has are taken, in their order
    #[arg(long, value_name = "FILE")]
    pub tasks: PathBuf,
    /// Items of each run, 1 to 50
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub items: usize,
    /// Pairs of runs, up to 1000
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub pairs: usize,
    /// Least worth of a workflow that is of use, 0 to 1
    #[arg(long, value_name = "WORTH", default_value = "0.9")]
    pub useful: String,
    /// Level of each gate, up to 0.05
    #[arg(long, value_name = "ALPHA", default_value = "0.05")]
    pub alpha: String,
    /// Most that gamma and kappa may fall, up to 0.2
    #[arg(long, value_name = "MARGIN", default_value = "0.2")]
    pub margin: String,
    /// The experiment; default the one in use
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Say what would be proposed, and record nothing
    #[arg(long)]
    pub plan: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct MetaExperimentArgs {
    /// Name of the plan
    pub plan_name: String,
    /// The update that half of the cells begin from
    #[arg(long, value_name = "UPDATE")]
    pub update: String,
    /// Tasks of the same context; items that no run has are taken, in their order
    #[arg(long, value_name = "FILE")]
    pub tasks: PathBuf,
    /// Items of each task, 1 to 50
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub items: usize,
    /// Tasks, up to 500; each has sixteen runs
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub count: usize,
    /// Least worth of a workflow that is of use, 0 to 1
    #[arg(long, value_name = "WORTH", default_value = "0.9")]
    pub useful: String,
    /// Level of the three claims together, up to 0.05
    #[arg(long, value_name = "ALPHA", default_value = "0.05")]
    pub alpha: String,
    /// The experiment; default the one in use
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Say what would be opened and what it costs, and record nothing
    #[arg(long)]
    pub plan: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct MetaShowArgs {
    /// The update or the plan
    pub name: Option<String>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Run(args) => go(ctx, args),
        Verb::Experiment(args) => experiment(ctx, args),
        Verb::Show(args) => show(ctx, args),
    }
}

/// The name of an update.
pub(super) fn update_id(text: &str) -> Result<UpdateId, CliError> {
    text.parse()
        .map_err(|error| CliError::usage(format!("update {text:?}: {error}"), "clover meta show"))
}

/// The name of a plan.
fn plan_id(text: &str) -> Result<MetaPlanId, CliError> {
    text.parse()
        .map_err(|error| CliError::usage(format!("plan {text:?}: {error}"), "clover meta show"))
}

fn is_update(runs: &WfRuns, text: &str) -> bool {
    let id = text.parse().ok();
    id.is_some_and(|id| runs.updates.contains_key(&id))
}

/// Millionths of a share above 0 and up to `most`.
fn share(name: &str, text: &str, (most, help): (i64, &str)) -> Result<Micro, CliError> {
    let read = Micro::parse(text).ok().map(|(micro, _)| micro);
    read.filter(|micro| (1..=most).contains(&micro.value()))
        .ok_or_else(|| {
            let most = most as f64 / 1e6;
            let message =
                format!("{name}: expected a number above 0 and up to {most}, found {text:?}");
            CliError::usage(message, help)
        })
}

/// What a trial is asked for, on the command line.
struct TrialArgs<'a> {
    update: &'a str,
    tasks: &'a Path,
    items: usize,
    /// Pairs or tasks: the option, how many, and how many at most.
    count: (&'a str, usize, usize),
    useful: &'a str,
    alpha: &'a str,
    margin: Micro,
}

fn request(
    ctx: &mut Ctx<'_>,
    args: &TrialArgs<'_>,
    experiment: ExperimentId,
    help: &str,
) -> Result<MetaRequest, CliError> {
    for (name, value, most) in [("--items", args.items, 50), args.count] {
        if !(1..=most).contains(&value) {
            let message = format!("{name}: expected 1 to {most}, found {value}");
            return Err(CliError::usage(message, help));
        }
    }
    let (context, set, lines) = repair::tasks(ctx, args.tasks, usize::MAX, help)?;
    Ok(MetaRequest {
        update: update_id(args.update)?,
        experiment,
        context,
        set,
        lines,
        items: args.items,
        pairs: args.count.1,
        useful: share("--useful", args.useful, (1_000_000, help))?,
        alpha: share("--alpha", args.alpha, (50_000, help))?,
        margin: args.margin,
        salt: Digest::sha256(&ctx.ambient().random::<32>()?),
    })
}

fn go(ctx: &mut Ctx<'_>, args: &MetaRunArgs) -> Result<View, CliError> {
    let (home, ledger) = home::open_to_write(ctx)?;
    let named = args.experiment.as_deref();
    let experiment = current::experiment(ctx, &home, ledger.state(), named)?;
    let trial = TrialArgs {
        update: &args.update,
        tasks: &args.tasks,
        items: args.items,
        count: ("--pairs", args.pairs, 1_000),
        useful: &args.useful,
        alpha: &args.alpha,
        margin: share("--margin", &args.margin, (200_000, HELP))?,
    };
    let request = request(ctx, &trial, experiment, HELP)?;
    let id = request.update.clone();
    let is_known = ledger.state().fold::<WfRuns>().updates.contains_key(&id);
    if args.plan && !is_known {
        let plan = meta_plan::plan(&ledger, &request)?;
        let runs = ledger.state().fold::<WfRuns>();
        let said = (&plan.trigger, &plan.update);
        return Ok(views::planned(runs, &request.experiment, said));
    }
    let bench = MetaBench {
        home,
        ledger,
        request,
    };
    let (bench, pause) = if args.plan {
        (bench, RepairPause::Ended)
    } else {
        bench.go(&mut ctx.ports().with_interrupts()?)?
    };
    let runs = bench.ledger.state().fold::<WfRuns>();
    let update = meta_plan::update_of(runs, &id).map_err(SessionError::from)?;
    let mut view = views::update(runs, update);
    if pause == RepairPause::Cut {
        view.exit = Exit::Interrupted;
    }
    Ok(view)
}

fn experiment(ctx: &mut Ctx<'_>, args: &MetaExperimentArgs) -> Result<View, CliError> {
    let (home, ledger) = home::open_to_write(ctx)?;
    let named = args.experiment.as_deref();
    let experiment = current::experiment(ctx, &home, ledger.state(), named)?;
    let trial = TrialArgs {
        update: &args.update,
        tasks: &args.tasks,
        items: args.items,
        count: ("--count", args.count, 500),
        useful: &args.useful,
        alpha: &args.alpha,
        margin: Micro::default(),
    };
    let request = CrossedRequest {
        plan: plan_id(&args.plan_name)?,
        trial: request(ctx, &trial, experiment, EXPERIMENT_HELP)?,
    };
    let id = request.plan.clone();
    let is_known = ledger.state().fold::<WfRuns>().plans.contains_key(&id);
    if args.plan && !is_known {
        let (said, price) = crossed::planned(&ledger, &request)?;
        return Ok(cells::planned(&request.trial.experiment, &said, price));
    }
    let bench = CrossedBench {
        home,
        ledger,
        request,
    };
    let (bench, pause) = if args.plan {
        (bench, RepairPause::Ended)
    } else {
        bench.go(&mut ctx.ports().with_interrupts()?)?
    };
    let runs = bench.ledger.state().fold::<WfRuns>();
    let plan = crossed::plan_of(runs, &id).map_err(SessionError::from)?;
    let mut view = cells::plan(runs, plan);
    if pause == RepairPause::Cut {
        view.exit = Exit::Interrupted;
    }
    Ok(view)
}

fn show(ctx: &mut Ctx<'_>, args: &MetaShowArgs) -> Result<View, CliError> {
    let (_, ledger, at) = home::view(ctx)?;
    let state = at.state(&ledger);
    let Some(text) = &args.name else {
        return Ok(views::lineage(state));
    };
    let runs = state.fold::<WfRuns>();
    let plan = text.parse().ok().and_then(|id| runs.plans.get(&id));
    if let Some(plan) = plan.filter(|_| !is_update(runs, text)) {
        return Ok(cells::plan(runs, plan));
    }
    let update = meta_plan::update_of(runs, &update_id(text)?).map_err(SessionError::from)?;
    Ok(views::update(runs, update))
}
