//! `clover audit`: audits that are run once, and the questions that an auditor asks of a log.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::transport;
use crate::cli::verify;
use crate::ground::ambient;
use crate::ground::shell;
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
    Signers(AuditedFile),
    /// Whether each plan was in force before its first outcome
    #[command(after_help = "Example:\n  clover audit plans")]
    Plans(AuditedFile),
    /// Who saw outcomes that were kept back, when and what for
    #[command(after_help = "Example:\n  clover audit peeks")]
    Peeks(AuditedFile),
    /// Which decisions are computed again, and from what
    #[command(after_help = "Example:\n  clover audit decisions")]
    Decisions(AuditedFile),
    /// The verdict and all of these on one page
    #[command(after_help = "Example:\n  clover audit summary --render html > audit.html")]
    Summary(SummaryArgs),
}

/// What is asked, where it is not the ledger.
#[derive(Debug, clap::Args)]
pub(super) struct AuditedFile {
    /// A bundle: its own verifier answers
    #[arg(value_name = "BUNDLE", hide = true)]
    pub bundle: Option<PathBuf>,
}

type LedgerQuestion = fn(&Ledger, &State) -> Result<View, LedgerError>;

/// The question, of the ledger. A bundle answers by the verifier inside.
fn asked(
    ctx: &Ctx<'_>,
    of: &AuditedFile,
    (word, ask): (&str, LedgerQuestion),
) -> Result<LedgerQuestion, CliError> {
    let Some(bundle) = &of.bundle else {
        return Ok(ask);
    };
    // Python keeps compiled code in a folder that it runs, and a bundle with a file more is refused: a script leaves nothing.
    let verifier = if ambient::is_dir(&ctx.path(bundle)) {
        bundle.join("verify.py")
    } else {
        bundle.clone()
    };
    let named = shell::word(&verifier.display());
    let message = format!(
        "{}: this verb asks the ledger that is open, and no file: a bundle answers by the verifier inside",
        bundle.display()
    );
    Err(CliError::usage(
        message,
        format!("python3 {named} --ask {word}"),
    ))
}

#[derive(Debug, clap::Args)]
pub(super) struct SummaryArgs {
    /// Each key, plan, peek and kind of decision after it
    #[arg(long)]
    pub full: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    let ask = match verb {
        Verb::Run(verb) => return transport::run(ctx, verb),
        Verb::Signers(of) => asked(ctx, of, ("signers", audit::signers))?,
        Verb::Plans(of) => asked(ctx, of, ("plans", audit::plans))?,
        Verb::Peeks(of) => asked(ctx, of, ("peeks", audit::peeks))?,
        Verb::Decisions(of) => asked(ctx, of, ("decisions", audit::decisions))?,
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
