//! `clover rulebook`: which rules judge the entries of this ledger, and the newer ones that it may adopt.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::submit;
use crate::ledger::Ledger;
use crate::ledger::rulebooks;
use crate::session::custody::rulebook as adoption;
use crate::view::View;
use crate::view::rulebook as view;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// The rulebooks that judge this ledger, and what the newest asks beside
    #[command(after_help = "Example:\n  clover rulebook show")]
    Show,
    /// Let the newest rulebook judge all entries from here on; it cannot be taken back
    #[command(
        after_help = "Entries before this one keep the verdict of their own rulebook.\n\n\
                      Example:\n  clover rulebook adopt --yes"
    )]
    Adopt(AdoptArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct AdoptArgs {
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Judge it and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Show => {
            let (_, ledger, at) = home::view(ctx)?;
            Ok(view::show(&at.state(&ledger).keyring))
        }
        Verb::Adopt(args) => adopt(ctx, args),
    }
}

fn adopt(ctx: &mut Ctx<'_>, args: &AdoptArgs) -> Result<View, CliError> {
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let mut ports = ctx.ports().with_consent(args.yes, "clover rulebook adopt");
    let submission = adoption::adopt(&mut ports, &mut ledger, submit::intent(args.dry_run))?;
    Ok(submit::shown(ctx, &ledger, &submission))
}

/// Offers a newer rulebook to whoever is about to append.
pub(super) fn offer(ctx: &mut Ctx<'_>, ledger: &Ledger) {
    let keyring = &ledger.state().keyring;
    if view::may_adopt(keyring) {
        let in_force = keyring.rulebook();
        ctx.note(&format!(
            "rulebook {in_force} judges this ledger; {} asks {} questions more: clover rulebook show",
            rulebooks::NEWEST,
            view::unasked(in_force).count()
        ));
    }
}
