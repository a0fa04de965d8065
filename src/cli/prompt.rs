//! `clover prompt`: what judges are told, version by version, each from the one before it by an accepted patch.

use std::path::PathBuf;

use crate::cli::approve;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::record;
use crate::cli::rubric;
use crate::cli::submit;
use crate::ground::ambient;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::projection::releases::APPROVALS_MIN;
use crate::rubric::is_hard_rule;
use crate::session::SessionError;
use crate::session::deploy::DeployError;
use crate::session::deploy::activation;
use crate::session::deploy::prompt as committing;
use crate::session::deploy::prompt::PromptCommit;
use crate::session::judge::registration;
use crate::view::View;
use crate::view::approval;
use crate::view::deploy as views_of_deploy;
use crate::view::prompt as views;
use crate::view::prompt::PromptShown;
use crate::workflow::prompts;

const NEXT: &str = "clover prompt log";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Commit an accepted patch: the next rubric, and what the judge is told under it
    #[command(after_help = "Example:\n  clover prompt commit concise-1")]
    Commit(CommitArgs),
    /// Every version, newest first
    #[command(after_help = "Example:\n  clover prompt log arena")]
    Log(LogArgs),
    /// What the judge is told in a version
    #[command(after_help = "Example:\n  clover prompt show arena@1.1")]
    Show(PromptShowArgs),
    /// What changed from one version to another, with the code length of it
    #[command(after_help = "Example:\n  clover prompt diff arena@1.0 arena@1.1")]
    Diff(PromptDiffArgs),
    /// Write rubric.yaml and prompt.txt of a version into a folder
    #[command(after_help = "Example:\n  clover prompt checkout arena@1.1 --out judge")]
    Checkout(CheckoutArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct CommitArgs {
    /// The accepted patch: its id, or the id of its patch.accepted
    pub patch: String,
    /// Version of the rubric that results; default: the next minor one
    #[arg(long, value_name = "MAJOR.MINOR")]
    pub version: Option<String>,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct LogArgs {
    /// Of this experiment alone
    pub experiment: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct PromptShowArgs {
    /// As in arena or arena@1.0
    #[arg(value_name = "EXPERIMENT[@VERSION]")]
    pub prompt: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct PromptDiffArgs {
    /// The older one, as in arena@1.0
    #[arg(value_name = "EXPERIMENT[@VERSION]")]
    pub old: String,
    /// The newer one, as in arena
    #[arg(value_name = "EXPERIMENT[@VERSION]")]
    pub new: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct CheckoutArgs {
    /// As in arena or arena@1.0
    #[arg(value_name = "EXPERIMENT[@VERSION]")]
    pub prompt: String,
    /// The folder; nothing in it is overwritten
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Commit(args) => commit(ctx, args),
        Verb::Log(args) => log(ctx, args),
        Verb::Show(args) => show(ctx, args),
        Verb::Diff(args) => rubric::compared(ctx, &args.old, &args.new),
        Verb::Checkout(args) => checkout(ctx, args),
    }
}

fn commit(ctx: &mut Ctx<'_>, args: &CommitArgs) -> Result<View, CliError> {
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let (experiment, accepted) = approve::acceptance(ledger.state(), &args.patch)?;
    let mut changes = accepted.diff.iter();
    let is_hard = changes.any(|change| is_hard_rule(&change.path));
    let (experiment, accepted) = (experiment.clone(), accepted.id);
    let intent = submit::intent(args.dry_run);
    let (of, version) = ((&experiment, accepted), args.version.as_deref());
    let done = committing::commit(&mut ctx.ports(), &mut ledger, of, version, intent);
    let done = done.map_err(|error| match error {
        SessionError::Deploy(error @ DeployError::Uncommitted(_)) => {
            uncommitted(&ledger, &args.patch, error)
        }
        error => error.into(),
    })?;
    let (said, submission) = match done {
        PromptCommit::Already(old) => return Ok(views::already(&experiment, &old)),
        PromptCommit::Submitted { said, submission } => (said, submission),
    };
    let answer = submit::shown(ctx, &ledger, &submission);
    let mut view = views::committed(answer, args.dry_run, &experiment, &said);
    let name = format!("{experiment}@{}", said.version);
    if !args.dry_run
        && let Some(judge) = activation::judge_of(ledger.state(), &rubric::name(&name)?)
    {
        if is_hard {
            let port = registration::port(&ledger, &experiment, &judge)?;
            let ways = views_of_deploy::on_fresh_labels(&name, judge.as_str(), port);
            view.next.extend(ways);
        } else {
            let (name, judge) = (shell::word(&name), shell::word(&judge));
            view.next
                .push(format!("clover deploy activate {name} --judge {judge}"));
        }
    }
    Ok(view)
}

/// Why a patch is not committed: approvals that lack are another person's to give, all else is seen in the log of prompts.
fn uncommitted(ledger: &Ledger, patch: &str, error: DeployError) -> CliError {
    let mut failed = CliError::from(error);
    let Ok((experiment, accepted)) = approve::acceptance(ledger.state(), patch) else {
        return failed;
    };
    let lacks = accepted.refused().is_none()
        && accepted.approvals().len() < APPROVALS_MIN
        && !prompts::two_key(ledger.state(), experiment, accepted).is_empty();
    let patch = shell::word(&patch);
    if lacks {
        failed.message = format!("{}. {}", failed.message, approval::SECOND);
        return failed.with_next(approval::approve(&patch));
    }
    match accepted.refused() {
        Some(seq) => failed.with_next(format!("clover show {seq}")),
        None => failed,
    }
}

fn log(ctx: &mut Ctx<'_>, args: &LogArgs) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let wanted = args.experiment.as_deref().map(record::experiment_id);
    let wanted = wanted.transpose()?;
    views::log(state, wanted.as_ref()).ok_or_else(|| {
        let named = args.experiment.as_deref().unwrap_or("any experiment");
        CliError::not_found(format!("no rubric of {named}"), "clover rubric list")
    })
}

/// The version of an experiment that a name gives.
fn named(ctx: &mut Ctx<'_>, name: &str) -> Result<PromptShown, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let (experiment, registered) = rubric::named(state, name)?;
    views::shown(state, &experiment, registered).ok_or_else(|| {
        let message = format!("the rubric of {name} cannot be read");
        CliError::not_found(message, "clover verify")
    })
}

fn show(ctx: &mut Ctx<'_>, args: &PromptShowArgs) -> Result<View, CliError> {
    let of = named(ctx, &args.prompt)?;
    Ok(views::show(&of, &args.prompt))
}

fn checkout(ctx: &mut Ctx<'_>, args: &CheckoutArgs) -> Result<View, CliError> {
    let of = named(ctx, &args.prompt)?;
    let files = [("rubric.yaml", &of.yaml), ("prompt.txt", &of.prompt)];
    let folder = ctx.path(&args.out);
    ambient::create_dirs(&folder)?;
    for (name, _) in &files {
        if ambient::exists(&folder.join(name))? {
            let message = format!("{} is there already", args.out.join(name).display());
            return Err(CliError::input(message, NEXT));
        }
    }
    for (name, text) in files {
        ambient::write_new(&folder.join(name), text.as_bytes(), 0o644)?;
    }
    let names = files.map(|(name, _)| args.out.join(name).display().to_string());
    Ok(views::checkout(of.version, names.to_vec()))
}
