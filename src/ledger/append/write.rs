//! Writing a judged batch inside its transaction, under a signed checkpoint.

use crate::ground::note::KeyName;
use crate::ground::note::SignedCheckpoint;
use crate::ground::sign::Signer;
use crate::ground::time::Timestamp;
use crate::ledger::append::Batch;
use crate::ledger::checkpoint;
use crate::ledger::error::LedgerError;
use crate::ledger::open::Head;
use crate::store::NewEntry;
use crate::store::StoredCheckpoint;
use crate::store::StoredSnapshot;
use crate::store::WriteTxn;

/// Entries after which fold snapshots are written again.
const SNAPSHOT_EVERY: u64 = 1024;
/// Digests held in memory before the index takes them in.
const TAIL_MAX: usize = 200_000;
/// Digests that a batch may leave to the index inside its own transaction.
const TAIL_SMALL: usize = 4_096;

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

/// Writes a batch inside its transaction.
pub(super) fn write(
    txn: &WriteTxn<'_>,
    head: &mut Head,
    recorded_at: Timestamp,
    batch: &Batch,
    checkpoint: &SignedCheckpoint,
) -> Result<(), LedgerError> {
    txn.append_entries(batch.admitted.iter().map(|admitted| NewEntry {
        seq: admitted.seq,
        author: admitted.signed.signer(),
        author_seq: admitted.author_seq,
        recorded_at,
        body: admitted.signed.body(),
        signature: admitted.signed.signature(),
    }))?;
    compare(txn, batch)?;
    txn.insert_rows(&batch.rows)?;
    for tile in &batch.tiles {
        txn.put_tile(tile.level, tile.index, &tile.root, &tile.hashes)?;
    }
    let note = checkpoint.encode();
    txn.put_checkpoint(&StoredCheckpoint {
        size: head.size(),
        note,
    })?;
    let small = batch.admitted.len() <= TAIL_SMALL && head.tail.len() <= TAIL_SMALL;
    if small || batch.needs_index || head.tail.len() >= TAIL_MAX {
        txn.index_digests(
            head.tail.iter().map(|(digest, seq)| (digest, *seq)),
            head.size(),
        )?;
        head.indexed = head.size();
        head.tail.clear();
    }
    if head.snapshot == 0 || head.size() - head.snapshot >= SNAPSHOT_EVERY {
        write_snapshots(txn, head)?;
    }
    Ok(())
}

/// Reads back what was inserted: what is acknowledged is what was signed, byte for byte.
fn compare(txn: &WriteTxn<'_>, batch: &Batch) -> Result<(), LedgerError> {
    let Some(first) = batch.admitted.first().map(|admitted| admitted.seq) else {
        return Ok(());
    };
    let mut admitted = batch.admitted.iter();
    txn.reader()
        .entries(first, first + batch.admitted.len() as u64, |stored| {
            let same = admitted.next().is_some_and(|own| {
                own.seq == stored.seq
                    && own.author_seq == stored.author_seq
                    && own.signed.signer() == stored.author
                    && own.signed.body() == stored.body
                    && *own.signed.signature() == stored.signature
            });
            let found = || "other bytes than were inserted".to_owned();
            if same {
                Ok(())
            } else {
                Err(LedgerError::Integrity {
                    seq: stored.seq,
                    found: found(),
                })
            }
        })?;
    match admitted.next() {
        None => Ok(()),
        Some(own) => Err(LedgerError::Integrity {
            seq: own.seq,
            found: "no entry where one was inserted".to_owned(),
        }),
    }
}

fn write_snapshots(txn: &WriteTxn<'_>, head: &mut Head) -> Result<(), LedgerError> {
    for (name, state) in head.state.snapshots() {
        let rulebook = head.state.rulebook().version;
        let snapshot = StoredSnapshot {
            rulebook,
            size: head.size(),
            root: head.root(),
            state,
        };
        txn.put_snapshot(name, &snapshot)?;
    }
    head.snapshot = head.size();
    Ok(())
}
