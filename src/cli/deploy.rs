//! `clover deploy`: which committed prompt runs, whether its guardrails hold, and the way back.

use std::path::PathBuf;

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::error::Exit;
use crate::cli::home;
use crate::cli::input;
use crate::cli::iterate::bench::failed;
use crate::cli::key;
use crate::cli::record;
use crate::cli::rubric;
use crate::cli::submit;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::event::Payload;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::event::id::Text;
use crate::event::payload::Verdict;
use crate::event::payload::deployment::DeploymentActivated;
use crate::event::payload::deployment::DeploymentRolledBack;
use crate::event::payload::deployment::GuardrailChecked;
use crate::event::payload::deployment::LiveEvidence;
use crate::event::payload::deployment::Versions;
use crate::event::payload::deployment::Window;
use crate::ground::shell;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::num::Count;
use crate::projection::deployments::Deployment;
use crate::projection::deployments::Deployments;
use crate::projection::deployments::Fitted;
use crate::projection::deployments::OfExperiment;
use crate::projection::rubrics::Rubrics;
use crate::workflow::deploy;
use crate::workflow::guardrails;
use crate::workflow::live;
use crate::workflow::live::guardrails::Watched;
use crate::workflow::patches;
use crate::workflow::prompts;

const NEXT: &str = "clover deploy status";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Let the newest committed prompt run
    #[command(after_help = "Example:\n  clover deploy activate arena@1.1 --judge llm")]
    Activate(ActivateArgs),
    /// Check the guardrails of what runs; a breach rolls back in the same append
    #[command(
        after_help = "Fewer than 40 labels or rows decide nothing. What was not looked at is not_checked: no pass.\n\nExample:\n  clover deploy check arena"
    )]
    Check(CheckArgs),
    /// Hold the calibrator against fresh labels, where a hard rule, the model or the protocol changed
    #[command(
        after_help = "Residuals of the labels pass as at gate P6; means of both anchor policies move by at most 0.01.\n\nExample:\n  clover deploy recalibrate arena --judge llm --design fresh-1"
    )]
    Recalibrate(super::recalibrate::Args),
    /// What runs, what ran before, and how its guardrails stand
    #[command(after_help = "Example:\n  clover deploy status arena")]
    Status(StatusArgs),
    /// Let what ran before run again
    #[command(
        after_help = "Example:\n  clover deploy rollback arena --reason 'support asked for it'"
    )]
    Rollback(RollbackArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ActivateArgs {
    /// As in arena or arena@1.1
    #[arg(value_name = "EXPERIMENT[@VERSION]")]
    pub prompt: String,
    /// The judge whose raw answers are used
    #[arg(long, value_name = "ID")]
    pub judge: String,
    /// Digest of the calibrator; default: the one its gates were evaluated with, else the newest fitted for the judge
    #[arg(long, value_name = "DIGEST")]
    pub calibrator: Option<String>,
    /// The model, where the judge is not registered
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// The anchor set
    #[arg(long, value_name = "ID")]
    pub anchors: Option<String>,
    /// The recalibration.completed that it stands on, where one is needed
    #[arg(long, value_name = "ID")]
    pub recalibration: Option<String>,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// The experiment
    pub experiment: String,
    /// Only rows and labels since the last check; default all since the activation
    #[arg(long, conflicts_with = "evidence")]
    pub since_last: bool,
    /// What live rows show, by hand: JSON as in `clover schema guardrail.checked`
    #[arg(long, value_name = "FILE", requires = "by_hand")]
    pub evidence: Option<PathBuf>,
    /// Why it is by hand and not computed from rows; it stays on record as such
    #[arg(long, value_name = "REASON", requires = "evidence")]
    pub by_hand: Option<String>,
    /// Print the canonical unsigned bodies and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct StatusArgs {
    /// Of this experiment alone
    pub experiment: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct RollbackArgs {
    /// The experiment
    pub experiment: String,
    /// Why
    #[arg(long)]
    pub reason: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<Answer, CliError> {
    match verb {
        Verb::Activate(args) => activate(ctx, args),
        Verb::Check(args) => check(ctx, args),
        Verb::Recalibrate(args) => super::recalibrate::run(ctx, args),
        Verb::Status(args) => status(ctx, args),
        Verb::Rollback(args) => rollback(ctx, args),
    }
}

fn parsed<T: std::str::FromStr>(what: &str, text: &str) -> Result<T, CliError>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| {
        CliError::usage(format!("{what} {text:?}: {error}"), "clover deploy --help")
    })
}

fn activate(ctx: &mut Ctx<'_>, args: &ActivateArgs) -> Result<Answer, CliError> {
    let (experiment, said) = {
        let (_, ledger) = home::open_to_read(ctx)?;
        activation(ledger.state(), args)?
    };
    let command = Command::new(said, Some(experiment.clone()));
    let answer = record::one(ctx, command, args.dry_run)?;
    Ok(answer.with_next(format!(
        "clover deploy status {experiment}",
        experiment = shell::word(&experiment)
    )))
}

/// The activation that the arguments ask for.
fn activation(
    state: &State,
    args: &ActivateArgs,
) -> Result<(ExperimentId, DeploymentActivated), CliError> {
    let (experiment, registered) = rubric::named(state, &args.prompt)?;
    let none = OfExperiment::default();
    let of = state.fold::<Deployments>().of(&experiment).unwrap_or(&none);
    let judge: JudgeId = parsed("--judge", &args.judge)?;
    let free = |fitted: &Fitted| fitted.judge == judge && fitted.rubrics.is_empty();
    let newest = of.calibrators.iter().filter(|(_, of)| free(of));
    let newest = newest
        .max_by_key(|(_, of)| of.seq)
        .map(|(digest, _)| *digest);
    let hashes = prompts::judged_as(state, &experiment, registered);
    let newest = of.evaluated(&judge, &hashes).or(newest);
    let calibrator = match &args.calibrator {
        Some(text) => Some(crate::cli::blob::digest("--calibrator", text)?),
        None => newest,
    };
    let Some(calibrator) = calibrator else {
        let message = format!("no calibrator was fitted for {judge}");
        return Err(CliError::not_found(message, "clover estimate"));
    };
    let model = of.models.get(&judge).or(args.model.as_ref());
    let model = model.map_or(args.judge.as_str(), String::as_str);
    let (Some(rubric), Some(told)) = (
        patches::rubric_of(registered),
        prompts::told(state, &experiment, registered),
    ) else {
        let message = format!("the rubric of {} cannot be read", args.prompt);
        return Err(CliError::not_found(message, "clover verify"));
    };
    let anchors = args.anchors.as_deref();
    let recalibration = args.recalibration.as_deref().map(record::event_id);
    let said = DeploymentActivated {
        commit: registered.id,
        previous: of.active,
        recalibration: recalibration.transpose()?,
        rubric_hash: registered.hash,
        versions: Versions {
            anchors: anchors.map(|id| parsed("--anchors", id)).transpose()?,
            calibrator,
            judge,
            model: key::text("model", model)?,
            prompt_hash: told.hash,
            rubric_version: registered.version.clone(),
            sdp_version: parsed("sdp_version", rubric.sdp_version())?,
        },
    };
    Ok((experiment, said))
}

/// The running deployment of an experiment, or what there is to do without one.
fn running<'a>(
    state: &'a State,
    experiment: &ExperimentId,
) -> Result<(&'a OfExperiment, &'a Deployment), CliError> {
    let of = state.fold::<Deployments>().of(experiment);
    of.and_then(|of| Some((of, of.running()?))).ok_or_else(|| {
        let message = format!("nothing of {experiment} runs");
        CliError::not_found(message, NEXT)
    })
}

