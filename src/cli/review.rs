//! `clover patch review`: what a person who knows the field thinks of a proposed patch.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::key;
use crate::cli::patch;
use crate::cli::record;
use crate::event::payload::record::ReviewOutcome;
use crate::event::payload::record::ReviewRecorded;
use crate::ledger::Command;
use crate::num::Count;
use crate::view::View;
use crate::view::patch as views;

pub(super) const EXAMPLE: &str = "Where a slice has stakes of 0.7 or more, nothing is sealed before each patch has a review \
     that\naccepts it, and none that disputes it; of one key the newest counts. Signed by an auditor, a person\n\
     who did not write the patch.\n\nExample:\n  clover patch review concise-1 --outcome accepted \
     --findings 'the new hosts are read by editors'";
const NEXT: &str = "clover patch review --help";

/// What was concluded.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum ReviewConclusion {
    Accepted,
    Disputed,
    Noted,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The patch
    pub patch: String,
    /// What you conclude
    #[arg(long, value_enum)]
    pub outcome: ReviewConclusion,
    /// What you found
    #[arg(long, value_name = "TEXT")]
    pub findings: String,
    /// The first entry that you read; default that of the patch
    #[arg(long, value_name = "SEQ")]
    pub from: Option<u64>,
    /// The last entry that you read; default that of the patch
    #[arg(long, value_name = "SEQ")]
    pub through: Option<u64>,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

fn position(what: &str, seq: u64) -> Result<Count, CliError> {
    Count::new(seq)
        .ok_or_else(|| CliError::usage(format!("--{what} {seq}: expected a position"), NEXT))
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let (name, id, experiment, seq) = {
        let (_, ledger) = home::open_to_read(ctx)?;
        let (name, id, it) = patch::proposed(ledger.state(), &args.patch)?;
        let seq = it.candidates[&name].seq;
        (name, id.clone(), it.experiment.clone(), seq)
    };
    let payload = ReviewRecorded {
        findings: key::text("findings", &args.findings)?,
        from_seq: position("from", args.from.unwrap_or(seq))?,
        outcome: match args.outcome {
            ReviewConclusion::Accepted => ReviewOutcome::Accepted,
            ReviewConclusion::Disputed => ReviewOutcome::Disputed,
            ReviewConclusion::Noted => ReviewOutcome::Noted,
        },
        patch: Some(name.clone()),
        through_seq: position("through", args.through.unwrap_or(seq))?,
    };
    let view = record::one(ctx, Command::new(payload, Some(experiment)), args.dry_run)?;
    if args.dry_run {
        return Ok(view);
    }
    let (_, ledger) = home::open_to_read(ctx)?;
    Ok(views::reviewed(view, ledger.state(), &id, &name))
}
