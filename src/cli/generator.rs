//! `clover generator`: a policy that is tuned under a frozen judge, what it may ask, whether fresh labels say that it got
//! better, and the way back.

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::iterate::program::Program;
use crate::cli::key;
use crate::cli::record;
use crate::cli::submit;
use crate::cli::ui;
use crate::event::Payload;
use crate::event::id::DesignId;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::id::PolicyId;
use crate::event::id::RunId;
use crate::event::payload::Verdict;
use crate::event::payload::generator::GeneratorValidated;
use crate::ground::shell;
use crate::num::Count;
use crate::num::Finite;
use crate::num::Micro;
use crate::projection::generators::Generators;
use crate::projection::generators::Run;
use crate::projection::generators::RunState;
use crate::session::deploy::generator;
use crate::session::deploy::generator::RunTerms;
use crate::view::Exit;
use crate::view::View;
use crate::workflow::deploy::word;

const LIST: &str = "clover generator list";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Freeze the judge that runs, so that a policy may be tuned under it
    #[command(
        override_usage = "clover generator open RUN --experiment <ID> --old <POLICY> --new <POLICY> --steps <N>",
        after_help = "Example:\n  clover generator open tune-1 --experiment arena --old base --new tuned --steps 20"
    )]
    Open(OpenArgs),
    /// Ask what outputs are worth: a lower bound for each, one step of the run
    #[command(after_help = "Example:\n  clover generator objective tune-1 --policy tuned-try-3")]
    Objective(ObjectiveArgs),
    /// Compare both policies on fresh labels, and hold the frozen judge against the new one's outputs
    #[command(after_help = "Example:\n  clover generator validate tune-1 --design ab-1")]
    Validate(ValidateArgs),
    /// Let the old policy answer again
    #[command(
        after_help = "Example:\n  clover generator rollback tune-1 --reason 'no gain on fresh labels'"
    )]
    Rollback(RollbackArgs),
    /// One run: what was frozen, what it asked, what came of it
    #[command(after_help = "Example:\n  clover generator show tune-1")]
    Show(ShowArgs),
    /// Every run, and how it stands
    #[command(after_help = "Example:\n  clover generator list arena")]
    List(ListArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct OpenArgs {
    /// Name of the run
    pub run: String,
    /// The experiment
    #[arg(long, value_name = "ID")]
    pub experiment: String,
    /// The policy that it is to be better than
    #[arg(long, value_name = "POLICY")]
    pub old: String,
    /// The policy that is tuned
    #[arg(long, value_name = "POLICY")]
    pub new: String,
    /// Questions that it may ask: 1 to 10,000
    #[arg(long, value_name = "N")]
    pub steps: u64,
    /// What is at stake, from 0 to 1; from 0.7 on no waiver stands for the battery
    #[arg(long, value_name = "SHARE", default_value = "0.5")]
    pub stakes: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ObjectiveArgs {
    /// The run
    pub run: String,
    /// Whose outputs, scored since the run was opened; default the run's new policy
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct ValidateArgs {
    /// The run
    pub run: String,
    /// The label design, for audits and registered after the run was opened
    #[arg(long, value_name = "ID")]
    pub design: String,
    /// Show what it would say and append nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub program: Program,
}

#[derive(Debug, clap::Args)]
pub(super) struct RollbackArgs {
    /// The run
    pub run: String,
    /// Why
    #[arg(long)]
    pub reason: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// The run
    pub run: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Of this experiment alone
    pub experiment: Option<String>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Open(args) => open(ctx, args),
        Verb::Objective(args) => objective(ctx, args),
        Verb::Validate(args) => validate(ctx, args),
        Verb::Rollback(args) => rollback(ctx, args),
        Verb::Show(args) => show(ctx, args),
        Verb::List(args) => list(ctx, args),
    }
}

fn parsed<T: std::str::FromStr>(what: &str, text: &str) -> Result<T, CliError>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| {
        CliError::usage(
            format!("{what} {text:?}: {error}"),
            "clover generator --help",
        )
    })
}

