//! Acceptance and the end.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::bench::Bench;
use crate::cli::iterate::gates;
use crate::cli::iterate::ground::Done;
use crate::cli::iterate::ground::number;
use crate::cli::iterate::open;
use crate::cli::iterate::sequential;
use crate::cli::key;
use crate::cli::record;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::event::id::EventId;
use crate::event::id::Text;
use crate::event::payload::iteration::IterationClosed;
use crate::event::payload::iteration::IterationOutcome;
use crate::event::payload::predicate::Evidence;
use crate::event::payload::predicate::GateId;
use crate::event::payload::predicate::GateSplit;
use crate::event::payload::predicate::PatchAccepted;
use crate::event::payload::rubric::PatchProposed;
use crate::event::payload::rubric::RejectStage;
use crate::ground::digest::Digest;
use crate::ledger::Command;
use crate::num::Count;
use crate::projection::decisions::CONFIRM_GATES;
use crate::projection::decisions::DEV_GATES;
use crate::workflow::iterate::record::Record;
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

/// The gates of a patch, dev then confirm, each in order.
fn gates_of(record: &Record, candidate: Digest) -> Vec<EventId> {
    let of = |split, gates: &[GateId]| -> Vec<EventId> {
        let found = gates
            .iter()
            .filter_map(|&gate| record.gate(candidate, gate, split));
        found.map(|gate| gate.id).collect()
    };
    let mut ids = of(GateSplit::Dev, &DEV_GATES);
    ids.extend(of(GateSplit::Confirm, &CONFIRM_GATES));
    ids
}

fn proposed(record: &Record, hash: Digest) -> Option<&PatchProposed> {
    let mut all = record.proposed.iter().map(|patch| &patch.said);
    all.find(|patch| patch.patch_hash == hash)
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
        let improve = bench.record.gate(*hash, GateId::P8, GateSplit::Confirm);
        let improve = improve.and_then(|gate| match &gate.said.evidence {
            Evidence::P8(found) => Some(found.risk_improve),
            _ => None,
        });
        let (Some(patch), Some(risk_improve)) = (proposed(&bench.record, *hash), improve) else {
            continue;
        };
        let said = PatchAccepted {
            candidate: *hash,
            gates: gates_of(&bench.record, *hash),
            iteration: bench.id.clone(),
            kappa: patch.length.kappa,
            patch: patch.patch.clone(),
            rank: Count::new(at as u64 + 1).unwrap_or_default(),
            risk_improve,
            result_hash: patch.result_hash,
        };
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
        let early = sequential::stopped(&bench.record, one.candidate);
        let stopped = early.or_else(|| bench.stopped(one.candidate, GateSplit::Confirm));
        let (stage, code, words) = match stopped {
            Some((code, words)) => (RejectStage::Confirm, code, words),
            None => (
                RejectStage::Selection,
                "composite".to_owned(),
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

/// The outcome that the decisions call for, and why.
fn due(record: &Record) -> (IterationOutcome, String) {
    if let Some(paused) = &record.paused {
        let labels = paused.said.labels_requested;
        return (
            IterationOutcome::PausedForLabels,
            format!("{labels} more labels are needed"),
        );
    }
    if record.sealed.is_none() {
        let count = record.proposed.len();
        return (
            IterationOutcome::NoCandidate,
            format!("none of {count} patches passed on dev; no peek was spent"),
        );
    }
    match record.accepted.len() {
        0 => (
            IterationOutcome::NoneAccepted,
            "no sealed candidate passed on confirm".to_owned(),
        ),
        count => (IterationOutcome::Accepted, format!("{count} accepted")),
    }
}

/// Ends an iteration as its decisions say.
pub(super) fn close_on(ctx: &mut Ctx<'_>, bench: &mut Bench) -> Result<Done, CliError> {
    let mut text = reject_rest(ctx, bench)?;
    let (outcome, reason) = due(&bench.record);
    let said = IterationClosed {
        iteration: bench.id.clone(),
        outcome,
        reason: Text::new(reason.clone()).expect("BUG: a short sentence"),
    };
    let appended = bench.say(ctx, vec![said.into()])?;
    text.push_str(&format!(
        "iteration {}  {}: {reason}\n",
        bench.id,
        open::word(outcome)
    ));
    Ok((
        text,
        json!({"outcome": open::word(outcome), "reason": reason}),
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
