//! `clover campaign`: iterations of one experiment together, and whether another is worth opening.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::record;
use crate::event::id::ExperimentId;
use crate::ledger::State;
use crate::projection::iterations::Iterations;
use crate::projection::iterations::campaign;
use crate::view::View;
use crate::view::campaign as campaigns;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// What each iteration found, peeks left, and whether two quiet ones in a row say stop
    #[command(after_help = "Example:\n  clover campaign status arena")]
    Status(CampaignStatusArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct CampaignStatusArgs {
    /// The experiment; else the one whose iteration opened last
    #[arg(value_name = "EXPERIMENT")]
    pub experiment: Option<String>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Status(args) => status(ctx, args),
    }
}

fn named(state: &State, name: Option<&str>) -> Result<ExperimentId, CliError> {
    let all = &state.fold::<Iterations>().by_id;
    let found = match name {
        Some(name) => {
            let id = record::experiment_id(name)?;
            all.values().find(|it| it.experiment == id)
        }
        None => all.values().max_by_key(|it| it.opened_seq),
    };
    let found = found.map(|it| it.experiment.clone());
    found.ok_or_else(|| {
        let message = match name {
            Some(name) => format!("no iteration of experiment {name}"),
            None => "no iteration was opened yet".to_owned(),
        };
        CliError::not_found(message, "clover iterate list")
    })
}

fn status(ctx: &mut Ctx<'_>, args: &CampaignStatusArgs) -> Result<View, CliError> {
    let as_of = ctx.as_of;
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let experiment = named(state, args.experiment.as_deref())?;
    let through = as_of.unwrap_or(ledger.size().saturating_sub(1));
    let campaign = campaign::read(&ledger, &experiment, through)?;
    Ok(campaigns::status(state, &experiment, &campaign))
}
