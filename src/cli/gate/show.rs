//! `clover gate show`: a gate's whole life on one page, read from the log again.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::gate::GateShowArgs;
use crate::cli::gate::gate_id;
use crate::cli::home;
use crate::ground::ambient;
use crate::view::View;
use crate::view::gate::page::Page;

pub(super) fn run(ctx: &mut Ctx<'_>, args: &GateShowArgs) -> Result<View, CliError> {
    let id = gate_id(&args.id)?;
    let (_, ledger, view) = home::view(ctx)?;
    let page = Page::read(&ledger, view.state(&ledger), &id)?;
    let chart = page.chart(&args.chart).ok_or_else(|| {
        let message = format!("--chart {}: expected wealth or interval", args.chart);
        CliError::usage(message, "clover gate show --help")
    })?;
    if let Some(file) = &args.svg {
        ambient::replace(&ctx.path(file), chart.svg().as_bytes(), false)?;
    }
    Ok(page.show(&ledger)?)
}
