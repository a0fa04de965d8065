//! Acceptance and the end.

use clap::ValueEnum;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::bench;
use crate::cli::iterate::run;
use crate::cli::iterate::run::StepOptions;
use crate::cli::key;
use crate::cli::record;
use crate::cli::submit;
use crate::event::payload::iteration::IterationClosed;
use crate::event::payload::iteration::IterationOutcome;
use crate::ledger::Command;
use crate::projection::iterations::step::Step;
use crate::view::Exit;
use crate::view::View;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The iteration
    pub id: String,
}

/// How an iteration ended.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(in crate::cli) enum CloseOutcome {
    Accepted,
    NoCandidate,
    NoneAccepted,
    PausedForLabels,
    SdpChanged,
    Stopped,
    Tainted,
    TransportFailed,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct IterateCloseArgs {
    /// The iteration
    pub id: String,
    /// How it ended; default what its decisions say
    #[arg(long, value_enum, hide_possible_values = true)]
    pub outcome: Option<CloseOutcome>,
    /// Why
    #[arg(long)]
    pub reason: Option<String>,
    /// Do not ask before an outcome of your own ends it
    #[arg(long)]
    pub yes: bool,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn close(ctx: &mut Ctx<'_>, args: &IterateCloseArgs) -> Result<View, CliError> {
    let outcome = match args.outcome {
        None => {
            let bench = bench::open(ctx, &args.id)?;
            return run::step(ctx, bench, Step::Close, &StepOptions::default());
        }
        Some(CloseOutcome::Accepted) => IterationOutcome::Accepted,
        Some(CloseOutcome::NoCandidate) => IterationOutcome::NoCandidate,
        Some(CloseOutcome::NoneAccepted) => IterationOutcome::NoneAccepted,
        Some(CloseOutcome::PausedForLabels) => IterationOutcome::PausedForLabels,
        Some(CloseOutcome::SdpChanged) => IterationOutcome::SdpChanged,
        Some(CloseOutcome::Stopped) => IterationOutcome::Stopped,
        Some(CloseOutcome::Tainted) => IterationOutcome::Tainted,
        Some(CloseOutcome::TransportFailed) => IterationOutcome::TransportFailed,
    };
    let word = args.outcome.as_ref().and_then(ValueEnum::to_possible_value);
    let word = word.map_or_else(String::new, |of| of.get_name().to_owned());
    let Some(reason) = &args.reason else {
        let message = "--outcome needs --reason TEXT";
        return Err(CliError::usage(message, "clover iterate close --help"));
    };
    let (id, experiment) = {
        let (_, ledger) = crate::cli::home::open_to_read(ctx)?;
        let (id, it) = crate::cli::patch::iteration(ledger.state(), &args.id)?;
        (id, it.experiment.clone())
    };
    let payload = IterationClosed {
        iteration: id,
        outcome,
        reason: key::text("reason", reason)?,
    };
    let question = format!(
        "end {} as {word}: nothing goes on in it, and its peek is not given back",
        args.id
    );
    let consent = submit::StepConsent {
        question: &question,
        yes: args.yes,
        again: "the same command with",
    };
    let is_paused = payload.outcome == IterationOutcome::PausedForLabels && !args.dry_run;
    let command = Command::new(payload, Some(experiment));
    let mut view = record::asked(ctx, command, args.dry_run, &consent)?;
    if is_paused {
        (view.verdict, view.exit) = ("paused", Exit::Inconclusive);
    }
    Ok(view)
}
