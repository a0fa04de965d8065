//! `clover exposure`: units of a confirm set become readable to those who score them.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::gate;
use crate::cli::home;
use crate::cli::submit;
use crate::event::id::ManifestId;
use crate::ground::shell;
use crate::session::gate::exposure;
use crate::view::View;
use crate::view::exposure as exposures;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Expose the next units in the order drawn
    #[command(after_help = "Example:\n  clover exposure open m-1 --through 50")]
    Open(ExposureOpenArgs),
    /// Name the units of a gate that are exposed, one a line in the order drawn: those to score
    #[command(after_help = "Example:\n  clover exposure list m-1 > to-score.txt")]
    List(ExposureListArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ExposureListArgs {
    /// The gate
    pub id: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct ExposureOpenArgs {
    /// The manifest that binds the confirm set
    pub id: String,
    /// Units up to the Nth; all of them when absent
    #[arg(long, value_name = "N")]
    pub through: Option<u64>,
    /// Do not ask before units are left closed
    #[arg(long)]
    pub yes: bool,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<View, CliError> {
    match verb {
        Verb::List(args) => list(ctx, &args),
        Verb::Open(args) => open(ctx, &args),
    }
}

fn list(ctx: &mut Ctx<'_>, args: &ExposureListArgs) -> Result<View, CliError> {
    let id = gate::gate_id(&args.id)?;
    let (_, ledger, view) = home::view(ctx)?;
    let units = exposure::list(&ledger, view.state(&ledger), &id)?;
    Ok(exposures::list(&id, units))
}

fn open(ctx: &mut Ctx<'_>, args: &ExposureOpenArgs) -> Result<View, CliError> {
    let id: ManifestId = args.id.parse().map_err(|error| {
        CliError::usage(
            format!("manifest {:?}: {error}", args.id),
            "clover gate list",
        )
    })?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let submission = exposure::open(&mut ctx.ports(), &ledger, (&id, args.through))?;
    let terms = submission.terms;
    let consent = submit::StepConsent {
        question: &exposures::question(&id, &terms),
        yes: args.yes || terms.closed == 0,
        again: &format!(
            "clover exposure open {} --through {}",
            shell::word(&id),
            terms.through
        ),
    };
    let answer = submit::asked_gate_step(ctx, &mut ledger, &submission, args.dry_run, &consent)?;
    // What is open now is what the judge scores next.
    let units = if args.dry_run {
        Vec::new()
    } else {
        exposure::list(&ledger, ledger.state(), &id)?
    };
    Ok(exposures::opened(answer, (&id, units), &submission.terms))
}
