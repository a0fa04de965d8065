//! From recorded entries to the state that they add up to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc;

use clover_event::Event;
use clover_event::PAYLOAD_TYPE;
use clover_event::Payload;
use clover_event::header;
use clover_ground::digest::Digest;
use clover_ground::merkle::LEAVES_AT_ONCE;
use clover_ground::sign;
use clover_ground::sign::KeyId;
use clover_ground::sign::PublicKey;
use clover_ground::time::Timestamp;
use clover_store::Reader;
use clover_store::StoredEntry;
use rayon::prelude::*;

use crate::checkpoint;
use crate::error::Divergence;
use crate::error::LedgerError;
use crate::error::Root64;
use crate::fold::Fact;
use crate::fold::ProposedEvent;
use crate::fold::Rulebook;
use crate::fold::VerifiedEvent;
use crate::lines::LeafLines;
use crate::open::Head;
use crate::open::Ledger;
use crate::open::parse_checkpoint;
use crate::rules;
use crate::state::State;

/// Entries decoded at a time.
const CHUNK: usize = 2048;

/// Chunks that may be decoded while the next one is read.
const AHEAD: usize = 2;

/// Entries folded before it is said how many are.
const TOLD_EVERY: u64 = 1 << 16;

/// An entry that is ready to be folded.
struct DecodedEntry {
    seq: u64,
    recorded_at: Timestamp,
    leaf: Digest,
    event: Event,
    /// Who signed, what, and how, where that is not known to be checked.
    signed: Option<(KeyId, Vec<u8>, [u8; 64])>,
}

type Chunk = Vec<Result<DecodedEntry, LedgerError>>;

/// Folds the entries between `head` and the newest checkpoint. What is folded is anchored: the tree over it
/// must have the root that the log key signed.
pub(super) fn catch_up(head: &mut Head, reader: Reader<'_>) -> Result<(), LedgerError> {
    let Some(stored) = reader.head()? else {
        return Ok(());
    };
    let target = parse_checkpoint(&stored)?;
    if target.checkpoint().size < head.size() {
        let divergence = Divergence::RolledBack {
            pinned: head.size(),
            found: target.checkpoint().size,
        };
        return Err(divergence.into());
    }
    head.indexed = reader.index_through()?;
    head.tail.forget_below(head.indexed);
    head.known = head.known.max(head.indexed);
    fold_to(head, reader, target.checkpoint().size)?;
    let (size, root) = (target.checkpoint().size, target.checkpoint().root);
    if head.size() != size {
        return Err(LedgerError::Integrity {
            seq: head.size(),
            found: format!("no entry; the head has {size}"),
        });
    }
    if head.root() != root {
        let found = format!(
            "root {} where the signed head has {}",
            Root64(head.root()),
            Root64(root)
        );
        return Err(LedgerError::Integrity {
            seq: size.saturating_sub(1),
            found,
        });
    }
    // The same bytes over the same tree are signed as they were.
    if stored.note == head.checked {
        return Ok(());
    }
    let own = head.slate.as_ref().filter(|slate| slate.signs(size));
    let keys = match own {
        Some(slate) => vec![slate.key().key().clone()],
        None => checkpoint::required_keys(&head.state.keyring, size, size),
    };
    let keyring = &head.state.keyring;
    checkpoint::check(&target, &keyring.origin, &keys).map_err(|found| LedgerError::Integrity {
        seq: size.saturating_sub(1),
        found,
    })?;
    head.checked = stored.note;
    Ok(())
}

