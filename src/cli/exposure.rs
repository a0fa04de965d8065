//! `clover exposure`: units of a confirm set become readable to those who score them.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::gate;
use crate::cli::home;
use crate::cli::submit;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::id::ItemId;
use crate::event::id::ManifestId;
use crate::event::payload::manifest::Template;
use crate::event::payload::prereg::ExposureOpened;
use crate::ground::shell;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::ledger::rulebooks::Question;
use crate::num::Count;
use crate::projection::gates::Gates;
use crate::projection::manifests::Manifests;
use crate::projection::manifests::Record;
use crate::workflow::gates::replay;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Expose the next units in the order drawn
    #[command(after_help = "Example:\n  clover exposure open m-1 --through 50")]
    Open(OpenArgs),
    /// Name the units of a gate that are exposed, one a line in the order drawn: those to score
    #[command(after_help = "Example:\n  clover exposure list m-1 > to-score.txt")]
    List(ListArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// The gate
    pub id: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct OpenArgs {
    /// The manifest that binds the confirm set
    pub id: String,
    /// Units up to the Nth; all of them when absent
    #[arg(long, value_name = "N")]
    pub through: Option<u64>,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<Answer, CliError> {
    match verb {
        Verb::List(args) => list(ctx, &args),
        Verb::Open(args) => open(ctx, &args),
    }
}

fn list(ctx: &mut Ctx<'_>, args: &ListArgs) -> Result<Answer, CliError> {
    let id = gate::gate_id(&args.id)?;
    let (_, ledger, view) = home::view(ctx)?;
    let of = gate::known(view.state(&ledger), &id)?;
    let next = format!("clover exposure open {id}", id = shell::word(&id));
    let Some(bound) = of.record.bound().filter(|_| of.record.units > 0) else {
        let message = format!("no unit of {id} is exposed");
        return Err(CliError::refused(message, next));
    };
    let order = replay::order(&ledger, bound, of.gate.opened_seq)?;
    let mut units = order.units;
    units.truncate(usize::try_from(of.record.units).unwrap_or(usize::MAX));
    let mut answer = Answer::new(String::new(), json!({"gate": id.as_str(), "units": units}));
    for unit in &units {
        answer.line(&ui::escape(unit.as_str()));
    }
    Ok(answer)
}

fn open(ctx: &mut Ctx<'_>, args: &OpenArgs) -> Result<Answer, CliError> {
    let next = format!("clover prereg show {}", shell::word(&args.id));
    let id: ManifestId = args.id.parse().map_err(|error| {
        CliError::usage(
            format!("manifest {:?}: {error}", args.id),
            "clover gate list",
        )
    })?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let Some(record) = ledger.state().fold::<Manifests>().by_id.get(&id) else {
        return Err(CliError::not_found(
            format!("no manifest {id}"),
            "clover prereg sign FILE",
        ));
    };
    let version = record.in_force();
    let Some((version, data)) = version.and_then(|one| Some((one, one.manifest.data.as_ref()?)))
    else {
        let message = format!("{id} has no version in force that binds confirm data");
        return Err(CliError::refused(message, next));
    };
    let through = args.through.unwrap_or(data.n_units.value());
    let count = |value: u64| {
        Count::new(value).ok_or_else(|| {
            CliError::usage(
                "--through: expected at most 2^53 - 1",
                "clover exposure open --help",
            )
        })
    };
    let gates = ledger.state().fold::<Gates>();
    if version.manifest.template == Template::Gate && !gates.by_id.contains_key(&id) {
        let message = format!(
            "{id} is not opened: a gate is opened before any unit is exposed, and not after"
        );
        let next = format!("clover gate open {id} --help", id = shell::word(&id));
        return Err(CliError::refused(message, next));
    }
    if through <= record.units {
        let message = format!("{} units of {id} are exposed already", record.units);
        return Err(CliError::refused(
            message,
            format!("clover gate observe {id} --all", id = shell::word(&id)),
        ));
    }
    let through_unit = last_of(&ledger, record, &id, through)?;
    let payload = ExposureOpened {
        confirm_root: data.confirm_root,
        digest: version.digest,
        exposure: count(record.exposures + 1)?,
        first_unit: count(record.units)?,
        last_unit: count(through - 1)?,
        through: through_unit,
    };
    let (cap, units) = (data.exposure_cap.value(), data.n_units.value());
    let closed = units.saturating_sub(through);
    let last = closed > 0 && record.exposures + 1 >= cap;
    let experiment = version.manifest.experiment.clone();
    let signer = wallet::signer(ctx, ledger.state(), Kind::ExposureOpened)?;
    let command = Command::new(payload, Some(experiment));
    let mut answer = submit::append(ctx, &mut ledger, &[command], &signer, args.dry_run)?;
    if last {
        let word = if args.dry_run { "would be" } else { "was" };
        answer.line(&format!(
            "this {word} exposure {cap} of {cap} (data.exposure_cap): the other {closed} units stay closed for good"
        ));
    }
    Ok(answer.with_next(format!(
        "clover gate observe {id} --all",
        id = shell::word(&id)
    )))
}

/// The name of the last of so many units of a gate's order, where exposures name it.
fn last_of(
    ledger: &Ledger,
    record: &Record,
    id: &ManifestId,
    through: u64,
) -> Result<Option<ItemId>, CliError> {
    let gate = ledger.state().fold::<Gates>().by_id.get(id);
    let Some((gate, bound)) = gate.zip(record.bound()) else {
        return Ok(None);
    };
    if !ledger.state().asks(Question::ScoredInOrder) {
        return Ok(None);
    }
    let order = replay::order(ledger, bound, gate.opened_seq)?;
    let at = usize::try_from(through - 1).unwrap_or(usize::MAX);
    Ok(order.units.get(at).cloned())
}
