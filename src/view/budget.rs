//! Accounts: what was opened, what was charged to them and by which events, and what is left.
//!
//! Beside the accounts that `budget.opened` opens stand those that other events keep: the alpha of a family, which
//! registered manifests take from, and the exposures of a manifest, which each exposure takes one of.

use serde::Serialize;

use crate::event::payload::budget::Period;
use crate::ground::time::Timestamp;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::State;
use crate::projection::budgets::Budgets;
use crate::projection::manifests::Manifests;
use crate::session::accounts;
use crate::view::View;

/// Units that are charged as they are used, where an account of them is open.
const CHARGED: [&str; 3] = ["judge_call", "label", "patch"];
/// Charges that a text answer lists; `--json` has all.
const SHOWN_MAX: usize = 40;

/// An account as it is shown, whoever keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountRow {
    /// Its name: that of `budget.opened`, or `alpha:FAMILY`, or `exposures:MANIFEST`.
    pub account: String,
    /// What it pays for.
    pub pays_for: String,
    /// What is counted.
    pub unit: String,
    /// `once`, or the UTC quarter in which charges are counted.
    pub period: String,
    /// How much was opened, for each period.
    pub amount: u64,
    /// The entry that opened it.
    pub opened_seq: u64,
    /// What was charged in this period.
    pub spent: u64,
    /// What runs of models hold of it in this period.
    pub held: u64,
    /// What is left in this period.
    pub left: u64,
    /// Charges in all.
    pub charges: u64,
    /// The entry of the last charge; `null` where there is none, or nobody keeps it.
    pub last_seq: Option<u64>,
    /// Roles that may charge it.
    pub spenders: Vec<String>,
}

/// Every account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountList {
    /// Those of `budget.opened` first.
    pub budgets: Vec<AccountRow>,
    /// Units that are charged as they are used, and of which no account is open: nothing is charged for them.
    pub not_charged: Vec<&'static str>,
}

/// One charge of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Charge {
    /// The entry that charged it.
    pub seq: u64,
    /// The period in which it counts.
    pub period: String,
    /// How much.
    pub amount: u64,
    /// What for.
    pub r#for: String,
}

/// One account, charge by charge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountShown {
    /// Its name.
    pub account: String,
    /// What it pays for.
    pub pays_for: String,
    /// What is counted.
    pub unit: String,
    /// How much was opened, for each period.
    pub amount: u64,
    /// The entry that opened it.
    pub opened_seq: u64,
    /// What was charged in this period.
    pub spent: u64,
    /// What is left in this period.
    pub left: u64,
    /// Its charges, in their order.
    pub charges: Vec<Charge>,
}

/// Every account, those of `budget.opened` first; `now` says which period counts.
pub fn accounts(state: &State, now: Timestamp) -> Vec<AccountRow> {
    let accounts = state.fold::<Budgets>().accounts.iter();
    let mut rows: Vec<_> = accounts
        .map(|(name, account)| AccountRow {
            account: name.to_string(),
            pays_for: account.purpose().as_str().to_owned(),
            unit: account.unit.to_string(),
            period: match account.period {
                Period::Once => "once".to_owned(),
                Period::Quarter => now.quarter().to_string(),
            },
            amount: account.amount,
            opened_seq: account.opened_seq,
            spent: account.spent(now),
            held: account.held(now),
            left: account.left(now),
            charges: account.charges,
            last_seq: account.last_seq,
            spenders: {
                let spenders = account.spenders.as_slice().iter();
                spenders.map(ToString::to_string).collect()
            },
        })
        .collect();
    let manifests = state.fold::<Manifests>();
    rows.extend(families(manifests));
    rows.extend(exposures(manifests));
    rows
}

/// The alpha of each family.
fn families(manifests: &Manifests) -> impl Iterator<Item = AccountRow> {
    manifests.families.iter().map(|(name, family)| {
        let (opened, charged) = (family.alpha.unsigned_abs(), family.spent().unsigned_abs());
        let joined = family.joined.iter();
        let last =
            joined.filter_map(|(id, _)| Some(manifests.by_id.get(id)?.versions.first()?.seq));
        AccountRow {
            account: format!("alpha:{name}"),
            pays_for: "alpha".to_owned(),
            unit: "alpha_micro".to_owned(),
            period: "once".to_owned(),
            amount: opened,
            opened_seq: family.opened_seq,
            spent: charged,
            held: 0,
            left: opened.saturating_sub(charged),
            charges: family.joined.len() as u64,
            last_seq: last.max(),
            spenders: vec!["registrar".to_owned()],
        }
    })
}

