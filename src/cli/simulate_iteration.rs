//! `clover simulate iteration`: what a planned iteration would decide, before it is registered.

use std::path::Path;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::prereg;
use crate::cli::simulate::FRESH;
use crate::cli::simulate::FaultArgs;
use crate::cli::simulate::in_range;
use crate::event::id::ManifestId;
use crate::event::payload::manifest::Manifest;
use crate::num::Micro;
use crate::projection::manifests::Manifests;
use crate::view::View;
use crate::view::simulate::iteration;
use crate::view::simulate::iteration::Larger;
use crate::view::simulate::iteration::SimulationTerms;
use crate::workflow::simulate::Setting;
use crate::workflow::simulate::iteration::Design;
use crate::workflow::simulate::iteration::Proposal;
use crate::workflow::simulate::iteration::Simulation;
use crate::workflow::simulate::iteration::Summary;
use crate::workflow::simulate::truth;

#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    pub fault: FaultArgs,
    /// Iterations with each candidate
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub runs: u64,
    /// A plan of template iteration: a file, or the name of a registered one
    #[arg(
        long,
        value_name = "FILE|NAME",
        help = "A plan of template iteration: a file, or one that is registered"
    )]
    pub manifest: Option<String>,
    /// Without a plan: labelled rows of fit, dev and confirm
    #[arg(
        long,
        value_name = "F,D,C",
        default_value = "4000,3000,3000",
        conflicts_with = "manifest",
        help = "Without a plan: rows of fit, dev and confirm"
    )]
    pub sizes: String,
    /// Improvement that is demanded; default 0.001
    #[arg(long, value_name = "ETA", conflicts_with = "manifest")]
    pub eta: Option<String>,
    /// One candidate only
    #[arg(long, value_name = "fix|null", help = "One candidate only")]
    pub only: Option<String>,
    /// Fresh rows that truth is read on
    #[arg(long, value_name = "N", default_value_t = truth::FRESH_MIN)]
    pub fresh: u64,
}

const HELP: &str = "clover simulate iteration --help";
/// Runs beyond which nothing more is learnt.
const RUNS_MAX: u64 = 1_000_000;
/// Rows of a split beyond which a run is not held in memory.
const ROWS_MAX: usize = 1_000_000;
/// Runs between two looks at the progress.
const BLOCK: u64 = 4;
/// Most rows of one simulated iteration among the larger sizes.
const LARGER_ROWS_MAX: usize = 60_000;
/// Most iterations of each larger size.
const LARGER_RUNS_MAX: u64 = 100;

/// The sizes that are tried in turn where a true fix is accepted too rarely: twice the rows, again and again.
fn doubled(sizes: [usize; 3]) -> Option<[usize; 3]> {
    let doubled = sizes.map(|size| size.saturating_mul(2));
    let rows = doubled
        .iter()
        .fold(0_usize, |sum, size| sum.saturating_add(*size));
    (rows <= LARGER_ROWS_MAX).then_some(doubled)
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let usage = |message: String| CliError::usage(message, HELP);
    in_range("--runs", args.runs, 1..=RUNS_MAX, HELP)?;
    in_range("--fresh", args.fresh, FRESH, HELP)?;
    let proposals = match args.only.as_deref() {
        None => vec![Proposal::Fix, Proposal::Null],
        Some("fix") => vec![Proposal::Fix],
        Some("null") => vec![Proposal::Null],
        Some(other) => return Err(usage(format!("--only {other:?}: expected fix or null"))),
    };
    let SimulationPlan {
        design,
        cells,
        power,
    } = design(ctx, args)?;
    let mut setting = crate::cli::simulate::setting(ctx, &args.fault)?;
    if let (Some(cells), None) = (cells, args.fault.slices) {
        setting.slices = if cells <= 4 { 4 } else { 12 };
    }
    let mut found = Vec::new();
    for proposal in proposals {
        found.push((proposal, simulated(ctx, args, &design, setting, proposal)?));
    }
    let mut larger = Vec::new();
    if let Some((Proposal::Fix, fix)) = found.first()
        && iteration::is_short(fix, power)
    {
        larger = tried(ctx, args, &design, setting, power)?;
    }
    let asked = SimulationTerms {
        design: &design,
        setting,
        runs: args.runs,
        fresh: args.fresh,
        seed: args.fault.seed,
        power,
    };
    Ok(iteration::show(&asked, &found, &larger))
}

