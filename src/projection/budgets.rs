//! Budgets: accounts with what was charged to them, and the rule that none is overdrawn.

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::AccountId;
use clover_event::id::EventId;
use clover_event::id::Text;
use clover_event::id::UnitId;
use clover_event::payload::Role;
use clover_event::payload::Roles;
use clover_event::payload::budget::Period;
use clover_ground::time::Quarter;
use clover_ground::time::Timestamp;
use clover_ledger::Breach;
use clover_ledger::Fold;
use clover_ledger::ProposedEvent;
use clover_ledger::Rule;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use serde::Deserialize;
use serde::Serialize;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::BudgetCharged,
    Kind::BudgetOpened,
    Kind::BudgetReserved,
    Kind::BudgetSettled,
];

/// What an account pays for; its unit says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Calls of the objective on dev.
    DevCalls,
    /// What judges cost.
    JudgeSpend,
    /// Labels by people.
    Labels,
    /// Anything else.
    Other,
    /// Accepted patches.
    Patches,
    /// Looks at confirm labels.
    Peeks,
}

impl Purpose {
    /// What an account that counts in `unit` pays for.
    pub fn of(unit: &UnitId) -> Self {
        match unit.as_str() {
            "dev_call" => Self::DevCalls,
            "cent" | "judge_call" | "token" | "usd_micro" => Self::JudgeSpend,
            "label" => Self::Labels,
            "patch" => Self::Patches,
            "peek" => Self::Peeks,
            _ => Self::Other,
        }
    }

    /// The words for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DevCalls => "dev calls",
            Self::JudgeSpend => "judge spend",
            Self::Labels => "labels",
            Self::Other => "other",
            Self::Patches => "patches",
            Self::Peeks => "peeks",
        }
    }
}

/// One account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// What it holds per period.
    pub amount: u64,
    /// Charges, of all periods.
    pub charges: u64,
    /// What is held, by quarter.
    pub held: Vec<(Option<Quarter>, u64)>,
    /// The last charge.
    pub last_seq: Option<u64>,
    /// The entry that opened it.
    pub opened_seq: u64,
    /// When it fills again.
    pub period: Period,
    /// Roles that may charge it.
    pub spenders: Roles,
    /// What was charged, by quarter; accounts that never refill use the quarter of their first charge.
    pub spent: Vec<(Option<Quarter>, u64)>,
    /// What it counts.
    pub unit: UnitId,
}

impl Account {
    /// What it pays for.
    pub fn purpose(&self) -> Purpose {
        Purpose::of(&self.unit)
    }

    /// Whether whoever writes patches may charge it.
    pub fn is_charged_by_optimizers(&self) -> bool {
        let roles = [Role::Optimizer, Role::MetaOptimizer];
        roles.iter().any(|role| self.spenders.contains(*role))
    }

    fn period_of(&self, at: Timestamp) -> Option<Quarter> {
        match self.period {
            Period::Once => None,
            Period::Quarter => Some(at.quarter()),
        }
    }

    /// Held in the period that holds `at`.
    pub fn held(&self, at: Timestamp) -> u64 {
        amount_of(&self.held, self.period_of(at))
    }

    /// Charged in the period that holds `at`.
    pub fn spent(&self, at: Timestamp) -> u64 {
        amount_of(&self.spent, self.period_of(at))
    }

    /// Left in the period that holds `at`.
    pub fn left(&self, at: Timestamp) -> u64 {
        let taken = self.spent(at).saturating_add(self.held(at));
        self.amount.saturating_sub(taken)
    }
}

/// Amounts by the quarter in which they count.
type Amounts = Vec<(Option<Quarter>, u64)>;

fn amount_of(all: &Amounts, period: Option<Quarter>) -> u64 {
    let mut all = all.iter();
    let found = all.find(|(of, _)| *of == period);
    found.map_or(0, |(_, amount)| *amount)
}

fn add(all: &mut Amounts, period: Option<Quarter>, amount: u64) {
    match all.iter_mut().find(|(of, _)| *of == period) {
        Some((_, sum)) => *sum = sum.saturating_add(amount),
        None => all.push((period, amount)),
    }
}

fn take(all: &mut Amounts, period: Option<Quarter>, amount: u64) {
    for (of, sum) in all.iter_mut() {
        if *of == period {
            *sum = sum.saturating_sub(amount);
        }
    }
}

/// Money that is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldAmount {
    /// The account.
    pub account: AccountId,
    /// How much.
    pub amount: u64,
    /// The quarter that it counts in; `None` where the account never refills.
    pub quarter: Option<Quarter>,
}

/// The account that pays for accepted patches: the one that is named, else the one that was opened first; never one that an
/// optimizer may charge. One that was opened beside a spent account pays for nothing.
pub fn patch_account<'a>(
    budgets: &'a Budgets,
    named: Option<&AccountId>,
) -> Option<(&'a AccountId, &'a Account)> {
    let all = budgets.accounts.iter();
    let mine = all.filter(|(id, of)| {
        of.purpose() == Purpose::Patches
            && named.is_none_or(|named| named == *id)
            && !of.is_charged_by_optimizers()
    });
    mine.min_by_key(|(_, of)| of.opened_seq)
}

