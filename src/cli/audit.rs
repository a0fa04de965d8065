//! `clover audit`: audits that are run once, and the questions that an auditor asks of a log.

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::selftest;
use crate::cli::transport;
use crate::cli::verify;
use crate::event::payload::Verdict;
use crate::export::bundle::OpenBundle;
use crate::ground::ambient;
use crate::ground::note::SignedCheckpoint;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::LedgerOptions;
use crate::ledger::State;
use crate::ledger::load::LogSource;
use crate::ledger::verify::Report;
use crate::session::restore;
use crate::session::restore::Origin;
use crate::view::View;
use crate::view::audit;
use crate::view::audit_summary;
use crate::workflow::GOVERNED;

#[derive(Debug, clap::Subcommand)]
#[expect(clippy::large_enum_variant, reason = "a command line is parsed once")]
pub(super) enum Verb {
    #[command(flatten)]
    Run(transport::Verb),
    /// Who signed what, in which role
    #[command(after_help = "Example:\n  clover audit signers")]
    Signers(AuditedFile),
    /// Whether each plan was in force before its first row, and before its first outcome
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
    /// A bundle; default the ledger
    #[arg(value_name = "BUNDLE")]
    pub bundle: Option<PathBuf>,
}

type LedgerQuestion = fn(&Ledger, &State) -> Result<View, LedgerError>;

/// A question, of the ledger or of a bundle.
fn asked(
    ctx: &mut Ctx<'_>,
    of: &AuditedFile,
    (word, ask): (&str, LedgerQuestion),
) -> Result<View, CliError> {
    let Some(bundle) = &of.bundle else {
        let (_, ledger, at) = home::view(ctx)?;
        return Ok(ask(&ledger, at.state(&ledger))?);
    };
    let of = BundleLedger::open(ctx, bundle, word)?;
    Ok(ask(&of.ledger, of.ledger.state())?)
}

#[derive(Debug, clap::Args)]
pub(super) struct SummaryArgs {
    /// A bundle; default the ledger
    #[arg(value_name = "BUNDLE")]
    pub bundle: Option<PathBuf>,
    /// Each key, plan, peek and kind of decision after it
    #[arg(long)]
    pub full: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Run(verb) => transport::run(ctx, verb),
        Verb::Signers(of) => asked(ctx, of, ("signers", audit::signers)),
        Verb::Plans(of) => asked(ctx, of, ("plans", audit::plans)),
        Verb::Peeks(of) => asked(ctx, of, ("peeks", audit::peeks)),
        Verb::Decisions(of) => asked(ctx, of, ("decisions", audit::decisions)),
        Verb::Summary(args) => summary(ctx, args),
    }
}

fn summary(ctx: &mut Ctx<'_>, args: &SummaryArgs) -> Result<View, CliError> {
    if let Some(bundle) = &args.bundle {
        let of = BundleLedger::open(ctx, bundle, "summary")?;
        let report = (Some(&of.report), args.full);
        return Ok(audit_summary::summary(
            &of.ledger,
            of.ledger.state(),
            report,
        )?);
    }
    let (home, ledger, at) = home::view(ctx)?;
    let report = match ctx.as_of {
        None => Some(verify::of_home(ctx, &home)?),
        Some(_) => None,
    };
    let state = at.state(&ledger);
    Ok(audit_summary::summary(
        &ledger,
        state,
        (report.as_ref(), args.full),
    )?)
}

/// A bundle that was verified, as a ledger in a folder of its own that is removed with it.
struct BundleLedger {
    folder: PathBuf,
    ledger: Ledger,
    report: Report,
}

impl Drop for BundleLedger {
    fn drop(&mut self) {
        ambient::remove_tree(&self.folder).ok();
    }
}

impl BundleLedger {
    /// Verifies a bundle and makes its ledger.
    fn open(ctx: &mut Ctx<'_>, named: &Path, word: &str) -> Result<Self, CliError> {
        let path = ctx.path(named);
        let typed = shell::word(&named.display());
        let missing = || {
            let message = format!("{} is no bundle", named.display());
            CliError::not_found(message, "clover export bundle -o FILE")
        };
        if !ambient::exists(&path)? {
            return Err(missing());
        }
        let mut bundle = OpenBundle::open(&path)?.ok_or_else(missing)?;
        let is_whole = !bundle.is_part()? && bundle.contents()?.redacted.is_empty();
        if !is_whole {
            let message = format!(
                "{}: it leaves something out, and a ledger is made of a whole bundle; its own verifier answers",
                named.display()
            );
            // Python keeps compiled code in a folder that it runs, and a bundle with a file more is refused.
            let script = if ambient::is_dir(&path) {
                "/verify.py"
            } else {
                ""
            };
            return Err(CliError::usage(
                message,
                format!("python3 {typed}{script} --ask {word}"),
            ));
        }
        let (report, found) = verify::of_bundle(ctx, bundle, &path)?;
        if report.verdict != Verdict::Pass {
            let found = found.text();
            let message = format!("{} does not verify: {}", named.display(), found.trim_end());
            let next = format!("clover verify {typed}");
            return Err(CliError::integrity("tampered", message, next));
        }
        let folder = selftest::temporary(ctx, "audit")?;
        let made = Self::made(ctx, &path, &folder);
        if made.is_err() {
            ambient::remove_tree(&folder).ok();
        }
        made.map(|ledger| Self {
            folder,
            ledger,
            report,
        })
    }

    fn made(ctx: &mut Ctx<'_>, path: &Path, folder: &Path) -> Result<Ledger, CliError> {
        let gone = || CliError::not_found(format!("{} is gone", path.display()), "ls -l");
        let mut bundle = OpenBundle::open(path)?.ok_or_else(gone)?;
        let beside = OpenBundle::open(path)?.ok_or_else(gone)?;
        let head = SignedCheckpoint::parse(&bundle.checkpoint()?);
        let head = head.map_err(|error| {
            let message = format!("{}: its checkpoint: {error}", path.display());
            CliError::integrity("tampered", message, "clover verify BUNDLE")
        })?;
        let (kept, _) = bundle.kept()?;
        let mut checkpoints: Vec<SignedCheckpoint> = kept.into_iter().map(|(_, of)| of).collect();
        if checkpoints.last() != Some(&head) {
            checkpoints.push(head.clone());
        }
        let origin = Origin {
            head,
            log_key: None,
        };
        let parts = LogSource {
            lines: bundle.lines()?,
            checkpoints,
            blobs: Box::new(beside.into_blobs()?),
        };
        let store = home::store_options(ctx, false);
        let ambient = ctx.ambient();
        ambient::create_private_dirs(folder)?;
        let parts = (parts, &origin);
        let home = restore::restore(&mut ctx.ports(), &ambient, folder, parts, store)?;
        let options = LedgerOptions {
            store: home::store_options(ctx, true),
            log_key: None,
            pins: None,
        };
        Ok(Ledger::open_anew(
            home.database(),
            ambient,
            &GOVERNED,
            options,
        )?)
    }
}
