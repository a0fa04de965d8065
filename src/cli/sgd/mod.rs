//! `clover sgd`: lower the loss of a judge's prompt, step by step, on rows that were committed first.

mod agents;
mod judge;
mod open;
mod promote;
mod prompts;
mod refusals;

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::endpoint;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::iterate::program::Program;
use crate::cli::synth_model;
use crate::event::id::RunId;
use crate::event::payload::sgd_steps::SgdWord;
use crate::ground::ambient;
use crate::ground::shell;
use crate::model::dialect;
use crate::session::SessionError;
use crate::session::asking::ModelSender;
use crate::session::sgd::SgdBench;
use crate::session::sgd::SgdError;
use crate::session::sgd::ahead;
use crate::session::sgd::found;
use crate::session::sgd::running;
use crate::session::sgd::running::SgdAnswering;
use crate::session::sgd::running::SgdPause;
use crate::session::sgd::running::SgdRunning;
use crate::session::sgd::scoring;
use crate::session::sgd::test;
use crate::view::Exit;
use crate::view::View;
use crate::view::sgd as views;
use crate::workflow::ask::dispatch::DispatchRules;
use crate::workflow::sgd::sample;

const RUN_HELP: &str = "clover sgd run --help";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Write rows for trials: questions, responses of known merit, and labels that follow it
    #[command(after_help = "Example:\n  clover sgd sample rows.jsonl --rows 400")]
    Sample(SampleArgs),
    /// Which rows a run would have, and how many scores it asks for; nothing is recorded
    #[command(
        override_usage = "clover sgd plan RUN --judge <JUDGE> --prompt <FILE> [OPTIONS]",
        after_help = "Example:\n  clover sgd plan tune-1 --judge sim --simulated --prompt judge.md"
    )]
    Plan(open::OpenArgs),
    /// Open a run: prompt 0, its constants and the roots of its rows are recorded
    #[command(
        override_usage = "clover sgd open RUN --judge <JUDGE> --prompt <FILE> [OPTIONS]",
        after_help = "Example:\n  clover sgd open tune-1 --judge sim --simulated --prompt judge.md --steps 12"
    )]
    Open(open::OpenArgs),
    /// Go on until the checkpoint is chosen; a run that was cut goes on
    #[command(
        override_usage = "clover sgd run RUN [OPTIONS] [-- JUDGE COMMAND]",
        after_help = "Exit 12: a proposal waits for a person. Exit 130: somebody stopped it.\n\nExample:\n  \
                      clover sgd run tune-1"
    )]
    Run(RunArgs),
    /// Every run, and what is due in each
    #[command(after_help = "Example:\n  clover sgd status")]
    Status,
    /// One run: curves, steps, sections, rejections; or its prompt at a place
    #[command(after_help = "Example:\n  clover sgd show tune-1 --prompt 0")]
    Show(ShowArgs),
    /// Approve or refuse the proposal that waits for a person
    #[command(after_help = "Example:\n  clover sgd approve tune-1 --refuse")]
    Approve(ApproveArgs),
    /// Read test once, under prompt 0 and the checkpoint, and end the run
    #[command(
        override_usage = "clover sgd test RUN [OPTIONS] [-- JUDGE COMMAND]",
        after_help = "Example:\n  clover sgd test tune-1"
    )]
    Test(TestArgs),
    /// Plan the gate of the checkpoint; once the plan is signed, score confirm, decide and promote
    #[command(
        override_usage = "clover sgd promote RUN [OPTIONS] [-- JUDGE COMMAND]",
        after_help = "Exit 10: the gate speaks against it.\n\
                      Exit 12: a plan waits for its signature, or the gate did not show it.\n\n\
                      Example:\n  clover sgd promote tune-1"
    )]
    Promote(promote::SgdPromoteArgs),
    /// Prompts of a run: one, what two differ by, how each came about; what a file holds
    #[command(subcommand)]
    Prompt(prompts::SgdPromptVerb),
    /// Write a run as a git repository with a commit for each step
    #[command(after_help = "Example:\n  clover sgd export tune-1 --git tune-1.git")]
    Export(prompts::SgdExportArgs),
    /// End a run by a person's word; its test is not read
    #[command(after_help = "Example:\n  clover sgd stop tune-1")]
    Stop(SgdStopArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct SampleArgs {
    /// The file, which is not there yet; JSON Lines as `clover import cje` reads them
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// How many rows, 20 to 100000
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub rows: u64,
    /// The seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// The run
    pub run: String,
    /// Stop after so many more steps
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// The program that writes gradients and patches, where the run was opened for one
    #[arg(long, value_name = "COMMAND")]
    pub agents: Option<String>,
    /// The agents' key; default the only one at hand
    #[arg(long, value_name = "KEY")]
    pub optimizer_key: Option<String>,
    /// The variable with the key of the endpoint whose model is asked; or --key-file FILE
    #[arg(long, value_name = "NAME", conflicts_with = "key_file", hide = true)]
    pub key_env: Option<String>,
    /// The file that holds it, which nobody else may read
    #[arg(long, value_name = "FILE", hide = true)]
    pub key_file: Option<PathBuf>,
    /// Say what is left to ask and to pay; ask and record nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask before a model is asked for more than a dollar
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub judge_key: judge::JudgeKeyArgs,
    #[command(flatten)]
    pub program: Program,
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// The run
    pub run: String,
    /// The prompt at a place: 0 is prompt 0, and step t stands at t + 1
    #[arg(long, value_name = "PLACE")]
    pub prompt: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(super) struct ApproveArgs {
    /// The run
    pub run: String,
    /// Refuse it
    #[arg(long)]
    pub refuse: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct TestArgs {
    /// The run
    pub run: String,
    /// The custodian's key; default the only one at hand
    #[arg(long, value_name = "KEY")]
    pub custodian: Option<String>,
    /// Do not ask before its judge is asked for more than a dollar
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub judge_key: judge::JudgeKeyArgs,
    #[command(flatten)]
    pub program: Program,
}

#[derive(Debug, clap::Args)]
pub(super) struct SgdStopArgs {
    /// The run
    pub run: String,
    /// Do not ask before it ends for good, and what is held for it is charged
    #[arg(long)]
    pub yes: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Sample(args) => sample(ctx, args),
        Verb::Plan(args) => open::plan(ctx, args),
        Verb::Open(args) => open::open(ctx, args),
        Verb::Run(args) => go(ctx, args),
        Verb::Status => {
            let (_, ledger, at) = home::view(ctx)?;
            Ok(views::list(at.state(&ledger)))
        }
        Verb::Show(args) => show(ctx, args),
        Verb::Approve(args) => approve(ctx, args),
        Verb::Test(args) => read_test(ctx, args),
        Verb::Promote(args) => promote::run(ctx, args),
        Verb::Prompt(verb) => prompts::run(ctx, verb),
        Verb::Export(args) => prompts::export(ctx, args),
        Verb::Stop(args) => stop(ctx, args),
    }
}

pub(super) fn run_id(text: &str) -> Result<RunId, CliError> {
    text.parse()
        .map_err(|error| CliError::usage(format!("run {text:?}: {error}"), "clover sgd status"))
}

fn sample(ctx: &mut Ctx<'_>, args: &SampleArgs) -> Result<View, CliError> {
    if !(20..=100_000).contains(&args.rows) {
        let message = format!("--rows {}: expected 20 to 100000", args.rows);
        return Err(CliError::usage(message, "clover sgd sample --help"));
    }
    let text = sample::rows(args.rows, args.seed);
    let path = ctx.path(&args.file);
    ambient::write_new(&path, text.as_bytes(), 0o644)?;
    Ok(views::sampled(&args.file.display().to_string(), args.rows))
}

fn bench(ctx: &mut Ctx<'_>, run: &str) -> Result<SgdBench, CliError> {
    let id = run_id(run)?;
    let (home, ledger) = home::open_to_write(ctx)?;
    Ok(SgdBench::new(home, ledger, id)?)
}

/// What a run may still ask and pay.
fn outlook(ctx: &mut Ctx<'_>, run: &str) -> Result<View, CliError> {
    let id = run_id(run)?;
    let (home, ledger) = home::open_to_read(ctx)?;
    let run = found(ledger.state(), &id).map_err(SessionError::from)?;
    let scores = scoring::ahead_of((&home, &ledger), run, &dialect::wire)?;
    let left = ahead::ahead(&ledger, run)?;
    Ok(views::planned::ahead(run, &left, scores.as_ref()))
}

fn go(ctx: &mut Ctx<'_>, args: &RunArgs) -> Result<View, CliError> {
    if args.dry_run {
        return outlook(ctx, &args.run);
    }
    let mut bench = bench(ctx, &args.run)?;
    let mut program = agents::program(ctx, args.agents.as_deref(), &args.program)?;
    let said = &bench.run().map_err(SessionError::from)?.said;
    agents::check_same(said, program.as_ref())?;
    let place = said.asked.as_ref();
    let place = place.map(|asked| synth_model::place(&bench.ledger, &asked.endpoint));
    let place = place.transpose()?;
    let desk = place.as_ref().map(|place| {
        let from = (args.key_env.as_deref(), args.key_file.as_deref());
        let key = endpoint::key_of(ctx, place, from)?;
        endpoint::desk(place, key, RUN_HELP)
    });
    let mut desk = desk.transpose()?;
    judge::opened(ctx, &mut bench, (&args.judge_key, RUN_HELP))?;
    let ports = &mut ctx
        .ports()
        .with_consent(args.yes, "the same command with")
        .with_program(&args.program)
        .with_optimizer(args.optimizer_key.as_ref())
        .with_interrupts()?;
    let mut running = SgdRunning::new(&mut bench)?;
    if running.is_simulated() && !args.program.command.is_empty() {
        return Err(SessionError::from(SgdError::SimulatedJudge(run_id(&args.run)?)).into());
    }
    let mut answering = match (&mut program, desk.as_mut().zip(place.as_ref())) {
        (Some(program), _) => SgdAnswering::Program(program.as_agents()),
        (None, Some((desk, place))) => SgdAnswering::Model(ModelSender {
            desk,
            rules: DispatchRules::default(),
            wire: dialect::wire(place.dialect),
        }),
        (None, None) => SgdAnswering::Aggregate,
    };
    let pause = running.go(ports, &mut answering, args.steps)?;
    let run = bench.run().map_err(SessionError::from)?;
    let mut view = views::ran(bench.ledger.state(), run, &pause);
    match pause {
        // What the view says of it is how it ends.
        SgdPause::Ask(_) => {}
        SgdPause::Cut => view.exit = Exit::Interrupted,
        SgdPause::Waits => view.exit = Exit::Inconclusive,
        SgdPause::AtTest | SgdPause::Ended | SgdPause::Steps => view.exit = Exit::Done,
    }
    Ok(view)
}

fn show(ctx: &mut Ctx<'_>, args: &ShowArgs) -> Result<View, CliError> {
    let id = run_id(&args.run)?;
    let (_, ledger, at) = home::view(ctx)?;
    let run = found(at.state(&ledger), &id).map_err(SessionError::from)?;
    let Some(place) = args.prompt else {
        return Ok(views::run(at.state(&ledger), run));
    };
    let prompt = prompts::at_place(run, place)?;
    Ok(views::prompt(run, place, prompt.digest(), prompt.render()))
}

fn approve(ctx: &mut Ctx<'_>, args: &ApproveArgs) -> Result<View, CliError> {
    let mut bench = bench(ctx, &args.run)?;
    let word = if args.refuse {
        SgdWord::Refuse
    } else {
        SgdWord::Approve
    };
    let run = bench.run().map_err(SessionError::from)?;
    let proposal = running::waiting(run).map(|of| of.patch.as_str().to_owned());
    if let Some(proposal) = &proposal {
        let verb = if args.refuse { "refuse" } else { "approve" };
        let question = format!(
            "{verb} this patch, for good:\n{}\n",
            views::diff_of(proposal)
        );
        let again = format!(
            "clover sgd approve {}{}",
            shell::word(&args.run),
            if args.refuse { " --refuse" } else { "" }
        );
        ctx.confirm(&question, args.yes, &again)?;
    }
    running::spoken(&mut bench, &mut ctx.ports(), word)?;
    let mut view = shown(&bench)?;
    if let Some(proposal) = proposal {
        views::proposal(&mut view, &proposal);
    }
    Ok(view)
}

fn read_test(ctx: &mut Ctx<'_>, args: &TestArgs) -> Result<View, CliError> {
    let mut bench = bench(ctx, &args.run)?;
    judge::opened(ctx, &mut bench, (&args.judge_key, "clover sgd test --help"))?;
    let ports = &mut ctx
        .ports()
        .with_consent(args.yes, "the same command with")
        .with_program(&args.program)
        .with_custodian(args.custodian.as_ref())
        .with_interrupts()?;
    test::read(&mut bench, ports)?;
    shown(&bench)
}

fn stop(ctx: &mut Ctx<'_>, args: &SgdStopArgs) -> Result<View, CliError> {
    let mut bench = bench(ctx, &args.run)?;
    let again = format!("clover sgd stop {}", shell::word(&args.run));
    let run = bench.run().map_err(SessionError::from)?;
    if run.end.is_none() {
        let question = format!(
            "end {} for good: no step follows, and its test is not read",
            run.said.run
        );
        ctx.confirm(&question, args.yes, &again)?;
    }
    let mut ports = ctx.ports().with_consent(true, again);
    running::stop(&mut bench, &mut ports)?;
    shown(&bench)
}

fn shown(bench: &SgdBench) -> Result<View, CliError> {
    let run = bench.run().map_err(SessionError::from)?;
    Ok(views::run(bench.ledger.state(), run))
}
