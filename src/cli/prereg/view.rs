//! Recorded manifests: what stands, and what changed.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::prereg::PreregDiffArgs;
use crate::cli::prereg::find;
use crate::event::id::ManifestId;
use crate::projection::manifests::ManifestRecord;
use crate::projection::manifests::ManifestVersion;
use crate::view::View;
use crate::view::prereg::record;
use crate::view::prereg::show_command;

pub(super) fn show(ctx: &mut Ctx<'_>, id: &str) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let (id, record) = find(state, id)?;
    Ok(record::show(state, (&id, record)))
}

fn version<'a>(
    id: &ManifestId,
    record: &'a ManifestRecord,
    number: u64,
) -> Result<&'a ManifestVersion, CliError> {
    let mut versions = record.versions.iter();
    let found = versions.find(|version| version.manifest.version.value() == number);
    found.ok_or_else(|| {
        let message = format!("manifest {id} has no version {number}");
        CliError::not_found(message, show_command(id))
    })
}

pub(super) fn diff(ctx: &mut Ctx<'_>, args: &PreregDiffArgs) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let (id, record) = find(view.state(&ledger), &args.id)?;
    let looked = record.first_look.as_ref().and_then(|look| look.digest);
    let (from, why) = match (args.from, looked) {
        (Some(number), _) => (version(&id, record, number)?, "as asked"),
        (None, Some(digest)) => {
            let found = record.version(digest).unwrap_or(&record.versions[0]);
            (found, "in force at the first look")
        }
        (None, None) => (&record.versions[0], "the first: nobody has looked yet"),
    };
    let to = match args.to {
        Some(number) => version(&id, record, number)?,
        None => record.in_force().unwrap_or(from),
    };
    Ok(record::diff(&id, (&from.manifest, why), &to.manifest))
}