fn open(ctx: &mut Ctx<'_>, args: &OpenArgs) -> Result<View, CliError> {
    let experiment = record::experiment_id(&args.experiment)?;
    let stakes = Micro::parse(&args.stakes).ok();
    let stakes = stakes.filter(|(value, _)| (0..=1_000_000).contains(&value.value()));
    let Some((stakes_micro, _)) = stakes else {
        let message = format!("--stakes {:?}: expected a number from 0 to 1", args.stakes);
        return Err(CliError::usage(message, "clover generator open --help"));
    };
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let terms = RunTerms {
        run: parsed("run", &args.run)?,
        experiment,
        old: parsed("--old", &args.old)?,
        new: parsed("--new", &args.new)?,
        steps: Count::new(args.steps).unwrap_or_default(),
        stakes_micro,
    };
    let intent = submit::intent(args.dry_run);
    let submission = generator::open(&mut ctx.ports(), &mut ledger, terms, intent)?;
    let answer = submit::shown(ctx, &ledger, &submission);
    Ok(answer.with_next(format!(
        "clover generator objective {}",
        shell::word(&args.run)
    )))
}

fn objective(ctx: &mut Ctx<'_>, args: &ObjectiveArgs) -> Result<View, CliError> {
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let id: RunId = parsed("run", &args.run)?;
    let policy = args.policy.as_deref();
    let policy: Option<PolicyId> = policy.map(|name| parsed("--policy", name)).transpose()?;
    let asked = policy.as_ref();
    let done = generator::objective(&mut ctx.ports(), &mut ledger, &id, asked)?;
    let (run, said) = (&done.run, &done.said);
    let mut answer = submit::shown(ctx, &ledger, &done.submission);
    let rows = done.bounds.iter().map(|of| {
        vec![
            of.item.to_string(),
            of.draw.to_string(),
            of.lower_micro.to_string(),
        ]
    });
    let mut text = ui::table(&["item", "draw", "lower bound"], rows.collect());
    text.push_str(&ui::pairs(&[
        ("mean", format!("{:+.4}", said.lower_mean.value())),
        ("step", format!("{} of {}", said.step, run.steps)),
    ]));
    answer.line(text.trim_end());
    answer.facts_mut()["bounds"] = serde_json::to_value(&done.bounds).unwrap_or(Value::Null);
    answer.facts_mut()["lower_mean"] = json!(said.lower_mean);
    answer.facts_mut()["step"] = json!(said.step);
    answer.facts_mut()["steps"] = json!(run.steps);
    Ok(answer.with_next(format!("clover generator show {}", shell::word(&run.run))))
}

fn validate(ctx: &mut Ctx<'_>, args: &ValidateArgs) -> Result<View, CliError> {
    let design: DesignId = parsed("--design", &args.design)?;
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let id: RunId = parsed("run", &args.run)?;
    let intent = submit::intent(args.dry_run);
    let ports = &mut ctx.ports().with_program(&args.program);
    let done = generator::validate(ports, (&home, &mut ledger), &id, design, intent)?;
    let said = &done.said;
    let mut answer = submit::shown(ctx, &ledger, &done.submission);
    answer.line(lines(said).trim_end());
    answer.facts_mut()["validation"] = data(said);
    answer.exit = match said.verdict {
        Verdict::Pass => Exit::Done,
        Verdict::Fail => Exit::Fail,
        Verdict::Inconclusive | Verdict::NotChecked => Exit::Inconclusive,
    };
    let run = shell::word(&said.run);
    Ok(answer.with_next(match said.verdict {
        Verdict::Pass => format!("clover generator show {run}"),
        _ => format!("clover generator rollback {run} --reason WHY"),
    }))
}

fn number(value: Option<Finite>) -> String {
    value.map_or("-".to_owned(), |value| format!("{:+.4}", value.value()))
}

fn lines(said: &GeneratorValidated) -> String {
    let compared = &said.compared;
    let mut text = ui::pairs(&[
        (
            "labels",
            format!(
                "{} new, {} old, {} prompts shared",
                compared.new.rows, compared.old.rows, compared.shared
            ),
        ),
        ("gain on labels", number(Some(compared.difference))),
        ("lower bound", number(compared.lower)),
        ("gain of the bound", number(Some(said.lcb_gain))),
    ]);
    for of in &said.transport.environments {
        let p = of.p.map_or("-".to_owned(), |p| format!("{:.3}", p.value()));
        text.push_str(&format!(
            "{:<18}mean residual {} on {} labels, p {p}\n",
            ui::cut(of.environment.as_str(), 16),
            number(of.mean),
            of.rows
        ));
    }
    for (name, verdict) in said.verdicts.each() {
        text.push_str(&format!("{name:<18}{}\n", word(verdict)));
    }
    text.push_str(&format!("{:<18}{}\n", "verdict", word(said.verdict)));
    text
}

