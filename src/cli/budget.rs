//! `clover budget`: accounts with what was opened, what was charged to them and by which events, and what is left.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::ground::shell;
use crate::ground::time::Timestamp;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::view::View;
use crate::view::budget;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Accounts with what is left
    #[command(after_help = "Example:\n  clover budget list")]
    List,
    /// One account, charge by charge
    #[command(after_help = "Example:\n  clover budget show confirm-peeks")]
    Show(BudgetShowArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct BudgetShowArgs {
    /// The account, or alpha:FAMILY, or exposures:MANIFEST
    pub account: String,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let now = now(ctx, &ledger, state);
    match verb {
        Verb::List => Ok(budget::list(state, now)),
        Verb::Show(args) => {
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

/// The command that opens an account of peeks.
pub(super) fn peeks_opened(name: &str) -> String {
    let data = json!({
        "account": name, "amount": 3, "period": "quarter", "purpose": "confirm peeks",
        "spenders": ["custodian"], "unit": "peek",
    });
    format!(
        "clover record budget.opened --data {}",
        shell::quoted(&data)
    )
}
