//! `clover confirm`: sealed labels as a whole: what waits, what is late, and opening a design in one charged peek.

mod refusals;

use std::path::PathBuf;

use crate::cli::budget;
use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::event::id::DesignId;
use crate::event::id::ExperimentId;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::session::Home;
use crate::session::confirm as session;
use crate::session::confirm::Peek;
use crate::session::confirm::RevealedLabels;
use crate::session::ports::Seat;
use crate::view::View;
use crate::view::confirm as views;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Sealed labels by design, deadlines, splits and peeks left
    #[command(after_help = "Example:\n  clover confirm status")]
    Status,
    /// Accept, as the custodian, every sealed label of a design
    #[command(after_help = "Example:\n  clover confirm seal probes --experiment arena")]
    Seal(ConfirmSealArgs),
    /// Charge a peek, then open and reveal every label of a design
    #[command(
        after_help = "Example:\n  clover confirm unseal probes --account confirm-peeks --for 'transport audit' --yes"
    )]
    Unseal(UnsealArgs),
}

/// The account of peeks where none is named.
const ACCOUNT: &str = "confirm-peeks";

#[derive(Debug, clap::Args)]
pub(super) struct ConfirmSealArgs {
    /// The label design
    pub design: String,
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// The age identity; default among your keys
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct UnsealArgs {
    #[command(flatten)]
    pub seal: ConfirmSealArgs,
    /// The account of peeks
    #[arg(long, value_name = "ID", default_value = ACCOUNT)]
    pub account: String,
    /// What for
    #[arg(long = "for", value_name = "TEXT")]
    pub purpose: String,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// The command that does it again, where another one asked for it
    #[arg(skip)]
    pub again: Option<String>,
    /// What is foreseen of the peek, in words
    #[arg(skip)]
    pub outlook: Option<String>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<View, CliError> {
    match verb {
        Verb::Status => status(ctx),
        Verb::Seal(args) => accept(ctx, &args),
        Verb::Unseal(args) => unseal(ctx, &args),
    }
}

struct DesignName {
    experiment: ExperimentId,
    design: DesignId,
}

fn place(
    ctx: &mut Ctx<'_>,
    home: &Home,
    ledger: &Ledger,
    args: &ConfirmSealArgs,
) -> Result<DesignName, CliError> {
    let design = args.design.parse().map_err(|error| {
        let message = format!("design {:?}: {error}", args.design);
        CliError::usage(message, "clover label design list")
    })?;
    let experiment = current::experiment(ctx, home, ledger.state(), args.experiment.as_deref())?;
    Ok(DesignName { experiment, design })
}

fn accept(ctx: &mut Ctx<'_>, args: &ConfirmSealArgs) -> Result<View, CliError> {
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let DesignName { experiment, design } = place(ctx, &home, &ledger, args)?;
    let ports = &mut ctx.ports().with_identity(args.identity.as_deref());
    let accepted = session::accept(ports, &mut ledger, &experiment, &design)?;
    Ok(views::accepted(&ledger, &accepted, &design))
}

/// Charges a peek and reveals what waits in a design.
pub(super) fn open(
    ctx: &mut Ctx<'_>,
    home: &Home,
    ledger: &mut Ledger,
    args: &UnsealArgs,
) -> Result<RevealedLabels, CliError> {
    let DesignName { experiment, design } = place(ctx, home, ledger, &args.seal)?;
    let own = || {
        let (name, purpose) = (shell::word(&design), shell::quoted(&args.purpose));
        let account = match args.account.as_str() {
            ACCOUNT => String::new(),
            other => format!(" --account {}", shell::word(&other)),
        };
        format!("clover confirm unseal {name} --for {purpose}{account}")
    };
    let again = args.again.clone().unwrap_or_else(own);
    let peek = Peek {
        experiment,
        design,
        account: args.account.clone(),
        purpose: args.purpose.clone(),
        seat: Seat::Runner,
    };
    let ports = ctx.ports().with_identity(args.seal.identity.as_deref());
    let ports = ports.with_outlook(args.outlook.clone());
    let ports = &mut ports.with_consent(args.yes, again);
    Ok(session::open(ports, ledger, &peek, None)?)
}

fn unseal(ctx: &mut Ctx<'_>, args: &UnsealArgs) -> Result<View, CliError> {
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let opened = open(ctx, &home, &mut ledger, args)?;
    Ok(views::opened(&ledger, &opened, &args.seal.design))
}

fn status(ctx: &mut Ctx<'_>) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let now = budget::now(ctx, &ledger, state);
    let waiting = session::waiting(&ledger, state.size)?;
    Ok(views::status(state, &waiting, now))
}
