//! `clover synth`: an optimizer that sees only cards writes patches, round by round, and the best of each family is proposed.

use std::time::Duration;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::iterate::bench;
use crate::cli::iterate::program;
use crate::cli::iterate::program::Program;
use crate::cli::key;
use crate::cli::synth_model;
use crate::cli::synth_model::ModelArgs;
use crate::event::id::IterationId;
use crate::event::id::Text;
use crate::event::payload::scoring::JudgePort;
use crate::event::payload::synth_runs::OptimizerKind;
use crate::ground::process::Child;
use crate::ground::process::Heard;
use crate::ground::shell;
use crate::ledger::State;
use crate::model::dialect;
use crate::num::Count;
use crate::projection::synths::Synths;
use crate::session::asking::ModelSender;
use crate::session::iterate::Bench;
use crate::session::iterate::IterationError;
use crate::session::iterate::synth;
use crate::session::iterate::synth::Answering;
use crate::session::iterate::synth::SynthTerms;
use crate::session::iterate::synth_outlook;
use crate::view::View;
use crate::view::synth as views;
use crate::view::synth_asked as asked_views;
use crate::workflow::ask::dispatch::DispatchRules;
use crate::workflow::judge::command;
use crate::workflow::synth::Optimizer;
use crate::workflow::synth::cards;
use crate::workflow::synth::view::OptimizerView;

const RUN_HELP: &str = "clover synth run --help";
/// Seconds that an optimizer may take for an answer.
const PATIENCE: u64 = 300;
/// How long an optimizer whose output ended may take to end itself.
const END_WAIT: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Let an optimizer write patches from cards alone; a run that was cut goes on
    #[command(
        override_usage = "clover synth run [OPTIONS] <ITERATION> [-- COMMAND]",
        after_help = "Example:\n  clover synth run it-1 --optimizer 'python3 optimizer.py' --rounds 3"
    )]
    Run(Box<SynthRunArgs>),
    /// What an optimizer would be shown now, byte for byte; nothing is recorded
    #[command(after_help = "Example:\n  clover synth view it-1")]
    View(SynthViewArgs),
    /// One run: what it returned, what that is worth on dev, and how it ended
    #[command(after_help = "Example:\n  clover synth show it-1-1")]
    Show(SynthShowArgs),
    /// Every run, however it ended
    #[command(after_help = "Example:\n  clover synth list")]
    List,
    /// End a run that is open; nothing that it returned is proposed
    #[command(after_help = "Example:\n  clover synth stop it-1-1")]
    Stop(SynthStopArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct SynthRunArgs {
    /// The iteration
    #[arg(value_name = "ITERATION")]
    pub iteration: String,
    /// A program of one's own; default cards, the search of Clover
    #[arg(
        long,
        value_name = "COMMAND",
        default_value = "cards",
        hide_default_value = true
    )]
    pub optimizer: String,
    /// Most candidates of a round, 1 to 8
    #[arg(short, value_name = "N", default_value_t = synth::K)]
    pub k: u64,
    /// Most rounds, 1 to 64
    #[arg(long, value_name = "N", default_value_t = synth::ROUNDS)]
    pub rounds: u64,
    /// Most dev calls; default 40, or what the plan leaves
    #[arg(long, value_name = "N")]
    pub dev_calls: Option<u64>,
    /// Open another run where one ended
    #[arg(long)]
    pub again: bool,
    /// The optimizer's key; default the only one at hand
    #[arg(long, value_name = "KEY")]
    pub requester: Option<String>,
    #[command(flatten)]
    pub asks: ModelArgs,
    #[command(flatten)]
    pub program: Program,
}

#[derive(Debug, clap::Args)]
pub(super) struct SynthViewArgs {
    /// The iteration
    #[arg(value_name = "ITERATION")]
    pub iteration: String,
    /// Most candidates of a round, 1 to 8
    #[arg(short, value_name = "N", default_value_t = synth::K)]
    pub k: u64,
}

