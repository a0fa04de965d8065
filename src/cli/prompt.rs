//! `clover prompt`: what judges are told, version by version, each from the one before it by an accepted patch.

use std::path::PathBuf;

use serde_json::Value;
use serde_json::json;

use crate::cli::approve;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::record;
use crate::cli::rubric;
use crate::cli::submit;
use crate::cli::ui;
use crate::event::id::ExperimentId;
use crate::ground::ambient;
use crate::ground::shell;
use crate::ledger::State;
use crate::projection::releases::Commit;
use crate::projection::releases::Releases;
use crate::projection::rubrics::Registered;
use crate::projection::rubrics::Rubrics;
use crate::rubric::Rubric;
use crate::session::SessionError;
use crate::session::deploy::DeployError;
use crate::session::deploy::prompt as committing;
use crate::session::deploy::prompt::PromptCommit;
use crate::view::View;
use crate::workflow::patches;
use crate::workflow::prompts;
use crate::workflow::prompts::Rendered;

const NEXT: &str = "clover prompt log";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Commit an accepted patch: the next rubric, and what the judge is told under it
    #[command(after_help = "Example:\n  clover prompt commit len-cite-guard-001")]
    Commit(CommitArgs),
    /// Every version, newest first
    #[command(after_help = "Example:\n  clover prompt log arena")]
    Log(LogArgs),
    /// What the judge is told in a version
    #[command(after_help = "Example:\n  clover prompt show arena@1.1")]
    Show(ShowArgs),
    /// What changed from one version to another, with the code length of it
    #[command(after_help = "Example:\n  clover prompt diff arena@1.0 arena@1.1")]
    Diff(DiffArgs),
    /// Write rubric.yaml and prompt.txt of a version into a folder
    #[command(after_help = "Example:\n  clover prompt checkout arena@1.1 --out judge")]
    Checkout(CheckoutArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct CommitArgs {
    /// The accepted patch: its id, or the id of its patch.accepted
    pub patch: String,
    /// Version of the rubric that results; default: the next minor one
    #[arg(long, value_name = "MAJOR.MINOR")]
    pub version: Option<String>,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct LogArgs {
    /// Of this experiment alone
    pub experiment: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// As in arena or arena@1.0
    #[arg(value_name = "EXPERIMENT[@VERSION]")]
    pub prompt: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct DiffArgs {
    /// The older one, as in arena@1.0
    #[arg(value_name = "EXPERIMENT[@VERSION]")]
    pub old: String,
    /// The newer one, as in arena
    #[arg(value_name = "EXPERIMENT[@VERSION]")]
    pub new: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct CheckoutArgs {
    /// As in arena or arena@1.0
    #[arg(value_name = "EXPERIMENT[@VERSION]")]
    pub prompt: String,
    /// The folder; nothing in it is overwritten
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Commit(args) => commit(ctx, args),
        Verb::Log(args) => log(ctx, args),
        Verb::Show(args) => show(ctx, args),
        Verb::Diff(args) => rubric::compared(ctx, &args.old, &args.new),
        Verb::Checkout(args) => checkout(ctx, args),
    }
}

fn commit(ctx: &mut Ctx<'_>, args: &CommitArgs) -> Result<View, CliError> {
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let (experiment, accepted) = approve::acceptance(ledger.state(), &args.patch)?;
    let (experiment, accepted) = (experiment.clone(), accepted.id);
    let intent = submit::intent(args.dry_run);
    let (of, version) = ((&experiment, accepted), args.version.as_deref());
    let done = committing::commit(&mut ctx.ports(), &mut ledger, of, version, intent);
    let done = done.map_err(|error| match error {
        SessionError::Deploy(error @ DeployError::Uncommitted(_)) => {
            let next = format!("clover approve {} --help", shell::word(&args.patch));
            CliError::from(error).with_next(next)
        }
        error => error.into(),
    })?;
    let (said, submission) = match done {
        PromptCommit::Already(old) => return Ok(already(&experiment, &old)),
        PromptCommit::Submitted { said, submission } => (said, submission),
    };
    let (version, hash, prompt) = (&said.version, said.rubric_hash, said.prompt_hash);
    let mut answer = submit::shown(ctx, &ledger, &submission);
    if !args.dry_run {
        answer.line(format!(
            "{experiment}@{version}  rubric {hash}  prompt {prompt}"
        ));
        answer.facts_mut()["prompt"] = json!({
            "experiment": experiment.as_str(), "version": version, "rubric_hash": hash.to_hex(),
            "prompt_hash": prompt.to_hex(),
        });
    }
    Ok(answer.with_next(format!(
        "clover prompt show {experiment}@{version}",
        experiment = shell::word(&experiment)
    )))
}

/// The answer when an acceptance was committed before.
fn already(experiment: &ExperimentId, old: &Commit) -> View {
    let name = format!("{experiment}@{}", old.version);
    let text = format!(
        "seq {}  prompt.committed  {}  already recorded\n",
        old.seq, old.id
    );
    let data = json!({"appended": 0, "already": 1, "seqs": [old.seq], "prompt": {
        "experiment": experiment.as_str(), "version": old.version, "rubric_hash": old.rubric_hash.to_hex(),
        "prompt_hash": old.prompt_hash.to_hex(),
    }});
    let mut answer = View::untyped(text, data);
    answer.verdict = "already_recorded";
    answer.events = vec![old.id.to_string()];
    answer.with_next(format!(
        "clover prompt show {name}",
        name = shell::word(&name)
    ))
}

/// One version of what a judge is told.
struct Version<'a> {
    registered: &'a Registered,
    commit: Option<&'a Commit>,
    rubric: Rubric,
    told: Rendered,
}

fn version_of<'a>(
    state: &'a State,
    experiment: &ExperimentId,
    registered: &'a Registered,
) -> Option<Version<'a>> {
    let rubric = patches::rubric_of(registered)?;
    let releases = state.fold::<Releases>();
    let commit = releases
        .of(experiment)
        .and_then(|of| of.commit(registered.id));
    let told = prompts::told(state, experiment, registered)?;
    Some(Version {
        registered,
        commit,
        rubric,
        told,
    })
}

