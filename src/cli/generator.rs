//! `clover generator`: a policy that is tuned under a frozen judge, what it may ask, whether fresh labels say that it got
//! better, and the way back.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::iterate::program::Program;
use crate::cli::key;
use crate::cli::record;
use crate::cli::submit;
use crate::event::Payload;
use crate::event::id::DesignId;
use crate::event::id::PolicyId;
use crate::event::id::RunId;
use crate::ground::shell;
use crate::num::Count;
use crate::num::Micro;
use crate::session::deploy::generator;
use crate::session::deploy::generator::RunTerms;
use crate::view::View;
use crate::view::generator as views;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Freeze the judge that runs, so that a policy may be tuned under it
    #[command(
        override_usage = "clover generator open RUN --experiment <ID> --old <POLICY> --new <POLICY> --steps <N>",
        after_help = "Example:\n  clover generator open tune-1 --experiment arena --old base --new tuned --steps 20"
    )]
    Open(GeneratorOpenArgs),
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
    Rollback(GeneratorRollbackArgs),
    /// One run: what was frozen, what it asked, what came of it
    #[command(after_help = "Example:\n  clover generator show tune-1")]
    Show(GeneratorShowArgs),
    /// Every run, and how it stands
    #[command(after_help = "Example:\n  clover generator list arena")]
    List(GeneratorListArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct GeneratorOpenArgs {
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
pub(super) struct GeneratorRollbackArgs {
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
pub(super) struct GeneratorShowArgs {
    /// The run
    pub run: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct GeneratorListArgs {
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

fn open(ctx: &mut Ctx<'_>, args: &GeneratorOpenArgs) -> Result<View, CliError> {
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
    let answer = submit::shown(ctx, &ledger, &done.submission);
    Ok(views::objective(answer, &done))
}

fn validate(ctx: &mut Ctx<'_>, args: &ValidateArgs) -> Result<View, CliError> {
    let design: DesignId = parsed("--design", &args.design)?;
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let id: RunId = parsed("run", &args.run)?;
    let intent = submit::intent(args.dry_run);
    let ports = &mut ctx.ports().with_program(&args.program);
    let done = generator::validate(ports, (&home, &mut ledger), &id, design, intent)?;
    let answer = submit::shown(ctx, &ledger, &done.submission);
    Ok(views::validated(answer, &done.said))
}

fn rollback(ctx: &mut Ctx<'_>, args: &GeneratorRollbackArgs) -> Result<View, CliError> {
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let id: RunId = parsed("run", &args.run)?;
    let reason = key::text("reason", &args.reason)?;
    let intent = submit::intent(args.dry_run);
    let done = generator::roll_back(&mut ctx.ports(), &mut ledger, &id, reason, intent)?;
    let answer = submit::shown(ctx, &ledger, &done.submission);
    Ok(views::rolled_back(answer, &done))
}

fn show(ctx: &mut Ctx<'_>, args: &GeneratorShowArgs) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let id: RunId = parsed("run", &args.run)?;
    let (experiment, run) = generator::found(view.state(&ledger), &id)?;
    let opened = generator::opening(&ledger, run)?;
    let read = run.validated.map(|of| ledger.entry(of.seq)).transpose()?;
    let said = read.flatten().and_then(|read| match read.event.payload {
        Payload::GeneratorValidated(said) => Some(*said),
        _ => None,
    });
    Ok(views::show((experiment, run), &opened, said.as_ref()))
}

fn list(ctx: &mut Ctx<'_>, args: &GeneratorListArgs) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let wanted = args.experiment.as_deref().map(record::experiment_id);
    let wanted = wanted.transpose()?;
    Ok(views::list(view.state(&ledger), wanted.as_ref()))
}
