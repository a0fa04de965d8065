//! `clover deploy recalibrate`: fresh labels, a calibrator that is verified or fitted anew on them, and what it comes to.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::rubric;
use crate::cli::submit;
use crate::cli::ui;
use crate::event::id::JudgeId;
use crate::event::payload::Verdict;
use crate::event::payload::deployment::RecalibrationCompleted;
use crate::event::payload::deployment::RecalibrationTrigger;
use crate::ground::shell;
use crate::num::Finite;
use crate::session::SessionError;
use crate::session::deploy::recalibration;
use crate::session::deploy::recalibration::RecalibrationTerms;
use crate::view::View;
use crate::workflow::deploy::word;

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

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let judge: JudgeId = parsed("--judge", &args.judge)?;
    let design = parsed("--design", &args.design)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let terms = RecalibrationTerms {
        name: rubric::name(&args.prompt)?,
        judge,
        design,
        refit: args.refit,
        trigger: args.trigger.as_deref().map(|why| match why {
            "model" => RecalibrationTrigger::Model,
            "sdp" => RecalibrationTrigger::Sdp,
            _ => RecalibrationTrigger::HardRule,
        }),
    };
    let found = recalibration::recalibrate(&ledger, &terms)?;
    let (text, calibrator) = (lines(&found.said), found.said.calibrator.to_hex());
    let data = serde_json::to_value(&found.said).unwrap_or_default();
    for line in text.lines().filter(|_| found.verdict != Verdict::Pass) {
        ctx.note(line);
    }
    let intent = submit::intent(args.dry_run);
    let submission = found.record(&mut ctx.ports(), &mut ledger, intent);
    let submission = submission.map_err(|error| {
        let of_port = matches!(error, SessionError::Port(_));
        let mut error = CliError::from(error);
        if !of_port {
            error.data["recalibration"] = data.clone();
        }
        error
    })?;
    let mut answer = submit::shown(ctx, &ledger, &submission);
    answer.line(text.trim_end());
    answer.line(format!("{:<18}{}", "transport", word(found.verdict)));
    answer.facts_mut()["recalibration"] = json!(data);
    let event = answer.events.first().cloned().unwrap_or_default();
    Ok(answer.with_next(format!(
        "clover deploy activate {} --judge {} --calibrator {calibrator} --recalibration {event}",
        shell::word(&args.prompt),
        shell::word(&args.judge),
        calibrator = shell::word(&calibrator),
        event = shell::word(&event)
    )))
}
