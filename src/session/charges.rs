//! What is used is charged where an account of its unit is open: calls of a judge's program, labels, accepted patches. Where
//! none is open, nothing is charged.

use std::sync::Arc;

use clover_event::Payload;
use clover_event::id::AccountId;
use clover_event::id::EventId;
use clover_event::id::JudgeId;
use clover_event::id::Text;
use clover_event::payload::Role;
use clover_event::payload::budget::BudgetCharged;
use clover_event::payload::scoring::JudgePort;
use clover_ground::sign::Signer;
use clover_ground::time::Timestamp;
use clover_ledger::AppendedEvent;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::State;
use clover_num::Count;
use clover_projection::budgets::Account;
use clover_projection::budgets::Budgets;
use clover_projection::decisions::AllDecisions;

use crate::append;
use crate::error::SessionError;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Seat;

/// Calls of a judge's program.
pub(crate) const JUDGE_CALL: &str = "judge_call";
/// Labels by people.
pub(crate) const LABEL: &str = "label";
/// Patches that are accepted.
pub(crate) const PATCH: &str = "patch";

/// The account that pays for an amount: of those that count its unit, the one that was opened first and has enough left, else
/// the one that was opened first.
fn account(ledger: &Ledger, unit: &str, amount: u64) -> Option<(AccountId, Account)> {
    let now = append::now(ledger);
    let accounts = ledger.state().fold::<Budgets>().accounts.iter();
    let mine = accounts.filter(|(_, account)| account.unit.as_str() == unit);
    let first = mine.min_by_key(|(_, of)| (of.left(now) < amount, of.opened_seq));
    first.map(|(id, account)| (id.clone(), account.clone()))
}

/// Who signs for an account: calls of a judge are charged by whoever answers for its scores, where that one may spend.
fn seat(account: &Account) -> Seat {
    let is_of_scorer = account.spenders.contains(Role::Scorer);
    if account.unit.as_str() == JUDGE_CALL && is_of_scorer {
        Seat::Scorer
    } else {
        Seat::Runner
    }
}

/// Who pays for what is used, and who signs that.
#[derive(Debug)]
pub(crate) struct Payer {
    account: AccountId,
    purpose: String,
    signer: Arc<Signer>,
}

impl Payer {
    /// The payer of an amount that is about to be used; `None` where no account of its unit is open, or nothing is used.
    ///
    /// # Errors
    /// A missing key, and what the rules say of the charge: more than is left is refused before anything is used.
    pub(crate) fn find(
        ports: &mut dyn Ports,
        ledger: &Ledger,
        unit: &str,
        (amount, purpose): (u64, &str),
    ) -> Result<Option<Self>, SessionError> {
        if amount == 0 {
            return Ok(None);
        }
        let found = account(ledger, unit, amount);
        Self::of(ports, ledger, found, (amount, purpose))
    }

    /// The payer of an amount from one account; `None` without one, or where nothing is used.
    ///
    /// # Errors
    /// As [`Payer::find`].
    pub(crate) fn of(
        ports: &mut dyn Ports,
        ledger: &Ledger,
        account: Option<(AccountId, Account)>,
        (amount, purpose): (u64, &str),
    ) -> Result<Option<Self>, SessionError> {
        let Some((id, account)) = account.filter(|_| amount > 0) else {
            return Ok(None);
        };
        let need = KeyNeed::charge(seat(&account), Some(&account.spenders));
        let payer = Self {
            account: id,
            purpose: purpose.to_owned(),
            signer: ports.signer(ledger.state(), need)?,
        };
        append::permitted(ledger, &payer.command(amount, purpose), &payer.signer)?;
        Ok(Some(payer))
    }

    /// What is left in the account.
    pub(crate) fn left(&self, ledger: &Ledger) -> u64 {
        let accounts = &ledger.state().fold::<Budgets>().accounts;
        let account = accounts.get(&self.account);
        account.map_or(0, |account| account.left(append::now(ledger)))
    }

    fn command(&self, amount: u64, purpose: &str) -> Command {
        let charge = BudgetCharged {
            account: self.account.clone(),
            amount: Count::new(amount).expect("BUG: nobody uses 2^53 of anything"),
            purpose: Text::new(purpose).expect("BUG: a few words and ids are a text"),
        };
        Command::new(charge, None)
    }

    /// Charges what was used, or is about to be.
    ///
    /// # Errors
    /// [`SessionError`]; then nothing was charged.
    pub(crate) fn pay(&self, ledger: &mut Ledger, amount: u64) -> Result<(), SessionError> {
        self.pay_for(ledger, amount, &self.purpose).map(drop)
    }

