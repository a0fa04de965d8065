//! Acceptance and the end.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::bench::Bench;
use crate::cli::iterate::gates;
use crate::cli::iterate::ground::Done;
use crate::cli::iterate::ground::number;
use crate::cli::iterate::open;
use crate::cli::key;
use crate::cli::record;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::event::payload::iteration::IterationClosed;
use crate::event::payload::iteration::IterationOutcome;
use crate::event::payload::predicate::GateSplit;
use crate::event::payload::rubric::RejectStage;
use crate::ledger::Command;
use crate::workflow::iterate::outcome;
use crate::workflow::iterate::record::Step;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The iteration
    pub id: String,
}

/// How an iteration ended.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(in crate::cli) enum Outcome {
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
pub(in crate::cli) struct CloseArgs {
    /// The iteration
    pub id: String,
    /// How it ended; default what its decisions say
    #[arg(long, value_enum, hide_possible_values = true)]
    pub outcome: Option<Outcome>,
    /// Why
    #[arg(long)]
    pub reason: Option<String>,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn accept(ctx: &mut Ctx<'_>, id: &str) -> Result<Answer, CliError> {
    let mut bench = Bench::open(ctx, id)?;
    bench.only(Step::Accept)?;
    let (text, data, appended) = accept_on(ctx, &mut bench)?;
    Ok(bench.answer(text, data, &appended))
}

/// Accepts what is due, in order; rejects the rest of what was sealed.
pub(super) fn accept_on(ctx: &mut Ctx<'_>, bench: &mut Bench) -> Result<Done, CliError> {
    let order = bench.acceptable();
    let (mut rows, mut data, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for (at, hash) in order.iter().enumerate() {
        if bench
            .record
            .accepted
            .iter()
            .any(|of| of.said.candidate == *hash)
        {
            continue;
        }
        let Some(said) = outcome::acceptance(&bench.record, at, *hash) else {
            continue;
        };
        let risk_improve = said.risk_improve;
        rows.push(vec![
            said.rank.to_string(),
            said.patch.to_string(),
            said.kappa.to_string(),
            number(risk_improve.value()),
            said.result_hash.short().to_string(),
        ]);
        data.push(json!(said));
        all.extend(bench.say(ctx, vec![said.into()])?);
    }
    let head = [
        "rank",
        "patch",
        "kappa",
        "risk improvement",
        "rubric after it",
    ];
    Ok((ui::table(&head, rows), json!({"accepted": data}), all))
}

/// Rejects what was sealed, judged on confirm, and not accepted.
fn reject_rest(ctx: &mut Ctx<'_>, bench: &mut Bench) -> Result<String, CliError> {
    let sealed = bench.record.sealed.clone();
    let mut text = String::new();
    for one in sealed.iter().flat_map(|sealed| &sealed.said.hypotheses) {
        let standing = bench.record.standing();
        let patch = standing
            .into_iter()
            .find(|patch| patch.patch_hash == one.candidate);
        let accepted = bench
            .record
            .accepted
            .iter()
            .any(|of| of.said.candidate == one.candidate);
        let Some(patch) = patch.cloned().filter(|_| !accepted) else {
            continue;
        };
        if bench.record.unsealed.is_none() {
            continue;
        }
        let early = outcome::stopped_early(&bench.record, one.candidate);
        let early = early.map(|(gate, words)| (gate.to_string(), words));
        let stopped = early.or_else(|| bench.stopped(one.candidate, GateSplit::Confirm));
        let (stage, code, words) = match stopped {
            Some((code, words)) => (RejectStage::Confirm, code, words),
            None => (
                RejectStage::Selection,
                outcome::AFTER_OTHERS.to_owned(),
                "others go first".to_owned(),
            ),
        };
        gates::reject(ctx, bench, &patch, stage, &code)?;
        text.push_str(&ui::wrapped(&ui::escape(&format!(
            "{} not accepted: {words}",
            patch.patch
        ))));
    }
    Ok(text)
}

/// Ends an iteration as its decisions say.
pub(super) fn close_on(ctx: &mut Ctx<'_>, bench: &mut Bench) -> Result<Done, CliError> {
    let mut text = reject_rest(ctx, bench)?;
    let (ended, reason) = outcome::ending(&bench.record);
    let said = IterationClosed {
        iteration: bench.id.clone(),
        outcome: ended,
        reason: reason.clone(),
    };
    let reason = reason.as_str();
    let appended = bench.say(ctx, vec![said.into()])?;
    text.push_str(&format!(
        "iteration {}  {}: {reason}\n",
        bench.id,
        open::word(ended)
    ));
    Ok((
        text,
        json!({"outcome": open::word(ended), "reason": reason}),
        appended,
    ))
}

pub(super) fn close(ctx: &mut Ctx<'_>, args: &CloseArgs) -> Result<Answer, CliError> {
    let outcome = match args.outcome {
        None => {
            let mut bench = Bench::open(ctx, &args.id)?;
            bench.only(Step::Close)?;
            let (text, data, appended) = close_on(ctx, &mut bench)?;
            return Ok(bench.answer(text, data, &appended));
        }
        Some(Outcome::Accepted) => IterationOutcome::Accepted,
        Some(Outcome::NoCandidate) => IterationOutcome::NoCandidate,
        Some(Outcome::NoneAccepted) => IterationOutcome::NoneAccepted,
        Some(Outcome::PausedForLabels) => IterationOutcome::PausedForLabels,
        Some(Outcome::SdpChanged) => IterationOutcome::SdpChanged,
        Some(Outcome::Stopped) => IterationOutcome::Stopped,
        Some(Outcome::Tainted) => IterationOutcome::Tainted,
        Some(Outcome::TransportFailed) => IterationOutcome::TransportFailed,
    };
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
    record::one(ctx, Command::new(payload, Some(experiment)), args.dry_run)
}
