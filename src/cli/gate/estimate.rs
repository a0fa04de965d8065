//! `clover gate estimate`: units drawn for labels after the decision, and what their labels say beside it.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::gate::GateEstimateArgs;
use crate::cli::gate::gate_id;
use crate::cli::home;
use crate::cli::submit;
use crate::event::id::ManifestId;
use crate::session::gate::check::known;
use crate::session::gate::estimate;
use crate::view::View;
use crate::view::gate::steps;

pub(super) fn run(ctx: &mut Ctx<'_>, args: &GateEstimateArgs) -> Result<View, CliError> {
    let id = gate_id(&args.id)?;
    let Some(design) = &args.design else {
        return drawn(ctx, &id, args.through);
    };
    let design = design.parse().map_err(|error| {
        let message = format!("--design {design:?}: {error}");
        CliError::usage(message, "clover label design list")
    })?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let of = (design, args.through);
    let submission = estimate::estimate(&mut ctx.ports(), &ledger, &id, of)?;
    let answer = submit::gate_step(ctx, &mut ledger, &submission, args.dry_run)?;
    if args.dry_run {
        return Ok(answer);
    }
    let gate = known(ledger.state(), &id)?.gate;
    Ok(steps::estimated(answer, (&id, gate)))
}

/// Prints the units that are drawn for labels, one a line, in the order observed.
fn drawn(ctx: &mut Ctx<'_>, id: &ManifestId, through: Option<u64>) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let sample = estimate::sample(&ledger, view.state(&ledger), id, through)?;
    Ok(steps::drawn(id, sample))
}
