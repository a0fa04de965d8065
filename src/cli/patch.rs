//! `clover patch`: edits to a rubric, checked, proposed and taken back.

use std::path::PathBuf;

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::key;
use crate::cli::objective;
use crate::cli::review;
use crate::cli::rubric;
use crate::cli::submit;
use crate::cli::ui;
use crate::event::id::IterationId;
use crate::event::id::PatchId;
use crate::event::payload::rubric::AuthorKind;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::State;
use crate::projection::iterations::Iteration;
use crate::projection::iterations::Iterations;
use crate::rubric::Checked;
use crate::rubric::Patch;
use crate::rubric::PatchFault;
use crate::session::SessionError;
use crate::session::iterate::IterationError;
use crate::session::iterate::propose;
use crate::view::View;
use crate::workflow::patches::Authorship;
use crate::workflow::patches::Bench;

const NEXT: &str = "clover patch check --help";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Run the twelve checks of a patch; nothing is recorded
    #[command(after_help = "Example:\n  clover patch check patch.yaml --rubric rubric.yaml")]
    Check(CheckArgs),
    /// Propose a patch in an open iteration
    #[command(after_help = "Example:\n  clover patch propose patch.yaml --iteration it-1")]
    Propose(ProposeArgs),
    /// What a patch would change, leaf by leaf
    #[command(after_help = "Example:\n  clover patch diff patch.yaml --iteration it-1")]
    Diff(CheckArgs),
    /// What a patch would be worth on dev, for whoever writes patches
    #[command(after_help = "Example:\n  clover patch objective patch.yaml --iteration it-1")]
    Objective(objective::Args),
    /// Proposed patches
    #[command(after_help = "Example:\n  clover patch list --iteration it-1")]
    List(ListArgs),
    /// Say what you, who know the field, think of a proposed patch
    #[command(after_help = review::EXAMPLE)]
    Review(review::Args),
    /// Take a proposed patch back
    #[command(
        after_help = "Example:\n  clover patch withdraw len-cite-guard-001 --reason 'a better one is at hand'"
    )]
    Withdraw(WithdrawArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// The patch, YAML; - for standard input
    pub file: PathBuf,
    /// The iteration whose rubric, families and topics count
    #[arg(long, value_name = "ID", required_unless_present = "rubric")]
    pub iteration: Option<String>,
    /// Check against this rubric instead: a file, or an experiment
    #[arg(
        long,
        value_name = "FILE|EXPERIMENT[@VERSION]",
        conflicts_with = "iteration"
    )]
    pub rubric: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct ProposeArgs {
    /// The patch, YAML; - for standard input
    pub file: PathBuf,
    /// The iteration
    #[arg(long, value_name = "ID")]
    pub iteration: String,
    /// What it was written from, by digest; may repeat
    #[arg(long = "input", value_name = "DIGEST")]
    pub inputs: Vec<String>,
    /// The model that wrote it; a person did when absent
    #[arg(long, requires = "prompt_digest")]
    pub model: Option<String>,
    /// SHA-256 of the prompt that the model had
    #[arg(long, value_name = "DIGEST", requires = "model")]
    pub prompt_digest: Option<String>,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Of this iteration alone
    #[arg(long, value_name = "ID")]
    pub iteration: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct WithdrawArgs {
    /// The patch
    pub patch: String,
    /// Why
    #[arg(long)]
    pub reason: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Check(args) => check(ctx, args, false),
        Verb::Diff(args) => check(ctx, args, true),
        Verb::Propose(args) => propose(ctx, args),
        Verb::List(args) => list(ctx, args),
        Verb::Objective(args) => objective::run(ctx, args),
        Verb::Review(args) => review::run(ctx, args),
        Verb::Withdraw(args) => withdraw(ctx, args),
    }
}

/// An iteration of the ledger by its name.
pub(super) fn iteration<'a>(
    state: &'a State,
    name: &str,
) -> Result<(IterationId, &'a Iteration), CliError> {
    let id = iteration_id(name)?;
    match state.fold::<Iterations>().by_id.get(&id) {
        Some(found) => Ok((id, found)),
        None => Err(IterationError::Unknown(id).into()),
    }
}

fn iteration_id(name: &str) -> Result<IterationId, CliError> {
    name.parse().map_err(|error| {
        CliError::usage(
            format!("iteration {name:?}: {error}"),
            "clover iterate list",
        )
    })
}

