//! `clover score`: how many draws each answer had, so that the best of several can be told from the only one.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::ledger::Ledger;
use crate::session::judge::scores;
use crate::view::View;
use crate::view::score;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Scores by judge and policy: items, draws, items with more than one draw, conflicts
    #[command(after_help = "Example:\n  clover score list")]
    List,
    /// Every draw of one item, and every other score that a judge gave it
    #[command(after_help = "Example:\n  clover score show arena_22")]
    Show(ScoreShowArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ScoreShowArgs {
    /// The item
    pub item: String,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    let (_, ledger, at) = home::view(ctx)?;
    let state = at.state(&ledger);
    match verb {
        Verb::List => Ok(score::list(state, &scores::draws(&ledger, state)?)),
        Verb::Show(args) => show(&ledger, state.size, &args.item),
    }
}

fn show(ledger: &Ledger, size: u64, item: &str) -> Result<View, CliError> {
    let found = scores::of_item(ledger, size, item)?;
    if found.is_empty() {
        let message = format!("no score of item {item:?}");
        return Err(CliError::not_found(message, "clover score list"));
    }
    Ok(score::show(item, &found))
}
