//! `clover iterate`: iterations of a rubric, from the manifest that binds them to their end.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::key;
use crate::cli::patch;
use crate::cli::record;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::event::id::IterationId;
use crate::event::id::ManifestId;
use crate::event::payload::iteration::IterationClosed;
use crate::event::payload::iteration::IterationOpened;
use crate::event::payload::iteration::IterationOutcome;
use crate::ledger::Command;
use crate::projection::iterations::Iterations;
use crate::projection::manifests::Manifests;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Open an iteration; every number comes from its manifest
    #[command(after_help = "Example:\n  clover iterate open it-1 --manifest m-1")]
    Open(OpenArgs),
    /// Iterations, how far they are, and what was proposed
    #[command(after_help = "Example:\n  clover iterate list")]
    List,
    /// End an iteration
    #[command(
        after_help = "Example:\n  clover iterate close it-1 --outcome no-candidate --reason 'no patch passed on dev'"
    )]
    Close(CloseArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct OpenArgs {
    /// Its name, one in the whole ledger
    pub id: String,
    /// The manifest, of template iteration
    #[arg(long, value_name = "ID")]
    pub manifest: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// How an iteration ended.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum Outcome {
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
pub(super) struct CloseArgs {
    /// The iteration
    pub id: String,
    /// How it ended
    #[arg(long, value_enum, hide_possible_values = true)]
    pub outcome: Outcome,
    /// Why
    #[arg(long)]
    pub reason: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<Answer, CliError> {
    match verb {
        Verb::Open(args) => open(ctx, args),
        Verb::List => list(ctx),
        Verb::Close(args) => close(ctx, args),
    }
}

fn open(ctx: &mut Ctx<'_>, args: &OpenArgs) -> Result<Answer, CliError> {
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
    let (payload, experiment) = {
        let (_, ledger) = home::open_to_read(ctx)?;
        let state = ledger.state();
        let record = state.fold::<Manifests>().by_id.get(&manifest);
        let Some(record) = record else {
            let next = "clover log --kind manifest.registered";
            return Err(CliError::not_found(format!("no manifest {manifest}"), next));
        };
        let next = format!("clover prereg show {manifest}");
        let Some(version) = record.in_force() else {
            let message = format!("{manifest} has no version in force yet");
            return Err(CliError::refused(message, next));
        };
        let plan = version.manifest.iteration.as_ref();
        let Some((plan, design)) = plan.and_then(|plan| Some((plan, plan.design.as_ref()?))) else {
            let message = format!("{manifest} has no section iteration.design");
            return Err(CliError::refused(message, next));
        };
        let now = ledger.ambient().now();
        let now = now.max(state.keyring.recorded_at.unwrap_or(now));
        // An iteration that is open already is said again as it was.
        let known = state.fold::<Iterations>().by_id.get(&iteration);
        let quarter = known.map_or_else(|| now.quarter().to_string(), |it| it.quarter.clone());
        let payload = IterationOpened {
            digest: version.digest,
            iteration,
            params: Box::new(plan.clone()),
            params_hash: plan.params_hash(),
            quarter,
            rubric_hash: design.rubric_hash,
        };
        (payload, version.manifest.experiment.clone())
    };
    let hash = payload.params_hash;
    let mut answer = record::one(ctx, Command::new(payload, Some(experiment)), args.dry_run)?;
    if !args.dry_run {
        answer.line(&format!("iteration {}  parameters {hash}", args.id));
        answer.data["params_hash"] = hash.to_hex().into();
    }
    Ok(answer.with_next(format!("clover patch propose FILE --iteration {}", args.id)))
}

fn list(ctx: &mut Ctx<'_>) -> Result<Answer, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let (mut rows, mut data) = (Vec::new(), Vec::new());
    for (id, it) in &state.fold::<Iterations>().by_id {
        let manifest = state.fold::<Manifests>().of_digest(it.digest);
        let manifest = manifest.map_or("?", |(id, _)| id.as_str());
        let outcome = it.closed.map(|(outcome, _)| word(outcome));
        rows.push(vec![
            id.to_string(),
            it.experiment.to_string(),
            manifest.to_owned(),
            outcome.unwrap_or(it.stage().as_str()).to_owned(),
            it.candidates.len().to_string(),
            it.quarter.clone(),
            format!("seq {}", it.opened_seq),
        ]);
        data.push(json!({
            "iteration": id.as_str(), "experiment": it.experiment.as_str(), "manifest": manifest,
            "stage": it.stage().as_str(), "outcome": outcome, "patches": it.candidates.len(),
            "quarter": it.quarter, "opened_seq": it.opened_seq, "unsealed_seq": it.unsealed_seq,
            "params_hash": it.params_hash.to_hex(), "rubric_hash": it.rubric_hash.to_hex(),
        }));
    }
    let head = [
        "iteration",
        "experiment",
        "manifest",
        "standing",
        "patches",
        "quarter",
        "opened",
    ];
    Ok(Answer::new(
        ui::table(&head, rows),
        json!({"iterations": data}),
    ))
}

/// The word for an outcome.
pub(super) fn word(outcome: IterationOutcome) -> &'static str {
    match outcome {
        IterationOutcome::Accepted => "accepted",
        IterationOutcome::NoCandidate => "no_candidate",
        IterationOutcome::NoneAccepted => "none_accepted",
        IterationOutcome::PausedForLabels => "paused_for_labels",
        IterationOutcome::SdpChanged => "sdp_changed",
        IterationOutcome::Stopped => "stopped",
        IterationOutcome::Tainted => "tainted",
        IterationOutcome::TransportFailed => "transport_failed",
    }
}

fn close(ctx: &mut Ctx<'_>, args: &CloseArgs) -> Result<Answer, CliError> {
    let (id, experiment) = {
        let (_, ledger) = home::open_to_read(ctx)?;
        let (id, it) = patch::iteration(ledger.state(), &args.id)?;
        (id, it.experiment.clone())
    };
    let outcome = match args.outcome {
        Outcome::Accepted => IterationOutcome::Accepted,
        Outcome::NoCandidate => IterationOutcome::NoCandidate,
        Outcome::NoneAccepted => IterationOutcome::NoneAccepted,
        Outcome::PausedForLabels => IterationOutcome::PausedForLabels,
        Outcome::SdpChanged => IterationOutcome::SdpChanged,
        Outcome::Stopped => IterationOutcome::Stopped,
        Outcome::Tainted => IterationOutcome::Tainted,
        Outcome::TransportFailed => IterationOutcome::TransportFailed,
    };
    let payload = IterationClosed {
        iteration: id,
        outcome,
        reason: key::text("reason", &args.reason)?,
    };
    record::one(ctx, Command::new(payload, Some(experiment)), args.dry_run)
}
