//! `clover audit`: audits that are run once, and the questions that an auditor asks of a log.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::transport;
use crate::cli::verify;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::State;
use crate::view::View;
use crate::view::audit;
use crate::view::audit_summary;

#[derive(Debug, clap::Subcommand)]
#[expect(clippy::large_enum_variant, reason = "a command line is parsed once")]
pub(super) enum Verb {
    #[command(flatten)]
    Run(transport::Verb),
    /// Who signed what, in which role
    #[command(after_help = "Example:\n  clover audit signers")]
    Signers,
    /// Whether each plan was in force before its first outcome
    #[command(after_help = "Example:\n  clover audit plans")]
    Plans,
    /// Who saw outcomes that were kept back, when and what for
    #[command(after_help = "Example:\n  clover audit peeks")]
    Peeks,
    /// Which decisions are computed again, and from what
    #[command(after_help = "Example:\n  clover audit decisions")]
    Decisions,
    /// The verdict and all of these on one page
    #[command(after_help = "Example:\n  clover audit summary --render html > audit.html")]
    Summary(SummaryArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct SummaryArgs {
    /// Each key, plan, peek and kind of decision after it
    #[arg(long)]
    pub full: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    let ask: fn(&Ledger, &State) -> Result<View, LedgerError> = match verb {
        Verb::Run(verb) => return transport::run(ctx, verb),
        Verb::Signers => audit::signers,
        Verb::Plans => audit::plans,
        Verb::Peeks => audit::peeks,
        Verb::Decisions => audit::decisions,
        Verb::Summary(args) => return summary(ctx, args.full),
    };
    let (_, ledger, at) = home::view(ctx)?;
    Ok(ask(&ledger, at.state(&ledger))?)
}

fn summary(ctx: &mut Ctx<'_>, full: bool) -> Result<View, CliError> {
    let (home, ledger, at) = home::view(ctx)?;
    let report = match ctx.as_of {
        None => Some(verify::of_home(ctx, &home)?),
        Some(_) => None,
    };
    let state = at.state(&ledger);
    Ok(audit_summary::summary(
        &ledger,
        state,
        (report.as_ref(), full),
    )?)
}