#[derive(Debug, clap::Args)]
pub(super) struct SynthShowArgs {
    /// The run
    pub run: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct SynthStopArgs {
    /// The run
    pub run: String,
    /// Do not ask before what is held for it is charged
    #[arg(long)]
    pub yes: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Run(args) => go(ctx, args),
        Verb::View(args) => view(ctx, args),
        Verb::Show(args) => show(ctx, args),
        Verb::List => list(ctx),
        Verb::Stop(args) => stop(ctx, args),
    }
}

fn count(option: &str, value: u64) -> Result<Count, CliError> {
    Count::new(value).ok_or_else(|| {
        let message = format!("{option} {value}: expected a smaller number");
        CliError::usage(message, RUN_HELP)
    })
}

/// The iteration of a run.
fn iteration_of(state: &State, run: &str) -> Result<IterationId, CliError> {
    let mut all = state.fold::<Synths>().by_id.iter();
    let found = all.find(|(name, _)| name.as_str() == run);
    let found = found.map(|(_, of)| of.said.iteration.clone());
    found.ok_or_else(|| CliError::not_found(format!("no run {run}"), "clover synth list"))
}

/// A program of people's own: one line of JSON in, one out, started anew for each round.
struct OptimizerProgram {
    command: Vec<String>,
    folder: std::path::PathBuf,
    limit: Duration,
}

impl Optimizer for OptimizerProgram {
    fn answer(&mut self, view: &OptimizerView) -> Result<Vec<u8>, String> {
        let (program, args) = self.command.split_first().ok_or("no command")?;
        let child = Child::start(program, args, &self.folder);
        let mut child = child.map_err(|error| format!("{program}: {error}"))?;
        let view = String::from_utf8(view.bytes()).map_err(|error| error.to_string())?;
        child.say(&format!("{{\"view\":{view}}}"));
        match child.hear(self.limit) {
            Heard::Line(line) => Ok(line.into_bytes()),
            Heard::Late => Err(format!("none within {} s", self.limit.as_secs())),
            Heard::Ended => {
                let end = child.finish(END_WAIT);
                let end = end.map_or(String::new(), |words| format!(": {words}"));
                Err(format!("{program} ended without a line of JSON{end}"))
            }
        }
    }
}

/// Whether attacks can be scored: the judge is the built-in one, or its program is said.
fn can_ask(bench: &Bench, program: &Program) -> bool {
    let port = bench.record.judge().map(|judge| judge.port);
    port == Some(JudgePort::Builtin) || !program.command.is_empty()
}

/// A program of people's own, with the words that say which.
fn program(ctx: &mut Ctx<'_>, args: &SynthRunArgs) -> Result<(Text, OptimizerProgram), CliError> {
    let words = args.optimizer.split_whitespace().map(str::to_owned);
    let words: Vec<String> = words.collect();
    let files = program::digest(ctx, "optimizer", &words)?;
    let name = key::text("optimizer", &args.optimizer)?;
    let model = command::model(&name, files.as_ref());
    let asked = OptimizerProgram {
        command: words,
        folder: ctx.folder().to_owned(),
        limit: Duration::from_secs(args.program.timeout.max(PATIENCE)),
    };
    Ok((model, asked))
}

fn go(ctx: &mut Ctx<'_>, args: &SynthRunArgs) -> Result<View, CliError> {
    let (k, rounds) = (count("-k", args.k)?, count("--rounds", args.rounds)?);
    let dev_calls = args
        .dev_calls
        .map(|of| count("--dev-calls", of))
        .transpose()?;
    let mut terms = SynthTerms {
        dev_calls,
        k,
        model: key::text("optimizer", cards::NAME)?,
        optimizer: OptimizerKind::Cards,
        rounds,
        can_ask: false,
        again: args.again,
        asks: None,
        yes: args.asks.yes,
    };
    if args.asks.endpoint.is_some() {
        return asked(ctx, args, terms);
    }
    let mut optimizer: Box<dyn Optimizer> = if args.optimizer == "cards" {
        Box::new(cards::Cards)
    } else {
        let (model, asked) = program(ctx, args)?;
        (terms.optimizer, terms.model) = (OptimizerKind::Command, model);
        Box::new(asked)
    };
    let bench = bench::open(ctx, &args.iteration)?;
    ran(
        ctx,
        args,
        (bench, terms),
        &mut Answering::Program(optimizer.as_mut()),
    )
}

