//! The parallel half of verification: what can be said of an entry from its bytes alone.
//!
//! A reader thread fills chunks, workers turn raw entries into [`EntryDigest`] ones, the calling thread takes
//! them in order. Signatures are checked here under any key whose id is its hash; whether that key might
//! sign is checked later, in order.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::RwLock;
use std::sync::mpsc;

use clover_event::PAYLOAD_TYPE;
use clover_event::Payload;
use clover_event::entry::Entry;
use clover_event::entry::LINE_LEN_MAX;
use clover_event::header;
use clover_ground::digest::Digest;
use clover_ground::merkle::LEAVES_AT_ONCE;
use clover_ground::sign;
use clover_ground::sign::BatchItem;
use clover_ground::sign::KeyId;
use clover_ground::sign::PublicKey;
use clover_ground::time::Timestamp;
use clover_store::StoredEntry;

use crate::catch_up;
use crate::claim;
use crate::claim::Body;
use crate::fold::Fact;
use crate::fold::ProposedEvent;
use crate::fold::Rulebook;
use crate::lines::LeafLines;
use crate::verify::Signatures;
use crate::verify::VerifyError;
use crate::verify::VerifyOptions;
use crate::verify::part::WithheldEntry;

/// Entries a worker takes at a time; also the size of a signature batch, which larger batches make cheaper.
const CHUNK: usize = 256;
const CHUNK_FAST: usize = 4_096;
/// Chunks in flight, on each side of the workers.
const QUEUE: usize = 4;
const QUEUE_FAST: usize = 2;

/// An entry as its source gave it.
pub(super) enum Raw {
    /// From the file, columns apart.
    Stored(StoredEntry),
    /// From the file, and not readable; the text says why.
    Unreadable(String),
    /// A line without its newline.
    Line(Vec<u8>),
    /// A line of a part of the log: its entry is withheld, and this is said of it.
    Withheld(WithheldEntry),
}

/// What the envelope of an entry says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope {
    pub seq: u64,
    pub recorded_at: Timestamp,
    pub keyid: KeyId,
    /// The column that repeats the body's counter, where the source is a file.
    pub column: Option<u64>,
}

/// How a signature stands.
#[derive(Clone, Debug)]
pub(super) enum Signature {
    Holds,
    Broken,
    /// The author's key was not known to the worker: body and signature to check it with.
    Deferred(Box<(Vec<u8>, [u8; 64])>),
    /// Nobody asked.
    Skipped,
}

/// An entry with everything that its bytes alone tell.
pub(super) struct EntryDigest {
    pub leaf: Digest,
    /// What is said of the entry where it is withheld.
    pub withheld: Option<WithheldEntry>,
    /// The envelope, or why the line is none.
    pub envelope: Result<Envelope, String>,
    /// The body, or why it is none; `None` where only the tree is checked.
    pub body: Option<Result<Body, String>>,
    pub signature: Signature,
    pub blobs: Vec<(Digest, u64)>,
    pub facts: Vec<Fact>,
}

/// Public keys by their hash, as far as the walk has met them.
#[derive(Default)]
pub(super) struct Directory(RwLock<BTreeMap<KeyId, Arc<PublicKey>>>);

impl Directory {
    fn get(&self, id: &KeyId) -> Option<Arc<PublicKey>> {
        self.0
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .get(id)
            .cloned()
    }

    fn learn(&self, payload: &Payload) {
        let bytes = match payload {
            Payload::LedgerCreated(created) => created.owner.public_key.0,
            Payload::KeyAdded(added) => added.public_key.0,
            _ => return,
        };
        if let Ok(key) = PublicKey::from_bytes(&bytes) {
            let mut keys = self
                .0
                .write()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            keys.insert(key.id(), Arc::new(key));
        }
    }
}

/// Reads lines without their newlines and gives them one by one until `give` says stop.
///
/// # Errors
/// [`VerifyError::Read`].
pub(crate) fn read_lines(
    mut lines: Box<dyn BufRead + Send + '_>,
    give: &mut dyn FnMut(Vec<u8>) -> bool,
) -> Result<(), VerifyError> {
    loop {
        let mut line = Vec::new();
        // A line that is too long is cut: it is a finding whatever follows, and must not fill memory.
        let mut limited = lines.by_ref().take(LINE_LEN_MAX as u64 + 2);
        let read = limited
            .read_until(b'\n', &mut line)
            .map_err(|error| VerifyError::Read(error.to_string()))?;
        if read == 0 {
            return Ok(());
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > LINE_LEN_MAX {
            skip_line(lines.as_mut())?;
        }
        if !give(line) {
            return Ok(());
        }
    }
}

/// Discards the rest of a line.
fn skip_line(lines: &mut dyn BufRead) -> Result<(), VerifyError> {
    loop {
        let buffer = lines
            .fill_buf()
            .map_err(|error| VerifyError::Read(error.to_string()))?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |at| at + 1);
        let done = end.is_some() || buffer.is_empty();
        lines.consume(used);
        if done {
            return Ok(());
        }
    }
}

