//! What of a submission is new, and what is recorded already.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use clover_event::Draft;
use clover_event::Header;
use clover_event::Kind;
use clover_event::PAYLOAD_TYPE;
use clover_event::Payload;
use clover_event::SeenCheckpoint;
use clover_event::header;
use clover_event::header::DecodedBody;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ground::sign::PublicKey;
use clover_ground::sign::Signer;
use clover_ground::time::Timestamp;
use clover_store::Reader;
use smol_str::SmolStr;

use crate::append::AppendedEvent;
use crate::append::BatchParts;
use crate::append::Command;
use crate::append::PreparedEvent;
use crate::append::SignedEvent;
use crate::append::Slot;
use crate::append::in_parts;
use crate::append::spread;
use crate::error::LedgerError;
use crate::fold::Breach;
use crate::fold::Rule;
use crate::open::Head;
use crate::rule_names::RuleName;
use crate::slate;
use crate::tail::Tail;

/// Finds the commands whose natural key is recorded already, in the log or earlier in the batch; gives the
/// keys too.
pub(super) fn known_commands(
    head: &Head,
    reader: Reader<'_>,
    commands: &[Command],
) -> Result<(Vec<Slot>, Vec<Option<Digest>>), LedgerError> {
    let key = |command: &Command| command.payload.natural_key(command.experiment.as_ref());
    let keys: Vec<Option<Digest>> = spread(commands.iter().collect(), key);
    let mut by_key: Vec<(Digest, usize)> = (keys.iter().enumerate())
        .filter_map(|(index, key)| Some(((*key)?, index)))
        .collect();
    by_key.sort_unstable();
    let rules = head.state.rulebook().every_rule();
    let rules: Vec<_> = rules.filter(|rule| !rule.tells().is_empty()).collect();
    let is_unsaid = |index: &usize| {
        let payload = &commands[*index].payload;
        let tells = |rule: &&dyn Rule| {
            rule.tells().contains(&payload.kind()) && rule.is_unsaid(&head.state, payload)
        };
        rules.iter().any(tells)
    };
    let asked = by_key.iter().filter(|(_, index)| !is_unsaid(index));
    let asked: Vec<Digest> = asked.map(|(key, _)| *key).collect();
    let mut found = asked.iter().zip(find(head, reader, &asked)?).peekable();
    // Of each command: the entry that has its key, and the first command that has it.
    let mut known: Vec<(Option<u64>, usize)> = (0..commands.len()).map(|at| (None, at)).collect();
    let mut first = None;
    for (key, index) in by_key {
        let seq = found.next_if(|(asked, _)| **asked == key);
        let seq = seq.and_then(|(_, seq)| seq);
        match first {
            Some((of, earlier)) if of == key => known[index] = (seq, earlier),
            _ => {
                first = Some((key, index));
                known[index].0 = seq;
            }
        }
    }
    let mut slots = Vec::with_capacity(commands.len());
    for (index, (command, (seq, earlier))) in commands.iter().zip(known).enumerate() {
        slots.push(match seq {
            Some(seq) => Slot::Known(same_data(reader, index, command, seq)?),
            None if earlier == index => Slot::New,
            None if commands[earlier].payload == command.payload => Slot::SameAs(earlier),
            None => return Err(natural_key_conflict(index, command.payload.kind(), None)),
        });
    }
    Ok((slots, keys))
}

pub(super) fn answers(slots: Vec<Slot>, new: Vec<AppendedEvent>) -> Vec<AppendedEvent> {
    let mut new = new.into_iter();
    let mut out: Vec<AppendedEvent> = Vec::with_capacity(slots.len());
    for slot in slots {
        out.push(match slot {
            Slot::Known(appended) => appended,
            Slot::New => new.next().expect("BUG: every new slot was appended"),
            Slot::SameAs(earlier) => AppendedEvent {
                already: true,
                ..out[earlier]
            },
        });
    }
    out
}

/// The entries that first gave these digests, which are sorted.
pub(crate) fn find(
    head: &Head,
    reader: Reader<'_>,
    sorted: &[Digest],
) -> Result<Vec<Option<u64>>, LedgerError> {
    let mut found = find_indexed(head, reader, sorted)?;
    find_in_tail(&head.tail, sorted, &mut found);
    Ok(found)
}

/// The same, as far as the index has taken them in.
pub(super) fn find_indexed(
    head: &Head,
    reader: Reader<'_>,
    sorted: &[Digest],
) -> Result<Vec<Option<u64>>, LedgerError> {
    if head.indexed == 0 {
        return Ok(vec![None; sorted.len()]);
    }
    Ok(reader.find_digests(sorted)?)
}

