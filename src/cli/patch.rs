//! `clover patch`: edits to a rubric, checked, proposed and taken back.

use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::iterate::program;
use crate::cli::iterate::program::Program;
use crate::cli::key;
use crate::cli::objective;
use crate::cli::review;
use crate::cli::rubric;
use crate::cli::submit;
use crate::event::id::IterationId;
use crate::event::id::PatchId;
use crate::event::payload::rubric::AuthorKind;
use crate::ground::ambient;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::projection::iterations::Iteration;
use crate::projection::iterations::Iterations;
use crate::rubric::CheckedPatch;
use crate::rubric::Code;
use crate::rubric::Patch;
use crate::rubric::PatchFault;
use crate::rubric::starter;
use crate::session::SessionError;
use crate::session::append::Intent;
use crate::session::iterate::IterationError;
use crate::session::iterate::propose;
use crate::session::iterate::propose::Proposal;
use crate::session::iterate::rescore;
use crate::session::iterate::rescore::RescoreRequest;
use crate::view::View;
use crate::view::patch as views;
use crate::workflow::patches::Authorship;
use crate::workflow::patches::Bench;

const NEXT: &str = "clover patch check --help";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Write a patch to begin with: of a family, or of a leaf of the rubric
    #[command(after_help = "Example:\n  clover patch new length_bias_cap -o patch.yaml")]
    New(PatchNewArgs),
    /// Run the twelve checks of a patch; nothing is recorded
    #[command(
        after_help = "Example:\n  clover patch check patch.yaml --rubric rubric.yaml\n  \
                      clover patch check patch.yaml --iteration it-1 -- python3 judge.py\n\n\
                      A patch that changes what the judge is told is asked of the judge's program: name it after --."
    )]
    Check(PatchCheckArgs),
    /// Propose a patch in an open iteration
    #[command(after_help = "Example:\n  clover patch propose patch.yaml --iteration it-1")]
    Propose(PatchProposeArgs),
    /// What a patch would change, leaf by leaf
    #[command(after_help = "Example:\n  clover patch diff patch.yaml --iteration it-1")]
    Diff(PatchCheckArgs),
    /// What a patch would be worth on dev, for whoever writes patches
    #[command(after_help = "Example:\n  clover patch objective patch.yaml --iteration it-1")]
    Objective(objective::Args),
    /// Proposed patches
    #[command(after_help = "Example:\n  clover patch list --iteration it-1")]
    List(PatchListArgs),
    /// Say what you, who know the field, think of a proposed patch
    #[command(after_help = review::EXAMPLE)]
    Review(review::Args),
    /// Take a proposed patch back
    #[command(
        after_help = "Example:\n  clover patch withdraw concise-1 --reason 'a better one is at hand'"
    )]
    Withdraw(WithdrawArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct PatchNewArgs {
    /// A family of patches, or the dotted path of a leaf
    #[arg(value_name = "FAMILY|PATH")]
    pub of: String,
    /// The rubric: a file, or an experiment; default the one that is open
    #[arg(long, value_name = "FILE|EXPERIMENT[@VERSION]")]
    pub rubric: Option<String>,
    /// The file; default standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct PatchCheckArgs {
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
    /// The judge's program, which is told what the patch changes
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct PatchProposeArgs {
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
pub(super) struct PatchListArgs {
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
        Verb::New(args) => new(ctx, args),
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

/// Writes a patch to begin with. Names that were used are not taken again, where a ledger is at hand.
fn new(ctx: &mut Ctx<'_>, args: &PatchNewArgs) -> Result<View, CliError> {
    let (rubric, used, iteration) = if let Some(name) = &args.rubric {
        (rubric::find(ctx, name)?, BTreeSet::new(), None)
    } else {
        let (home, ledger, view) = home::view(ctx)?;
        let state = view.state(&ledger);
        let experiment = current::experiment(ctx, &home, state, None)?;
        let name = experiment.to_string();
        let iterations = state.fold::<Iterations>();
        let all = iterations
            .by_id
            .values()
            .flat_map(|it| it.candidates.keys());
        let used: BTreeSet<String> = all.map(PatchId::to_string).collect();
        let open = iterations.open_in(&experiment).map(|(id, _)| id.clone());
        (rubric::find(ctx, &name)?, used, open)
    };
    let Some(text) = starter::starter(&rubric, &args.of, &used) else {
        let message = format!(
            "{:?}: expected a family, or a leaf: {}",
            args.of,
            views::choices(&rubric)
        );
        return Err(CliError::usage(message, "clover patch new --help"));
    };
    if let Some(output) = &args.output {
        ambient::write_new(&ctx.path(output), text.as_bytes(), 0o644)?;
    }
    Ok(views::new(text, args.output.as_deref(), iteration.as_ref()))
}

/// A document that passed, with what it says.
pub(super) fn passed(
    ctx: &mut Ctx<'_>,
    file: &Path,
    bench: &Bench,
) -> Result<(String, Patch, CheckedPatch), CliError> {
    let yaml = rubric::document(ctx, file, NEXT)?;
    let checked = bench.check(yaml.as_bytes(), None);
    let (patch, checked) = checked.map_err(|fault| refused(&fault, &rubric::source(file)))?;
    Ok((yaml, patch, checked))
}

/// A patch that failed a check, at its place in the document.
pub(super) fn refused(fault: &PatchFault, source: &str) -> CliError {
    let code = fault.code.as_str();
    let message = format!("{} ({code})", fault.message);
    // Whoever does not know the grammar begins with a patch that has it.
    let next = match fault.code {
        Code::Parse | Code::Keys | Code::Path => "clover patch new --help",
        _ => NEXT,
    };
    let mut error = rubric::fault(source, fault.place.clone(), message, next);
    error.data["code"] = code.into();
    error
}

fn check(ctx: &mut Ctx<'_>, args: &PatchCheckArgs, leaves: bool) -> Result<View, CliError> {
    let Some(name) = &args.iteration else {
        let name = args.rubric.as_deref().unwrap_or("-");
        let bench = Bench::loose(rubric::find(ctx, name)?);
        let (_, patch, checked) = passed(ctx, &args.file, &bench)?;
        if leaves {
            return Ok(views::diff(&bench, &patch, &checked));
        }
        let place = (args.file.as_path(), None);
        return Ok(views::checked(&bench, (&patch, &checked), None, place));
    };
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let (id, bench) = bench(state, name)?;
    let iteration = state.fold::<Iterations>().by_id.get(&id);
    if let Some((_, seq)) = iteration.and_then(|of| of.closed.as_ref()) {
        let message = format!(
            "iteration {id} is closed since seq {seq}: nothing is proposed in it; without --iteration the patch is \
             checked against a rubric alone"
        );
        return Err(CliError::refused(
            message,
            format!("clover iterate show {id}"),
        ));
    }
    let (yaml, patch, checked) = passed(ctx, &args.file, &bench)?;
    let source = rubric::source(&args.file);
    let of = (&bench, yaml.as_str());
    let decided = rescore::decided(&ledger, &id, of, (patch, checked));
    let (patch, checked) = decided.map_err(|error| at_its_place(error, &source))?;
    if leaves {
        return Ok(views::diff(&bench, &patch, &checked));
    }
    rescore::check_sources(&ledger, &id, of, &checked)?;
    let asking = rescore::asking(&ledger, &id, (&bench, &checked))?;
    if let Some(asking) = &asking {
        let program = Program {
            command: args.command.clone(),
            ..Program::default()
        };
        startable(ctx, &patch, asking, &program)?;
    }
    let place = (args.file.as_path(), Some(name.as_str()));
    let of = (&patch, &checked);
    Ok(views::checked(&bench, of, asking.as_ref(), place))
}

/// Whether the program is at hand that is asked anew for a patch, and is the one that was registered.
fn startable(
    ctx: &mut Ctx<'_>,
    patch: &Patch,
    asking: &RescoreRequest,
    program: &Program,
) -> Result<(), CliError> {
    if program.command.is_empty() {
        let message = format!(
            "patch {} is asked of judge {}, which is a program: say how it is started",
            patch.id, asking.judge
        );
        return Err(CliError::usage(message, "the same command with -- COMMAND"));
    }
    program::digest(ctx, "judge", &program.command)?;
    program::same_files(ctx, &asking.registered, program)
}

/// Refuses a patch that its gates would ask of a program which is not at hand, before anything of it is on record. What else is
/// wrong with it is said where it is proposed.
pub(super) fn check_program(
    ctx: &mut Ctx<'_>,
    ledger: &Ledger,
    id: &IterationId,
    yaml: &str,
    program: &Program,
) -> Result<(), CliError> {
    let bench = propose::bench(ledger.state(), id)?;
    let Ok(checked) = bench.check(yaml.as_bytes(), None) else {
        return Ok(());
    };
    let Ok((patch, checked)) = rescore::decided(ledger, id, (&bench, yaml), checked) else {
        return Ok(());
    };
    match rescore::asking(ledger, id, (&bench, &checked))? {
        Some(asking) => startable(ctx, &patch, &asking, program),
        None => Ok(()),
    }
}

/// A check that failed, at its place in the document.
fn at_its_place(error: SessionError, source: &str) -> CliError {
    match error {
        SessionError::Iteration(error) => match *error {
            IterationError::Patch(fault) => refused(&fault, source),
            error => error.into(),
        },
        error => error.into(),
    }
}

fn digest(what: &str, text: &str) -> Result<Digest, CliError> {
    Digest::from_hex(text).ok_or_else(|| {
        let message = format!("--{what} {text:?}: expected 64 lower-case hex digits");
        CliError::usage(message, "clover patch propose --help")
    })
}

/// Puts a patch forward, or rehearses it.
pub(super) fn put_forward(
    ctx: &mut Ctx<'_>,
    args: &PatchProposeArgs,
) -> Result<(Ledger, Proposal), CliError> {
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
        run: None,
    };
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let intent = submit::intent(args.dry_run);
    let of = (args.file.as_path(), yaml.as_str());
    let proposal = put_into(ctx, &mut ledger, &id, (of, by), intent)?;
    Ok((ledger, proposal))
}

/// Puts the patch of a document forward in an open ledger, or rehearses it.
pub(super) fn put_into(
    ctx: &mut Ctx<'_>,
    ledger: &mut Ledger,
    id: &IterationId,
    ((file, yaml), by): ((&Path, &str), Authorship),
    intent: Intent,
) -> Result<Proposal, CliError> {
    let proposed = propose::propose(&mut ctx.ports(), ledger, id, (yaml, by), intent);
    let source = rubric::source(file);
    proposed.map_err(|error| at_its_place(error, &source))
}

fn propose(ctx: &mut Ctx<'_>, args: &PatchProposeArgs) -> Result<View, CliError> {
    let (ledger, proposal) = put_forward(ctx, args)?;
    let mut view = submit::shown(ctx, &ledger, &proposal.submission);
    if !args.dry_run {
        view = views::proposed(view, &proposal).0;
    }
    Ok(view.with_next(format!(
        "clover patch list --iteration {}",
        shell::word(&args.iteration)
    )))
}

fn list(ctx: &mut Ctx<'_>, args: &PatchListArgs) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let wanted = match &args.iteration {
        Some(name) => Some(iteration(state, name)?.0),
        None => None,
    };
    Ok(views::list(state, wanted.as_ref()))
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