/// Runs `source` on a thread, digests what it gives on all cores, and hands it to `take` in order.
pub(super) fn run<S>(
    source: S,
    options: &VerifyOptions,
    rulebook: &'static Rulebook,
    mut take: impl FnMut(EntryDigest) -> Result<(), VerifyError>,
) -> Result<(), VerifyError>
where
    S: FnOnce(&mut dyn FnMut(Raw) -> bool) -> Result<(), VerifyError> + Send,
{
    let (chunk_len, queue) = match options.signatures {
        Signatures::Fast => (CHUNK_FAST, QUEUE_FAST),
        Signatures::Strict => (CHUNK, QUEUE),
    };
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let directory = Directory::default();
    let (to_workers, chunks) = mpsc::sync_channel::<(u64, Vec<Raw>)>(queue);
    // Held by the workers alone: when judging stops they stop, and then nobody is left for the reader.
    let chunks = Arc::new(Mutex::new(chunks));
    let (to_judge, digested) = mpsc::sync_channel::<(u64, Vec<EntryDigest>)>(queue);
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || read(source, chunk_len, &to_workers));
        for _ in 0..workers {
            let (to_judge, chunks, directory) = (to_judge.clone(), Arc::clone(&chunks), &directory);
            scope.spawn(move || {
                loop {
                    let next = chunks.lock().map(|chunks| chunks.recv());
                    let Ok(Ok((at, raw))) = next else {
                        return;
                    };
                    if to_judge
                        .send((
                            at,
                            digest_chunk(raw, at * chunk_len as u64, options, rulebook, directory),
                        ))
                        .is_err()
                    {
                        return;
                    }
                }
            });
        }
        drop((to_judge, chunks));
        let mut waiting = BTreeMap::new();
        let mut next = 0_u64;
        for (at, chunk) in digested {
            waiting.insert(at, chunk);
            while let Some(chunk) = waiting.remove(&next) {
                next += 1;
                for entry in chunk {
                    take(entry)?;
                }
            }
        }
        reader
            .join()
            .unwrap_or_else(|_| Err(VerifyError::Read("the reading thread failed".to_owned())))
    })
}

fn read<S>(
    source: S,
    chunk_len: usize,
    to_workers: &mpsc::SyncSender<(u64, Vec<Raw>)>,
) -> Result<(), VerifyError>
where
    S: FnOnce(&mut dyn FnMut(Raw) -> bool) -> Result<(), VerifyError>,
{
    let mut chunk = Vec::with_capacity(chunk_len);
    let mut at = 0_u64;
    let mut give = |raw| {
        chunk.push(raw);
        if chunk.len() < chunk_len {
            return true;
        }
        let full = std::mem::replace(&mut chunk, Vec::with_capacity(chunk_len));
        at += 1;
        to_workers.send((at - 1, full)).is_ok()
    };
    let result = source(&mut give);
    if !chunk.is_empty() {
        // The receiver is gone only when judging stopped, and then its error is the one that counts.
        to_workers.send((at, chunk)).ok();
    }
    result
}

fn digest_chunk(
    raw: Vec<Raw>,
    first: u64,
    options: &VerifyOptions,
    rulebook: &'static Rulebook,
    directory: &Directory,
) -> Vec<EntryDigest> {
    let since = options.since_size();
    let mut pending = PendingSignatures::default();
    let mut chunk = Vec::with_capacity(raw.len());
    let leaves = leaves(&raw);
    for (position, (raw, (leaf, fault))) in (first..).zip(raw.into_iter().zip(leaves)) {
        let mut digested = EntryDigest {
            leaf,
            withheld: None,
            envelope: Err(String::new()),
            body: None,
            signature: Signature::Skipped,
            blobs: Vec::new(),
            facts: Vec::new(),
        };
        let parts = digest(
            raw,
            position,
            options.tree_only,
            rulebook,
            directory,
            fault,
            &mut digested,
        );
        if let Some((body, signature)) = parts
            && let Some(Ok(said)) = &digested.body
            && position >= since
        {
            // The first entry is checked under the key that it names itself.
            if position > 0 && pending.know(said.header().author, directory) {
                pending.push(chunk.len(), body, signature);
            } else {
                digested.signature = Signature::Deferred(Box::new((body, signature)));
            }
        }
        chunk.push(digested);
    }
    pending.check(&mut chunk, options.signatures);
    chunk
}

/// Signatures of a chunk that are to be checked.
#[derive(Default)]
struct PendingSignatures {
    /// What stands before bodies in their encodings, one after the other.
    heads: Vec<u8>,
    /// Keys, each as often as the author changes.
    keys: Vec<Arc<PublicKey>>,
    items: Vec<PendingItem>,
}

struct PendingItem {
    /// Place in the chunk.
    at: usize,
    head: Range<usize>,
    body: Vec<u8>,
    signature: [u8; 64],
    /// Place in the keys.
    key: usize,
}

impl PendingSignatures {
    /// Makes the author's key the last one. False when nobody knows it yet.
    fn know(&mut self, author: KeyId, directory: &Directory) -> bool {
        if self.keys.last().is_none_or(|last| last.id() != author) {
            let Some(key) = directory.get(&author) else {
                return false;
            };
            self.keys.push(key);
        }
        true
    }