fn data(said: &GeneratorValidated) -> Value {
    serde_json::to_value(said).unwrap_or(Value::Null)
}

fn rollback(ctx: &mut Ctx<'_>, args: &RollbackArgs) -> Result<View, CliError> {
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let id: RunId = parsed("run", &args.run)?;
    let reason = key::text("reason", &args.reason)?;
    let intent = submit::intent(args.dry_run);
    let done = generator::roll_back(&mut ctx.ports(), &mut ledger, &id, reason, intent)?;
    let mut answer = submit::shown(ctx, &ledger, &done.submission);
    answer.line(format!(
        "outputs of {} stay on record: labelled under a new design for calibration and put into a split, \
         their residuals are what the next iteration's cards show",
        done.new
    ));
    Ok(answer.with_next(format!(
        "clover label design new ID --experiment {experiment} --purpose calibrate --probability 1",
        experiment = shell::word(&done.experiment)
    )))
}

fn shown_id(id: EventId) -> String {
    id.0.to_hex()
}

fn show(ctx: &mut Ctx<'_>, args: &ShowArgs) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let id: RunId = parsed("run", &args.run)?;
    let (experiment, run) = generator::found(view.state(&ledger), &id)?;
    let opened = generator::opening(&ledger, run)?;
    let mut text = ui::pairs(&[
        (
            "run",
            format!("{} of {experiment}, seq {}", run.run, run.seq),
        ),
        ("state", run.state().as_str().to_owned()),
        ("policies", format!("{} against {}", run.new, run.old)),
        ("frozen rubric", opened.rubric_hash.to_hex()),
        ("frozen f", opened.frozen.to_hex()),
        ("deployment", shown_id(run.deployment)),
        ("steps", format!("{} of {}", run.used, run.steps)),
        ("stakes", opened.stakes_micro.to_string()),
    ]);
    let read = run.validated.map(|of| ledger.entry(of.seq)).transpose()?;
    let said = read.flatten().and_then(|read| match read.event.payload {
        Payload::GeneratorValidated(said) => Some(*said),
        _ => None,
    });
    if let Some(said) = &said {
        text.push_str(&lines(said));
    }
    let data = json!({"run": row(experiment, run), "validation": said.as_ref().map(data)});
    let answer = View::untyped(text, data);
    Ok(match run.state() {
        RunState::Open => answer.with_next(format!(
            "clover generator objective {}",
            shell::word(&run.run)
        )),
        RunState::Due => answer.with_next(format!(
            "clover generator rollback {} --reason WHY",
            shell::word(&run.run)
        )),
        RunState::RolledBack | RunState::Validated => answer.with_next(LIST.to_owned()),
    })
}

fn row(experiment: &ExperimentId, run: &Run) -> Value {
    json!({
        "experiment": experiment.as_str(), "run": run.run.as_str(), "state": run.state().as_str(), "seq": run.seq,
        "new": run.new.as_str(), "old": run.old.as_str(), "steps": run.steps, "used": run.used,
        "frozen": run.frozen.to_hex(), "deployment": shown_id(run.deployment),
        "validated": run.validated.map(|of| json!({"seq": of.seq, "verdict": word(of.verdict)})),
        "rolled_back": run.rolled_back,
    })
}

fn list(ctx: &mut Ctx<'_>, args: &ListArgs) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let wanted = args.experiment.as_deref().map(record::experiment_id);
    let wanted = wanted.transpose()?;
    let all = &view.state(&ledger).fold::<Generators>().by_experiment;
    let (mut rows, mut data) = (Vec::new(), Vec::new());
    for (experiment, runs) in all {
        if wanted.as_ref().is_some_and(|of| of != experiment) {
            continue;
        }
        for run in runs {
            rows.push(vec![
                run.run.to_string(),
                experiment.to_string(),
                run.state().as_str().to_owned(),
                format!("{} against {}", run.new, run.old),
                format!("{} of {}", run.used, run.steps),
                format!("seq {}", run.seq),
            ]);
            data.push(row(experiment, run));
        }
    }
    let head = ["run", "experiment", "state", "policies", "steps", "since"];
    Ok(View::untyped(ui::table(&head, rows), json!({"runs": data})))
}
