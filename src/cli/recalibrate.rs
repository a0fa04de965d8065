//! `clover deploy recalibrate`: fresh labels, a calibrator that is verified or fitted anew on them, and what it comes to.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::iterate::bench::failed;
use crate::cli::record;
use crate::cli::rubric;
use crate::cli::submit;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::event::payload::Verdict;
use crate::event::payload::deployment::RecalibrationCompleted;
use crate::event::payload::deployment::RecalibrationTrigger;
use crate::event::payload::predicate::Evidence;
use crate::ground::shell;
use crate::ledger::Command;
use crate::ledger::State;
use crate::num::Finite;
use crate::projection::deployments::Deployments;
use crate::projection::rubrics::Registered;
use crate::workflow::deploy::word;
use crate::workflow::guardrails;
use crate::workflow::live;
use crate::workflow::live::recalibration;
use crate::workflow::live::recalibration::Ask;
use crate::workflow::live::recalibration::Found;
use crate::workflow::predicate;
use crate::workflow::prompts;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// As in arena or arena@1.1
    #[arg(value_name = "EXPERIMENT[@VERSION]")]
    pub prompt: String,
    /// The judge whose raw answers are used
    #[arg(long, value_name = "ID")]
    pub judge: String,
    /// The design of the fresh labels
    #[arg(long, value_name = "ID")]
    pub design: String,
    /// Fit the calibrator anew on them
    #[arg(long)]
    pub refit: bool,
    /// Why, where several things changed: hard-rule, model or sdp
    #[arg(long, value_name = "WHY", value_parser = ["hard-rule", "model", "sdp"])]
    pub trigger: Option<String>,
    /// Show what it would say and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

fn parsed<T: std::str::FromStr>(what: &str, text: &str) -> Result<T, CliError>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| {
        let message = format!("{what} {text:?}: {error}");
        CliError::usage(message, "clover deploy recalibrate --help")
    })
}

/// Why: as asked; else the model where it differs from what runs, else a hard rule.
fn trigger(
    state: &State,
    experiment: &ExperimentId,
    judge: &JudgeId,
    asked: Option<&str>,
) -> RecalibrationTrigger {
    let of = state.fold::<Deployments>().of(experiment);
    let running = of.and_then(|of| of.running());
    match asked {
        Some("model") => RecalibrationTrigger::Model,
        Some("sdp") => RecalibrationTrigger::Sdp,
        None if running.is_some_and(|of| of.versions.judge != *judge) => {
            RecalibrationTrigger::Model
        }
        Some(_) | None => RecalibrationTrigger::HardRule,
    }
}

fn completed(
    state: &State,
    (experiment, registered): (&ExperimentId, &Registered),
    ask: &Ask<'_>,
    found: Found,
    asked: Option<&str>,
) -> RecalibrationCompleted {
    RecalibrationCompleted {
        anchors: found.anchors,
        calibrator: found.calibrator,
        commit: registered.id,
        computed: Some(found.computed),
        design: ask.design.clone(),
        judge: ask.judge.clone(),
        labels: found.labels,
        transport: None,
        trigger: trigger(state, experiment, ask.judge, asked),
    }
}

fn number(value: Option<Finite>) -> String {
    value.map_or("-".to_owned(), |value| format!("{:+.4}", value.value()))
}

fn lines(said: &RecalibrationCompleted) -> String {
    let mut text = ui::pairs(&[
        ("fresh labels", said.labels.to_string()),
        ("calibrator", said.calibrator.to_hex()),
    ]);
    for of in said
        .computed
        .iter()
        .flat_map(|of| &of.transport.environments)
    {
        text.push_str(&format!(
            "{:<18}mean residual {} on {} labels, detectable {}\n",
            ui::cut(&format!("{} {}", of.family, of.environment), 16),
            number(of.mean),
            of.rows,
            number(of.detectable_bias),
        ));
    }
    for of in &said.anchors.anchors {
        let moved = format!("{:.4} on {} rows", of.drift.value(), of.rows);
        text.push_str(&format!(
            "{:<18}moved {moved}\n",
            ui::cut(of.policy.as_str(), 16)
        ));
    }
    text
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<Answer, CliError> {
    let judge: JudgeId = parsed("--judge", &args.judge)?;
    let design = parsed("--design", &args.design)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let state = ledger.state();
    let (experiment, registered) = rubric::named(state, &args.prompt)?;
    let Some(plan) = prompts::plan_told(state, &experiment, registered) else {
        let message = "the rubric was never part of an iteration: no plan has its thresholds";
        return Err(CliError::not_found(message, "clover iterate list"));
    };
    let held = guardrails::thresholds(plan);
    let ask = Ask {
        design: &design,
        experiment: &experiment,
        judge: &judge,
        refit: args.refit,
        through: ledger.size().saturating_sub(1),
    };
    let releases = live::releases(&ledger, &experiment, ledger.size())?;
    let of = (registered.id, ledger.size());
    let found = recalibration::recalibrate(&ledger, &releases, of, &ask, &held).map_err(failed)?;
    let transport = Evidence::P6(found.computed.transport.clone());
    let verdict = predicate::verdicts(&transport, &held).recommended;
    let asked = args.trigger.as_deref();
    let said = completed(state, (&experiment, registered), &ask, found, asked);
    let (text, calibrator) = (lines(&said), said.calibrator.to_hex());
    let data = serde_json::to_value(&said).unwrap_or_default();
    for line in text.lines().filter(|_| verdict != Verdict::Pass) {
        ctx.note(line);
    }
    let payload = Payload::from(said);
    let signer = record::signer(ctx, &ledger, &payload)?;
    let command = Command::new(payload, Some(experiment));
    let appended = submit::append(ctx, &mut ledger, &[command], &signer, args.dry_run);
    let mut answer = appended.map_err(|mut error| {
        error.data["recalibration"] = data.clone();
        error
    })?;
    answer.line(text.trim_end());
    answer.line(&format!("{:<18}{}", "transport", word(verdict)));
    answer.data["recalibration"] = json!(data);
    let event = answer.events.first().cloned().unwrap_or_default();
    Ok(answer.with_next(format!(
        "clover deploy activate {} --judge {} --calibrator {calibrator} --recalibration {event}",
        shell::word(&args.prompt),
        shell::word(&args.judge),
        calibrator = shell::word(&calibrator),
        event = shell::word(&event)
    )))
}
