//! `clover seal`: labels committed and encrypted to the custodian, opened only after their peek was charged.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::record;
use crate::cli::submit;
use crate::cli::wallet;
use crate::ledger::Ledger;
use crate::num::Micro;
use crate::session::label;
use crate::session::label::LabelKey;
use crate::session::label::Statement;
use crate::view::View;
use crate::view::label as views;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Commit to a label and encrypt it to a custodian
    #[command(
        override_usage = "clover seal label --experiment ID --design ID --row ID --value V --to KEY --reveal-by TIME",
        after_help = "Example:\n  clover seal label --experiment arena --design confirm --row 7 --value @v --to cem \\\n    --reveal-by 2027-01-31T00:00:00.000000Z"
    )]
    Label(LabelArgs),
    /// State, as the custodian, that an envelope opens under your identity
    #[command(
        after_help = "Example:\n  clover seal accept --experiment arena --design confirm --row 7"
    )]
    Accept(AcceptArgs),
    /// Open a label after its peek was charged
    #[command(
        after_help = "Example:\n  clover seal reveal --experiment arena --design confirm --row 7 --charge 3d0c…"
    )]
    Reveal(SealRevealArgs),
}

/// Which label.
#[derive(Debug, clap::Args)]
pub(super) struct RowArgs {
    /// The experiment
    #[arg(long, value_name = "ID")]
    pub experiment: String,
    /// The label design
    #[arg(long, value_name = "ID")]
    pub design: String,
    /// The row of the design
    #[arg(long, value_name = "ID")]
    pub row: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct LabelArgs {
    #[command(flatten)]
    pub row: RowArgs,
    /// The label as a decimal; @FILE or - keeps it out of the shell's history
    #[arg(long, value_name = "VALUE|@FILE|-", allow_hyphen_values = true)]
    pub value: String,
    /// The custodian's key: a name, an id or a holder
    #[arg(long, value_name = "KEY")]
    pub to: String,
    /// By when it is to be revealed
    #[arg(long, value_name = "TIME")]
    pub reveal_by: String,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct AcceptArgs {
    #[command(flatten)]
    pub row: RowArgs,
    /// The age identity; default among your keys
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct SealRevealArgs {
    #[command(flatten)]
    pub row: RowArgs,
    /// Id of the budget.charged event that paid for it
    #[arg(long, value_name = "ID")]
    pub charge: String,
    /// The age identity; default among your keys
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<View, CliError> {
    match verb {
        Verb::Label(args) => label(ctx, &args),
        Verb::Accept(args) => accept(ctx, &args),
        Verb::Reveal(args) => reveal(ctx, &args),
    }
}

/// The parsed names of a label.
fn place(args: &RowArgs) -> Result<LabelKey, CliError> {
    let wrong = |what: &str, text: &str, error: crate::event::id::IdError| {
        CliError::usage(
            format!("--{what} {text:?}: {error}"),
            "clover seal label --help",
        )
    };
    let (design, row) = (&args.design, &args.row);
    Ok(LabelKey {
        experiment: record::experiment_id(&args.experiment)?,
        design: design
            .parse()
            .map_err(|error| wrong("design", design, error))?,
        row: row.parse().map_err(|error| wrong("row", row, error))?,
    })
}

/// The label from the command line, a file or standard input, exact to the millionth.
fn value(ctx: &mut Ctx<'_>, text: &str) -> Result<Micro, CliError> {
    let text = match text.strip_prefix('@') {
        Some(file) => String::from_utf8_lossy(&ctx.read(file.as_ref())?).into_owned(),
        None if text == "-" => String::from_utf8_lossy(&ctx.read("-".as_ref())?).into_owned(),
        None => text.to_owned(),
    };
    match Micro::parse(text.trim()) {
        Ok((value, false)) => Ok(value),
        Ok((_, true)) => Err(CliError::input(
            "--value: expected at most six decimals",
            "clover seal label --help",
        )),
        Err(error) => Err(CliError::input(
            format!("--value: {error}"),
            "clover seal label --help",
        )),
    }
}

fn label(ctx: &mut Ctx<'_>, args: &LabelArgs) -> Result<View, CliError> {
    let place = place(&args.row)?;
    let value = value(ctx, &args.value)?;
    let reveal_by = record::deadline(ctx.ambient().now(), &args.reveal_by)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let custodian = wallet::resolve(ctx, ledger.state(), &args.to)?;
    let to = (&custodian, reveal_by);
    let said = label::seal_label(&mut ctx.ports(), &ledger, place, value, to)?;
    if !args.row.dry_run {
        let question = format!(
            "seal the label of {} for good: a charged peek alone shows it",
            args.row.row
        );
        let consent = submit::StepConsent {
            question: &question,
            yes: args.yes,
            again: "the same command with",
        };
        let commands = std::slice::from_ref(&said.command);
        submit::ask(ctx, &ledger, commands, &said.signer, &consent)?;
    }
    say(ctx, &mut ledger, said, args.row.dry_run)
}

/// Appends a statement, or shows it.
fn say(
    ctx: &mut Ctx<'_>,
    ledger: &mut Ledger,
    said: Statement,
    dry_run: bool,
) -> Result<View, CliError> {
    submit::append(ctx, ledger, &[said.command], &said.signer, dry_run)
}

fn accept(ctx: &mut Ctx<'_>, args: &AcceptArgs) -> Result<View, CliError> {
    let place = place(&args.row)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let mut ports = ctx.ports().with_identity(args.identity.as_deref());
    let said = label::accept(&mut ports, &ledger, place)?;
    say(ctx, &mut ledger, said, args.row.dry_run)
}

fn reveal(ctx: &mut Ctx<'_>, args: &SealRevealArgs) -> Result<View, CliError> {
    let place = place(&args.row)?;
    let charge = record::event_id(&args.charge)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let mut ports = ctx.ports().with_identity(args.identity.as_deref());
    let peek = label::peek(&mut ports, &ledger, place, charge)?;
    if args.row.dry_run {
        // A body would show the label: nothing is decrypted before it is revealed.
        let message = "a reveal cannot be rehearsed without opening the label";
        return Err(CliError::refused(
            message,
            "the same command without --dry-run",
        ));
    }
    let found = peek.reveal(&mut ports, &mut ledger)?;
    let answer = submit::answer(&ledger, &found.commands, &found.appended);
    Ok(views::revealed(answer, found.value))
}
