//! `clover gate estimate`: units drawn for labels after the decision, and what their labels say beside it.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::gate::EstimateArgs;
use crate::cli::gate::gate_id;
use crate::cli::gate::known;
use crate::cli::gate::run::effect;
use crate::cli::home;
use crate::cli::submit;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::Seen;
use crate::event::id::ItemId;
use crate::event::id::ManifestId;
use crate::event::id::Root;
use crate::ground::shell;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::num::Count;
use crate::projection::gates::Estimated;
use crate::projection::gates::estimated;
use crate::workflow::gates::estimate;
use crate::workflow::gates::estimate::EstimateError;
use crate::workflow::gates::replay;
use crate::workflow::gates::steps;

pub(super) fn run(ctx: &mut Ctx<'_>, args: &EstimateArgs) -> Result<Answer, CliError> {
    let id = gate_id(&args.id)?;
    let Some(design) = &args.design else {
        return drawn(ctx, &id, args.through);
    };
    let design = design.parse().map_err(|error| {
        let message = format!("--design {design:?}: {error}");
        CliError::usage(message, "clover label design list")
    })?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let of = known(ledger.state(), &id)?;
    let n = args.through.unwrap_or(of.gate.n);
    let clock = ledger.ambient().now();
    let now = clock.max(ledger.state().keyring.recorded_at.unwrap_or(clock));
    let like = steps::estimated(ledger.state(), of, (design, n), (seen(&ledger), now));
    let like = like.ok_or_else(|| undrawn(&id))?;
    let experiment = of.gate.experiment.clone();
    let within = experiment.clone().ok_or_else(|| undrawn(&id))?;
    let found = estimate::estimate(&ledger, ledger.size(), &within, &like);
    let found = found.map_err(|error| refused(&id, error))?;
    let signer = wallet::signer(ctx, ledger.state(), Kind::GateEstimated)?;
    let command = Command::new(found, experiment);
    let mut answer = submit::append(ctx, &mut ledger, &[command], &signer, args.dry_run)?;
    if args.dry_run {
        return Ok(answer);
    }
    if let Some(found) = &known(ledger.state(), &id)?.gate.estimated {
        answer.text.push_str(&words(found));
        answer.data["estimated"] = json!(found);
    }
    Ok(answer.with_next(format!("clover gate show {id}", id = shell::word(&id))))
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

fn seen(ledger: &Ledger) -> Seen {
    Seen {
        root: Root(ledger.root()),
        size: Count::new(ledger.size()).unwrap_or_default(),
    }
}

fn undrawn(id: &ManifestId) -> CliError {
    let message = format!(
        "gate {id}: units are drawn for labels once it is decided, where its manifest has data.label_policy"
    );
    CliError::refused(
        message,
        format!("clover gate show {id}", id = shell::word(&id)),
    )
}

fn refused(id: &ManifestId, error: EstimateError) -> CliError {
    match error {
        EstimateError::Ledger(error) => error.into(),
        other => CliError::refused(
            format!("gate {id}: {other}"),
            format!("clover gate estimate {id}", id = shell::word(&id)),
        ),
    }
}

/// Prints the units that are drawn for labels, one a line, in the order observed.
fn drawn(ctx: &mut Ctx<'_>, id: &ManifestId, through: Option<u64>) -> Result<Answer, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let of = known(state, id)?;
    let found = estimated::drawn(state, of.gate, of.record, Some(seen(&ledger)));
    let version = of.record.in_force();
    let data = version.and_then(|version| version.manifest.data.as_ref());
    let policy = data.and_then(|data| data.label_policy.as_ref());
    let (Some((beacon, seed)), Some(policy)) = (found, policy) else {
        return Err(undrawn(id));
    };
    let life = replay::read(&ledger, id, of, state.size)?;
    let n = through.unwrap_or(of.gate.n);
    let units = life.observed.iter().map(|(_, said)| &said.unit);
    let units = units.take(usize::try_from(n).unwrap_or(usize::MAX));
    let units: Vec<&ItemId> = units
        .filter(|unit| estimated::is_drawn(seed, policy.pi_min_micro, unit))
        .collect();
    let text: String = units.iter().map(|unit| format!("{unit}\n")).collect();
    let data = json!({"gate": id.as_str(), "beacon": beacon, "seed": seed, "units": units});
    let mut answer = Answer::new(text, data);
    answer.verdict = "done";
    Ok(answer.with_next(format!(
        "clover gate estimate {id} --design DESIGN",
        id = shell::word(&id)
    )))
}
