//! One iteration on one page.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::iterate::bench;
use crate::projection::newest;
use crate::view::View;
use crate::view::iterate::show as page;
use crate::workflow::iterate::course::Course;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The iteration
    pub id: String,
}

pub(super) fn show(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let id = bench::named(&args.id)?;
    let (_, ledger, view) = home::view(ctx)?;
    let size = view.state(&ledger).size;
    let record = bench::recorded(&ledger, &id, size)?;
    let course = match record.paused {
        None => None,
        // Where the rows are gone, what is on record is shown without them.
        Some(_) => Course::bound(&ledger, &record, size).ok(),
    };
    let closed = record.closed.as_ref().map(|of| of.seq);
    let through = closed.unwrap_or(size.saturating_sub(1));
    let state = view.state(&ledger);
    let tainted = newest::tainted_through(&ledger, state, &record.experiment, through)?;
    Ok(page::show(&record, course.as_ref(), tainted))
}
