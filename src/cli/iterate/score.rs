//! `clover iterate score`: what it asks.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::bench;
use crate::cli::iterate::program::Program;
use crate::cli::iterate::run;
use crate::cli::iterate::run::StepOptions;
use crate::projection::iterations::step::Step;
use crate::view::View;
use crate::view::iterate::steps;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The iteration
    pub id: String,
    /// The scorer's key, where `--key` is another's
    #[arg(long, value_name = "KEY")]
    pub scorer: Option<String>,
    #[command(flatten)]
    pub program: Program,
}

pub(super) fn score(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let bench = bench::open(ctx, &args.id)?;
    if !bench.record.is_callable() && bench.record.closed.is_none() {
        return Ok(steps::unasked(&bench));
    }
    let asked = StepOptions {
        program: Some(&args.program),
        scorer: args.scorer.as_ref(),
        ..StepOptions::default()
    };
    run::step(ctx, bench, Step::Score, &asked)
}