/// Twice the rows, again and again, until a true fix is accepted with the power.
fn tried(
    ctx: &mut Ctx<'_>,
    args: &Args,
    design: &Design,
    setting: Setting,
    power: f64,
) -> Result<Vec<Larger>, CliError> {
    let mut larger = Vec::new();
    let mut next = doubled(design.sizes);
    while let Some(sizes) = next {
        let design = Design {
            sizes,
            ..design.clone()
        };
        let fewer = Args {
            runs: args.runs.min(LARGER_RUNS_MAX),
            ..args.clone()
        };
        let found = simulated(ctx, &fewer, &design, setting, Proposal::Fix)?;
        let enough = found.accepted.share.is_some_and(|share| share >= power);
        larger.push(Larger { sizes, found });
        next = if enough { None } else { doubled(sizes) };
    }
    Ok(larger)
}

/// What is simulated.
struct SimulationPlan {
    design: Design,
    /// The largest number of cells of a plan's slice families.
    cells: Option<usize>,
    /// The power that is asked for.
    power: f64,
}

/// Power that is asked for where no plan says so.
const POWER: f64 = 0.8;

fn design(ctx: &mut Ctx<'_>, args: &Args) -> Result<SimulationPlan, CliError> {
    let Some(name) = &args.manifest else {
        return Ok(SimulationPlan {
            design: sized(args)?,
            cells: None,
            power: POWER,
        });
    };
    let manifest = if name.contains(['.', '/']) {
        prereg::manifest_of(ctx, Path::new(name))?
    } else {
        registered(ctx, name)?
    };
    let Some(plan) = &manifest.iteration else {
        let message = format!("{name}: expected a plan of template iteration");
        return Err(CliError::usage(message, HELP));
    };
    let families = plan.design.iter().flat_map(|design| &design.slices);
    let cells = families.map(|family| family.cells.len()).max();
    Ok(SimulationPlan {
        design: Design::of(plan),
        cells,
        power: plan.power_micro.value() as f64 / 1e6,
    })
}

fn registered(ctx: &mut Ctx<'_>, name: &str) -> Result<Manifest, CliError> {
    let id: ManifestId = name
        .parse()
        .map_err(|error| CliError::usage(format!("--manifest {name:?}: {error}"), HELP))?;
    let (_, ledger, view) = home::view(ctx)?;
    let manifests = view.state(&ledger).fold::<Manifests>();
    let version = manifests
        .by_id
        .get(&id)
        .and_then(|record| record.in_force());
    let missing = || {
        CliError::not_found(
            format!("no manifest {id} in force"),
            "clover log --kind manifest.registered",
        )
    };
    Ok(version.ok_or_else(missing)?.manifest.clone())
}

fn sized(args: &Args) -> Result<Design, CliError> {
    let wrong = || {
        let message = format!(
            "--sizes {:?}: expected three numbers from 1 to {ROWS_MAX}, such as 1500,750,750",
            args.sizes
        );
        CliError::usage(message, HELP)
    };
    let sizes: Vec<usize> = args
        .sizes
        .split(',')
        .map(|size| size.trim().parse().map_err(|_| wrong()))
        .collect::<Result<_, _>>()?;
    if !sizes.iter().all(|size| (1..=ROWS_MAX).contains(size)) {
        return Err(wrong());
    }
    let sizes = sizes.try_into().map_err(|_| wrong())?;
    let mut design = Design::standard(sizes);
    if let Some(eta) = &args.eta {
        let (eta, _) = Micro::parse(eta)
            .map_err(|error| CliError::usage(format!("--eta {eta:?}: {error}"), HELP))?;
        design.thresholds.eta_micro = eta;
    }
    Ok(design)
}

fn simulated(
    ctx: &mut Ctx<'_>,
    args: &Args,
    design: &Design,
    setting: Setting,
    proposal: Proposal,
) -> Result<Summary, CliError> {
    let simulation = Simulation::new(
        design.clone(),
        proposal,
        setting,
        args.fresh,
        args.fault.seed,
    )
    .map_err(|error| CliError::usage(error.to_string(), HELP))?;
    let mut progress = ctx.progress("iterations");
    let mut found = Vec::new();
    let mut at = 0;
    while at < args.runs {
        let end = args.runs.min(at + BLOCK);
        let block = simulation.runs(at, end);
        found.extend(block.map_err(|error| CliError::input(error.to_string(), HELP))?);
        progress.at(end, args.runs);
        at = end;
    }
    Ok(Summary::of(&found))
}