/// The rollback to what ran before.
fn back(
    of: &OfExperiment,
    running: &Deployment,
    breach: Option<EventId>,
    reason: Text,
) -> DeploymentRolledBack {
    let before = of.before();
    DeploymentRolledBack {
        breach,
        deployment: running.id,
        reason,
        restored: before.map(|of| of.id),
        rubric_hash: before.map(|of| of.rubric_hash),
    }
}

fn rollback(ctx: &mut Ctx<'_>, args: &RollbackArgs) -> Result<Answer, CliError> {
    let experiment = record::experiment_id(&args.experiment)?;
    let reason = key::text("reason", &args.reason)?;
    let said = {
        let (_, ledger) = home::open_to_read(ctx)?;
        let (of, running) = running(ledger.state(), &experiment)?;
        let breach = of.breach().map(|of| of.id);
        back(of, running, breach, reason)
    };
    let command = Command::new(said, Some(experiment.clone()));
    let answer = record::one(ctx, command, args.dry_run)?;
    Ok(answer.with_next(format!(
        "clover deploy status {experiment}",
        experiment = shell::word(&experiment)
    )))
}

fn check(ctx: &mut Ctx<'_>, args: &CheckArgs) -> Result<Answer, CliError> {
    let experiment = record::experiment_id(&args.experiment)?;
    let given = given(ctx, args)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let said = checked(&ledger, &experiment, given, args.since_last)?;
    let by_hand = said.by_hand.clone();
    let read = said.inputs;
    let verdicts = said.verdicts;
    let payload = Payload::from(said);
    let signer = record::signer(ctx, &ledger, &payload)?;
    let command = Command::new(payload, Some(experiment.clone()));
    let mut answer = if verdicts.is_breach() && !args.dry_run {
        let failed = verdicts.each().into_iter();
        let failed: Vec<_> = failed
            .filter(|(_, said)| *said == Verdict::Fail)
            .map(|(name, _)| name)
            .collect();
        let reason = key::text("reason", &format!("breach of {}", failed.join(", ")))?;
        let (of, running) = running(ledger.state(), &experiment)?;
        let undo = back(of, running, None, reason);
        let undone = |breach| {
            let back = DeploymentRolledBack {
                breach: Some(breach),
                ..undo
            };
            Command::new(back, Some(experiment.clone()))
        };
        submit::append_two(ctx, &mut ledger, command, undone, &signer)?
    } else {
        submit::append(ctx, &mut ledger, &[command], &signer, args.dry_run)?
    };
    for (name, said) in verdicts.each() {
        answer.line(&format!("{name:<14}{}", deploy::word(said)));
    }
    if let Some(why) = &by_hand {
        answer.line(&format!("by hand       {}", why.as_str()));
    }
    answer.data["by_hand"] = json!(by_hand);
    answer.data["inputs"] = json!(read);
    let shown = verdicts
        .each()
        .map(|(name, said)| (name, deploy::word(said)));
    answer.data["guardrails"] = json!(std::collections::BTreeMap::from(shown));
    if verdicts.is_breach() {
        answer.exit = Exit::Fail;
    }
    Ok(answer.with_next(format!(
        "clover deploy status {experiment}",
        experiment = shell::word(&experiment)
    )))
}