/// The exposures of each manifest that binds confirm data.
fn exposures(manifests: &Manifests) -> impl Iterator<Item = AccountRow> {
    manifests.by_id.iter().filter_map(|(name, record)| {
        let version = record.in_force()?;
        let opened = version.manifest.data.as_ref()?.exposure_cap.value();
        Some(AccountRow {
            account: format!("exposures:{name}"),
            pays_for: "exposures".to_owned(),
            unit: "exposure".to_owned(),
            period: "once".to_owned(),
            amount: opened,
            opened_seq: version.seq,
            spent: record.exposures,
            held: 0,
            left: opened.saturating_sub(record.exposures),
            charges: record.exposures,
            last_seq: None,
            spenders: vec!["custodian".to_owned()],
        })
    })
}

/// A table of accounts.
pub fn table(view: &mut View, accounts: &[AccountRow]) {
    let rows = accounts.iter().map(|of| {
        let by = match (of.charges, of.last_seq) {
            (0, _) => "none".to_owned(),
            (count, Some(seq)) => format!("{count}, last seq {seq}"),
            (count, None) => count.to_string(),
        };
        vec![
            of.account.clone(),
            of.pays_for.clone(),
            of.unit.clone(),
            of.period.clone(),
            format!("{} (seq {})", of.amount, of.opened_seq),
            of.spent.to_string(),
            match of.held {
                0 => of.left.to_string(),
                held => format!("{}, and {held} held", of.left),
            },
            by,
            of.spenders.join(", "),
        ]
    });
    let head = [
        "account", "pays for", "unit", "period", "opened", "charged", "left", "charges", "spenders",
    ];
    view.table(&head, rows);
}

/// Accounts with what is left.
pub fn list(state: &State, now: Timestamp) -> View {
    let budgets = accounts(state, now);
    let is_open = |unit: &&str| budgets.iter().any(|account| account.unit == **unit);
    let not_charged = CHARGED.iter().copied().filter(|unit| !is_open(unit));
    let facts = AccountList {
        not_charged: not_charged.collect(),
        budgets,
    };
    let mut view = View::of(&facts);
    table(&mut view, &facts.budgets);
    if !facts.not_charged.is_empty() {
        view.sentence(format!(
            "Nothing is charged for {}: no account of that unit is open.",
            facts.not_charged.join(", ")
        ));
    }
    view
}

/// One account, charge by charge; `None` where no account has the name.
///
/// # Errors
/// [`LedgerError`].
pub fn show(
    ledger: &Ledger,
    state: &State,
    now: Timestamp,
    name: &str,
) -> Result<Option<View>, LedgerError> {
    let mut all = accounts(state, now).into_iter();
    let Some(of) = all.find(|of| of.account == name) else {
        return Ok(None);
    };
    let charges = accounts::charges(ledger, state, name)?.into_iter();
    let charges = charges.map(|charge| Charge {
        seq: charge.seq,
        period: charge.period,
        amount: charge.amount,
        r#for: charge.purpose,
    });
    let facts = AccountShown {
        account: of.account,
        pays_for: of.pays_for,
        unit: of.unit,
        amount: of.amount,
        opened_seq: of.opened_seq,
        spent: of.spent,
        left: of.left,
        charges: charges.collect(),
    };
    let mut view = View::of(&facts);
    let per = if of.period == "once" {
        "ledger"
    } else {
        "quarter"
    };
    let (unit, period) = (&facts.unit, &of.period);
    view.pairs([
        ("account", name.to_owned()),
        ("pays for", facts.pays_for.clone()),
        (
            "opened",
            format!(
                "{} {unit} per {per}, seq {}",
                facts.amount, facts.opened_seq
            ),
        ),
        ("spenders", of.spenders.join(", ")),
        ("charged", format!("{} {unit} in {period}", facts.spent)),
        ("left", format!("{} {unit} in {period}", facts.left)),
    ]);
    if !facts.charges.is_empty() {
        let hidden = facts.charges.len().saturating_sub(SHOWN_MAX);
        let rows = facts.charges.iter().skip(hidden).map(|charge| {
            vec![
                charge.seq.to_string(),
                charge.period.clone(),
                charge.amount.to_string(),
                charge.r#for.clone(),
            ]
        });
        view.gap();
        view.table(&["seq", "period", "amount", "for"], rows);
        if hidden > 0 {
            view.line(format!("… and {hidden} before them (--json lists them)"));
        }
    }
    Ok(Some(view))
}