    /// Adds what the last key signed.
    fn push(&mut self, at: usize, body: Vec<u8>, signature: [u8; 64]) {
        let last = self.items.last();
        let head = if let Some(last) = last.filter(|last| last.body.len() == body.len()) {
            last.head.clone()
        } else {
            let start = self.heads.len();
            sign::write_pae_head(&mut self.heads, PAYLOAD_TYPE, body.len());
            start..self.heads.len()
        };
        self.items.push(PendingItem {
            at,
            head,
            body,
            signature,
            key: self.keys.len() - 1,
        });
    }

    fn check(&self, chunk: &mut [EntryDigest], how: Signatures) {
        let batch = self.items.iter().map(|item| BatchItem {
            message: [&self.heads[item.head.clone()], &item.body],
            signature: item.signature,
            key: &self.keys[item.key],
        });
        if how == Signatures::Fast && sign::verify_batch(&batch.clone().collect::<Vec<_>>()).is_ok()
        {
            for item in &self.items {
                chunk[item.at].signature = Signature::Holds;
            }
            return;
        }
        for (item, PendingItem { at, .. }) in batch.zip(&self.items) {
            let holds = item
                .key
                .verify_parts(&item.message, &item.signature)
                .is_ok();
            chunk[*at].signature = if holds {
                Signature::Holds
            } else {
                Signature::Broken
            };
        }
    }
}

/// Body and signature of an entry.
type SignedBody = Option<(Vec<u8>, [u8; 64])>;

/// Fills in what the bytes of an entry tell beside its leaf, and gives body and signature.
fn digest(
    raw: Raw,
    position: u64,
    tree_only: bool,
    rulebook: &'static Rulebook,
    directory: &Directory,
    fault: Option<String>,
    digested: &mut EntryDigest,
) -> SignedBody {
    let (body, signature) = take_apart(raw, tree_only, fault, digested)?;
    digested.body = match header::decode(&body) {
        Err(error) => Some(Err(error.to_string())),
        Ok(decoded) => Some(Ok(Body::from(decoded))),
    };
    if let Some(Ok(said)) = &digested.body
        && let Body::Event(event) = said
        && let Ok(envelope) = &digested.envelope
    {
        directory.learn(&event.payload);
        let candidate = ProposedEvent {
            seq: position,
            recorded_at: envelope.recorded_at,
            event,
        };
        digested.facts.reserve_exact(2);
        let natural_key = event.natural_key();
        catch_up::all_facts(rulebook, &candidate, natural_key, &mut digested.facts);
        digested.blobs = claim::blobs(&body);
    }
    Some((body, signature))
}

/// The leaf of each entry, and what is wrong with its line or reading, if anything is.
fn leaves(raw: &[Raw]) -> Vec<(Digest, Option<String>)> {
    let mut found = Vec::with_capacity(raw.len());
    let mut lines = LeafLines::default();
    for some in raw.chunks(LEAVES_AT_ONCE) {
        let mut faults = Vec::with_capacity(some.len());
        for raw in some {
            faults.push(match raw {
                Raw::Stored(stored) => lines.push(&stored.as_ref()),
                Raw::Withheld(withheld) => {
                    lines.push_leaf(withheld.leaf);
                    None
                }
                // Reading it says what is wrong with it.
                Raw::Line(line) => {
                    lines.push_line(line);
                    None
                }
                Raw::Unreadable(why) => {
                    lines.push_unreadable();
                    Some(why.clone())
                }
            });
        }
        found.extend(lines.leaves().into_iter().zip(faults));
    }
    found
}

/// Fills in the envelope, or the fault that was found; body and signature where they are to be looked at.
fn take_apart(
    raw: Raw,
    tree_only: bool,
    fault: Option<String>,
    digested: &mut EntryDigest,
) -> SignedBody {
    if let Some(why) = fault {
        digested.envelope = Err(why);
        return None;
    }
    let parts = match raw {
        // What cannot be read is at fault.
        Raw::Unreadable(_) => return None,
        Raw::Withheld(withheld) => {
            digested.withheld = Some(withheld);
            return None;
        }
        Raw::Stored(StoredEntry {
            seq,
            author,
            author_seq,
            recorded_at,
            body,
            signature,
        }) => {
            digested.envelope = Ok(Envelope {
                seq,
                recorded_at,
                keyid: author,
                column: Some(author_seq),
            });
            (body, signature)
        }
        Raw::Line(line) => {
            if tree_only {
                return None;
            }
            match Entry::parse(&line) {
                Err(error) => {
                    digested.envelope = Err(error.to_string());
                    return None;
                }
                Ok(entry) => {
                    let Entry {
                        seq,
                        recorded_at,
                        signed,
                    } = entry;
                    digested.envelope = Ok(Envelope {
                        seq,
                        recorded_at,
                        keyid: signed.signer(),
                        column: None,
                    });
                    (signed.body().to_vec(), *signed.signature())
                }
            }
        }
    };
    (!tree_only).then_some(parts)
}