fn patch_id(name: &str) -> Result<PatchId, CliError> {
    name.parse()
        .map_err(|error| CliError::usage(format!("patch {name:?}: {error}"), "clover patch list"))
}

pub(super) fn bench(state: &State, name: &str) -> Result<(IterationId, Bench), CliError> {
    let id = iteration_id(name)?;
    let bench = propose::bench(state, &id)?;
    Ok((id, bench))
}

/// A document that passed, with what it says.
pub(super) fn passed(
    ctx: &mut Ctx<'_>,
    file: &std::path::Path,
    bench: &Bench,
) -> Result<(String, Patch, Checked), CliError> {
    let yaml = rubric::document(ctx, file, NEXT)?;
    let checked = bench.check(yaml.as_bytes(), None);
    let (patch, checked) = checked.map_err(|fault| refused(&fault, &rubric::source(file)))?;
    Ok((yaml, patch, checked))
}

/// A patch that failed a check, at its place in the document.
pub(super) fn refused(fault: &PatchFault, source: &str) -> CliError {
    let code = fault.code.as_str();
    let message = format!("{} ({code})", fault.message);
    let mut error = rubric::fault(source, fault.place.clone(), message, NEXT);
    error.data["code"] = code.into();
    error
}

fn check(ctx: &mut Ctx<'_>, args: &CheckArgs, leaves: bool) -> Result<View, CliError> {
    let bench = match (&args.iteration, &args.rubric) {
        (Some(name), _) => {
            let (_, ledger, view) = home::view(ctx)?;
            bench(view.state(&ledger), name)?.1
        }
        (None, name) => {
            let name = name.as_deref().unwrap_or("-");
            Bench::loose(rubric::find(ctx, name)?)
        }
    };
    let (_, patch, checked) = passed(ctx, &args.file, &bench)?;
    let data = data(&bench, &patch, &checked);
    if leaves {
        let mut text = String::new();
        for change in &checked.diff {
            let was = bench.rubric.at(&change.path).map(ToString::to_string);
            let was = was.unwrap_or_else(|| "absent".to_owned());
            let now = checked.rubric.at(&change.path).map(ToString::to_string);
            let (path, now) = (&change.path, now.unwrap_or_default());
            text.push_str(&format!("{path}\n  - {was}\n  + {now}\n"));
        }
        return Ok(View::untyped(text, data));
    }
    let needs = match checked.needs_rescore {
        Some(true) => "raw answers anew",
        Some(false) => "no raw answer anew",
        None => "raw answers anew only where a citation on a new host was never verified",
    };
    let two_key = match checked.two_key.as_slice() {
        [] => "no".to_owned(),
        paths => paths.join(", "),
    };
    let length = &checked.length;
    let kappa = format!(
        "{} (+{} -{} tokens, {} new guards, {} edits to abstention)",
        length.kappa(),
        length.tokens_added,
        length.tokens_removed,
        length.new_guards,
        length.abstention_edits
    );
    let rows: Vec<(&str, String)> = vec![
        ("patch", patch.id.clone()),
        ("family", patch.family.as_str().to_owned()),
        ("changes", checked.diff.len().to_string()),
        ("patch hash", checked.hash.to_hex()),
        ("code length", kappa),
        ("new fields", length.new_fields.to_string()),
        ("needs", needs.to_owned()),
        ("two keys", two_key),
        ("rubric after it", checked.rubric.hash().to_hex()),
    ];
    let iteration = args.iteration.as_deref().unwrap_or("ID");
    let next = format!(
        "clover iterate propose {iteration} {}",
        shell::word(&args.file.display()),
        iteration = shell::word(&iteration)
    );
    Ok(View::untyped(ui::pairs(&rows), data).with_next(next))
}

fn data(bench: &Bench, patch: &Patch, checked: &Checked) -> Value {
    let diff = checked.diff.iter().zip(&checked.classes);
    let diff: Vec<_> = diff
        .map(|(change, class)| {
            json!({
                "op": change.op.as_str(), "path": change.path, "class": class.to_string(),
                "value": change.value,
                "from": bench.rubric.at(&change.path).map(ToString::to_string),
            })
        })
        .collect();
    json!({
        "patch": patch.id, "family": patch.family.as_str(), "patch_hash": checked.hash.to_hex(),
        "diff": diff, "kappa": checked.length.kappa(), "length": checked.length,
        "needs_rescore": checked.needs_rescore, "two_key": checked.two_key,
        "result_hash": checked.rubric.hash().to_hex(),
    })
}

