//! `clover patch review`: what a person who knows the field thinks of a proposed patch.

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::key;
use crate::cli::patch;
use crate::cli::record;
use crate::event::payload::record::ReviewOutcome;
use crate::event::payload::record::ReviewRecorded;
use crate::ground::shell;
use crate::ledger::Command;
use crate::num::Count;
use crate::projection::decisions;
use crate::projection::iterations::Candidate;
use crate::view::View;

pub(super) const EXAMPLE: &str = "Where a slice has stakes of 0.7 or more, nothing is sealed before each patch has a review \
     that\naccepts it, and none that disputes it; of one key the newest counts. Signed by an auditor, a person\n\
     who did not write the patch.\n\nExample:\n  clover patch review cite-1 --outcome accepted \
     --findings 'the new hosts are read by editors'";
const NEXT: &str = "clover patch review --help";

/// What was concluded.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum Outcome {
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
    pub outcome: Outcome,
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

/// How many keys concluded what of a patch last.
pub(super) fn counts(of: &Candidate) -> Value {
    json!({
        "accepted": of.reviewed(ReviewOutcome::Accepted), "disputed": of.reviewed(ReviewOutcome::Disputed),
        "noted": of.reviewed(ReviewOutcome::Noted),
    })
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
            Outcome::Accepted => ReviewOutcome::Accepted,
            Outcome::Disputed => ReviewOutcome::Disputed,
            Outcome::Noted => ReviewOutcome::Noted,
        },
        patch: Some(name.clone()),
        through_seq: position("through", args.through.unwrap_or(seq))?,
    };
    let mut answer = record::one(ctx, Command::new(payload, Some(experiment)), args.dry_run)?;
    if args.dry_run {
        return Ok(answer);
    }
    let (_, ledger) = home::open_to_read(ctx)?;
    let (_, _, it) = patch::proposed(ledger.state(), &args.patch)?;
    let of = &it.candidates[&name];
    let lacking = decisions::check_reviewed(ledger.state(), &id, &[of.patch_hash]);
    let [accepted, disputed] =
        [ReviewOutcome::Accepted, ReviewOutcome::Disputed].map(|outcome| of.reviewed(outcome));
    answer.line(format!(
        "{name}: accepted by {accepted}, disputed by {disputed}"
    ));
    answer.facts_mut()["reviews"] = counts(of);
    if let Err(unmet) = lacking {
        answer.line(format!("before it is sealed: {unmet}"));
    }
    Ok(answer.with_next(format!("clover iterate run {id}", id = shell::word(&id))))
}
