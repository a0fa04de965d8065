//! `clover battery`: attacks on answers, what each earned, and the exploits that are kept for good.

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::iterate::bench;
use crate::cli::iterate::program::Program;
use crate::cli::patch;
use crate::event::Payload;
use crate::event::payload::battery::ExploitDiscovered;
use crate::ledger::Ledger;
use crate::projection::batteries::Batteries;
use crate::projection::batteries::Exploit;
use crate::projection::batteries::ExploitState;
use crate::session::iterate::Bench;
use crate::session::iterate::attack;
use crate::session::iterate::attack::Attack;
use crate::view::View;
use crate::view::battery;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Exploits that were found, and how each stands under the rubric in force
    #[command(after_help = "Example:\n  clover battery list --open")]
    List(BatteryListArgs),
    /// Attack the rubric of an iteration, or a patch; what came of it goes on record
    #[command(after_help = "Example:\n  clover battery run it-1 --patch concise-1")]
    Run(BatteryRunArgs),
    /// Measure every known exploit under the rubric in force, and say which it closes
    #[command(after_help = "Example:\n  clover battery close it-2")]
    Close(BatteryCloseArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct BatteryRunArgs {
    /// The iteration
    pub id: String,
    /// A patch that was proposed in it; else the rubric that it starts from
    #[arg(long, value_name = "ID")]
    pub patch: Option<String>,
    #[command(flatten)]
    pub program: Program,
}

#[derive(Debug, clap::Args)]
pub(super) struct BatteryCloseArgs {
    /// The iteration whose rubric is in force
    pub id: String,
    #[command(flatten)]
    pub program: Program,
}

#[derive(Debug, clap::Args)]
pub(super) struct BatteryListArgs {
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Those alone that are not closed
    #[arg(long)]
    pub open: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Close(args) => close(ctx, args),
        Verb::List(args) => list(ctx, args),
        Verb::Run(args) => attack(ctx, args),
    }
}

/// What an exploit was when it was discovered.
fn discovered(ledger: &Ledger, exploit: &Exploit) -> Result<Option<ExploitDiscovered>, CliError> {
    let read = ledger.entry(exploit.seq)?;
    Ok(read.and_then(|read| match read.event.payload {
        Payload::ExploitDiscovered(said) => Some(*said),
        _ => None,
    }))
}

fn list(ctx: &mut Ctx<'_>, args: &BatteryListArgs) -> Result<View, CliError> {
    let (home, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let experiment = current::experiment(ctx, &home, state, args.experiment.as_deref())?;
    let known = state.fold::<Batteries>().exploits(&experiment);
    let mut shown = Vec::new();
    for (number, exploit) in known.iter().enumerate() {
        if args.open && exploit.state() == ExploitState::Closed {
            continue;
        }
        if let Some(said) = discovered(&ledger, exploit)? {
            shown.push((number, said));
        }
    }
    Ok(battery::list(experiment, known, shown))
}

/// Runs the battery of a patch, or of the rubric, and records it.
fn ran(
    ctx: &mut Ctx<'_>,
    id: &str,
    patch: Option<&str>,
    program: &Program,
) -> Result<(Bench, Attack), CliError> {
    let mut bench = bench::open(ctx, id)?;
    let ports = &mut ctx.ports().with_program(program);
    let attack = attack::attack(&mut bench, ports, patch)?;
    Ok((bench, attack))
}

fn attack(ctx: &mut Ctx<'_>, args: &BatteryRunArgs) -> Result<View, CliError> {
    let (bench, attacked) = ran(ctx, &args.id, args.patch.as_deref(), &args.program)?;
    Ok(battery::ran(&bench, &attacked))
}

fn close(ctx: &mut Ctx<'_>, args: &BatteryCloseArgs) -> Result<View, CliError> {
    let before: Vec<ExploitState> = {
        let (_, ledger) = home::open_to_read(ctx)?;
        let (_, it) = patch::iteration(ledger.state(), &args.id)?;
        let known = ledger.state().fold::<Batteries>().exploits(&it.experiment);
        known.iter().map(Exploit::state).collect()
    };
    let (bench, attacked) = ran(ctx, &args.id, None, &args.program)?;
    Ok(battery::measured(&bench, &before, &attacked))
}