/// A model behind HTTP writes candidates.
fn asked(ctx: &mut Ctx<'_>, args: &SynthRunArgs, mut terms: SynthTerms) -> Result<View, CliError> {
    let bench = bench::open(ctx, &args.iteration)?;
    let asks = synth_model::terms(&args.asks, &bench.ledger)?;
    let asks = asks.ok_or_else(|| CliError::usage("--endpoint is missing", RUN_HELP))?;
    let place = synth_model::place(&bench.ledger, &asks.endpoint)?;
    let wire = dialect::wire(place.dialect);
    (terms.optimizer, terms.model) = (OptimizerKind::Endpoint, synth_model::name(&asks)?);
    terms.asks = Some(asks);
    if args.asks.dry_run {
        let of = synth_outlook::outlook(&bench, &terms, wire)?;
        return Ok(asked_views::foreseen(&terms, &of));
    }
    let mut desk = synth_model::desk(ctx, &place, &args.asks)?;
    let sender = ModelSender {
        desk: &mut desk,
        rules: DispatchRules::default(),
        wire,
    };
    ran(ctx, args, (bench, terms), &mut Answering::Model(sender))
}

fn ran(
    ctx: &mut Ctx<'_>,
    args: &SynthRunArgs,
    (mut bench, mut terms): (Bench, SynthTerms),
    answering: &mut Answering<'_>,
) -> Result<View, CliError> {
    terms.can_ask = can_ask(&bench, &args.program);
    let ports = &mut ctx
        .ports()
        .with_consent(args.asks.yes, "the same command with")
        .with_program(&args.program)
        .with_optimizer(args.requester.as_ref())
        .with_interrupts()?;
    let outcome = synth::run(&mut bench, ports, &terms, answering)?;
    Ok(views::ran(&bench.record, &outcome, bench.ledger.state()))
}

fn view(ctx: &mut Ctx<'_>, args: &SynthViewArgs) -> Result<View, CliError> {
    let k = count("-k", args.k)?;
    let bench = bench::open(ctx, &args.iteration)?;
    let (shown, leak_test) = synth::view(&bench, k)?;
    Ok(views::shown(&shown, leak_test))
}

fn show(ctx: &mut Ctx<'_>, args: &SynthShowArgs) -> Result<View, CliError> {
    let (_, ledger, at) = home::view(ctx)?;
    let id = iteration_of(at.state(&ledger), &args.run)?;
    let record = bench::recorded(&ledger, &id, ctx.as_of.map_or(ledger.size(), |seq| seq + 1))?;
    let mut all = record.synths.iter();
    let run = all.find(|of| of.opened.said.run.as_str() == args.run);
    let run = run.ok_or_else(|| IterationError::NoRun {
        iteration: id.clone(),
        run: args.run.clone(),
    })?;
    Ok(views::run(&record, run, at.state(&ledger)))
}

fn list(ctx: &mut Ctx<'_>) -> Result<View, CliError> {
    let (_, ledger, at) = home::view(ctx)?;
    Ok(views::list(at.state(&ledger)))
}

fn stop(ctx: &mut Ctx<'_>, args: &SynthStopArgs) -> Result<View, CliError> {
    let (home, ledger) = home::open_to_write(ctx)?;
    let id = iteration_of(ledger.state(), &args.run)?;
    let mut bench = Bench::new(home, ledger, id)?;
    let again = format!("clover synth stop {}", shell::word(&args.run));
    let mut ports = ctx.ports().with_consent(args.yes, again);
    let run = synth::stop(&mut bench, &mut ports, &args.run)?;
    Ok(views::run(&bench.record, &run, bench.ledger.state()))
}