/// Folds up to `size` entries, each chunk while the next is read and decoded. Digests past the index cursor are
/// remembered even where a snapshot already holds their entries.
pub(super) fn fold_to(head: &mut Head, reader: Reader<'_>, size: u64) -> Result<(), LedgerError> {
    let from = head.size().min(head.known);
    let unchecked = head.size().max(head.verified);
    let mut chunk = Vec::new();
    let mut full = |stored, next: &mut dyn FnMut(Vec<StoredEntry>) -> Result<(), LedgerError>| {
        chunk.push(stored);
        match chunk.len() {
            CHUNK => next(std::mem::take(&mut chunk)),
            _ => Ok(()),
        }
    };
    if size.saturating_sub(from) > CHUNK as u64 {
        std::thread::scope(|scope| {
            let (to_decode, chunks) = mpsc::sync_channel::<Vec<StoredEntry>>(AHEAD);
            let (to_fold, decoded) = mpsc::sync_channel::<Chunk>(AHEAD);
            scope.spawn(move || {
                let mut chunks = chunks.into_iter();
                chunks.try_for_each(|chunk| to_fold.send(decode(&chunk, unchecked)))
            });
            let mut ahead = 0;
            let fold_next = |head: &mut Head| match decoded.recv() {
                Ok(chunk) => fold_chunk(head, chunk),
                // The thread that decodes ended early only if it panicked, which the scope passes on.
                Err(mpsc::RecvError) => Ok(()),
            };
            let mut next = |chunk| {
                if ahead == AHEAD {
                    ahead -= 1;
                    fold_next(head)?;
                }
                ahead += 1;
                to_decode.send(chunk).ok();
                Ok(())
            };
            reader.entries(from, size, |stored| full(stored, &mut next))?;
            (0..ahead).try_for_each(|_| fold_next(head))
        })?;
    } else {
        let mut next = |chunk: Vec<StoredEntry>| fold_chunk(head, decode(&chunk, unchecked));
        reader.entries(from, size, |stored| full(stored, &mut next))?;
    }
    fold_chunk(head, decode(&chunk, unchecked))
}

/// Decodes entries on all cores; from `unchecked` on their signatures will be asked for.
fn decode(chunk: &[StoredEntry], unchecked: u64) -> Chunk {
    let decoded = |stored: &StoredEntry, leaf| {
        let integrity = |found: String| LedgerError::Integrity {
            seq: stored.seq,
            found,
        };
        let decoded = header::decode_admitted(&stored.body);
        let decoded = decoded.map_err(|error| integrity(error.to_string()))?;
        let event = decoded.into_event();
        let is_unchecked = stored.seq >= unchecked;
        let signed = || (stored.author, stored.body.clone(), stored.signature);
        Ok(DecodedEntry {
            seq: stored.seq,
            recorded_at: stored.recorded_at,
            leaf,
            event: event.map_err(|error| integrity(error.to_string()))?,
            signed: is_unchecked.then(signed),
        })
    };
    let some = chunk.par_chunks(LEAVES_AT_ONCE).flat_map_iter(|some| {
        let mut lines = LeafLines::default();
        for stored in some {
            lines.push(&stored.as_ref());
        }
        let leaves = lines.leaves().into_iter();
        some.iter()
            .zip(leaves)
            .map(|(stored, leaf)| decoded(stored, leaf))
    });
    some.collect()
}

/// Checks the signatures of entries that are about to be folded and that nobody here checked before: an entry counts when
/// its author signed it, whoever wrote it into the file.
fn check_signatures(head: &Head, chunk: &Chunk) -> Result<(), LedgerError> {
    let mut added: BTreeMap<KeyId, Arc<PublicKey>> = BTreeMap::new();
    let mut signed = Vec::new();
    for decoded in chunk.iter().flatten() {
        let Some((keyid, body, signature)) = &decoded.signed else {
            continue;
        };
        let new = match &decoded.event.payload {
            Payload::LedgerCreated(created) => Some(created.owner.public_key.0),
            Payload::KeyAdded(added) => Some(added.public_key.0),
            _ => None,
        };
        if let Some(key) = new.and_then(|key| PublicKey::from_bytes(&key).ok()) {
            added.insert(key.id(), Arc::new(key));
        }
        let key = head.state.public_key(keyid).or_else(|| added.get(keyid));
        let key = key.filter(|_| decoded.event.header.author == *keyid);
        let Some(key) = key.cloned() else {
            let found = format!("an entry of key {keyid}, which nobody added");
            return Err(unsigned(decoded.seq, found));
        };
        signed.push((decoded.seq, key, body, signature));
    }
    let broken = signed.par_iter().with_min_len(8).find_first(|one| {
        let (_, key, body, signature) = one;
        let message = sign::pae(PAYLOAD_TYPE, body);
        key.verify(&message, signature).is_err()
    });
    broken.map_or(Ok(()), |(seq, ..)| {
        let found = "an entry whose author did not sign it".to_owned();
        Err(unsigned(*seq, found))
    })
}

fn unsigned(seq: u64, found: String) -> LedgerError {
    LedgerError::Integrity { seq, found }
}

