//! A newer rulebook for the entries to come.

use crate::event::Kind;
use crate::event::payload::custody::RulebookAdopted;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::ledger::rulebooks;
use crate::num::Count;
use crate::session::append;
use crate::session::append::Intent;
use crate::session::append::Submission;
use crate::session::custody::CustodyError;
use crate::session::error::SessionError;
use crate::session::ports::KeyNeed;
use crate::session::ports::Ports;
use crate::session::ports::Question;

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
