//! A newer rulebook for the entries to come.

use clover_event::Kind;
use clover_event::payload::custody::RulebookAdopted;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::rulebooks;
use clover_num::Count;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::custody::CustodyError;
use crate::error::SessionError;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Question;

/// Adopts the newest rulebook, once the owner consents.
///
/// # Errors
/// [`CustodyError::Adopted`], [`SessionError::Port`] without an owner's key or consent, and [`SessionError::Ledger`].
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn adopt(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    intent: Intent,
) -> Result<Submission, SessionError> {
    let in_force = ledger.state().keyring.rulebook();
    let newest = rulebooks::NEWEST;
    if in_force >= newest {
        return Err(CustodyError::Adopted(in_force).into());
    }
    let owner = ports.signer(ledger.state(), KeyNeed::runner(Kind::RulebookAdopted))?;
    if intent == Intent::Append {
        ports.ask(&Question::Rulebook(newest))?;
    }
    let version = Count::new(newest.into()).expect("BUG: a rulebook is a small number");
    let command = Command::new(RulebookAdopted { version }, None);
    append::submit(ports, ledger, &[command], &owner, intent)
}
