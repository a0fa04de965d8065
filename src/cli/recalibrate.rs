//! `clover deploy recalibrate`: fresh labels, a calibrator that is verified or fitted anew on them, and what it comes to.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::rubric;
use crate::cli::submit;
use crate::event::id::JudgeId;
use crate::event::payload::Verdict;
use crate::event::payload::deployment::RecalibrationTrigger;
use crate::ground::shell;
use crate::session::SessionError;
use crate::session::deploy::recalibration;
use crate::session::deploy::recalibration::RecalibrationTerms;
use crate::session::judge::registration;
use crate::view::View;
use crate::view::deploy;
use crate::view::recalibrate::RecalibrationPage;
use crate::workflow::iterate::course::CourseError;

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
    let found = match recalibration::recalibrate(&ledger, &terms) {
        Ok(found) => found,
        Err(error) => {
            let is_thin = matches!(error, SessionError::Course(CourseError::Unfit(_)));
            let port = registration::port(&ledger, &terms.name.experiment, &terms.judge)?;
            let mut error = CliError::from(error);
            if let Some(port) = port.filter(|_| is_thin) {
                error.message.push_str(
                    ": labels of this design on rows that the judge scored under the version",
                );
                error.next = deploy::scored(&shell::word(&args.judge), port);
            }
            return Err(error);
        }
    };
    let shown = RecalibrationPage::of(&args.prompt, &args.judge, &found);
    for line in shown.remarks().filter(|_| found.verdict != Verdict::Pass) {
        ctx.note(&line);
    }
    let intent = submit::intent(args.dry_run);
    let submission = found.record(&mut ctx.ports(), &mut ledger, intent);
    let submission = submission.map_err(|error| {
        let of_port = matches!(error, SessionError::Port(_));
        let mut error = CliError::from(error);
        if !of_port {
            error.data["recalibration"] = shown.data();
        }
        error
    })?;
    let answer = submit::shown(ctx, &ledger, &submission);
    Ok(if args.dry_run {
        shown.rehearsed(answer)
    } else {
        shown.recorded(answer)
    })
}
