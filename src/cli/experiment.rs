//! `clover experiment`: register, close, list.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::experiment_split;
use crate::cli::home;
use crate::cli::key;
use crate::cli::record;
use crate::cli::rubric;
use crate::cli::submit;
use crate::event::id::JudgeId;
use crate::event::id::PolicyId;
use crate::event::id::Text;
use crate::event::payload::experiment::ExperimentClosed;
use crate::event::payload::experiment::ExperimentOutcome;
use crate::event::payload::experiment::ExperimentRegistered;
use crate::ledger::Command;
use crate::session::append;
use crate::view::View;
use crate::view::experiment;
use crate::view::rubric as views;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Begin an experiment
    #[command(
        after_help = "Example:\n  clover experiment register arena --title Arena --purpose 'compare four policies'\n  \
                      clover experiment register arena --title Arena --purpose 'mend a judge' --rubric rubric.yaml"
    )]
    Register(ExperimentRegisterArgs),
    /// End an experiment
    #[command(
        after_help = "Example:\n  clover experiment close arena --reason 'all rows labelled'"
    )]
    Close(ExperimentCloseArgs),
    /// Put clusters into fit, dev and confirm, before any confirm label
    #[command(after_help = "Example:\n  clover experiment split arena --seed 7 --hashed")]
    Split(experiment_split::Args),
    /// Experiments
    #[command(after_help = "Example:\n  clover experiment list")]
    List,
}

#[derive(Debug, clap::Args)]
pub(super) struct ExperimentRegisterArgs {
    /// Its id
    pub id: String,
    /// Its name for people
    #[arg(long)]
    pub title: String,
    /// What it is to find out
    #[arg(long)]
    pub purpose: String,
    /// The rubric that it starts from, YAML: registered with it
    #[arg(long, value_name = "FILE")]
    pub rubric: Option<PathBuf>,
    /// A judge that will score; may repeat
    #[arg(long = "judge", value_name = "ID")]
    pub judges: Vec<String>,
    /// A policy that will be scored; may repeat
    #[arg(long = "policy", value_name = "ID")]
    pub policies: Vec<String>,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ExperimentCloseArgs {
    /// Its id
    pub id: String,
    /// Why
    #[arg(long)]
    pub reason: String,
    /// It was given up
    #[arg(long)]
    pub aborted: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<View, CliError> {
    match verb {
        Verb::Register(args) => register(ctx, &args),
        Verb::Close(args) => {
            let payload = ExperimentClosed {
                outcome: if args.aborted {
                    ExperimentOutcome::Aborted
                } else {
                    ExperimentOutcome::Completed
                },
                reason: key::text("reason", &args.reason)?,
            };
            let experiment = record::experiment_id(&args.id)?;
            let question = format!(
                "close {experiment}: nothing more is scored, labelled or decided in it, and nothing opens it again"
            );
            let consent = submit::StepConsent {
                question: &question,
                yes: args.yes,
                again: "the same command with",
            };
            let command = Command::new(payload, Some(experiment));
            record::asked(ctx, command, args.dry_run, &consent)
        }
        Verb::Split(args) => experiment_split::run(ctx, &args),
        Verb::List => {
            let (_, ledger, at) = home::view(ctx)?;
            Ok(experiment::list(at.state(&ledger)))
        }
    }
}

fn register(ctx: &mut Ctx<'_>, args: &ExperimentRegisterArgs) -> Result<View, CliError> {
    let wrong = |what: &str, text: &str, error: crate::event::id::IdError| {
        CliError::usage(
            format!("--{what} {text:?}: {error}"),
            "clover experiment register --help",
        )
    };
    let judges: Result<Vec<JudgeId>, _> = args
        .judges
        .iter()
        .map(|text| text.parse().map_err(|error| wrong("judge", text, error)))
        .collect();
    let policies: Result<Vec<PolicyId>, _> = args
        .policies
        .iter()
        .map(|text| text.parse().map_err(|error| wrong("policy", text, error)))
        .collect();
    let payload = ExperimentRegistered {
        judges: Some(judges?).filter(|judges| !judges.is_empty()),
        policies: Some(policies?).filter(|policies| !policies.is_empty()),
        purpose: said("purpose", "what it is to find out", &args.purpose)?,
        title: said("title", "its name for people", &args.title)?,
    };
    let experiment = record::experiment_id(&args.id)?;
    let Some(file) = &args.rubric else {
        return record::one(ctx, Command::new(payload, Some(experiment)), args.dry_run);
    };
    let rubric = rubric::parsed(ctx, file)?;
    let of = (rubric.version.clone(), rubric.rubric_hash);
    let commands = [
        Command::new(payload, Some(experiment.clone())),
        Command::new(rubric, Some(experiment)),
    ];
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let signer = record::signer(ctx, &ledger, &commands[0].payload)?;
    if args.dry_run {
        let first = append::next_author_seq(&ledger, &signer);
        let rehearsed = append::rehearse(&ledger, &commands, &signer, (first, 1))?;
        return Ok(submit::story(ctx, &rehearsed));
    }
    let answer = submit::append(ctx, &mut ledger, &commands, &signer, false)?;
    Ok(views::registered(
        answer,
        false,
        &args.id,
        (of.0.as_str(), of.1),
    ))
}

/// Text that says something: the schema admits an empty one, and nobody can read it.
fn said(what: &str, says: &str, text: &str) -> Result<Text, CliError> {
    if text.trim().is_empty() {
        let message = format!("--{what} is empty: it says {says}");
        return Err(CliError::usage(
            message,
            "clover experiment register --help",
        ));
    }
    key::text(what, text)
}
