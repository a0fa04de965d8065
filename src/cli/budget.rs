//! `clover budget`: accounts with what was opened, what was charged to them and by which events, and what is left.
//!
//! Beside the accounts that `budget.opened` opens stand those that other events keep: the alpha of a family, which
//! registered manifests take from, and the exposures of a manifest, which each exposure takes one of.

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::ui;
use crate::event::Payload;
use crate::event::payload::budget::Period;
use crate::event::payload::prereg::ExposureOpened;
use crate::ground::shell;
use crate::ground::time::Timestamp;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::projection::budgets::Account;
use crate::projection::budgets::Budgets;
use crate::projection::manifests::Manifests;
use crate::view::View;

/// Charges that a text answer lists; `--json` has all.
const SHOWN_MAX: usize = 40;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Accounts with what is left
    #[command(after_help = "Example:\n  clover budget list")]
    List,
    /// One account, charge by charge
    #[command(after_help = "Example:\n  clover budget show confirm-peeks")]
    Show(ShowArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// The account, or alpha:FAMILY, or exposures:MANIFEST
    pub account: String,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let now = now(ctx, &ledger, state);
    match verb {
        Verb::List => {
            let data = json!({"budgets": list_json(state, now)});
            Ok(View::untyped(table(state, now), data))
        }
        Verb::Show(args) => show(&ledger, state, now, &args.account),
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

/// An account as it is shown, whoever keeps it.
struct Line {
    name: String,
    pays: &'static str,
    unit: String,
    period: String,
    opened: u64,
    opened_seq: u64,
    charged: u64,
    left: u64,
    charges: u64,
    last_seq: Option<u64>,
    spenders: Vec<String>,
}

/// Every account, those of `budget.opened` first.
fn accounts(state: &State, now: Timestamp) -> Vec<Line> {
    let accounts = state.fold::<Budgets>().accounts.iter();
    let mut lines: Vec<_> = accounts
        .map(|(name, account)| Line {
            name: name.to_string(),
            pays: account.purpose().as_str(),
            unit: account.unit.to_string(),
            period: period(account, now),
            opened: account.amount,
            opened_seq: account.opened_seq,
            charged: account.spent(now),
            left: account.left(now),
            charges: account.charges,
            last_seq: account.last_seq,
            spenders: account
                .spenders
                .as_slice()
                .iter()
                .map(ToString::to_string)
                .collect(),
        })
        .collect();
    let manifests = state.fold::<Manifests>();
    for (name, family) in &manifests.families {
        let (opened, charged) = (family.alpha.unsigned_abs(), family.spent().unsigned_abs());
        let joined = family.joined.iter();
        let last =
            joined.filter_map(|(id, _)| Some(manifests.by_id.get(id)?.versions.first()?.seq));
        lines.push(Line {
            name: format!("alpha:{name}"),
            pays: "alpha",
            unit: "alpha_micro".to_owned(),
            period: "once".to_owned(),
            opened,
            opened_seq: family.opened_seq,
            charged,
            left: opened.saturating_sub(charged),
            charges: family.joined.len() as u64,
            last_seq: last.max(),
            spenders: vec!["registrar".to_owned()],
        });
    }
    for (name, record) in &manifests.by_id {
        let version = record.in_force();
        let Some((version, data)) = version.and_then(|of| Some((of, of.manifest.data.as_ref()?)))
        else {
            continue;
        };
        let opened = data.exposure_cap.value();
        lines.push(Line {
            name: format!("exposures:{name}"),
            pays: "exposures",
            unit: "exposure".to_owned(),
            period: "once".to_owned(),
            opened,
            opened_seq: version.seq,
            charged: record.exposures,
            left: opened.saturating_sub(record.exposures),
            charges: record.exposures,
            last_seq: None,
            spenders: vec!["custodian".to_owned()],
        });
    }
    lines
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

pub(super) fn is_empty(state: &State) -> bool {
    let manifests = state.fold::<Manifests>();
    let binds = manifests.by_id.values().any(|record| {
        record
            .in_force()
            .is_some_and(|version| version.manifest.data.is_some())
    });
    state.fold::<Budgets>().accounts.is_empty() && manifests.families.is_empty() && !binds
}

pub(super) fn table(state: &State, now: Timestamp) -> String {
    let rows = accounts(state, now).into_iter().map(|line| {
        let by = match (line.charges, line.last_seq) {
            (0, _) => "none".to_owned(),
            (count, Some(seq)) => format!("{count}, last seq {seq}"),
            (count, None) => count.to_string(),
        };
        vec![
            line.name,
            line.pays.to_owned(),
            line.unit,
            line.period,
            format!("{} (seq {})", line.opened, line.opened_seq),
            line.charged.to_string(),
            line.left.to_string(),
            by,
            line.spenders.join(", "),
        ]
    });
    let head = [
        "account", "pays for", "unit", "period", "opened", "charged", "left", "charges", "spenders",
    ];
    ui::table(&head, rows.collect())
}

pub(super) fn list_json(state: &State, now: Timestamp) -> Vec<Value> {
    let lines = accounts(state, now).into_iter();
    lines
        .map(|line| {
            json!({
                "account": line.name, "pays_for": line.pays, "unit": line.unit, "period": line.period,
                "amount": line.opened, "opened_seq": line.opened_seq, "spent": line.charged, "left": line.left,
                "charges": line.charges, "last_seq": line.last_seq, "spenders": line.spenders,
            })
        })
        .collect()
}

/// One charge of an account.
struct Charge {
    seq: u64,
    amount: u64,
    period: String,
    what: String,
}

fn show(ledger: &Ledger, state: &State, now: Timestamp, name: &str) -> Result<View, CliError> {
    let found = accounts(state, now)
        .into_iter()
        .find(|line| line.name == name);
    let Some(line) = found else {
        let message = format!("no account {name:?}");
        return Err(CliError::not_found(message, "clover budget list"));
    };
    let charges = charges(ledger, state, name)?;
    let per = if line.period == "once" {
        "ledger"
    } else {
        "quarter"
    };
    let mut text = ui::pairs(&[
        ("account", name.to_owned()),
        ("pays for", line.pays.to_owned()),
        (
            "opened",
            format!(
                "{} {} per {per}, seq {}",
                line.opened, line.unit, line.opened_seq
            ),
        ),
        ("spenders", line.spenders.join(", ")),
        (
            "charged",
            format!("{} {} in {}", line.charged, line.unit, line.period),
        ),
        (
            "left",
            format!("{} {} in {}", line.left, line.unit, line.period),
        ),
    ]);
    if !charges.is_empty() {
        let hidden = charges.len().saturating_sub(SHOWN_MAX);
        let rows = charges.iter().skip(hidden).map(|charge| {
            vec![
                charge.seq.to_string(),
                charge.period.clone(),
                charge.amount.to_string(),
                charge.what.clone(),
            ]
        });
        text.push('\n');
        text.push_str(&ui::table(
            &["seq", "period", "amount", "for"],
            rows.collect(),
        ));
        if hidden > 0 {
            text.push_str(&format!("… and {hidden} before them (--json lists them)\n"));
        }
    }
    let data: Vec<_> = charges
        .iter()
        .map(|charge| {
            json!({
                "seq": charge.seq, "period": charge.period, "amount": charge.amount, "for": charge.what,
            })
        })
        .collect();
    let data = json!({
        "account": name, "pays_for": line.pays, "unit": line.unit, "amount": line.opened,
        "opened_seq": line.opened_seq, "spent": line.charged, "left": line.left, "charges": data,
    });
    Ok(View::untyped(text, data))
}

/// The events that charged an account, in their order.
fn charges(ledger: &Ledger, state: &State, name: &str) -> Result<Vec<Charge>, CliError> {
    let manifests = state.fold::<Manifests>();
    if let Some(family) = name.strip_prefix("alpha:") {
        let mut families = manifests.families.iter();
        let family = families.find(|(id, _)| id.as_str() == family);
        let joined = family.into_iter().flat_map(|(_, family)| &family.joined);
        let charges = joined.map(|(id, alpha)| Charge {
            seq: manifests
                .by_id
                .get(id)
                .and_then(|record| record.versions.first())
                .map_or(0, |of| of.seq),
            amount: alpha.unsigned_abs(),
            period: "once".to_owned(),
            what: format!("manifest {id}"),
        });
        return Ok(charges.collect());
    }
    let exposed = name.strip_prefix("exposures:");
    let mut records = manifests.by_id.iter();
    let record = exposed.and_then(|id| records.find(|(known, _)| known.as_str() == id));
    let exposes = |opened: &ExposureOpened| {
        record.is_some_and(|(_, record)| record.version(opened.digest).is_some())
    };
    let quarterly = |account: &Account| account.period == Period::Quarter;
    let accounts = &state.fold::<Budgets>().accounts;
    let mut found = Vec::new();
    ledger.entries::<CliError>(0, state.size, |read| {
        let (seq, at) = (read.stored.seq, read.stored.recorded_at);
        match &read.event.payload {
            Payload::BudgetCharged(charged) if charged.account.as_str() == name => {
                let account = accounts.get(&charged.account);
                let period = if account.is_some_and(quarterly) {
                    at.quarter().to_string()
                } else {
                    "once".to_owned()
                };
                found.push(Charge {
                    seq,
                    amount: charged.amount.value(),
                    period,
                    what: charged.purpose.as_str().to_owned(),
                });
            }
            Payload::ExposureOpened(opened) if exposes(opened) => found.push(Charge {
                seq,
                amount: 1,
                period: "once".to_owned(),
                what: format!("units {} to {}", opened.first_unit, opened.last_unit),
            }),
            _ => {}
        }
        Ok(())
    })?;
    Ok(found)
}
