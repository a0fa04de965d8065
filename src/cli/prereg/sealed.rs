//! `clover prereg plan`: an analysis plan that is committed to now and shown later.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::prereg::named;
use crate::cli::record;
use crate::cli::submit;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::session::prereg::sealed;
use crate::session::prereg::sealed::SealTerms;
use crate::view::View;
use crate::view::prereg::sign;

const HELP: &str = "clover prereg plan seal --help";

#[derive(Debug, clap::Subcommand)]
pub(in crate::cli) enum Verb {
    /// Commit to a plan that stays secret until it is revealed
    #[command(
        after_help = "Example:\n  clover prereg plan seal m-1 plan.md --salt-file plan.salt --reveal-by 2026-12-31T00:00:00Z"
    )]
    Seal(PreregSealArgs),
    /// Show the plan that was sealed
    #[command(
        after_help = "Example:\n  clover prereg plan reveal m-1 plan.md --salt-file plan.salt"
    )]
    Reveal(PreregRevealArgs),
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct PreregSealArgs {
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
pub(in crate::cli) struct PreregRevealArgs {
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

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<View, CliError> {
    match verb {
        Verb::Seal(args) => seal(ctx, &args),
        Verb::Reveal(args) => reveal(ctx, &args),
    }
}

fn seal(ctx: &mut Ctx<'_>, args: &PreregSealArgs) -> Result<View, CliError> {
    let plan = ctx.read(&args.file)?;
    let reveal_by = record::deadline(ctx.ambient().now(), &args.reveal_by)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let id = named(&args.id)?;
    let terms = SealTerms {
        manifest: &id,
        plan: &plan,
        reveal_by,
        salt_file: &ctx.path(&args.salt_file),
    };
    let intent = submit::intent(args.dry_run);
    let submission = sealed::seal(&mut ctx.ports(), &mut ledger, terms, intent)?;
    let answer = submit::shown(ctx, &ledger, &submission);
    if args.dry_run {
        return Ok(answer);
    }
    Ok(answer.with_next(format!(
        "clover prereg plan reveal {id} {} --salt-file {}",
        shell::word(&args.file.display()),
        shell::word(&args.salt_file.display()),
        id = shell::word(&id)
    )))
}

fn reveal(ctx: &mut Ctx<'_>, args: &PreregRevealArgs) -> Result<View, CliError> {
    let plan = ctx.read(&args.file)?;
    let salt = ctx.read(&args.salt_file)?;
    let shown = args.salt_file.display();
    let text = String::from_utf8_lossy(&salt).trim().to_owned();
    let salt = Digest::from_hex(&text)
        .ok_or_else(|| CliError::input(format!("{shown}: expected 64 hex digits"), HELP))?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let id = named(&args.id)?;
    let intent = submit::intent(args.dry_run);
    let of = (plan, salt);
    let submission = sealed::reveal(&mut ctx.ports(), &mut ledger, &id, of, intent)?;
    let answer = submit::shown(ctx, &ledger, &submission);
    if args.dry_run {
        return Ok(answer);
    }
    Ok(sign::revealed(answer, &id))
}
