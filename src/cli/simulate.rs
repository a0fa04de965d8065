//! `clover simulate`: data with a known truth, and what a patch is truly worth on it. Needs no ledger.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use rayon::prelude::*;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::simulate_iteration as iteration;
use crate::ground::ambient;
use crate::ground::ambient::AmbientError;
use crate::num::Micro;
use crate::view::View;
use crate::view::simulate as simulated;
use crate::view::simulate::DatasetFacts;
use crate::workflow::simulate::Fault;
use crate::workflow::simulate::Kind;
use crate::workflow::simulate::Setting;
use crate::workflow::simulate::SimulatedRow;
use crate::workflow::simulate::World;
use crate::workflow::simulate::files;
use crate::workflow::simulate::truth;
use crate::workflow::simulate::truth::Worth;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Write a data set with a known truth
    #[command(after_help = "Example:\n  clover simulate dataset --truth citations --seed 7 -o sim")]
    Dataset(DatasetArgs),
    /// What the patch of such a data set is truly worth, on fresh rows
    #[command(after_help = "Example:\n  clover simulate truth --truth length --seed 7")]
    Truth(TruthArgs),
    /// How often a planned iteration accepts a true fix, and a patch without merit
    #[command(
        about = "How often a planned iteration accepts a true fix, and a patch without merit",
        after_help = "Example:\n  clover simulate iteration --truth citations --seed 7 --sizes 1500,750,750 --slices 4 --runs 50"
    )]
    Iteration(iteration::Args),
}

/// The world.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct FaultArgs {
    /// What is wrong with the judge
    #[arg(
        long,
        value_name = "FAULT|FILE",
        help = "What is wrong with the judge: citations, length, none; or a JSON file of settings"
    )]
    pub truth: String,
    /// What every draw starts from
    #[arg(long, value_name = "N")]
    pub seed: u64,
    /// Slices: 12 or 4
    #[arg(long, value_name = "N")]
    pub slices: Option<u64>,
    /// Share of rows with the fault; default 0.08
    #[arg(long, value_name = "SHARE")]
    pub share: Option<String>,
}

/// What data sets and truths take.
#[derive(Debug, clap::Args)]
pub(super) struct WorldArgs {
    #[command(flatten)]
    pub world: FaultArgs,
    /// Fresh rows for the patch's worth, twice
    #[arg(
        long,
        value_name = "N",
        default_value_t = truth::FRESH_MIN,
        help = "Fresh rows to fit on, and as many to read the patch's worth on"
    )]
    pub fresh: u64,
}

#[derive(Debug, clap::Args)]
pub(super) struct DatasetArgs {
    #[command(flatten)]
    pub common: WorldArgs,
    /// Rows of the window of fit and dev; default 7000
    #[arg(long, value_name = "N")]
    pub window: Option<u64>,
    /// Rows of the confirm window; default 3000
    #[arg(long, value_name = "N")]
    pub confirm: Option<u64>,
    /// Where it goes
    #[arg(long, short, value_name = "DIR", help = "Where it goes: a folder")]
    pub out: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(super) struct TruthArgs {
    #[command(flatten)]
    pub common: WorldArgs,
    /// Where it goes
    #[arg(long, short, value_name = "FILE", help = "Write it as JSON too")]
    pub out: Option<PathBuf>,
}

const HELP: &str = "clover simulate dataset --help";
/// Fresh rows that a worth is computed on: a standard error needs some, and more teach nothing.
pub(super) const FRESH: RangeInclusive<u64> = 1_000..=100_000_000;

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Dataset(args) => dataset(ctx, args),
        Verb::Truth(args) => worth_alone(ctx, args),
        Verb::Iteration(args) => iteration::run(ctx, args),
    }
}

pub(super) fn setting(ctx: &mut Ctx<'_>, common: &FaultArgs) -> Result<Setting, CliError> {
    let mut setting = match common.truth.parse::<Fault>() {
        Ok(fault) => Setting {
            fault,
            ..Setting::default()
        },
        Err(expected) if !common.truth.contains(['.', '/']) => {
            let message = format!("--truth {:?}: {expected}, or a file", common.truth);
            return Err(CliError::usage(message, HELP));
        }
        Err(_) => {
            let path = PathBuf::from(&common.truth);
            let bytes = ctx.read(&path)?;
            serde_json::from_slice(&bytes)
                .map_err(|error| CliError::input(format!("{}: {error}", path.display()), HELP))?
        }
    };
    if let Some(slices) = common.slices {
        setting.slices = slices;
    }
    if let Some(share) = &common.share {
        setting.share_micro = Micro::parse(share)
            .map(|(share, _)| share)
            .map_err(|error| CliError::usage(format!("--share {share:?}: {error}"), HELP))?;
    }
    Ok(setting)
}