fn digest(what: &str, text: &str) -> Result<Digest, CliError> {
    Digest::from_hex(text).ok_or_else(|| {
        let message = format!("--{what} {text:?}: expected 64 lower-case hex digits");
        CliError::usage(message, "clover patch propose --help")
    })
}

pub(super) fn propose(ctx: &mut Ctx<'_>, args: &ProposeArgs) -> Result<View, CliError> {
    let id = iteration_id(&args.iteration)?;
    let yaml = rubric::document(ctx, &args.file, NEXT)?;
    let inputs: Result<Vec<_>, _> = args.inputs.iter().map(|of| digest("input", of)).collect();
    let by = Authorship {
        kind: match args.model {
            Some(_) => AuthorKind::Llm,
            None => AuthorKind::Human,
        },
        inputs: inputs?,
        model: match &args.model {
            Some(model) => Some(key::text("model", model)?),
            None => None,
        },
        prompt_digest: match &args.prompt_digest {
            Some(text) => Some(digest("prompt-digest", text)?),
            None => None,
        },
    };
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let intent = submit::intent(args.dry_run);
    let said = (yaml.as_str(), by);
    let proposed = propose::propose(&mut ctx.ports(), &mut ledger, &id, said, intent);
    let proposal = proposed.map_err(|error| match error {
        SessionError::Iteration(error) => match *error {
            IterationError::Patch(fault) => refused(&fault, &rubric::source(&args.file)),
            error => error.into(),
        },
        error => error.into(),
    })?;
    let mut answer = submit::shown(ctx, &ledger, &proposal.submission);
    if !args.dry_run {
        let (patch, checked) = (&proposal.patch, &proposal.checked);
        let kappa = checked.length.kappa();
        answer.line(format!(
            "patch {}  hash {}  code length {kappa}",
            patch.id, checked.hash
        ));
        answer.facts_mut()["patch"] = data(&proposal.bench, patch, checked);
    }
    Ok(answer.with_next(format!(
        "clover patch list --iteration {id}",
        id = shell::word(&id)
    )))
}

fn list(ctx: &mut Ctx<'_>, args: &ListArgs) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    if let Some(name) = &args.iteration {
        iteration(state, name)?;
    }
    let wanted = |id: &IterationId| {
        args.iteration
            .as_deref()
            .is_none_or(|name| name == id.as_str())
    };
    let all = state.fold::<Iterations>().by_id.iter();
    let (mut rows, mut data) = (Vec::new(), Vec::new());
    for (id, it) in all.filter(|(id, _)| wanted(id)) {
        for (patch, of) in &it.candidates {
            rows.push(vec![
                patch.to_string(),
                id.to_string(),
                of.family.to_string(),
                of.kappa.to_string(),
                of.state.as_str().to_owned(),
                format!("seq {}", of.seq),
                of.patch_hash.short().to_string(),
            ]);
            data.push(json!({
                "patch": patch.as_str(), "iteration": id.as_str(), "family": of.family.as_str(),
                "kappa": of.kappa, "state": of.state.as_str(), "seq": of.seq,
                "patch_hash": of.patch_hash.to_hex(), "result_hash": of.result_hash.to_hex(),
                "reviews": review::counts(of),
            }));
        }
    }
    let head = [
        "patch",
        "iteration",
        "family",
        "kappa",
        "state",
        "proposed",
        "hash",
    ];
    Ok(View::untyped(
        ui::table(&head, rows),
        json!({"patches": data}),
    ))
}

/// A proposed patch by its name, with its iteration.
pub(super) fn proposed<'a>(
    state: &'a State,
    name: &str,
) -> Result<(PatchId, &'a IterationId, &'a Iteration), CliError> {
    let patch = patch_id(name)?;
    let iterations = state.fold::<Iterations>();
    let Some((id, _)) = iterations.patch(&patch) else {
        return Err(IterationError::NoPatch(patch).into());
    };
    Ok((patch, id, &iterations.by_id[id]))
}

fn withdraw(ctx: &mut Ctx<'_>, args: &WithdrawArgs) -> Result<View, CliError> {
    let (patch, reason) = (patch_id(&args.patch)?, key::text("reason", &args.reason)?);
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let intent = submit::intent(args.dry_run);
    let submission = propose::withdraw(&mut ctx.ports(), &mut ledger, (patch, reason), intent)?;
    Ok(submit::shown(ctx, &ledger, &submission))
}
