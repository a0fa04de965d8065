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
    let (_, ledger) = home::open_to_read(ctx)?;
    match verb {
        Verb::List => Ok(score::list(ledger.state(), &scores::draws(&ledger)?)),
        Verb::Show(args) => show(&ledger, &args.item),
    }
}

fn show(ledger: &Ledger, item: &str) -> Result<View, CliError> {
    let found = scores::of_item(ledger, item)?;
    if found.is_empty() {
        let message = format!("no score of item {item:?}");
        return Err(CliError::not_found(message, "clover score list"));
    }
    Ok(score::show(item, &found))
}