/// Evidence that is given by hand, with the reason.
fn given(ctx: &mut Ctx<'_>, args: &CheckArgs) -> Result<Option<(LiveEvidence, Text)>, CliError> {
    let (Some(file), Some(why)) = (&args.evidence, &args.by_hand) else {
        return Ok(None);
    };
    let bytes = ctx.read(file)?;
    let next = "clover schema guardrail.checked";
    let source = rubric::source(file);
    let evidence = input::document(&bytes).map_err(|fault| fault.into_error(&source, 1, next))?;
    Ok(Some((evidence, key::text("by-hand", why)?)))
}

/// The check of what runs: as given, else from the rows since its activation or its last check.
fn checked(
    ledger: &Ledger,
    experiment: &ExperimentId,
    given: Option<(LiveEvidence, Text)>,
    since_last: bool,
) -> Result<GuardrailChecked, CliError> {
    let state = ledger.state();
    let (of, running) = running(state, experiment)?;
    let registered = state.fold::<Rubrics>().of_id(experiment, running.commit);
    let plan = registered.and_then(|of| prompts::plan_told(state, experiment, of));
    let Some(plan) = plan else {
        let message =
            "the rubric that runs was never part of an iteration: no plan has its thresholds";
        return Err(CliError::not_found(message, "clover iterate list"));
    };
    let thresholds = guardrails::thresholds(plan);
    let count = |value: u64| Count::new(value).unwrap_or_default();
    let last = of.checked.filter(|_| since_last).map(|of| of.seq + 1);
    let window = Window {
        from_seq: count(last.unwrap_or(running.seq + 1)),
        through_seq: count(ledger.size().saturating_sub(1)),
    };
    if window.from_seq > window.through_seq {
        let message = format!("nothing was recorded since seq {}", window.through_seq);
        return Err(CliError::refused(message, "clover judge run --help"));
    }
    let (evidence, by_hand, inputs) = if let Some((evidence, why)) = given {
        (evidence, Some(why), None)
    } else {
        let releases = live::releases(ledger, experiment, ledger.size())?;
        let watched = Watched::of(ledger, &releases, running.id, ledger.size());
        let watched = watched.map_err(failed)?;
        let found = live::guardrails::shown(ledger, &watched, experiment, &thresholds, window);
        let (evidence, inputs) = found.map_err(failed)?;
        (evidence, None, Some(inputs))
    };
    Ok(GuardrailChecked {
        by_hand,
        deployment: running.id,
        inputs,
        verdicts: guardrails::verdicts(&evidence, &thresholds),
        evidence,
        thresholds,
        window,
    })
}

