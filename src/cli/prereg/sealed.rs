//! `clover prereg plan`: an analysis plan that is committed to now and shown later.

use std::path::PathBuf;

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::prereg::find;
use crate::cli::record;
use crate::cli::submit;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::id::Base64Bytes;
use crate::event::payload::BlobRef;
use crate::event::payload::MediaType;
use crate::event::payload::manifest::plan_commitment;
use crate::event::payload::prereg::PlanRevealed;
use crate::event::payload::prereg::PlanSealed;
use crate::ground::ambient;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::Command;
use crate::num::Count;

const HELP: &str = "clover prereg plan seal --help";

#[derive(Debug, clap::Subcommand)]
pub(in crate::cli) enum Verb {
    /// Commit to a plan that stays secret until it is revealed
    #[command(
        after_help = "Example:\n  clover prereg plan seal m-1 plan.md --salt-file plan.salt --reveal-by 2026-12-31T00:00:00Z"
    )]
    Seal(SealArgs),
    /// Show the plan that was sealed
    #[command(
        after_help = "Example:\n  clover prereg plan reveal m-1 plan.md --salt-file plan.salt"
    )]
    Reveal(RevealArgs),
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SealArgs {
    /// The manifest
    pub id: String,
    /// The plan
    pub file: PathBuf,
    /// Where to keep the salt, a new file: without it nobody can reveal the plan
    #[arg(long, value_name = "FILE")]
    pub salt_file: PathBuf,
    /// By when it is revealed; later, claims that rest on it are void
    #[arg(long, value_name = "TIME")]
    pub reveal_by: String,
    /// Print the canonical unsigned body, under a salt that is kept nowhere, and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RevealArgs {
    /// The manifest
    pub id: String,
    /// The plan
    pub file: PathBuf,
    /// The salt that was kept
    #[arg(long, value_name = "FILE")]
    pub salt_file: PathBuf,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<Answer, CliError> {
    match verb {
        Verb::Seal(args) => seal(ctx, &args),
        Verb::Reveal(args) => reveal(ctx, &args),
    }
}

fn seal(ctx: &mut Ctx<'_>, args: &SealArgs) -> Result<Answer, CliError> {
    let plan = ctx.read(&args.file)?;
    let reveal_by = record::time(&args.reveal_by)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let (id, found) = find(ledger.state(), &args.id)?;
    let experiment = found.experiment.clone();
    let mut salt = [0; 32];
    ledger
        .ambient()
        .with_entropy(|entropy| entropy.fill(&mut salt))?;
    let origin = ledger.state().keyring.origin.clone();
    let payload = PlanSealed {
        commitment: plan_commitment(&origin, id.as_str(), &salt, &Digest::blake3(&plan)),
        manifest: id.clone(),
        reveal_by,
    };
    let signer = wallet::signer(ctx, ledger.state(), Kind::PlanSealed)?;
    let command = Command::new(payload, experiment);
    if args.dry_run {
        return submit::append(ctx, &mut ledger, &[command], &signer, true);
    }
    // The salt is on disk before the commitment is in the log: a commitment that nobody can open is worth nothing.
    let path = ctx.path(&args.salt_file);
    let text = format!("{}\n", Digest(salt).to_hex());
    ambient::write_new(&path, text.as_bytes(), 0o600)?;
    match submit::append(ctx, &mut ledger, &[command], &signer, false) {
        Ok(answer) => Ok(answer.with_next(format!(
            "clover prereg plan reveal {id} {} --salt-file {}",
            shell::word(&args.file.display()),
            shell::word(&args.salt_file.display()),
            id = shell::word(&id)
        ))),
        Err(error) => {
            ambient::remove(&path)?;
            Err(error)
        }
    }
}

fn reveal(ctx: &mut Ctx<'_>, args: &RevealArgs) -> Result<Answer, CliError> {
    let plan = ctx.read(&args.file)?;
    let salt = ctx.read(&args.salt_file)?;
    let shown = args.salt_file.display();
    let text = String::from_utf8_lossy(&salt).trim().to_owned();
    let salt = Digest::from_hex(&text)
        .ok_or_else(|| CliError::input(format!("{shown}: expected 64 hex digits"), HELP))?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let (id, found) = find(ledger.state(), &args.id)?;
    let experiment = found.experiment.clone();
    let media = MediaType::new("text/plain").expect("BUG: a media type");
    let bytes = Count::new(plan.len() as u64).unwrap_or_default();
    let payload = PlanRevealed {
        manifest: id.clone(),
        plan: BlobRef {
            blake3: Digest::blake3(&plan),
            bytes,
            media,
        },
        salt: Base64Bytes(salt.0),
    };
    let signer = wallet::signer(ctx, ledger.state(), Kind::PlanRevealed)?;
    let commands = [Command::new(payload, experiment)];
    if args.dry_run {
        return submit::append(ctx, &mut ledger, &commands, &signer, true);
    }
    let appended = ledger.append_with_blobs(&commands, &signer, &[plan])?;
    submit::warn_of_pin(ctx, &ledger);
    let mut answer = submit::answer(&ledger, &commands, &appended);
    answer.data["manifest"] = json!(id.as_str());
    Ok(answer.with_next(format!("clover prereg show {id}", id = shell::word(&id))))
}
