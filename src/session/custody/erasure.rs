//! Erasure of a subject: the event first, since a rule may refuse it; then the key is destroyed. A run that stopped
//! between the two is finished by the same step.

use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::id::Text;
use clover_event::payload::custody::SubjectErased;
use clover_ground::digest::Digest;
use clover_ledger::Command;
use clover_ledger::KindQuery;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_ledger::read::LogEntry;
use clover_num::Count;
use clover_projection::reader::LogReader;
use clover_projection::tallies::Tallies;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::custody::CustodyError;
use crate::error::SessionError;
use crate::home::Home;
use crate::listing;
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

/// Rows whose texts are a subject's, with the calls that their scores name.
#[derive(Default)]
struct SubjectRows {
    calls: BTreeSet<EventId>,
    rows: BTreeSet<(PolicyId, ItemId, Count)>,
}

/// Subjects of the answers that models gave about a subject's texts.
pub(super) fn answers(ledger: &Ledger, subject: &Digest) -> Result<BTreeSet<Digest>, SessionError> {
    if ledger.state().fold::<Tallies>().of_kind(Kind::CallRecorded) == 0 {
        return Ok(BTreeSet::new());
    }
    let mut found = SubjectRows::default();
    let each = |kind: Kind, take: &mut dyn FnMut(LogEntry)| {
        let query = KindQuery {
            kind,
            takes: &|_| true,
        };
        listing::each::<LedgerError>(ledger, &query, (0, ledger.size()), |read| {
            take(read);
            Ok(true)
        })
    };
    each(Kind::ScoreRecorded, &mut |read| {
        if let Payload::ScoreRecorded(said) = &read.event.payload {
            let mut texts = [&said.prompt, &said.response].into_iter().flatten();
            if texts.any(|text| text.subject == *subject) {
                found.calls.extend(said.call.as_ref().map(|of| of.call));
                let row = (said.policy.clone(), said.item.clone(), said.draw);
                found.rows.insert(row);
            }
        }
    })?;
    each(Kind::ScoreMissed, &mut |read| {
        if let Payload::ScoreMissed(said) = &read.event.payload {
            let row = (said.policy.clone(), said.item.clone(), said.draw);
            if found.rows.contains(&row) {
                found.calls.insert(said.call.call);
            }
        }
    })?;
    let mut subjects = BTreeSet::new();
    each(Kind::CallRecorded, &mut |read| {
        if let Payload::CallRecorded(said) = &read.event.payload
            && found.calls.contains(&read.event.id)
        {
            subjects.extend(said.response.as_ref().map(|of| of.subject));
        }
    })?;
    Ok(subjects)
}

/// Erases a subject, and with it the answers that models gave about its texts, once the custodian consents.
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
    let seq = erased_at(ledger, &subject)?;
    if !is_known && seq.is_none() {
        return Err(CustodyError::Unknown(subject).into());
    }
    let answers = answers(ledger, &subject)?;
    let mut commands = Vec::new();
    for one in std::iter::once(&subject).chain(&answers) {
        if erased_at(ledger, one)?.is_none() {
            let said = SubjectErased {
                subject: *one,
                ..asked.clone()
            };
            commands.push(Command::new(said, None));
        }
    }
    let signer = ports.signer(ledger.state(), KeyNeed::runner(Kind::SubjectErased))?;
    if intent == Intent::Rehearse {
        // What stands already is rehearsed too, so that the answer says where.
        if commands.is_empty() {
            commands.push(Command::new(asked, None));
        }
        let submission = append::submit(ports, ledger, &commands, &signer, intent)?;
        return Ok(Erasure::Rehearsed(submission));
    }
    ports.ask(&Question::Erasure {
        subject,
        answers: answers.len() as u64,
    })?;
    let destroy = || {
        let Some(vault) = &vault else {
            return Ok(false);
        };
        let mut destroyed = false;
        for one in std::iter::once(&subject).chain(&answers) {
            destroyed |= vault
                .destroy_subject(one)
                .map_err(CustodyError::KeyRemains)?;
        }
        Ok::<_, CustodyError>(destroyed)
    };
    // Of an event that stood before, the key is left to destroy; the basis that stands is the one on record.
    if let Some(seq) = seq.filter(|_| commands.is_empty()) {
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