/// The rest of them, which the index has not taken in.
pub(super) fn find_in_tail(tail: &Tail, sorted: &[Digest], found: &mut [Option<u64>]) {
    let left = sorted.iter().zip(found.iter());
    let left = left.filter(|(_, found)| found.is_none());
    let left: Vec<Digest> = left.map(|(digest, _)| *digest).collect();
    let found = found.iter_mut().filter(|found| found.is_none());
    for (found, seq) in found.zip(tail.find(&left)) {
        *found = seq;
    }
}

fn same_data(
    reader: Reader<'_>,
    index: usize,
    command: &Command,
    seq: u64,
) -> Result<AppendedEvent, LedgerError> {
    let gone = || LedgerError::Integrity {
        seq,
        found: "no entry where the index points".to_owned(),
    };
    let stored = reader.entry(seq)?.ok_or_else(gone)?;
    let decoded = header::decode(&stored.body).map_err(|error| LedgerError::Integrity {
        seq,
        found: error.to_string(),
    })?;
    let id = decoded.id;
    if decoded.payload.as_ref() == Ok(&command.payload)
        && decoded.header.experiment == command.experiment
    {
        return Ok(AppendedEvent {
            seq,
            id,
            already: true,
        });
    }
    Err(natural_key_conflict(
        index,
        command.payload.kind(),
        Some(seq),
    ))
}

fn natural_key_conflict(index: usize, kind: Kind, in_the_way: Option<u64>) -> LedgerError {
    let found = match in_the_way {
        Some(seq) => {
            format!("seq {seq} recorded it with other data, and what is recorded is never changed")
        }
        None => "the same batch holds it with other data".to_owned(),
    };
    let breach = Breach::new(
        RuleName::NaturalKey,
        format!("one {kind} per natural key (its name, or its row)"),
        found,
    );
    LedgerError::Refused {
        index,
        breach,
        in_the_way,
    }
}

/// What the drafts of one batch have in common.
pub(super) struct Numbering {
    /// The author's next number.
    pub(super) first: u64,
    author: KeyId,
    ledger: SmolStr,
    now: Timestamp,
    seen: SeenCheckpoint,
}

impl Numbering {
    pub(super) fn new(head: &Head, signer: &Signer, now: Timestamp) -> Self {
        let keyring = &head.state.keyring;
        let author = signer.id();
        let key = keyring.keys.get(&author);
        Self {
            first: key.map_or(0, |key| key.next_author_seq),
            author,
            ledger: keyring.origin.as_str().into(),
            now,
            seen: slate::seen(head),
        }
    }

    /// A command with its number and with what it has seen.
    pub(super) fn draft(&self, author_seq: u64, command: Command) -> Draft {
        Draft {
            header: Header {
                at: command.at.unwrap_or(self.now),
                author: self.author,
                author_seq,
                experiment: command.experiment,
                ledger: self.ledger.clone(),
                refs: command.refs,
                seen: Some(self.seen),
            },
            payload: command.payload,
        }
    }
}

/// The new ones of a batch's commands, numbered, with their place in it.
pub(super) struct NumberedCommands<'c> {
    commands: Commands<'c>,
    /// Places of the new ones, ascending.
    new: std::vec::IntoIter<usize>,
    author_seq: u64,
}

/// Commands that are copied one by one, or given away.
enum Commands<'c> {
    Copied(&'c [Command]),
    Given(std::iter::Enumerate<std::vec::IntoIter<Command>>),
}

impl<'c> NumberedCommands<'c> {
    /// Numbered from `first` on.
    pub(super) fn new(first: u64, slots: &[Slot], commands: Cow<'c, [Command]>) -> Self {
        let new = (slots.iter().enumerate()).filter(|(_, slot)| matches!(slot, Slot::New));
        let new: Vec<usize> = new.map(|(index, _)| index).collect();
        Self {
            commands: match commands {
                Cow::Borrowed(commands) => Commands::Copied(commands),
                Cow::Owned(commands) => Commands::Given(commands.into_iter().enumerate()),
            },
            new: new.into_iter(),
            author_seq: first,
        }
    }
}

impl Iterator for NumberedCommands<'_> {
    type Item = (u64, usize, Command);

    fn next(&mut self) -> Option<Self::Item> {
        let index = self.new.next()?;
        let command = match &mut self.commands {
            Commands::Copied(commands) => commands[index].clone(),
            Commands::Given(commands) => commands.find(|(at, _)| *at == index)?.1,
        };
        let author_seq = self.author_seq;
        self.author_seq += 1;
        Some((author_seq, index, command))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.new.size_hint()
    }
}

impl ExactSizeIterator for NumberedCommands<'_> {}

