//! `clover gate estimate`: units drawn for labels after the decision, and what their labels say beside it.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::gate::EstimateArgs;
use crate::cli::gate::gate_id;
use crate::cli::gate::refusals;
use crate::cli::gate::run::effect;
use crate::cli::home;
use crate::cli::submit;
use crate::cli::ui;
use crate::event::id::ManifestId;
use crate::projection::gates::Estimated;
use crate::session::gate::check::known;
use crate::session::gate::estimate;
use crate::view::View;

pub(super) fn run(ctx: &mut Ctx<'_>, args: &EstimateArgs) -> Result<View, CliError> {
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
    let mut answer = submit::gate_step(ctx, &mut ledger, &submission, args.dry_run)?;
    if args.dry_run {
        return Ok(answer);
    }
    if let Some(found) = &known(ledger.state(), &id)?.gate.estimated {
        answer.source(words(found));
        answer.facts_mut()["estimated"] = json!(found);
    }
    Ok(answer.with_next(refusals::of("gate show", &id)))
}

/// An estimate in words, of which none could be taken for a verdict.
pub(super) fn words(found: &Estimated) -> String {
    let shown = if found.shows { "lies" } else { "does not lie" };
    ui::wrapped(&format!(
        "beside it, asymptotic: effect {} at alpha {} by labels of {} of {} units, seq {}; it {shown} where the claim says, \
         grade {}; it decides and promotes nothing",
        effect(found.cs_lo, found.cs_hi),
        found.alpha as f64 / 1e6,
        found.labels,
        found.n,
        found.seq,
        super::show::word(&json!(found.grade)),
    ))
}

/// Prints the units that are drawn for labels, one a line, in the order observed.
fn drawn(ctx: &mut Ctx<'_>, id: &ManifestId, through: Option<u64>) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let sample = estimate::sample(&ledger, view.state(&ledger), id, through)?;
    let units = &sample.units;
    let text: String = units.iter().map(|unit| format!("{unit}\n")).collect();
    let data = json!({
        "gate": id.as_str(), "beacon": sample.beacon, "seed": sample.seed, "units": units,
    });
    let mut answer = View::untyped(text, data);
    answer.verdict = "done";
    let next = format!("{} --design DESIGN", refusals::of("gate estimate", id));
    Ok(answer.with_next(next))
}
