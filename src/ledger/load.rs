//! Making a ledger file from an export: entries byte for byte, and everything that the file holds beside them anew.
//!
//! Nothing is judged here. Whoever loads a file verifies it before anybody else sees it.

use std::io::BufRead;
use std::path::Path;

use clover_event::Entry;
use clover_event::Event;
use clover_event::header;
use clover_ground::digest::Digest;
use clover_ground::merkle;
use clover_ground::note::SignedCheckpoint;
use clover_store::CreateOptions;
use clover_store::OpenOptions;
use clover_store::Store;
use clover_store::StoredCheckpoint;
use clover_store::StoredEntry;
use clover_store::WriteTxn;
use rayon::prelude::*;

use crate::append;
use crate::catch_up;
use crate::checkpoint;
use crate::error::LedgerError;
use crate::fold::ProposedEvent;
use crate::fold::Rulebook;
use crate::fold::VerifiedEvent;
use crate::kinds;
use crate::kinds::KindRuns;
use crate::open::Head;
use crate::open::Ledger;
use crate::verify::read_lines;

/// Entries of one transaction.
const PART: usize = 8_192;

/// What a file is made from.
pub struct LogSource<'a> {
    /// One entry line per line.
    pub lines: Box<dyn BufRead + Send + 'a>,
    /// Kept checkpoints, ascending in size; the last covers every line.
    pub checkpoints: Vec<SignedCheckpoint>,
    /// Contents of blobs.
    pub blobs: Box<dyn Iterator<Item = Result<Vec<u8>, LedgerError>> + 'a>,
}