    /// The charge of what is about to be used, to be appended with it.
    pub(crate) fn charge(&self, amount: u64) -> (Command, &Signer) {
        (self.command(amount, &self.purpose), &self.signer)
    }

    /// Charges it for a purpose of its own.
    ///
    /// # Errors
    /// [`SessionError`]; then nothing was charged.
    pub(crate) fn pay_for(
        &self,
        ledger: &mut Ledger,
        amount: u64,
        purpose: &str,
    ) -> Result<Vec<AppendedEvent>, SessionError> {
        if amount == 0 {
            return Ok(Vec::new());
        }
        Ok(ledger.append(&[self.command(amount, purpose)], &self.signer)?)
    }
}

/// A charge for a patch that paid for none yet, to an account if one is named: a run that was cut goes on under it. One of
/// another quarter is lost.
pub(crate) fn unspent(
    state: &State,
    account: Option<&AccountId>,
    (purpose, now): (&str, Timestamp),
) -> Option<EventId> {
    let spent = &state.fold::<AllDecisions>().paid_patches;
    let charges = state.fold::<Budgets>().patches.iter();
    let mine = charges.filter(|(_, charge)| charge.purpose.as_str() == purpose);
    let mut open = mine.filter(|(id, charge)| {
        let is_of_now = charge
            .quarter
            .is_none_or(|quarter| quarter == now.quarter());
        let pays = account.is_none_or(|account| *account == charge.account);
        is_of_now && pays && !spent.contains_key(&id.0.to_hex())
    });
    open.next().map(|(id, _)| *id)
}

/// Appends one label that a person said by hand, with what it costs where an account of labels is open: both stand, or
/// neither.
///
/// # Errors
/// As [`Payer::find`], and what the rules say of the label; then nothing was appended or charged.
pub fn append_label(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    command: &Command,
    signer: &Signer,
) -> Result<Vec<AppendedEvent>, SessionError> {
    append::permitted(ledger, command, signer)?;
    let Some(payer) = label_payer(ports, ledger, command)? else {
        return append::append(ports, ledger, std::slice::from_ref(command), signer);
    };
    let label = (command.clone(), signer);
    let mut appended = append::append_each(ports, ledger, &[payer.charge(1), label])?;
    Ok(appended.split_off(1))
}

/// Charges one label that a person is about to say by hand, where an account of labels is open.
///
/// # Errors
/// As [`Payer::find`], and what the rules say of the label; then nothing was charged.
pub fn charge_label(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    command: &Command,
    signer: &Signer,
) -> Result<(), SessionError> {
    append::permitted(ledger, command, signer)?;
    match label_payer(ports, ledger, command)? {
        Some(payer) => payer.pay(ledger, 1),
        None => Ok(()),
    }
}

/// Who pays for one label, where an account of labels is open.
fn label_payer(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    command: &Command,
) -> Result<Option<Payer>, SessionError> {
    let experiment = command.experiment.as_ref();
    let purpose = experiment.map_or_else(|| "a label".to_owned(), |of| format!("labels of {of}"));
    Payer::find(ports, ledger, LABEL, (1, &purpose))
}

/// Whether a command says a label of a person, open or sealed.
pub fn is_label(command: &Command) -> bool {
    matches!(
        command.payload,
        Payload::LabelRecorded(_) | Payload::LabelSealed(_)
    )
}

/// Who pays for calls of a judge: the built-in one costs nothing.
///
/// # Errors
/// As [`Payer::find`].
pub(crate) fn calls(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    (port, judge): (JudgePort, &JudgeId),
    amount: u64,
) -> Result<Option<Payer>, SessionError> {
    if port != JudgePort::Command {
        return Ok(None);
    }
    let purpose = format!("calls of {judge}");
    Payer::find(ports, ledger, JUDGE_CALL, (amount, &purpose))
}

/// Calls of a judge's program that were made and are not charged yet.
#[derive(Debug, Default)]
pub struct Meter {
    calls: u64,
    payer: Option<Payer>,
}

impl Meter {
    /// A meter of some calls that a payer pays for, if any does.
    pub(crate) fn of(payer: Option<Payer>) -> Self {
        Self { calls: 0, payer }
    }

    /// Counts one call, where there was one.
    pub(crate) fn called(&mut self, is_call: bool) {
        self.calls += u64::from(is_call);
    }

    /// Charges what was counted since the last time.
    ///
    /// # Errors
    /// [`SessionError`]; then nothing was charged.
    pub(crate) fn settle(&mut self, ledger: &mut Ledger) -> Result<(), SessionError> {
        let calls = std::mem::take(&mut self.calls);
        match &self.payer {
            Some(payer) => payer.pay(ledger, calls),
            None => Ok(()),
        }
    }
}
