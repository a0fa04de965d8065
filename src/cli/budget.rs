//! `clover budget`: accounts with what was opened, what was charged to them and by which events, and what is left.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::init;
use crate::cli::judge_ask;
use crate::cli::key;
use crate::cli::record;
use crate::event::Payload;
use crate::event::id::AccountId;
use crate::event::id::UnitId;
use crate::event::payload::Role;
use crate::event::payload::Roles;
use crate::event::payload::budget::BudgetOpened;
use crate::event::payload::budget::Period;
use crate::ground::shell;
use crate::ground::time::Timestamp;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::num::Count;
use crate::projection::budgets::Budgets;
use crate::projection::budgets::Purpose;
use crate::view::View;
use crate::view::budget;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Accounts with what is left
    #[command(after_help = "Example:\n  clover budget list")]
    List,
    /// Open an account: how much there is, of what, and who may charge it
    #[command(
        override_usage = "clover budget open ACCOUNT --usd X | --unit UNIT --amount N [OPTIONS]",
        after_help = "Example:\n  clover budget open judges --usd 2.50\n  \
                      clover budget open confirm-peeks --unit peek --amount 3 --quarterly"
    )]
    Open(BudgetOpenArgs),
    /// One account, charge by charge
    #[command(after_help = "Example:\n  clover budget show confirm-peeks")]
    Show(BudgetShowArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct BudgetOpenArgs {
    /// The account; its name is new
    pub account: String,
    /// Dollars, for calls of models
    #[arg(long, value_name = "X", conflicts_with_all = ["unit", "amount"])]
    pub usd: Option<String>,
    /// What is counted
    #[arg(
        long,
        value_name = "UNIT",
        requires = "amount",
        help = "What is counted: peek, judge_call, label, patch, dev_call or another word"
    )]
    pub unit: Option<String>,
    /// How many
    #[arg(long, value_name = "N", requires = "unit")]
    pub amount: Option<u64>,
    /// It fills again at the start of each quarter, in UTC; else never
    #[arg(long)]
    pub quarterly: bool,
    /// Roles that may charge it [else custodian for peeks, scorer for dollars and calls of judges]
    #[arg(long, value_name = "ROLE,ROLE")]
    pub spender: Option<String>,
    /// What it is for, in words [else what its unit pays for]
    #[arg(long, value_name = "TEXT")]
    pub purpose: Option<String>,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct BudgetShowArgs {
    /// The account, or alpha:FAMILY, or exposures:MANIFEST
    pub account: String,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::List => {
            let (_, ledger, view) = home::view(ctx)?;
            let state = view.state(&ledger);
            Ok(budget::list(state, now(ctx, &ledger, state)))
        }
        Verb::Open(args) => open(ctx, args),
        Verb::Show(args) => {
            let (_, ledger, view) = home::view(ctx)?;
            let state = view.state(&ledger);
            let now = now(ctx, &ledger, state);
            let name = &args.account;
            let shown = budget::show(&ledger, state, now, name)?;
            let missing = || {
                let message = format!("no account {name:?}");
                CliError::not_found(message, "clover budget list")
            };
            shown.ok_or_else(missing)
        }
    }
}

/// The time whose period counts: now, or that of the entry that is looked back to.
pub(super) fn now(ctx: &Ctx<'_>, ledger: &Ledger, state: &State) -> Timestamp {
    let head = state.keyring.recorded_at;
    let clock = ledger.ambient().now();
    match ctx.as_of {
        Some(_) => head.unwrap_or(clock),
        None => clock.max(head.unwrap_or(clock)),
    }
}

const OPEN_HELP: &str = "clover budget open --help";

fn open(ctx: &mut Ctx<'_>, args: &BudgetOpenArgs) -> Result<View, CliError> {
    let wrong = |message: String| CliError::usage(message, OPEN_HELP);
    let account = AccountId::new(&args.account)
        .map_err(|error| wrong(format!("account {:?}: {error}", args.account)))?;
    let (unit, amount) = counted(args)?;
    let purpose = Purpose::of(&unit);
    let spenders = match &args.spender {
        Some(text) => init::roles(text)?,
        None => spenders(purpose).ok_or_else(|| {
            wrong(format!(
                "--spender: expected the roles that may charge an account of {unit}, such as labeler"
            ))
        })?,
    };
    let (_, ledger, _) = home::view(ctx)?;
    if let Some(known) = ledger.state().fold::<Budgets>().accounts.get(&account) {
        let message = format!(
            "account {account} was opened before, at seq {}: what it holds is never changed; open one of another name",
            known.opened_seq
        );
        let next = format!("clover budget show {}", shell::word(&account));
        return Err(CliError::refused(message, next));
    }
    drop(ledger);
    let words = args.purpose.as_deref().unwrap_or(purpose.as_str());
    let opened = BudgetOpened {
        account,
        amount,
        period: if args.quarterly {
            Period::Quarter
        } else {
            Period::Once
        },
        purpose: key::text("purpose", words)?,
        spenders,
        unit,
    };
    let command = Command {
        payload: Payload::from(opened),
        experiment: None,
        refs: Vec::new(),
        at: None,
    };
    let view = record::one(ctx, command, args.dry_run)?;
    let next = format!("clover budget show {}", shell::word(&args.account));
    Ok(if args.dry_run {
        view
    } else {
        view.with_next(next)
    })
}

/// What is counted, and how many: at least one.
fn counted(args: &BudgetOpenArgs) -> Result<(UnitId, Count), CliError> {
    let wrong = |message: String| CliError::usage(message, OPEN_HELP);
    let (unit, amount) = match (&args.usd, &args.unit, args.amount) {
        (Some(usd), ..) => {
            let micro = judge_ask::dollars(("--usd", usd), OPEN_HELP)?;
            ("usd_micro", micro.value())
        }
        (None, Some(unit), Some(amount)) => (unit.as_str(), amount),
        _ => {
            let expected = "expected how much it holds: --usd X, or --unit UNIT with --amount N";
            return Err(wrong(expected.to_owned()));
        }
    };
    let unit = UnitId::new(unit).map_err(|error| wrong(format!("--unit {unit:?}: {error}")))?;
    let amount = Count::new(amount).filter(|amount| amount.value() > 0);
    let expected = || wrong("expected an amount above 0 and below 2^53".to_owned());
    Ok((unit, amount.ok_or_else(expected)?))
}

/// Who charges accounts that pay for something, where nobody says otherwise.
fn spenders(purpose: Purpose) -> Option<Roles> {
    let role = match purpose {
        Purpose::JudgeSpend => Role::Scorer,
        Purpose::Peeks => Role::Custodian,
        Purpose::DevCalls | Purpose::Labels | Purpose::Other | Purpose::Patches => return None,
    };
    Roles::new([role])
}

/// The command that opens an account of peeks.
pub(super) fn peeks_opened(name: &str) -> String {
    let name = shell::word(&name);
    format!("clover budget open {name} --unit peek --amount 3 --quarterly")
}