/// A count within a range, by the name of its flag.
pub(super) fn in_range(
    flag: &str,
    count: u64,
    range: RangeInclusive<u64>,
    help: &str,
) -> Result<(), CliError> {
    if range.contains(&count) {
        return Ok(());
    }
    let (least, most) = range.into_inner();
    let message = format!("{flag} {count}: expected {least} to {most}");
    Err(CliError::usage(message, help))
}

fn world(setting: Setting, seed: u64) -> Result<World, CliError> {
    World::new(setting, seed).map_err(|error| CliError::usage(error.to_string(), HELP))
}

/// The worth of the world's patch.
fn worth(ctx: &mut Ctx<'_>, world: &World, fresh: u64) -> Result<Worth, CliError> {
    in_range("--fresh", fresh, FRESH, HELP)?;
    let rules = (world.rules(), world.patched_rules());
    let mut progress = ctx.progress("fresh rows");
    truth::of_rules(world, (&rules.0, &rules.1), fresh, &mut |done| {
        progress.at(done, 2 * fresh);
    })
    .map_err(|error| CliError::input(error.to_string(), HELP))
}

/// Rows drawn at a time, between two looks at the progress.
const BLOCK: u64 = 10_000;

fn rows(ctx: &mut Ctx<'_>, world: &World) -> Vec<SimulatedRow> {
    let (all, mut rows) = (world.rows(), Vec::new());
    let mut progress = ctx.progress("rows");
    while (rows.len() as u64) < all {
        let from = rows.len() as u64;
        let to = all.min(from + BLOCK);
        let block: Vec<SimulatedRow> = (from..to)
            .into_par_iter()
            .map(|number| world.row(Kind::Base, number))
            .collect();
        rows.extend(block);
        progress.at(to, all);
    }
    rows
}

/// Writes a file, or finds it there as it would be written.
fn write(ctx: &Ctx<'_>, path: &std::path::Path, bytes: &[u8]) -> Result<(), CliError> {
    let path = ctx.path(path);
    if let Some(folder) = path.parent() {
        ambient::create_dirs(folder)?;
    }
    match ambient::read(&path) {
        Ok(there) if there == bytes => Ok(()),
        Ok(_) => {
            let message = format!("{} exists already, with other content", path.display());
            Err(CliError::refused(
                message,
                "the same command with another -o",
            ))
        }
        Err(AmbientError::NotFound(_)) => Ok(ambient::write_new(&path, bytes, 0o644)?),
        Err(error) => Err(error.into()),
    }
}

fn dataset(ctx: &mut Ctx<'_>, args: &DatasetArgs) -> Result<View, CliError> {
    let mut setting = setting(ctx, &args.common.world)?;
    setting.window_rows = args.window.unwrap_or(setting.window_rows);
    setting.confirm_rows = args.confirm.unwrap_or(setting.confirm_rows);
    let world = world(setting, args.common.world.seed)?;
    let worth = worth(ctx, &world, args.common.fresh)?;
    let rows = rows(ctx, &world);
    let mut all = files::files(&world, &rows);
    all.push(files::File {
        path: "truth.json",
        bytes: files::truth_json(&world, args.common.world.seed, Some(&worth)),
    });
    let mut bytes = 0;
    for file in &all {
        write(ctx, &args.out.join(file.path), &file.bytes)?;
        bytes += file.bytes.len() as u64;
    }
    let written = DatasetFacts {
        folder: args.out.display().to_string(),
        files: all.iter().map(|file| file.path).collect(),
        bytes,
        rows: rows.len() as u64,
        faulty: rows.iter().filter(|row| row.faulty).count() as u64,
    };
    Ok(simulated::dataset(&world, &worth, written))
}

fn worth_alone(ctx: &mut Ctx<'_>, args: &TruthArgs) -> Result<View, CliError> {
    let setting = setting(ctx, &args.common.world)?;
    let world = world(setting, args.common.world.seed)?;
    let worth = worth(ctx, &world, args.common.fresh)?;
    if let Some(out) = &args.out {
        write(
            ctx,
            out,
            &files::truth_json(&world, args.common.world.seed, Some(&worth)),
        )?;
    }
    Ok(simulated::truth(&world, &worth))
}
