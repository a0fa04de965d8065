//! Appending what use cases say, and the same without appending.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Draft;
use clover_event::Event;
use clover_event::Header;
use clover_event::Kind;
use clover_event::id::EventId;
use clover_ground::digest::Digest;
use clover_ground::sign::Signed;
use clover_ground::sign::Signer;
use clover_ground::time::Timestamp;
use clover_ledger::AppendedEvent;
use clover_ledger::Breach;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::ProposedEvent;
use clover_ledger::UnmetDemand;
use clover_ledger::rules;

use crate::error::SessionError;
use crate::ports::KeyNeed;
use crate::ports::Notice;
use crate::ports::Ports;
use crate::ports::Watcher;

/// Whether a use case appends what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// It appends.
    Append,
    /// It gives the bodies that it would append, and changes nothing.
    Rehearse,
}

/// What became of the events of a use case.
#[derive(Clone, Debug)]
pub enum Submission {
    /// They stand, some perhaps from before.
    Appended {
        /// The kind of each.
        kinds: Vec<Kind>,
        /// Where each stands.
        appended: Vec<AppendedEvent>,
    },
    /// They were rehearsed.
    Rehearsed(Vec<Rehearsal>),
}

impl Submission {
    /// The submission of commands that were appended.
    pub fn of(commands: &[Command], appended: Vec<AppendedEvent>) -> Self {
        let kinds = commands.iter().map(|command| command.payload.kind());
        let kinds = kinds.collect();
        Self::Appended { kinds, appended }
    }

    /// Whether its events stand in the ledger.
    pub fn is_appended(&self) -> bool {
        matches!(self, Self::Appended { .. })
    }
}

/// Appends commands by one key as one batch, or rehearses them.
///
/// # Errors
/// [`SessionError::Ledger`], and [`SessionError::Breach`] of a rehearsal; then nothing was appended.
pub fn submit(
    watcher: &mut dyn Watcher,
    ledger: &mut Ledger,
    commands: &[Command],
    signer: &Signer,
    intent: Intent,
) -> Result<Submission, SessionError> {
    submit_with(watcher, ledger, commands, signer, (&[], intent))
}

/// As [`submit`], storing the blobs that the events name in the same transaction.
///
/// # Errors
/// As [`submit`]; then no blob was stored either.
pub fn submit_with(
    watcher: &mut dyn Watcher,
    ledger: &mut Ledger,
    commands: &[Command],
    signer: &Signer,
    (blobs, intent): (&[Vec<u8>], Intent),
) -> Result<Submission, SessionError> {
    if intent == Intent::Rehearse {
        let numbers = (next_author_seq(ledger, signer), commands.len());
        let rehearsed = rehearse(ledger, commands, signer, numbers)?;
        return Ok(Submission::Rehearsed(rehearsed));
    }
    let appended = append_with(watcher, ledger, commands, signer, blobs)?;
    Ok(Submission::of(commands, appended))
}

/// Submits one command by the runner's key.
///
/// # Errors
/// [`SessionError::Port`] without a key; else as [`submit`].
pub fn submit_one(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    command: Command,
    intent: Intent,
) -> Result<Submission, SessionError> {
    let need = KeyNeed::runner(command.payload.kind());
    let signer = ports.signer(ledger.state(), need)?;
    submit(ports, ledger, &[command], &signer, intent)
}

/// Appends commands by one key as one batch: all of them stand, or none.
///
/// # Errors
/// [`SessionError::Ledger`]; then nothing was appended.
pub fn append(
    watcher: &mut dyn Watcher,
    ledger: &mut Ledger,
    commands: &[Command],
    signer: &Signer,
) -> Result<Vec<AppendedEvent>, SessionError> {
    append_with(watcher, ledger, commands, signer, &[])
}

