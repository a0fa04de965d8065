//! What of a submission is new, and what is recorded already.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::Draft;
use crate::event::Header;
use crate::event::Kind;
use crate::event::PAYLOAD_TYPE;
use crate::event::Payload;
use crate::event::Seen;
use crate::event::header;
use crate::event::header::Decoded;
use crate::event::id::Root;
use crate::ground::digest::Digest;
use crate::ground::sign::KeyId;
use crate::ground::sign::PublicKey;
use crate::ground::sign::Signer;
use crate::ground::time::Timestamp;
use crate::ledger::append::Appended;
use crate::ledger::append::Command;
use crate::ledger::append::Prepared;
use crate::ledger::append::SignedEvent;
use crate::ledger::append::Slot;
use crate::ledger::append::spread;
use crate::ledger::error::LedgerError;
use crate::ledger::fold::Breach;
use crate::ledger::open::Head;
use crate::ledger::rules;
use crate::num::Count;
use crate::store::Reader;

/// Finds the commands whose natural key is recorded already, in the log or earlier in the batch.
pub(super) fn known_commands(
    head: &Head,
    reader: Reader<'_>,
    commands: &[Command],
) -> Result<Vec<Slot>, LedgerError> {
    let key = |command: &Command| command.payload.natural_key(command.experiment.as_ref());
    let keys: Vec<Option<Digest>> = spread(commands.iter().collect(), key);
    let found = find(head, reader, keys.iter().flatten())?;
    let mut first: BTreeMap<Digest, usize> = BTreeMap::new();
    let mut slots = Vec::with_capacity(commands.len());
    for (index, (command, key)) in commands.iter().zip(keys).enumerate() {
        let Some(key) = key else {
            slots.push(Slot::New);
            continue;
        };
        if let Some(&seq) = found.get(&key) {
            slots.push(Slot::Known(same_data(reader, index, command, seq)?));
        } else if let Some(&earlier) = first.get(&key) {
            if commands[earlier].payload != command.payload {
                return Err(natural_key_conflict(index, command.payload.kind(), None));
            }
            slots.push(Slot::SameAs(earlier));
        } else {
            first.insert(key, index);
            slots.push(Slot::New);
        }
    }
    Ok(slots)
}

/// The entries that first gave these digests, looked up in sorted order.
pub(super) fn find<'d>(
    head: &Head,
    reader: Reader<'_>,
    digests: impl Iterator<Item = &'d Digest>,
) -> Result<BTreeMap<Digest, u64>, LedgerError> {
    let mut sorted: Vec<&Digest> = digests.collect();
    sorted.sort_unstable();
    sorted.dedup();
    let mut found = BTreeMap::new();
    if head.indexed > 0 {
        for (digest, seq) in sorted
            .iter()
            .zip(reader.find_digests(sorted.iter().copied())?)
        {
            if let Some(seq) = seq {
                found.insert(**digest, seq);
            }
        }
    }
    for digest in sorted {
        if let Some(seq) = head.tail.get(digest) {
            found.entry(*digest).or_insert(seq);
        }
    }
    Ok(found)
}

fn same_data(
    reader: Reader<'_>,
    index: usize,
    command: &Command,
    seq: u64,
) -> Result<Appended, LedgerError> {
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
        return Ok(Appended {
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
        Some(seq) => format!("seq {seq} recorded it with other data"),
        None => "the same batch holds it with other data".to_owned(),
    };
    let breach = Breach::new("natural_key", format!("one {kind} per natural key"), found);
    LedgerError::Refused {
        index,
        breach,
        in_the_way,
    }
}

/// Gives fresh commands their numbers and what they have seen.
pub(super) fn number(
    head: &Head,
    commands: &[Command],
    fresh: &[usize],
    signer: &Signer,
    now: Timestamp,
) -> Vec<(usize, Draft)> {
    let keyring = &head.state.keyring;
    let next = keyring
        .keys
        .get(&signer.id())
        .map_or(0, |key| key.next_author_seq);
    let seen = Seen {
        root: Root(head.root()),
        size: Count::new(head.size()).expect("BUG: a log is below 2^53"),
    };
    let draft = |(author_seq, &index): (u64, &usize)| {
        let command = &commands[index];
        let header = Header {
            at: command.at.unwrap_or(now),
            author: signer.id(),
            author_seq,
            experiment: command.experiment.clone(),
            ledger: keyring.origin.clone(),
            refs: command.refs.clone(),
            seen: Some(seen),
        };
        (
            index,
            Draft {
                header,
                payload: command.payload.clone(),
            },
        )
    };
    (next..).zip(fresh).map(draft).collect()
}

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
        "author_seq",
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
    decoded: &Decoded,
) -> Result<Option<Appended>, LedgerError> {
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
        return Ok(Some(Appended {
            seq,
            id: decoded.id,
            already: true,
        }));
    }
    Err(author_seq_conflict(index, author_seq, Some(seq)))
}

/// Public keys for a foreign batch: those in force and those that the batch itself adds.
pub(super) fn batch_keys(
    head: &Head,
    fresh: &[(usize, SignedEvent, Decoded)],
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
    decoded: Decoded,
) -> Result<Prepared, LedgerError> {
    let refuse = |breach| LedgerError::Refused {
        index,
        breach,
        in_the_way: None,
    };
    let author = decoded.header.author;
    let Some(key) = keys.get(&author) else {
        return Err(refuse(Breach::new(
            "key",
            "a key that was added before",
            format!("unknown key {author}"),
        )));
    };
    if signed.signer() != author {
        return Err(refuse(Breach::new(
            "keyid",
            author.to_string(),
            signed.signer().to_string(),
        )));
    }
    let blobs = rules::blobs(signed.body());
    let signed = signed.verify(PAYLOAD_TYPE, key).map_err(|error| {
        refuse(Breach::new(
            "signature",
            "a strict Ed25519 signature by the author",
            error.to_string(),
        ))
    })?;
    Ok(Prepared {
        index,
        signed,
        decoded,
        blobs,
        is_own: false,
    })
}