/// Makes the file at `path` and answers with the entries in it and their root.
///
/// # Errors
/// [`LedgerError`]; then a part of the file may stand there, which its caller removes.
pub fn load(
    path: &Path,
    options: OpenOptions,
    rulebook: &'static Rulebook,
    parts: LogSource<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<(u64, Digest), LedgerError> {
    let store = Store::create(path, CreateOptions::default(), options)?;
    let mut head = Head::empty(rulebook);
    let (mut waiting, mut failed) = (Vec::with_capacity(PART), None);
    let read = read_lines(parts.lines, &mut |line| {
        waiting.push(line);
        if waiting.len() < PART {
            return true;
        }
        let taken = take(&store, &mut head, &mut waiting);
        progress(head.size());
        failed = taken.err();
        failed.is_none()
    });
    let at = head.size();
    read.map_err(|error| damaged(at, error.to_string()))?;
    if let Some(error) = failed {
        return Err(error);
    }
    take(&store, &mut head, &mut waiting)?;
    progress(head.size());
    for blob in parts.blobs {
        let blob = blob?;
        let txn = store.begin()?;
        txn.put_blob(&blob)?;
        txn.commit()?;
    }
    let txn = store.begin()?;
    for checkpoint in &parts.checkpoints {
        txn.put_checkpoint(&StoredCheckpoint {
            size: checkpoint.checkpoint().size,
            note: checkpoint.encode(),
        })?;
    }
    append::index(&txn, &mut head)?;
    append::write_snapshots(&txn, &mut head)?;
    txn.commit()?;
    Ok((head.size(), head.root()))
}

fn damaged(seq: u64, found: String) -> LedgerError {
    LedgerError::Integrity { seq, found }
}

/// An entry with its event and its leaf.
type LoadedEntry = (StoredEntry, Event, Digest);

/// Takes the waiting lines into the file, in one transaction.
fn take(store: &Store, head: &mut Head, waiting: &mut Vec<Vec<u8>>) -> Result<(), LedgerError> {
    let txn = store.begin()?;
    take_in(&txn, head, waiting)?;
    Ok(txn.commit()?)
}

/// Takes the waiting lines in.
fn take_in(
    txn: &WriteTxn<'_>,
    head: &mut Head,
    waiting: &mut Vec<Vec<u8>>,
) -> Result<(), LedgerError> {
    let first = head.size();
    let numbered: Vec<(u64, Vec<u8>)> = (first..).zip(waiting.drain(..)).collect();
    let taken: Result<Vec<LoadedEntry>, LedgerError> =
        numbered.into_par_iter().map(decode).collect();
    let taken = taken?;
    let rows = txn.rows(taken.len())?;
    rows.append_entries(taken.iter().map(|(stored, _, _)| stored.as_ref()))?;
    let (mut facts, mut given, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    let mut kinds = KindRuns::default();
    for (stored, event, leaf) in &taken {
        let candidate = ProposedEvent {
            seq: stored.seq,
            recorded_at: stored.recorded_at,
            event,
        };
        facts.clear();
        catch_up::all_facts(
            head.state.rulebook(),
            &candidate,
            event.natural_key(),
            &mut facts,
        );
        given.extend(catch_up::given_by(stored.seq, &facts));
        head.known = stored.seq + 1;
        kinds.push(stored.seq, event.kind());
        for tile in head.grow(std::slice::from_ref(leaf)) {
            txn.put_tile(tile.level, tile.index, &tile.root, &tile.hashes)?;
        }
        let event = VerifiedEvent::new(candidate);
        let rulebook = head.state.rulebook();
        rulebook.rows(&event, &mut |row| changes.push(row));
        head.state.apply(&event);
    }
    rows.insert_rows(&changes)?;
    rows.end()?;
    kinds::index(txn, (first, head.size()), kinds)?;
    head.tail.add(given);
    if head.tail.len() >= append::TAIL_MAX {
        append::index(txn, head)?;
    }
    Ok(())
}

impl Ledger {
    /// Takes in entries that follow the head, byte for byte, with the checkpoints and blobs that come with them, in one
    /// transaction. Nothing is judged here but the newest checkpoint: whoever calls this verified the log that they end.
    ///
    /// # Errors
    /// [`LedgerError`]; then the ledger is what it was.
    pub fn extend(&mut self, parts: LogSource<'_>) -> Result<(), LedgerError> {
        let extended = self.try_extend(parts);
        if extended.is_err() {
            self.reload()?;
        } else {
            self.keep_mark();
        }
        extended
    }

    fn try_extend(&mut self, parts: LogSource<'_>) -> Result<(), LedgerError> {
        let Self { store, head, .. } = self;
        let txn = store.begin()?;
        catch_up::catch_up(head, txn.reader())?;
        let (mut waiting, mut failed) = (Vec::with_capacity(PART), None);
        let read = read_lines(parts.lines, &mut |line| {
            waiting.push(line);
            if waiting.len() < PART {
                return true;
            }
            failed = take_in(&txn, head, &mut waiting).err();
            failed.is_none()
        });
        let at = head.size();
        read.map_err(|error| damaged(at, error.to_string()))?;
        if let Some(error) = failed {
            return Err(error);
        }
        take_in(&txn, head, &mut waiting)?;
        for blob in parts.blobs {
            txn.put_blob(&blob?)?;
        }
        let Some(newest) = parts.checkpoints.last() else {
            return Err(damaged(head.size(), "no checkpoint".to_owned()));
        };
        let of = newest.checkpoint();
        if (of.size, of.root) != (head.size(), head.root()) {
            let found = format!("entries that the checkpoint of {} does not cover", of.size);
            return Err(damaged(head.size(), found));
        }
        let keyring = &head.state.keyring;
        let keys = checkpoint::required_keys(keyring, of.size, of.size);
        checkpoint::check(newest, &keyring.origin, &keys)
            .map_err(|found| damaged(of.size, found))?;
        for kept in &parts.checkpoints {
            txn.put_checkpoint(&StoredCheckpoint {
                size: kept.checkpoint().size,
                note: kept.encode(),
            })?;
        }
        append::index(&txn, head)?;
        append::write_snapshots(&txn, head)?;
        txn.commit()?;
        head.checked = newest.encode();
        Ok(())
    }
}

fn decode((seq, line): (u64, Vec<u8>)) -> Result<LoadedEntry, LedgerError> {
    let entry = Entry::parse(&line).map_err(|error| damaged(seq, error.to_string()))?;
    if entry.seq != seq {
        return Err(damaged(seq, format!("entry {}", entry.seq)));
    }
    let decoded =
        header::decode(entry.signed.body()).map_err(|error| damaged(seq, error.to_string()))?;
    let event = decoded
        .into_event()
        .map_err(|error| damaged(seq, error.to_string()))?;
    let stored = StoredEntry {
        seq,
        author: entry.signed.signer(),
        author_seq: event.header.author_seq,
        recorded_at: entry.recorded_at,
        body: entry.signed.body().to_vec(),
        signature: *entry.signed.signature(),
    };
    Ok((stored, event, merkle::leaf_hash(&line)))
}
