//! Writing a judged batch inside its transaction, under a signed checkpoint.

use clover_event::Event;
use clover_ground::note::KeyName;
use clover_ground::note::SignedCheckpoint;
use clover_ground::sign::Signer;
use clover_ground::time::Timestamp;
use clover_store::EntryRef;
use clover_store::RowsIn;
use clover_store::StoredCheckpoint;
use clover_store::StoredSnapshot;
use clover_store::WriteTxn;

use crate::append::Batch;
use crate::append::PreparedEvent;
use crate::checkpoint;
use crate::claim::Body;
use crate::error::LedgerError;
use crate::fold::ProposedEvent;
use crate::fold::VerifiedEvent;
use crate::kinds;
use crate::mark;
use crate::open::Head;

/// Entries after which fold snapshots are written again.
const SNAPSHOT_EVERY: u64 = 1024;
/// Digests held in memory before the index takes them in: the more, the fewer pages each batch of them
/// touches.
pub(crate) const TAIL_MAX: usize = 400_000;
/// Events up to which a batch is indexed in its own transaction, once enough are there to index.
const BATCH_SMALL: usize = 4_096;
/// Digests that are worth the pages of the index which they dirty: a lone append leaves them to a later one.
const TAIL_MIN: usize = 256;

pub(super) fn sign_head(
    head: &Head,
    before: u64,
    log_key: Option<&Signer>,
    next_log_key: Option<&Signer>,
) -> Result<SignedCheckpoint, LedgerError> {
    let keyring = &head.state.keyring;
    let origin =
        KeyName::parse(&keyring.origin).map_err(|error| LedgerError::LogKey(error.to_string()))?;
    let at_hand = [log_key, next_log_key];
    if let (Some(slate), Some(own)) = (&head.slate, log_key) {
        let keys = [(slate.key(), own)];
        return checkpoint::sign(&origin, head.size(), head.root(), &keys)
            .map_err(|error| LedgerError::LogKey(error.to_string()));
    }
    let mut keys = Vec::new();
    for (seq, vkey) in &keyring.log_keys {
        if *seq < before {
            keys.clear();
        }
        let own = |signer: &&Signer| vkey.key().public_key() == signer.public_bytes();
        let signer = at_hand.into_iter().flatten().find(own);
        keys.push((vkey, signer));
    }
    let keys: Result<Vec<_>, LedgerError> = keys
        .into_iter()
        .map(|(vkey, signer)| {
            let signer =
                signer.ok_or_else(|| LedgerError::LogKey(format!("{vkey} is not at hand")))?;
            Ok((vkey, signer))
        })
        .collect();
    checkpoint::sign(&origin, head.size(), head.root(), &keys?)
        .map_err(|error| LedgerError::LogKey(error.to_string()))
}

/// A checkpoint that others signed, where it covers the head and every log key that must have signed it did.
pub(super) fn covers(
    head: &Head,
    before: u64,
    signed: &SignedCheckpoint,
) -> Result<SignedCheckpoint, LedgerError> {
    let (of, keyring) = (signed.checkpoint(), &head.state.keyring);
    let damaged = |found: String| LedgerError::Integrity {
        seq: of.size.saturating_sub(1),
        found,
    };
    if (of.size, of.root) != (head.size(), head.root()) {
        return Err(damaged("a checkpoint of other entries".to_owned()));
    }
    let keys = checkpoint::required_keys(keyring, before, of.size);
    checkpoint::check(signed, &keyring.origin, &keys).map_err(damaged)?;
    Ok(signed.clone())
}

/// Writes a part of a batch, judged and from `first` on, inside its transaction.
pub(super) fn write_part(
    rows: &RowsIn<'_>,
    head: &Head,
    batch: &mut Batch,
    first: u64,
    part: &[Box<PreparedEvent>],
) -> Result<(), LedgerError> {
    let recorded_at = batch.recorded_at;
    let entries = || entries(first, part, recorded_at);
    rows.append_entries(entries())?;
    // Read back: what is acknowledged is what was signed, byte for byte.
    if let Some(seq) = rows.reader().first_difference(entries())? {
        let found = "other bytes than were inserted".to_owned();
        return Err(LedgerError::Integrity { seq, found });
    }
    let mut changes = Vec::new();
    for (seq, _, event) in events(first, part) {
        let candidate = ProposedEvent {
            seq,
            recorded_at,
            event,
        };
        batch.kinds.push(seq, event.kind());
        let event = VerifiedEvent::new(candidate);
        head.state
            .rulebook()
            .rows(&event, &mut |row| changes.push(row));
    }
    Ok(rows.insert_rows(&changes)?)
}

/// Writes what a batch adds beside its entries.
pub(super) fn write_head(
    txn: &WriteTxn<'_>,
    head: &mut Head,
    batch: &mut Batch,
    checkpoint: &SignedCheckpoint,
) -> Result<(), LedgerError> {
    for tile in &batch.tiles {
        txn.put_tile(tile.level, tile.index, &tile.root, &tile.hashes)?;
    }
    let (size, note) = (head.size(), checkpoint.encode());
    head.checked.clone_from(&note);
    txn.put_checkpoint(&StoredCheckpoint { size, note })?;
    let kinds = std::mem::take(&mut batch.kinds);
    kinds::index(txn, (batch.before.size, head.size()), kinds)?;
    let small = batch.appended.len() <= BATCH_SMALL;
    if head.tail.len() >= if small { TAIL_MIN } else { TAIL_MAX } {
        index(txn, head)?;
    }
    if head.snapshot == 0 || head.size() - head.snapshot >= SNAPSHOT_EVERY {
        write_snapshots(txn, head)?;
    }
    Ok(())
}

/// Lets the index take in the tail.
pub(crate) fn index(txn: &WriteTxn<'_>, head: &mut Head) -> Result<(), LedgerError> {
    let digests = head.tail.take();
    let size = head.size();
    txn.index_digests(digests.iter().map(|(digest, seq)| (digest, *seq)), size)?;
    head.indexed = size;
    Ok(())
}

/// The events of a part with their positions.
fn events(
    first: u64,
    part: &[Box<PreparedEvent>],
) -> impl Iterator<Item = (u64, &PreparedEvent, &Event)> {
    (first..)
        .zip(part)
        .filter_map(|(seq, prepared)| match &prepared.said {
            Body::Event(event) => Some((seq, prepared.as_ref(), event)),
            Body::Broken(_) => None,
        })
}

fn entries(
    first: u64,
    part: &[Box<PreparedEvent>],
    recorded_at: Timestamp,
) -> impl Iterator<Item = EntryRef<'_>> {
    events(first, part).map(move |(seq, prepared, event)| EntryRef {
        seq,
        author: prepared.signed.signer(),
        author_seq: event.header.author_seq,
        recorded_at,
        body: prepared.signed.body(),
        signature: prepared.signed.signature(),
    })
}

/// Writes every fold's snapshot of the head.
pub(crate) fn write_snapshots(txn: &WriteTxn<'_>, head: &mut Head) -> Result<(), LedgerError> {
    let mut all = Vec::new();
    for (name, state) in head.state.snapshots() {
        let rulebook = head.state.rulebook().version;
        let snapshot = StoredSnapshot {
            rulebook,
            size: head.size(),
            root: head.root(),
            state,
        };
        txn.put_snapshot(name, &snapshot)?;
        all.push((name, snapshot));
    }
    (head.snapshot, head.snapshots) = (head.size(), Some(mark::digest(&all)));
    Ok(())
}
