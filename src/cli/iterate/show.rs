//! One iteration on one page.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::iterate::bench;
use crate::view::View;
use crate::view::iterate::show as page;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The iteration
    pub id: String,
}

pub(super) fn show(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let id = bench::named(&args.id)?;
    let (_, ledger, view) = home::view(ctx)?;
    let record = bench::recorded(&ledger, &id, view.state(&ledger).size)?;
    Ok(page::show(&record))
}
