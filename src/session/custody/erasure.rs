//! Erasure of a subject: the event first, since a rule may refuse it; then the key is destroyed. A run that stopped
//! between the two is finished by the same step.

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::Text;
use clover_event::payload::custody::SubjectErased;
use clover_ground::digest::Digest;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_projection::reader::LogReader;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::custody::CustodyError;
use crate::error::SessionError;
use crate::home::Home;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Question;

/// What an erasure came to.
#[derive(Clone, Debug)]
pub enum Erasure {
    /// What it would say; nothing was changed.
    Rehearsed(Submission),
    /// The event stood before.
    Already {
        /// Where it stands.
        seq: u64,
        /// Whether a key was destroyed; else it was gone before.
        destroyed: bool,
    },
    /// The event was appended.
    Appended {
        /// The event.
        submission: Submission,
        /// Whether a key was destroyed; else it was gone before.
        destroyed: bool,
    },
}

/// Where the erasure of a subject stands, if there is one.
///
/// # Errors
/// [`LedgerError`].
///
/// # Panics
/// Never: nothing is a text.
pub fn erased_at(ledger: &Ledger, subject: &Digest) -> Result<Option<u64>, LedgerError> {
    let like = SubjectErased {
        basis: Text::new("").expect("BUG: nothing is a text"),
        requester: None,
        subject: *subject,
    };
    let key = Payload::from(like).natural_key(None);
    key.map_or(Ok(None), |key| ledger.giver(&key))
}

/// Subjects that are on record as erased and whose texts can be read here, with where each erasure stands: somebody recorded the
/// event and left the key.
///
/// # Errors
/// [`SessionError`].
pub fn still_readable(home: &Home, ledger: &Ledger) -> Result<Vec<(u64, Digest)>, SessionError> {
    let Some(vault) = home.known_vault(ledger.ambient())? else {
        return Ok(Vec::new());
    };
    let said = LogReader::below(ledger, ledger.size()).all(|_: &SubjectErased| true)?;
    let mut found = Vec::new();
    for of in said {
        let subject = of.said.subject;
        if vault.subject_key(&subject)?.is_some() {
            found.push((of.seq, subject));
        }
    }
    Ok(found)
}

/// Erases a subject, once the custodian consents.
///
/// # Errors
/// [`CustodyError::Unknown`], [`CustodyError::KeyRemains`], [`SessionError::Port`] without key or consent, and
/// [`SessionError::Ledger`].
pub fn erase(
    ports: &mut dyn Ports,
    home: &Home,
    ledger: &mut Ledger,
    asked: SubjectErased,
    intent: Intent,
) -> Result<Erasure, SessionError> {
    let subject = asked.subject;
    let vault = home.known_vault(ledger.ambient())?;
    let is_known = match &vault {
        Some(vault) => vault.subject_key(&subject)?.is_some(),
        None => false,
    };
    let payload = Payload::from(asked);
    let seq = erased_at(ledger, &subject)?;
    if !is_known && seq.is_none() {
        return Err(CustodyError::Unknown(subject).into());
    }
    let signer = ports.signer(ledger.state(), KeyNeed::runner(Kind::SubjectErased))?;
    let commands = [Command::new(payload, None)];
    if intent == Intent::Rehearse {
        let submission = append::submit(ports, ledger, &commands, &signer, intent)?;
        return Ok(Erasure::Rehearsed(submission));
    }
    ports.ask(&Question::Erasure(subject))?;
    let destroy = || match &vault {
        Some(vault) => vault
            .destroy_subject(&subject)
            .map_err(CustodyError::KeyRemains),
        None => Ok(false),
    };
    // Of an event that stood before, the key is left to destroy; the basis that stands is the one on record.
    if let Some(seq) = seq {
        let destroyed = destroy()?;
        return Ok(Erasure::Already { seq, destroyed });
    }
    let submission = append::submit(ports, ledger, &commands, &signer, intent)?;
    let destroyed = destroy()?;
    Ok(Erasure::Appended {
        submission,
        destroyed,
    })
}