fn fold_chunk(head: &mut Head, chunk: Chunk) -> Result<(), LedgerError> {
    check_signatures(head, &chunk)?;
    let (mut facts, mut given) = (Vec::new(), Vec::new());
    for decoded in chunk {
        let DecodedEntry {
            seq,
            recorded_at,
            leaf,
            event,
            signed: _,
        } = decoded?;
        let candidate = ProposedEvent {
            seq,
            recorded_at,
            event: &event,
        };
        if seq >= head.known {
            facts.clear();
            let natural_key = event.natural_key();
            all_facts(head.state.rulebook(), &candidate, natural_key, &mut facts);
            given.extend(given_by(seq, &facts));
            head.known = seq + 1;
        }
        if seq < head.size() {
            continue;
        }
        if seq != head.size() {
            return Err(LedgerError::Integrity {
                seq: head.size(),
                found: format!("entry {seq}"),
            });
        }
        head.tiler.push(leaf);
        head.state.apply(&VerifiedEvent::new(candidate));
    }
    head.tail.add(given);
    Ok(())
}

/// Facts of custody and of the rulebook.
pub(super) fn all_facts(
    rulebook: &Rulebook,
    candidate: &ProposedEvent<'_>,
    natural_key: Option<Digest>,
    facts: &mut Vec<Fact>,
) {
    rules::facts(candidate, natural_key, facts);
    for rule in rulebook.every_rule() {
        rule.provides(candidate, facts);
    }
}

/// The digests that an entry gives.
pub(super) fn given_by(seq: u64, facts: &[Fact]) -> impl Iterator<Item = (Digest, u64)> {
    facts.iter().filter_map(move |fact| match fact {
        Fact::Id { digest, .. } | Fact::Gives { digest, .. } => Some((*digest, seq)),
        Fact::Needs { .. }
        | Fact::Forbids { .. }
        | Fact::ForbidsBelow { .. }
        | Fact::Says { .. }
        | Fact::Agrees { .. }
        | Fact::Recorded { .. }
        | Fact::Reads { .. } => None,
    })
}

/// States of one ledger, one after the other: what was folded for a size serves every larger one.
#[derive(Debug, Default)]
pub struct States {
    head: Option<Head>,
}

impl States {
    /// As [`Ledger::state_at`].
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when the entries do not match the signed head.
    pub fn at(&mut self, ledger: &Ledger, size: u64) -> Result<&State, LedgerError> {
        // What a failed fold took in is folded again.
        let kept = self.head.take().filter(|head| head.size() <= size);
        let mut head = kept.unwrap_or_else(|| Head::empty(ledger.rulebook));
        ledger.fold_on(&mut head, size)?;
        Ok(&self.head.insert(head).state)
    }
}

impl Ledger {
    /// State after the first `size` entries, from the recorded facts alone.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when the entries do not match the signed head.
    pub fn state_at(&self, size: u64) -> Result<State, LedgerError> {
        let mut head = Head::empty(self.rulebook);
        self.fold_on(&mut head, size)?;
        Ok(head.state)
    }

    /// Folds all entries once more: the state that rules go by must be theirs, whatever a snapshot gave. `told` is said how
    /// many are folded.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] names the fold that differs, or says that the entries do not match the signed head.
    pub fn check_state(&self, mut told: impl FnMut(u64)) -> Result<(), LedgerError> {
        let size = self.size();
        let mut states = States::default();
        let mut folded = 0;
        while folded < size {
            folded = size.min(folded + TOLD_EVERY);
            states.at(self, folded)?;
            told(folded);
        }
        let again = states.at(self, size)?.snapshots().into_iter();
        let mut both = again.zip(self.state().snapshots());
        let differs = both.find_map(|((name, again), (_, here))| (again != here).then_some(name));
        differs.map_or(Ok(()), |name| {
            Err(LedgerError::Integrity {
                seq: size.saturating_sub(1),
                found: format!("a snapshot of {name} that is not what the entries give"),
            })
        })
    }

    /// Folds a head on to the first `size` entries.
    pub(super) fn fold_on(&self, head: &mut Head, size: u64) -> Result<(), LedgerError> {
        let read = self.store.read()?;
        // Both were asked when the ledger's own head took these entries in.
        (head.known, head.verified) = (u64::MAX, u64::MAX);
        fold_to(head, read.reader(), size.min(self.size()))?;
        let expected = self.root_at(head.size())?;
        if head.root() != expected {
            let found = "entries that are not under the signed head".to_owned();
            return Err(LedgerError::Integrity {
                seq: head.size().saturating_sub(1),
                found,
            });
        }
        Ok(())
    }
}
