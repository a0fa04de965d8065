//! Opening iterations from their manifests, and listing them.

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::submit;
use crate::event::id::IterationId;
use crate::event::id::JudgeId;
use crate::event::id::ManifestId;
use crate::event::id::PolicyId;
use crate::ground::shell;
use crate::num::Count;
use crate::projection::iterations::PEEKS_MAX;
use crate::session::append::Submission;
use crate::session::iterate::open as session;
use crate::session::iterate::open::AnchorTerms;
use crate::view::View;
use crate::view::iterate::open as views;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct IterateOpenArgs {
    /// Its name, one in the whole ledger
    pub id: String,
    /// The manifest, of template iteration
    #[arg(long, value_name = "ID")]
    pub manifest: String,
    /// Open the account too that the plan names: so many looks at confirm a quarter
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=PEEKS_MAX))]
    pub peeks: Option<u64>,
    /// Open it although its data can never reach what the plan asks
    #[arg(long)]
    pub yes: bool,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn open(ctx: &mut Ctx<'_>, args: &IterateOpenArgs) -> Result<View, CliError> {
    let usage = "clover iterate open --help";
    let wrong =
        |what: &str, text: &str, error| CliError::usage(format!("{what} {text:?}: {error}"), usage);
    let iteration: IterationId = args
        .id
        .parse()
        .map_err(|error| wrong("iteration", &args.id, error))?;
    let manifest: ManifestId = args
        .manifest
        .parse()
        .map_err(|error| wrong("manifest", &args.manifest, error))?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let intent = submit::intent(args.dry_run);
    let peeks = args
        .peeks
        .map(|count| format!(" --peeks {count}"))
        .unwrap_or_default();
    let again = format!(
        "clover iterate open {} --manifest {}{peeks}",
        shell::word(&iteration),
        shell::word(&manifest)
    );
    let mut ports = ctx.ports().with_consent(args.yes, again);
    let under = (&manifest, args.peeks.and_then(Count::new));
    let opened = session::open(&mut ports, &mut ledger, &iteration, under, intent)?;
    if opened.is_after_stop {
        ctx.warn(views::after_the_stop(&opened.experiment, &iteration));
    }
    let view = match &opened.submission {
        Submission::Rehearsed(bodies) if bodies.len() > 1 => submit::story(ctx, bodies),
        submission => submit::shown(ctx, &ledger, submission),
    };
    Ok(views::opened(view, &iteration, &opened))
}

pub(super) fn list(ctx: &mut Ctx<'_>) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    Ok(views::list(view.state(&ledger)))
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct AnchorArgs {
    /// The name of the set
    pub id: String,
    /// The policy of poor responses
    #[arg(long, value_name = "POLICY")]
    pub low: String,
    /// The policy of good responses
    #[arg(long, value_name = "POLICY")]
    pub high: String,
    /// Whose scores; default the only judge
    #[arg(long, value_name = "ID")]
    pub judge: Option<String>,
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Registers two policies, whose recorded rows are anchors from here on.
pub(super) fn anchors(ctx: &mut Ctx<'_>, args: &AnchorArgs) -> Result<View, CliError> {
    let usage = "clover iterate anchors --help";
    let wrong = |what: &str, text: &str, error: &dyn std::fmt::Display| {
        CliError::usage(format!("{what} {text:?}: {error}"), usage)
    };
    let policy = |text: &str| -> Result<PolicyId, CliError> {
        text.parse().map_err(|error| wrong("policy", text, &error))
    };
    let (low, high) = (policy(&args.low)?, policy(&args.high)?);
    let anchors = args
        .id
        .parse()
        .map_err(|error| wrong("anchors", &args.id, &error))?;
    let judge = args.judge.as_deref().map(|text| {
        text.parse::<JudgeId>()
            .map_err(|error| wrong("judge", text, &error))
    });
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let named = args.experiment.as_deref();
    let terms = AnchorTerms {
        anchors,
        experiment: current::experiment(ctx, &home, ledger.state(), named)?,
        low,
        high,
        judge: judge.transpose()?,
    };
    let intent = submit::intent(args.dry_run);
    let found = session::anchors(&mut ctx.ports(), &mut ledger, terms, intent);
    let (registered, submission) = found.map_err(|error| {
        let error = CliError::from(error);
        // No manifest is asked for here.
        match error.message.split_once(": iteration.design.judge") {
            Some((what, _)) if args.judge.is_none() => {
                let what = what.to_owned();
                CliError::usage(what, "the same command with --judge ID")
            }
            _ => error,
        }
    })?;
    let view = submit::shown(ctx, &ledger, &submission);
    Ok(views::anchors(view, &registered))
}