fn standing(of: &OfExperiment, deployment: &Deployment) -> String {
    match deployment.rolled_back {
        Some(seq) => format!("rolled back, seq {seq}"),
        None if of.active == Some(deployment.id) => "runs".to_owned(),
        None => "ran".to_owned(),
    }
}

fn status(ctx: &mut Ctx<'_>, args: &StatusArgs) -> Result<Answer, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let wanted = args.experiment.as_deref().map(record::experiment_id);
    let wanted = wanted.transpose()?;
    let (mut rows, mut data): (Vec<Vec<String>>, Vec<Value>) = (Vec::new(), Vec::new());
    for (id, of) in &state.fold::<Deployments>().by_experiment {
        if wanted.as_ref().is_some_and(|wanted| wanted != id) {
            continue;
        }
        for deployment in of.deployments.iter().rev() {
            let versions = &deployment.versions;
            let checked = of.checked.filter(|_| of.active == Some(deployment.id));
            let held = match checked {
                Some(checked) if checked.is_breach => format!("breach, seq {}", checked.seq),
                Some(checked) => format!("held, seq {}", checked.seq),
                None => String::new(),
            };
            rows.push(vec![
                format!("{id}@{}", versions.rubric_version),
                standing(of, deployment),
                format!("seq {}", deployment.seq),
                versions.judge.to_string(),
                versions.model.as_str().to_owned(),
                versions.calibrator.short().to_string(),
                held,
            ]);
            data.push(json!({
                "experiment": id.as_str(), "event": deployment.id.to_string(), "seq": deployment.seq,
                "versions": versions, "commit": deployment.commit.to_string(),
                "running": of.active == Some(deployment.id), "rolled_back": deployment.rolled_back,
                "previous": deployment.previous.map(|id| id.to_string()),
                "checked": checked.map(|of| json!({"seq": of.seq, "breach": of.is_breach})),
            }));
        }
    }
    let head = [
        "version",
        "standing",
        "since",
        "judge",
        "model",
        "calibrator",
        "guardrails",
    ];
    Ok(Answer::new(
        ui::table(&head, rows),
        json!({"deployments": data}),
    ))
}
