//! `clover sgd prompt` and `clover sgd export`: the prompts of a run, and the run as a git repository.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::sgd::run_id;
use crate::export::git;
use crate::export::git::GitCommit;
use crate::ground::ambient;
use crate::projection::sgd::SgdRun;
use crate::prompt::JudgePrompt;
use crate::session::SessionError;
use crate::session::sgd::found;
use crate::session::sgd::history;
use crate::session::sgd::history::PromptVersion;
use crate::view::View;
use crate::view::sgd as runs;
use crate::view::sgd::prompts as views;
use crate::workflow::sgd::course::SgdCourse;

/// Whoever wrote the commits of a run.
const AUTHOR: &str = "Clover <run@clover.invalid>";

#[derive(Debug, clap::Subcommand)]
pub(in crate::cli) enum SgdPromptVerb {
    /// The prompt of a run at a place; the best so far where none is named
    #[command(after_help = "Example:\n  clover sgd prompt show tune-1 --place 3")]
    Show(SgdPromptShowArgs),
    /// What two prompts of a run differ by; the first and the best where none are named
    #[command(after_help = "Example:\n  clover sgd prompt diff tune-1 --from 0 --to 3")]
    Diff(SgdPromptDiffArgs),
    /// How each prompt of a run came about
    #[command(after_help = "Example:\n  clover sgd prompt log tune-1")]
    Log(SgdPromptLogArgs),
    /// What sections a file has, and which of them a step may edit; nothing is recorded
    #[command(after_help = "Example:\n  clover sgd prompt check judge.md")]
    Check(SgdPromptCheckArgs),
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SgdPromptShowArgs {
    /// The run
    pub run: String,
    /// Its place: 0 is prompt 0, and step t stands at t + 1
    #[arg(long = "place", value_name = "PLACE")]
    pub place: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SgdPromptDiffArgs {
    /// The run
    pub run: String,
    /// Place of the first; default 0
    #[arg(long, value_name = "PLACE", default_value_t = 0)]
    pub from: u64,
    /// Place of the second; default the best so far
    #[arg(long, value_name = "PLACE")]
    pub to: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SgdPromptLogArgs {
    /// The run
    pub run: String,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SgdPromptCheckArgs {
    /// Markdown whose headings are sections, YAML or JSON
    pub file: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SgdExportArgs {
    /// The run
    pub run: String,
    /// A new folder, which becomes a bare git repository with a commit for each step
    #[arg(long, value_name = "DIR")]
    pub git: PathBuf,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &SgdPromptVerb) -> Result<View, CliError> {
    match verb {
        SgdPromptVerb::Show(args) => show(ctx, args),
        SgdPromptVerb::Diff(args) => differ(ctx, args),
        SgdPromptVerb::Log(args) => {
            let run = named(ctx, &args.run)?;
            let versions = history::versions(&run).map_err(SessionError::from)?;
            Ok(views::log(&run, &versions))
        }
        SgdPromptVerb::Check(args) => check(ctx, args),
    }
}

/// A run by its name, as of where the ledger is looked at.
fn named(ctx: &mut Ctx<'_>, name: &str) -> Result<SgdRun, CliError> {
    let id = run_id(name)?;
    let (_, ledger, at) = home::view(ctx)?;
    let run = found(at.state(&ledger), &id).map_err(SessionError::from)?;
    Ok(run.clone())
}

/// The prompt of a run at a place.
pub(super) fn at_place(run: &SgdRun, place: u64) -> Result<JudgePrompt, CliError> {
    let none = || {
        let id = &run.said.run;
        let message = format!("run {id} has no prompt at place {place}");
        CliError::not_found(message, format!("clover sgd prompt log {id}"))
    };
    let course = SgdCourse::of(run).map_err(|_| none())?;
    course.prompt_at(place).map_err(|_| none()).cloned()
}

fn show(ctx: &mut Ctx<'_>, args: &SgdPromptShowArgs) -> Result<View, CliError> {
    let run = named(ctx, &args.run)?;
    let place = args.place.unwrap_or_else(|| run.best());
    let prompt = at_place(&run, place)?;
    Ok(runs::prompt(&run, place, prompt.digest(), prompt.render()))
}

fn differ(ctx: &mut Ctx<'_>, args: &SgdPromptDiffArgs) -> Result<View, CliError> {
    let run = named(ctx, &args.run)?;
    let to = args.to.unwrap_or_else(|| run.best());
    let (old, new) = (at_place(&run, args.from)?, at_place(&run, to)?);
    Ok(views::differ(&run, (args.from, &old), (to, &new)))
}

fn check(ctx: &mut Ctx<'_>, args: &SgdPromptCheckArgs) -> Result<View, CliError> {
    let bytes = ctx.read(&args.file)?;
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let shown = args.file.display().to_string();
    let prompt = JudgePrompt::from_file(&name, &bytes).map_err(|error| {
        let message = format!("{shown}: {error}");
        CliError::input(message, "clover sgd prompt check --help")
    })?;
    Ok(views::checked(&shown, &prompt))
}

pub(super) fn export(ctx: &mut Ctx<'_>, args: &SgdExportArgs) -> Result<View, CliError> {
    let id = run_id(&args.run)?;
    let (_, ledger, at) = home::view(ctx)?;
    let run = found(at.state(&ledger), &id).map_err(SessionError::from)?;
    let versions = history::versions(run).map_err(SessionError::from)?;
    let times = history::times(&ledger, run)?;
    let commit = |of: &PromptVersion| {
        let untimed = || {
            let message = format!(
                "run {id}: no entry says when the prompt at place {} was left",
                of.place
            );
            CliError::integrity("damaged", message, "clover verify")
        };
        Ok(GitCommit {
            files: of.files(),
            message: of.message(&id),
            seconds: *times.get(&of.cause).ok_or_else(untimed)?,
        })
    };
    let commits: Result<Vec<_>, CliError> = versions.iter().map(commit).collect();
    let commits = commits?;
    let (files, head) = git::repository(&commits, AUTHOR);
    let none = || CliError::not_found(format!("run {id} has no prompt"), "clover sgd status");
    let head = head.ok_or_else(none)?;
    let folder = ctx.path(&args.git);
    let shown = args.git.display().to_string();
    if ambient::is_taken(&folder) {
        let message = format!("{shown} is there: expected a new folder");
        return Err(CliError::usage(message, "clover sgd export --help"));
    }
    // What git asks of a repository is there without a file in it, too.
    for name in ["objects/info", "objects/pack", "refs/heads", "refs/tags"] {
        ambient::create_dirs(&folder.join(name))?;
    }
    for file in &files {
        let path = folder.join(&file.path);
        if let Some(parent) = path.parent() {
            ambient::create_dirs(parent)?;
        }
        ambient::write_new(&path, &file.bytes, 0o644)?;
    }
    Ok(views::exported(run, &shown, commits.len() as u64, head))
}
