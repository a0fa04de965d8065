//! Opening iterations from their manifests, and listing them.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::intake;
use crate::cli::submit;
use crate::cli::ui;
use crate::event::id::IterationId;
use crate::event::id::JudgeId;
use crate::event::id::ManifestId;
use crate::event::id::PolicyId;
use crate::event::payload::iteration::AnchorRows;
use crate::event::payload::iteration::IterationOutcome;
use crate::ground::shell;
use crate::projection::iterations::Iterations;
use crate::projection::iterations::campaign::PATIENCE;
use crate::projection::manifests::Manifests;
use crate::session::iterate::open as session;
use crate::session::iterate::open::AnchorTerms;
use crate::view::View;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct OpenArgs {
    /// Its name, one in the whole ledger
    pub id: String,
    /// The manifest, of template iteration
    #[arg(long, value_name = "ID")]
    pub manifest: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn open(ctx: &mut Ctx<'_>, args: &OpenArgs) -> Result<View, CliError> {
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
    let opened = session::open(&mut ctx.ports(), &mut ledger, iteration, &manifest, intent)?;
    let mut answer = submit::shown(ctx, &ledger, &opened.submission);
    if !args.dry_run {
        let hash = opened.params_hash;
        answer.line(format!("iteration {}  parameters {hash}", args.id));
        answer.facts_mut()["params_hash"] = hash.to_hex().into();
    }
    if opened.is_after_stop {
        ctx.warn(after_the_stop(opened.experiment.as_str(), &args.id));
    }
    answer.facts_mut()["campaign_stopped"] = opened.is_after_stop.into();
    Ok(answer.with_next(format!("clover iterate run {}", shell::word(&args.id))))
}

/// What follows from opening an iteration after two quiet ones in a row.
fn after_the_stop(experiment: &str, iteration: &str) -> String {
    format!(
        "the campaign of {experiment} has stopped: in its last {PATIENCE} iterations no slice was significant, every shrunk \
         interval covered 0, and transport passed. {iteration} opens all the same; it may spend a peek, and what it finds \
         is likelier to be noise. The numbers: clover campaign status {experiment}"
    )
}

pub(super) fn list(ctx: &mut Ctx<'_>) -> Result<View, CliError> {
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
    Ok(View::untyped(
        ui::table(&head, rows),
        json!({"iterations": data}),
    ))
}

/// The word for an outcome.
pub(in crate::cli) fn word(outcome: IterationOutcome) -> &'static str {
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
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let terms = AnchorTerms {
        anchors,
        experiment: intake::experiment(ledger.state(), args.experiment.as_deref())?,
        low,
        high,
        judge: judge.transpose()?,
    };
    let intent = submit::intent(args.dry_run);
    let (registered, submission) = session::anchors(&mut ctx.ports(), &mut ledger, terms, intent)?;
    let mut answer = submit::shown(ctx, &ledger, &submission);
    if !args.dry_run {
        let rows = |of: &AnchorRows| format!("{} {} rows", of.policy, of.count);
        let (low, high) = (rows(&registered.low), rows(&registered.high));
        answer.line(format!("low {low} · high {high}"));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_opens_after_the_stop_is_told_what_follows() {
        let words = after_the_stop("arena", "it-9");
        for part in [
            "the campaign of arena has stopped",
            "it-9 opens all the same",
            "may spend a peek",
            "clover campaign status arena",
        ] {
            assert!(words.contains(part), "{words}");
        }
    }
}
