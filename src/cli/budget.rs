//! `clover budget`: accounts and what is left in them.

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::event::payload::budget::Period;
use crate::ground::time::Timestamp;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::projection::budgets::Account;
use crate::projection::budgets::Budgets;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Accounts with what is left
    #[command(after_help = "Example:\n  clover budget list")]
    List,
    /// One account, period by period
    #[command(after_help = "Example:\n  clover budget show confirm-peeks")]
    Show(ShowArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// The account
    pub account: String,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<Answer, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let now = now(ctx, &ledger, state);
    match verb {
        Verb::List => {
            let data = json!({"budgets": list_json(state, now)});
            Ok(Answer::new(table(state, now), data))
        }
        Verb::Show(args) => show(state, now, &args.account),
    }
}

/// The time whose period counts: now, or that of the entry that is looked back to.
fn now(ctx: &Ctx<'_>, ledger: &Ledger, state: &State) -> Timestamp {
    let head = state.keyring.recorded_at;
    let clock = ledger.ambient().now();
    match ctx.as_of {
        Some(_) => head.unwrap_or(clock),
        None => clock.max(head.unwrap_or(clock)),
    }
}

fn period(account: &Account, now: Timestamp) -> String {
    match account.period {
        Period::Once => "once".to_owned(),
        Period::Quarter => now.quarter().to_string(),
    }
}

pub(super) fn table(state: &State, now: Timestamp) -> String {
    let rows = state
        .fold::<Budgets>()
        .accounts
        .iter()
        .map(|(name, account)| {
            vec![
                name.to_string(),
                account.unit.to_string(),
                period(account, now),
                account.amount.to_string(),
                account.spent(now).to_string(),
                account.left(now).to_string(),
                account.spenders.to_string(),
            ]
        });
    let head = [
        "account", "unit", "period", "amount", "spent", "left", "spenders",
    ];
    ui::table(&head, rows.collect())
}

pub(super) fn list_json(state: &State, now: Timestamp) -> Vec<Value> {
    let accounts = state.fold::<Budgets>().accounts.iter();
    accounts
        .map(|(name, account)| {
            json!({
                "account": name.as_str(), "unit": account.unit.as_str(),
                "period": period(account, now), "amount": account.amount,
                "spent": account.spent(now), "left": account.left(now),
                "spenders": account.spenders.as_slice(), "opened_seq": account.opened_seq,
            })
        })
        .collect()
}

fn show(state: &State, now: Timestamp, name: &str) -> Result<Answer, CliError> {
    let accounts = &state.fold::<Budgets>().accounts;
    let found = accounts.iter().find(|(known, _)| known.as_str() == name);
    let Some((_, account)) = found else {
        let message = format!("no account {name:?}");
        return Err(CliError::not_found(message, "clover budget list"));
    };
    let unit = account.unit.as_str();
    let mut text = ui::pairs(&[
        ("account", name.to_owned()),
        ("opened", format!("seq {}", account.opened_seq)),
        (
            "amount",
            format!(
                "{} {unit} per {}",
                account.amount,
                match account.period {
                    Period::Once => "ledger",
                    Period::Quarter => "quarter",
                }
            ),
        ),
        ("spenders", account.spenders.to_string()),
        (
            "left",
            format!("{} {unit} in {}", account.left(now), period(account, now)),
        ),
    ]);
    let rows = account.spent.iter().map(|(quarter, spent)| {
        let quarter = quarter.map_or("once".to_owned(), |quarter| quarter.to_string());
        vec![
            quarter,
            spent.to_string(),
            account.amount.saturating_sub(*spent).to_string(),
        ]
    });
    if !account.spent.is_empty() {
        text.push_str(&ui::table(&["period", "spent", "left"], rows.collect()));
    }
    let spent: Vec<_> = account
        .spent
        .iter()
        .map(|(quarter, spent)| json!({"period": quarter.map(|quarter| quarter.to_string()), "spent": spent}))
        .collect();
    let data = json!({
        "account": name, "unit": unit, "amount": account.amount, "spent": spent,
        "left": account.left(now), "opened_seq": account.opened_seq,
    });
    Ok(Answer::new(text, data))
}