/// As [`append`], storing the blobs that the events name in the same transaction.
///
/// # Errors
/// [`SessionError::Ledger`]; then nothing was appended and no blob was stored.
pub fn append_with(
    watcher: &mut dyn Watcher,
    ledger: &mut Ledger,
    commands: &[Command],
    signer: &Signer,
    blobs: &[Vec<u8>],
) -> Result<Vec<AppendedEvent>, SessionError> {
    let appended = ledger.append_with_blobs(commands, signer, blobs)?;
    tell_of_pin(watcher, ledger);
    Ok(appended)
}

/// Appends a command and one that names its event, as one batch; answers with the second command too.
///
/// # Errors
/// [`SessionError::Body`] and [`SessionError::Ledger`]; then nothing was appended.
pub fn append_pair(
    watcher: &mut dyn Watcher,
    ledger: &mut Ledger,
    first: &Command,
    second: impl FnOnce(EventId) -> Command,
    signer: &Signer,
) -> Result<(Command, Vec<AppendedEvent>), SessionError> {
    let number = next_author_seq(ledger, signer);
    let one = draft(ledger, first, signer, number).sign(signer)?;
    let second = second(EventId(Digest::sha256(one.body())));
    let two = draft(ledger, &second, signer, number + 1).sign(signer)?;
    let events = [one, two].map(|of| Signed::new(of.body().to_vec(), of.signer(), *of.signature()));
    let appended = ledger.submit(events.into())?;
    tell_of_pin(watcher, ledger);
    Ok((second, appended))
}

/// Appends commands, each by its own key, as one batch: all of them stand, or none.
///
/// # Errors
/// [`SessionError::Body`] and [`SessionError::Ledger`]; then nothing was appended.
pub fn append_each(
    watcher: &mut dyn Watcher,
    ledger: &mut Ledger,
    commands: &[(Command, &Signer)],
) -> Result<Vec<AppendedEvent>, SessionError> {
    let mut numbers = BTreeMap::new();
    let mut events = Vec::with_capacity(commands.len());
    for (command, signer) in commands {
        let number = numbers
            .entry(signer.id())
            .or_insert_with(|| next_author_seq(ledger, signer));
        let one = draft(ledger, command, signer, *number).sign(signer)?;
        *number += 1;
        let (body, by, signature) = (one.body().to_vec(), one.signer(), *one.signature());
        events.push(Signed::new(body, by, signature));
    }
    let appended = ledger.submit(events)?;
    tell_of_pin(watcher, ledger);
    Ok(appended)
}

/// Says when the pin did not follow an append, which stands all the same.
pub fn tell_of_pin(watcher: &mut dyn Watcher, ledger: &Ledger) {
    if let Some(error) = ledger.pin_failure() {
        watcher.notice(Notice::PinLags(error.to_string()));
    }
}

/// The event that a command would become at the head.
pub fn draft(ledger: &Ledger, command: &Command, signer: &Signer, author_seq: u64) -> Draft {
    let keyring = &ledger.state().keyring;
    let header = Header {
        at: command.at.unwrap_or_else(|| now(ledger)),
        author: signer.id(),
        author_seq,
        experiment: command.experiment.clone(),
        ledger: keyring.origin.as_str().into(),
        refs: command.refs.clone(),
        seen: Some(ledger.seen()),
    };
    Draft {
        header,
        payload: command.payload.clone(),
    }
}

/// The time that an append would have: the clock's, never before the newest entry's.
pub fn now(ledger: &Ledger) -> Timestamp {
    let clock = ledger.ambient().now();
    clock.max(ledger.state().keyring.recorded_at.unwrap_or(clock))
}

/// The number of a key's next event.
pub fn next_author_seq(ledger: &Ledger, signer: &Signer) -> u64 {
    let keys = &ledger.state().keyring.keys;
    keys.get(&signer.id()).map_or(0, |key| key.next_author_seq)
}

/// The canonical unsigned body of an event that was not appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rehearsal {
    /// The id that it would have.
    pub id: EventId,
    /// Its bytes: one line of canonical JSON, UTF-8.
    pub body: Vec<u8>,
}

