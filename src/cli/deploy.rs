//! `clover deploy`: which committed prompt runs, whether its guardrails hold, and the way back.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::input;
use crate::cli::key;
use crate::cli::record;
use crate::cli::rubric;
use crate::cli::submit;
use crate::event::id::Text;
use crate::event::payload::deployment::GuardrailChecked;
use crate::event::payload::deployment::LiveEvidence;
use crate::session::deploy::activation;
use crate::session::deploy::activation::ActivationTerms;
use crate::session::deploy::guardrails;
use crate::session::deploy::guardrails::CheckTerms;
use crate::session::judge::registration;
use crate::view::View;
use crate::view::deploy as views;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Let the newest committed prompt run
    #[command(after_help = "Example:\n  clover deploy activate arena@1.1 --judge llm")]
    Activate(ActivateArgs),
    /// Check the guardrails of what runs; a breach rolls back in the same append
    #[command(
        after_help = "Fewer than 40 labels or rows decide nothing. What nobody looked at is NOT CHECKED: no pass.\n\nExample:\n  clover deploy check arena"
    )]
    Check(DeployCheckArgs),
    /// Hold the calibrator against fresh labels, where a hard rule, the model or the protocol changed
    #[command(
        after_help = "Residuals of the labels pass as at criterion P6; means of both anchor policies move by at most 0.01.\n\nExample:\n  clover deploy recalibrate arena --judge llm --design fresh-1"
    )]
    Recalibrate(super::recalibrate::Args),
    /// What runs, what ran before, and how its guardrails stand
    #[command(after_help = "Example:\n  clover deploy status arena")]
    Status(DeployStatusArgs),
    /// Let what ran before run again
    #[command(
        after_help = "Example:\n  clover deploy rollback arena --reason 'support asked for it'"
    )]
    Rollback(DeployRollbackArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ActivateArgs {
    /// As in arena or arena@1.1
    #[arg(value_name = "EXPERIMENT[@VERSION]")]
    pub prompt: String,
    /// The judge whose raw answers are used
    #[arg(long, value_name = "ID")]
    pub judge: String,
    /// Digest of the calibrator; default that of its recalibration, of its gates, or the judge's newest
    #[arg(long, value_name = "DIGEST")]
    pub calibrator: Option<String>,
    /// The model, where the judge is not registered
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// The anchor set
    #[arg(long, value_name = "ID")]
    pub anchors: Option<String>,
    /// The recalibration.completed that it stands on; default the newest of this version and judge
    #[arg(long, value_name = "ID")]
    pub recalibration: Option<String>,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct DeployCheckArgs {
    /// The experiment
    pub experiment: String,
    /// Only rows and labels since the last check; default all since the activation
    #[arg(long, conflicts_with = "evidence")]
    pub since_last: bool,
    /// What live rows show, by hand: JSON as in `clover schema guardrail.checked`
    #[arg(long, value_name = "FILE", requires = "by_hand")]
    pub evidence: Option<PathBuf>,
    /// Why it is by hand and not computed from rows; it stays on record as such
    #[arg(long, value_name = "REASON", requires = "evidence")]
    pub by_hand: Option<String>,
    /// Print the canonical unsigned bodies and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct DeployStatusArgs {
    /// Of this experiment alone
    pub experiment: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct DeployRollbackArgs {
    /// The experiment
    pub experiment: String,
    /// Why
    #[arg(long)]
    pub reason: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Activate(args) => activate(ctx, args),
        Verb::Check(args) => check(ctx, args),
        Verb::Recalibrate(args) => super::recalibrate::run(ctx, args),
        Verb::Status(args) => status(ctx, args),
        Verb::Rollback(args) => rollback(ctx, args),
    }
}

fn parsed<T: std::str::FromStr>(what: &str, text: &str) -> Result<T, CliError>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| {
        CliError::usage(format!("{what} {text:?}: {error}"), "clover deploy --help")
    })
}