/// A charge to an account of peeks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeekCharge {
    /// The account.
    pub account: AccountId,
    /// The entry.
    pub seq: u64,
}

/// A charge to an account of patches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchCharge {
    /// The account.
    pub account: AccountId,
    /// The quarter that it counts in; `None` where the account never refills.
    pub quarter: Option<Quarter>,
    /// What for.
    pub purpose: Text,
}

/// Every account by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budgets {
    /// By name.
    pub accounts: BTreeMap<AccountId, Account>,
    /// What is held, by the name of the hold.
    pub holds: BTreeMap<String, HeldAmount>,
    /// Charges to accounts of patches: what may pay for an acceptance.
    pub patches: BTreeMap<EventId, PatchCharge>,
    /// Charges to accounts of peeks: what may pay for opening a label.
    pub peeks: BTreeMap<EventId, PeekCharge>,
}

impl Fold for Budgets {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        match &event.event().payload {
            Payload::BudgetOpened(opened) => {
                let account = Account {
                    amount: opened.amount.value(),
                    charges: 0,
                    held: Vec::new(),
                    last_seq: None,
                    opened_seq: event.seq(),
                    period: opened.period,
                    spenders: opened.spenders.clone(),
                    spent: Vec::new(),
                    unit: opened.unit.clone(),
                };
                self.accounts
                    .entry(opened.account.clone())
                    .or_insert(account);
            }
            Payload::BudgetCharged(charged) => {
                if let Some(account) = self.accounts.get_mut(&charged.account) {
                    let period = account.period_of(event.recorded_at());
                    let amount = charged.amount.value();
                    account.charges += 1;
                    account.last_seq = Some(event.seq());
                    let (id, name) = (event.event().id, charged.account.clone());
                    match account.purpose() {
                        Purpose::Patches => {
                            let charge = PatchCharge {
                                account: name,
                                quarter: period,
                                purpose: charged.purpose.clone(),
                            };
                            self.patches.insert(id, charge);
                        }
                        Purpose::Peeks => {
                            let charge = PeekCharge {
                                account: name,
                                seq: event.seq(),
                            };
                            self.peeks.insert(id, charge);
                        }
                        // No event names a charge to another account.
                        _ => {}
                    }
                    add(&mut account.spent, period, amount);
                }
            }
            Payload::BudgetReserved(said) => {
                if let Some(account) = self.accounts.get_mut(&said.account) {
                    let quarter = account.period_of(event.recorded_at());
                    let amount = said.amount.value();
                    add(&mut account.held, quarter, amount);
                    let held = HeldAmount {
                        account: said.account.clone(),
                        amount,
                        quarter,
                    };
                    self.holds.insert(said.hold.as_str().to_owned(), held);
                }
            }
            Payload::BudgetSettled(said) => {
                if let Some(held) = self.holds.remove(said.hold.as_str())
                    && let Some(account) = self.accounts.get_mut(&held.account)
                {
                    take(&mut account.held, held.quarter, held.amount);
                    add(&mut account.spent, held.quarter, said.amount.value());
                    account.charges += u64::from(said.amount.value() > 0);
                    account.last_seq = Some(event.seq());
                }
            }
            _ => {}
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}

/// Whoever takes from an account has a role that may.
fn check_spender(
    state: &State,
    event: &ProposedEvent<'_>,
    account: &Account,
    breaches: &mut Vec<Breach>,
) {
    if let Some(author) = state.keyring.keys.get(&event.event.header.author)
        && author.end.is_none()
        && !author
            .roles
            .as_slice()
            .iter()
            .any(|role| account.spenders.contains(*role))
    {
        let found = format!("key of {} with roles {}", author.holder, author.roles);
        breaches.push(Breach::new(
            RuleName::Role,
            format!("a key with one of the roles {}", account.spenders),
            found,
        ));
    }
}

/// A charge names an account, by a role that may spend from it, for no more than is left.
#[derive(Clone, Copy, Debug)]
pub struct Balance;

impl Rule for Balance {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let budgets = state.fold::<Budgets>();
        let id = match &event.event.payload {
            Payload::BudgetCharged(charged) => &charged.account,
            Payload::BudgetReserved(said) => &said.account,
            Payload::BudgetSettled(said) => match budgets.holds.get(said.hold.as_str()) {
                Some(held) => &held.account,
                // The rule `hold` refuses it.
                None => return,
            },
            _ => return,
        };
        let Some(account) = budgets.accounts.get(id) else {
            let found = format!("{id}, never opened");
            breaches.push(Breach::new(RuleName::Account, "an open account", found));
            return;
        };
        check_spender(state, event, account, breaches);
        let Payload::BudgetCharged(charged) = &event.event.payload else {
            return;
        };
        let left = account.left(event.recorded_at);
        if charged.amount.value() > left {
            let period = match account.period {
                Period::Once => String::new(),
                Period::Quarter => format!(" in {}", event.recorded_at.quarter()),
            };
            let (account, unit) = (&charged.account, &account.unit);
            let expected = format!("at most {left} {unit} left in {account}{period}");
            breaches.push(Breach::new(
                RuleName::Overdraft,
                expected,
                charged.amount.to_string(),
            ));
        }
    }
}
