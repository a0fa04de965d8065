//! `clover meta`: learn from repairs whose truth is known, by updates that are tried before they take effect.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::repair;
use crate::event::id::ExperimentId;
use crate::event::id::UpdateId;
use crate::ground::digest::Digest;
use crate::num::Micro;
use crate::projection::wf::WfRuns;
use crate::session::SessionError;
use crate::session::wf::meta::MetaBench;
use crate::session::wf::meta_plan;
use crate::session::wf::meta_plan::MetaRequest;
use crate::session::wf::running::RepairPause;
use crate::view::Exit;
use crate::view::View;
use crate::view::meta as views;

const HELP: &str = "clover meta run --help";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Propose an update that runs call for, try it on pairs of runs, and let its gates decide
    #[command(
        override_usage = "clover meta run UPDATE --tasks <FILE> [OPTIONS]",
        after_help = "The same command goes on after a stop. Exit 130: somebody stopped it.\n\n\
                      Example:\n  clover meta run stricter-1 --tasks more/local.jsonl --pairs 40"
    )]
    Run(MetaRunArgs),
    /// Every update and what each was made of; or one, with its triggers, pairs and gates
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
pub(super) struct MetaShowArgs {
    /// The update
    pub update: Option<String>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Run(args) => go(ctx, args),
        Verb::Show(args) => show(ctx, args),
    }
}

/// The name of an update.
pub(super) fn update_id(text: &str) -> Result<UpdateId, CliError> {
    text.parse()
        .map_err(|error| CliError::usage(format!("update {text:?}: {error}"), "clover meta show"))
}

/// Millionths of a share above 0 and up to `most`.
fn share(name: &str, text: &str, most: i64) -> Result<Micro, CliError> {
    let read = Micro::parse(text).ok().map(|(micro, _)| micro);
    read.filter(|micro| (1..=most).contains(&micro.value()))
        .ok_or_else(|| {
            let most = most as f64 / 1e6;
            let message =
                format!("{name}: expected a number above 0 and up to {most}, found {text:?}");
            CliError::usage(message, HELP)
        })
}

fn request(
    ctx: &mut Ctx<'_>,
    args: &MetaRunArgs,
    experiment: ExperimentId,
) -> Result<MetaRequest, CliError> {
    for (name, value, most) in [("--items", args.items, 50), ("--pairs", args.pairs, 1_000)] {
        if !(1..=most).contains(&value) {
            let message = format!("{name}: expected 1 to {most}, found {value}");
            return Err(CliError::usage(message, HELP));
        }
    }
    let (context, set, lines) = repair::tasks(ctx, &args.tasks, usize::MAX, HELP)?;
    Ok(MetaRequest {
        update: update_id(&args.update)?,
        experiment,
        context,
        set,
        lines,
        items: args.items,
        pairs: args.pairs,
        useful: share("--useful", &args.useful, 1_000_000)?,
        alpha: share("--alpha", &args.alpha, 50_000)?,
        margin: share("--margin", &args.margin, 200_000)?,
        salt: Digest::sha256(&ctx.ambient().random::<32>()?),
    })
}

fn go(ctx: &mut Ctx<'_>, args: &MetaRunArgs) -> Result<View, CliError> {
    let (home, ledger) = home::open_to_write(ctx)?;
    let named = args.experiment.as_deref();
    let experiment = current::experiment(ctx, &home, ledger.state(), named)?;
    let request = request(ctx, args, experiment)?;
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

fn show(ctx: &mut Ctx<'_>, args: &MetaShowArgs) -> Result<View, CliError> {
    let (_, ledger, at) = home::view(ctx)?;
    let state = at.state(&ledger);
    let Some(text) = &args.update else {
        return Ok(views::lineage(state));
    };
    let runs = state.fold::<WfRuns>();
    let update = meta_plan::update_of(runs, &update_id(text)?).map_err(SessionError::from)?;
    Ok(views::update(runs, update))
}