impl Version<'_> {
    fn patch(&self) -> &str {
        self.commit.map_or("", |commit| commit.patch.as_str())
    }

    fn data(&self, experiment: &ExperimentId) -> Value {
        json!({
            "experiment": experiment.as_str(), "version": self.registered.version,
            "seq": self.registered.seq, "event": self.registered.id.to_string(),
            "patch": self.commit.map(|commit| commit.patch.to_string()),
            "parent": self.commit.map(|commit| commit.parent.to_string()),
            "acceptance": self.commit.map(|commit| commit.acceptance.to_string()),
            "rubric_hash": self.registered.hash.to_hex(), "prompt_hash": self.told.hash.to_hex(),
        })
    }
}

fn log(ctx: &mut Ctx<'_>, args: &LogArgs) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let wanted = args.experiment.as_deref().map(record::experiment_id);
    let wanted = wanted.transpose()?;
    let rubrics = state.fold::<Rubrics>();
    let (mut rows, mut data) = (Vec::new(), Vec::new());
    for (id, all) in &rubrics.by_experiment {
        if wanted.as_ref().is_some_and(|wanted| wanted != id) {
            continue;
        }
        let head = rubrics.in_force(id).map(|head| head.id);
        for registered in all.iter().rev() {
            let Some(version) = version_of(state, id, registered) else {
                continue;
            };
            let accepted = version.commit.and_then(|commit| {
                let releases = state.fold::<Releases>();
                releases.acceptance(id, commit.acceptance)
            });
            let is_head = head == Some(registered.id);
            let mut line = version.data(id);
            line["head"] = is_head.into();
            line["kappa"] = accepted.map(|of| of.kappa).into();
            line["approvals"] = accepted.map(|of| of.approvals().len()).into();
            data.push(line);
            let number = |value: Option<u64>| value.map_or(String::new(), |of| of.to_string());
            rows.push(vec![
                format!("{id}@{}", registered.version),
                if is_head { "head" } else { "" }.to_owned(),
                version.patch().to_owned(),
                number(accepted.map(|of| of.kappa)),
                number(accepted.map(|of| of.approvals().len() as u64)),
                format!("seq {}", registered.seq),
                registered.hash.short().to_string(),
                version.told.hash.short().to_string(),
            ]);
        }
    }
    if let (Some(wanted), true) = (&wanted, rows.is_empty()) {
        let message = format!("no rubric of {wanted}");
        return Err(CliError::not_found(message, "clover rubric list"));
    }
    let head = [
        "version",
        "",
        "by patch",
        "kappa",
        "approvals",
        "entry",
        "rubric",
        "prompt",
    ];
    Ok(View::untyped(
        ui::table(&head, rows),
        json!({"prompts": data}),
    ))
}

/// Calls `see` with a version of an experiment that a name gives.
fn with_version<T>(
    ctx: &mut Ctx<'_>,
    name: &str,
    see: impl FnOnce(&ExperimentId, &Version<'_>) -> T,
) -> Result<T, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let (experiment, registered) = rubric::named(state, name)?;
    let version = version_of(state, &experiment, registered).ok_or_else(|| {
        let message = format!("the rubric of {name} cannot be read");
        CliError::not_found(message, "clover verify")
    })?;
    Ok(see(&experiment, &version))
}

fn show(ctx: &mut Ctx<'_>, args: &ShowArgs) -> Result<View, CliError> {
    let (text, data) = with_version(ctx, &args.prompt, |experiment, version| {
        let mut data = version.data(experiment);
        data["prompt"] = version.told.text.as_str().into();
        data["yaml"] = version.rubric.to_yaml().into();
        (version.told.text.clone(), data)
    })?;
    let next = format!(
        "clover prompt checkout {} --out DIR",
        shell::word(&args.prompt)
    );
    Ok(View::untyped(text, data).with_next(next))
}

fn checkout(ctx: &mut Ctx<'_>, args: &CheckoutArgs) -> Result<View, CliError> {
    let (files, data) = with_version(ctx, &args.prompt, |experiment, version| {
        let files = [
            ("rubric.yaml", version.rubric.to_yaml()),
            ("prompt.txt", version.told.text.clone()),
        ];
        (files, version.data(experiment))
    })?;
    let folder = ctx.path(&args.out);
    ambient::create_dirs(&folder)?;
    for (name, _) in &files {
        if ambient::exists(&folder.join(name))? {
            let message = format!("{} is there already", args.out.join(name).display());
            return Err(CliError::input(message, NEXT));
        }
    }
    let mut answer = View::untyped("", data);
    for (name, text) in files {
        ambient::write_new(&folder.join(name), text.as_bytes(), 0o644)?;
        answer.line(args.out.join(name).display().to_string());
    }
    Ok(answer)
}