pub(super) fn author_seq_conflict(
    index: usize,
    author_seq: u64,
    in_the_way: Option<u64>,
) -> LedgerError {
    let found = match in_the_way {
        Some(seq) => format!("seq {seq} holds that number with other bytes"),
        None => "the same batch holds that number with other bytes".to_owned(),
    };
    let breach = Breach::new(
        RuleName::AuthorSeq,
        format!("one event numbered {author_seq}"),
        found,
    );
    LedgerError::Refused {
        index,
        breach,
        in_the_way,
    }
}

/// Answers for a signed event whose number is taken.
pub(super) fn known_signed(
    head: &Head,
    reader: Reader<'_>,
    index: usize,
    signed: &SignedEvent,
    decoded: &DecodedBody,
) -> Result<Option<AppendedEvent>, LedgerError> {
    let Header {
        author, author_seq, ..
    } = decoded.header;
    let next = head
        .state
        .keyring
        .keys
        .get(&author)
        .map_or(0, |key| key.next_author_seq);
    if author_seq >= next {
        return Ok(None);
    }
    let gone = || LedgerError::Integrity {
        seq: 0,
        found: format!("no event {author_seq} of author {author}"),
    };
    let seq = reader.seq_of(author, author_seq)?.ok_or_else(gone)?;
    let stored = reader.entry(seq)?.ok_or_else(gone)?;
    if stored.body == signed.body()
        && stored.signature == *signed.signature()
        && stored.author == signed.signer()
    {
        return Ok(Some(AppendedEvent {
            seq,
            id: decoded.id,
            already: true,
        }));
    }
    Err(author_seq_conflict(index, author_seq, Some(seq)))
}

/// Finds the signed events that are recorded already, in the log or earlier in the batch; the others are verified when
/// they are asked for.
pub(super) fn signed<'p>(
    head: &Head,
    reader: Reader<'_>,
    events: Vec<SignedEvent>,
) -> Result<(Vec<Slot>, BatchParts<'p>), LedgerError> {
    let mut slots = Vec::with_capacity(events.len());
    let mut fresh: Vec<(usize, SignedEvent, DecodedBody)> = Vec::new();
    let mut in_batch: BTreeMap<(KeyId, u64), usize> = BTreeMap::new();
    for (index, signed) in events.into_iter().enumerate() {
        let decoded =
            header::decode(signed.body()).map_err(|source| LedgerError::Body { index, source })?;
        let key = (decoded.header.author, decoded.header.author_seq);
        if let Some(known) = known_signed(head, reader, index, &signed, &decoded)? {
            slots.push(Slot::Known(known));
        } else if let Some(&earlier) = in_batch.get(&key) {
            slots.push(Slot::SameAs(earlier));
            let mut others = fresh.iter();
            if !others.any(|(at, other, _)| *at == earlier && *other == signed) {
                return Err(author_seq_conflict(index, key.1, None));
            }
        } else {
            in_batch.insert(key, index);
            slots.push(Slot::New);
            fresh.push((index, signed, decoded));
        }
    }
    let keys = batch_keys(head, &fresh);
    let verify = move |(index, signed, decoded)| verify_foreign(&keys, index, signed, decoded);
    Ok((slots, in_parts(fresh.into_iter(), verify)))
}

/// Public keys for a foreign batch: those in force and those that the batch itself adds.
pub(super) fn batch_keys(
    head: &Head,
    fresh: &[(usize, SignedEvent, DecodedBody)],
) -> BTreeMap<KeyId, Arc<PublicKey>> {
    let mut keys = BTreeMap::new();
    for (_, _, decoded) in fresh {
        let author = decoded.header.author;
        if let Some(key) = head.state.public_key(&author) {
            keys.insert(author, key.clone());
        }
        if let Ok(Payload::KeyAdded(added)) = &decoded.payload
            && let Ok(key) = PublicKey::from_bytes(&added.public_key.0)
        {
            keys.insert(key.id(), Arc::new(key));
        }
    }
    keys
}

pub(super) fn verify_foreign(
    keys: &BTreeMap<KeyId, Arc<PublicKey>>,
    index: usize,
    signed: SignedEvent,
    decoded: DecodedBody,
) -> Result<Box<PreparedEvent>, LedgerError> {
    let refuse = |breach| LedgerError::Refused {
        index,
        breach,
        in_the_way: None,
    };
    let author = decoded.header.author;
    let Some(key) = keys.get(&author) else {
        return Err(refuse(Breach::new(
            RuleName::Key,
            "a key that was added before",
            format!("unknown key {author}"),
        )));
    };
    if signed.signer() != author {
        return Err(refuse(Breach::new(
            RuleName::Keyid,
            author.to_string(),
            signed.signer().to_string(),
        )));
    }
    let signed = signed.verify(PAYLOAD_TYPE, key).map_err(|error| {
        refuse(Breach::new(
            RuleName::Signature,
            "a strict Ed25519 signature by the author",
            error.to_string(),
        ))
    })?;
    Ok(PreparedEvent::foreign(index, signed, decoded))
}
