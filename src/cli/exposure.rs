//! `clover exposure`: units of a confirm set become readable to those who score them.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::submit;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::id::ManifestId;
use crate::event::payload::manifest::Template;
use crate::event::payload::prereg::ExposureOpened;
use crate::ledger::Command;
use crate::num::Count;
use crate::projection::gates::Gates;
use crate::projection::manifests::Manifests;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Expose the next units in the order drawn
    #[command(after_help = "Example:\n  clover exposure open m-1 --through 50")]
    Open(OpenArgs),
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
    let Verb::Open(args) = verb;
    let next = format!("clover prereg show {}", args.id);
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
        let next = format!("clover gate open {id} --help");
        return Err(CliError::refused(message, next));
    }
    if through <= record.units {
        let message = format!("{} units of {id} are exposed already", record.units);
        return Err(CliError::refused(
            message,
            format!("clover gate observe {id} --all"),
        ));
    }
    let payload = ExposureOpened {
        confirm_root: data.confirm_root,
        digest: version.digest,
        exposure: count(record.exposures + 1)?,
        first_unit: count(record.units)?,
        last_unit: count(through - 1)?,
    };
    let experiment = version.manifest.experiment.clone();
    let signer = wallet::signer(ctx, ledger.state(), Kind::ExposureOpened)?;
    let command = Command::new(payload, Some(experiment));
    let answer = submit::append(ctx, &mut ledger, &[command], &signer, args.dry_run)?;
    Ok(answer.with_next(format!("clover gate observe {id} --all")))
}
