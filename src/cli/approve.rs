//! `clover approve`: a person's word for or against an accepted patch.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::key;
use crate::cli::record;
use crate::event::Payload;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::payload::release::ApprovalGranted;
use crate::event::payload::release::ApprovalRefused;
use crate::event::payload::release::Meaning;
use crate::ground::digest::Digest;
use crate::ledger::Command;
use crate::ledger::State;
use crate::projection::releases::Acceptance;
use crate::projection::releases::Releases;
use crate::view::View;
use crate::view::approval;

const NEXT: &str = "clover approve --help";

/// What its help shows after the options.
pub(super) const EXAMPLE: &str =
    "Example:\n  clover approve concise-1 --comment 'reviewed on 40 rows' --name 'Petra Weiss'";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The accepted patch: its id, or the id of its patch.accepted
    pub subject: String,
    /// Refuse it: nothing is committed from it while this is the key's newest word
    #[arg(long)]
    pub refuse: bool,
    /// What the signature means: approve, responsibility, review, witness; approve alone counts
    #[arg(long, value_name = "WORD", default_value = "approve")]
    pub meaning: String,
    /// What you say about it
    #[arg(long, value_name = "TEXT")]
    pub comment: String,
    /// Your name, as it is printed beside the signature
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// The newest acceptance that a text names: by its event, or by its patch.
pub(super) fn acceptance<'a>(
    state: &'a State,
    name: &str,
) -> Result<(&'a ExperimentId, &'a Acceptance), CliError> {
    let releases = state.fold::<Releases>();
    let all = releases
        .by_experiment
        .iter()
        .flat_map(|(id, of)| of.acceptances.values().map(move |one| (id, one)));
    let id = Digest::from_hex(name).map(EventId);
    let named = |one: &Acceptance| match id {
        Some(id) => one.id == id || one.patch_hash == id.0,
        None => one.patch.as_str() == name,
    };
    let found = all.filter(|(_, one)| named(one));
    found.max_by_key(|(_, one)| one.seq).ok_or_else(|| {
        let message = format!("no accepted patch {name}");
        CliError::not_found(message, "clover patch list")
    })
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let meaning: Meaning = args
        .meaning
        .parse()
        .map_err(|error| CliError::usage(format!("--meaning {:?}: {error}", args.meaning), NEXT))?;
    let (experiment, subject) = {
        let (_, ledger) = home::open_to_read(ctx)?;
        let (experiment, accepted) = acceptance(ledger.state(), &args.subject)?;
        (experiment.clone(), accepted.id)
    };
    let comment = key::text("comment", &args.comment)?;
    let printed_name = key::text("name", &args.name)?;
    let payload: Payload = if args.refuse {
        ApprovalRefused {
            comment,
            meaning,
            printed_name,
            subject,
        }
        .into()
    } else {
        ApprovalGranted {
            comment,
            meaning,
            printed_name,
            subject,
        }
        .into()
    };
    let command = Command::new(payload, Some(experiment.clone()));
    let answer = record::one(ctx, command, args.dry_run)?;
    if args.dry_run {
        return Ok(answer);
    }
    let (_, ledger) = home::open_to_read(ctx)?;
    let (_, accepted) = acceptance(ledger.state(), &args.subject)?;
    Ok(approval::given(
        answer,
        ledger.state(),
        &experiment,
        accepted,
    ))
}
