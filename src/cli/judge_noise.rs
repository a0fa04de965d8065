//! `clover judge noise`: a judge behind HTTP is asked again about answers that it gave, to see how much its scores waver.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::judge_ask;
use crate::projection::runs::noise::RESCORED_MAX;
use crate::projection::runs::noise::RESCORED_MIN;
use crate::view::View;

const HELP: &str = "clover judge noise --help";

#[derive(Debug, clap::Args)]
pub(super) struct NoiseArgs {
    #[command(flatten)]
    pub asked: judge_ask::Args,
    /// Answers that are asked for again, at least 30
    #[arg(short = 'n', value_name = "N", default_value_t = RESCORED_MIN)]
    pub answers: u64,
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &NoiseArgs) -> Result<View, CliError> {
    if !(RESCORED_MIN..=RESCORED_MAX).contains(&args.answers) {
        let message = format!(
            "-n {}: expected {RESCORED_MIN} to {RESCORED_MAX} answers",
            args.answers
        );
        return Err(CliError::usage(message, HELP));
    }
    if args.asked.dry_run {
        let message =
            "--dry-run: which answers are asked for again is drawn once the run is on record";
        return Err(CliError::usage(message, HELP));
    }
    judge_ask::again(ctx, &args.asked, args.answers)
}
