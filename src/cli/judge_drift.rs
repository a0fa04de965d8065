//! `clover judge drift`: the anchors scored anew, and whether the judge is still the one that it was.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::intake_files::Scores;
use crate::cli::judge::JudgeArgs;
use crate::cli::judge_rows::Desk;
use crate::event::id::AnchorSetId;
use crate::session::judge::drift;
use crate::session::judge::drift::DriftRequest;
use crate::session::judge::drift::ScoreOrigin;
use crate::view::Exit;
use crate::view::View;
use crate::view::judge_drift as view;

const HELP: &str = "clover judge drift --help";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    pub common: JudgeArgs,
    /// The anchor set; default the only one of the experiment
    #[arg(long, value_name = "ID")]
    pub anchors: Option<String>,
    /// The rows bring the new scores along, as `judge_score`; no judge is asked
    #[arg(long, conflicts_with_all = ["command", "recorded"])]
    pub scored: bool,
    /// The judge is not the one that was registered any more: record that
    #[arg(long)]
    pub changed: bool,
    /// Show what would be recorded and record nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    if args.common.recorded {
        let message = "--recorded: recorded scores are what new ones are held against";
        return Err(CliError::usage(message, HELP));
    }
    let (scores, origin) = if args.scored {
        (Scores::Given, ScoreOrigin::Rows)
    } else {
        (Scores::Asked, ScoreOrigin::Judge)
    };
    let mut desk = Desk::open(ctx, &args.common, scores)?;
    let named = args.anchors.as_deref().map(|named| {
        AnchorSetId::new(named)
            .map_err(|error| CliError::usage(format!("--anchors {named:?}: {error}"), HELP))
    });
    let request = DriftRequest {
        anchors: named.transpose()?,
        changed: args.changed,
        scores: origin,
    };
    let experiment = desk.assignment.experiment.clone();
    let mut ports = ctx.ports().with_program(&desk.program);
    let found = drift::check(&mut ports, &desk.ledger, desk.assignment, &request)?;
    let mut answer = view::shown(&found);
    if args.dry_run {
        answer.verdict = "dry_run";
        answer.exit = Exit::Done;
        return Ok(answer);
    }
    let appended = drift::record(&mut ports, &mut desk.ledger, &experiment, found.said)?;
    Ok(view::recorded(answer, &appended, &found.stale_gates))
}