/// The bodies of commands, numbered from `first`; the first `judged` of them are held against the rules that need no more
/// than the state at the head.
///
/// # Errors
/// [`SessionError::Body`], and [`SessionError::Breach`] when a rule says no.
pub fn rehearse(
    ledger: &Ledger,
    commands: &[Command],
    signer: &Signer,
    (first, judged): (u64, usize),
) -> Result<Vec<Rehearsal>, SessionError> {
    let mut rehearsed = Vec::with_capacity(commands.len());
    for (at, (author_seq, command)) in (first..).zip(commands).enumerate() {
        let draft = draft(ledger, command, signer, author_seq);
        let body = draft.to_body()?;
        let id = EventId(Digest::sha256(&body));
        if at < judged {
            check(ledger, draft, id)?;
        }
        rehearsed.push(Rehearsal { id, body });
    }
    Ok(rehearsed)
}

/// Holds a command against the rules that need no more than the state at the head, before something is done that only it
/// makes worth doing.
///
/// # Errors
/// [`SessionError::Breach`] when a rule says no.
pub fn permitted(ledger: &Ledger, command: &Command, signer: &Signer) -> Result<(), SessionError> {
    let draft = draft(ledger, command, signer, next_author_seq(ledger, signer));
    check(ledger, draft, EventId(Digest::sha256(b"")))
}

/// Events that are held against the rules at once.
const AT_ONCE: usize = 4_096;

/// As [`permitted`], of commands that are to be appended one after the other, and against what earlier entries have in their
/// way. `given` is what is to be appended before them gives; what they give is put beside it.
///
/// # Errors
/// When the log cannot be read.
pub(crate) fn unmet(
    ledger: &Ledger,
    commands: &[(&Command, &Signer)],
    given: &mut BTreeSet<Digest>,
) -> Result<Option<UnmetDemand>, SessionError> {
    let (seq, recorded_at) = (ledger.size(), now(ledger));
    for (at, part) in commands.chunks(AT_ONCE).enumerate() {
        let drafts = part.iter().map(|(command, signer)| {
            let draft = draft(ledger, command, signer, next_author_seq(ledger, signer));
            event(draft, EventId(Digest::sha256(b"")))
        });
        let drafted: Vec<Event> = drafts.collect();
        let events = drafted.iter().map(|event| ProposedEvent {
            seq,
            recorded_at,
            event,
        });
        let events: Vec<_> = events.collect();
        let mut each = events.iter().enumerate();
        let refused = each.find_map(|(index, event)| Some((index, breach(ledger, event)?)));
        let end = refused.as_ref().map_or(events.len(), |(index, _)| *index);
        let found = ledger.unmet(&events[..end], given)?;
        let found = found.or(refused.map(|(index, breach)| UnmetDemand {
            index,
            breach,
            in_the_way: None,
        }));
        if let Some(found) = found {
            return Ok(Some(UnmetDemand {
                index: at * AT_ONCE + found.index,
                ..found
            }));
        }
    }
    Ok(None)
}

fn event(draft: Draft, id: EventId) -> Event {
    let v = draft.payload.kind().version();
    Event {
        id,
        header: draft.header,
        payload: draft.payload,
        v,
    }
}

/// The first rule that says no by the state at the head.
fn breach(ledger: &Ledger, candidate: &ProposedEvent<'_>) -> Option<Breach> {
    let mut breaches = Vec::new();
    rules::custody(ledger.state(), candidate, &mut breaches);
    for rule in ledger.state().rulebook().every_rule() {
        rule.check(ledger.state(), candidate, &mut breaches);
    }
    breaches.into_iter().next()
}

fn check(ledger: &Ledger, draft: Draft, id: EventId) -> Result<(), SessionError> {
    let event = event(draft, id);
    let candidate = ProposedEvent {
        seq: ledger.size(),
        recorded_at: now(ledger),
        event: &event,
    };
    match breach(ledger, &candidate) {
        Some(breach) => Err(breach.into()),
        None => Ok(()),
    }
}
