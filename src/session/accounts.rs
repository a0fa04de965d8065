//! What was charged to an account, and by which events.

use std::collections::BTreeMap;

use clover_event::Payload;
use clover_event::payload::budget::Period;
use clover_event::payload::prereg::ExposureOpened;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_ledger::State;
use clover_projection::budgets::Account;
use clover_projection::budgets::Budgets;
use clover_projection::manifests::Manifests;

/// One charge of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The entry that charged it.
    pub seq: u64,
    /// How much.
    pub amount: u64,
    /// `once`, or the UTC quarter in which it counts.
    pub period: String,
    /// What for.
    pub purpose: String,
}

/// The events that charged an account, in their order.
///
/// # Errors
/// [`LedgerError`].
pub fn charges(ledger: &Ledger, state: &State, name: &str) -> Result<Vec<Charge>, LedgerError> {
    let manifests = state.fold::<Manifests>();
    if let Some(family) = name.strip_prefix("alpha:") {
        return Ok(joined(manifests, family));
    }
    let exposed = name.strip_prefix("exposures:");
    let mut records = manifests.by_id.iter();
    let record = exposed.and_then(|id| records.find(|(known, _)| known.as_str() == id));
    let exposes = |opened: &ExposureOpened| {
        record.is_some_and(|(_, record)| record.version(opened.digest).is_some())
    };
    let quarterly = |account: &Account| account.period == Period::Quarter;
    let accounts = &state.fold::<Budgets>().accounts;
    let (mut found, mut held) = (Vec::new(), BTreeMap::new());
    ledger.entries::<LedgerError>(0, state.size, |read| {
        let (seq, at) = (read.stored.seq, read.stored.recorded_at);
        match &read.event.payload {
            Payload::BudgetReserved(said) if said.account.as_str() == name => {
                held.insert(said.hold.as_str().to_owned(), at);
            }
            Payload::BudgetSettled(said) => {
                if let Some(since) = held.remove(said.hold.as_str()) {
                    let account = accounts.iter().find(|(id, _)| id.as_str() == name);
                    let is_quarterly = account.is_some_and(|(_, of)| quarterly(of));
                    let period = if is_quarterly {
                        since.quarter().to_string()
                    } else {
                        "once".to_owned()
                    };
                    found.push(Charge {
                        seq,
                        amount: said.amount.value(),
                        period,
                        purpose: format!("hold {}", said.hold.as_str()),
                    });
                }
            }
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
                    purpose: charged.purpose.as_str().to_owned(),
                });
            }
            Payload::ExposureOpened(opened) if exposes(opened) => found.push(Charge {
                seq,
                amount: 1,
                period: "once".to_owned(),
                purpose: format!("units {} to {}", opened.first_unit, opened.last_unit),
            }),
            _ => {}
        }
        Ok(())
    })?;
    Ok(found)
}

/// What each member took of a family's alpha.
fn joined(manifests: &Manifests, family: &str) -> Vec<Charge> {
    let mut families = manifests.families.iter();
    let family = families.find(|(id, _)| id.as_str() == family);
    let joined = family.into_iter().flat_map(|(_, family)| &family.joined);
    let first = |id| manifests.by_id.get(id)?.versions.first();
    let charges = joined.map(|(id, alpha)| Charge {
        seq: first(id).map_or(0, |of| of.seq),
        amount: alpha.unsigned_abs(),
        period: "once".to_owned(),
        purpose: format!("manifest {id}"),
    });
    charges.collect()
}