/// What the rule names where fresh labels are needed first.
const RECALIBRATE: &str = "clover deploy recalibrate";

fn activate(ctx: &mut Ctx<'_>, args: &ActivateArgs) -> Result<View, CliError> {
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let terms = terms(args)?;
    let intent = submit::intent(args.dry_run);
    let submission = activation::activate(&mut ctx.ports(), &mut ledger, &terms, intent);
    let submission = match submission {
        Ok(submission) => submission,
        Err(error) => {
            let mut error = CliError::from(error);
            if error.next == RECALIBRATE {
                let port = registration::port(&ledger, &terms.name.experiment, &terms.judge)?;
                let ways = views::on_fresh_labels(&args.prompt, &args.judge, port);
                error.next = ways.join(", then ");
            }
            return Err(error);
        }
    };
    let answer = submit::shown(ctx, &ledger, &submission);
    Ok(views::then_status(answer, &terms.name.experiment))
}

/// What the arguments ask for.
fn terms(args: &ActivateArgs) -> Result<ActivationTerms, CliError> {
    let digest = |text| crate::cli::blob::digest("--calibrator", text);
    let anchors = args.anchors.as_deref();
    let recalibration = args.recalibration.as_deref();
    let model = args.model.as_deref().map(|model| key::text("model", model));
    Ok(ActivationTerms {
        name: rubric::name(&args.prompt)?,
        judge: parsed("--judge", &args.judge)?,
        calibrator: args.calibrator.as_deref().map(digest).transpose()?,
        model: model.transpose()?,
        anchors: anchors.map(|id| parsed("--anchors", id)).transpose()?,
        recalibration: recalibration.map(record::event_id).transpose()?,
    })
}

fn rollback(ctx: &mut Ctx<'_>, args: &DeployRollbackArgs) -> Result<View, CliError> {
    let experiment = record::experiment_id(&args.experiment)?;
    let reason = key::text("reason", &args.reason)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let intent = submit::intent(args.dry_run);
    let ports = &mut ctx.ports();
    let submission = activation::roll_back(ports, &mut ledger, &experiment, reason, intent)?;
    let answer = submit::shown(ctx, &ledger, &submission);
    Ok(views::then_status(answer, &experiment))
}

fn check(ctx: &mut Ctx<'_>, args: &DeployCheckArgs) -> Result<View, CliError> {
    let experiment = record::experiment_id(&args.experiment)?;
    let terms = CheckTerms {
        experiment: experiment.clone(),
        by_hand: given(ctx, args)?,
        since_last: args.since_last,
    };
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let intent = submit::intent(args.dry_run);
    let done = guardrails::check(&mut ctx.ports(), &mut ledger, terms, intent)?;
    let answer = submit::shown(ctx, &ledger, &done.submission);
    Ok(views::then_status(
        views::checked(answer, &done.said),
        &experiment,
    ))
}

/// Evidence that is given by hand, with the reason.
fn given(
    ctx: &mut Ctx<'_>,
    args: &DeployCheckArgs,
) -> Result<Option<(LiveEvidence, Text)>, CliError> {
    let (Some(file), Some(why)) = (&args.evidence, &args.by_hand) else {
        return Ok(None);
    };
    let bytes = ctx.read(file)?;
    let next = "clover schema guardrail.checked";
    let source = rubric::source(file);
    let evidence = input::document(&bytes).map_err(|fault| fault.into_error(&source, 1, next))?;
    Ok(Some((evidence, key::text("by-hand", why)?)))
}

fn status(ctx: &mut Ctx<'_>, args: &DeployStatusArgs) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let wanted = args.experiment.as_deref().map(record::experiment_id);
    let wanted = wanted.transpose()?;
    views::status(view.state(&ledger), wanted.as_ref(), |seq| {
        let entry = ledger.entry(seq)?;
        Ok(entry.and_then(|entry| {
            let said: Option<&GuardrailChecked> = entry.event.payload.said();
            said.map(|said| said.verdicts)
        }))
    })
}
