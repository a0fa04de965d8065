//! Append: inside one `BEGIN IMMEDIATE`, catch up, decide, number, sign, judge, insert, sign the
//! checkpoint, commit.
//!
//! A batch is one transaction and one checkpoint; every event in it is signed by itself. It lands whole or
//! not at all. Retries are safe in two layers: a signed body is known by (author, author_seq) and compared
//! byte for byte; an unsigned command is known by its natural key and compared by its data.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use crate::event::Draft;
use crate::event::Header;
use crate::event::Kind;
use crate::event::PAYLOAD_TYPE;
use crate::event::Payload;
use crate::event::Seen;
use crate::event::entry;
use crate::event::header;
use crate::event::header::Decoded;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::id::Root;
use crate::ground::digest::Digest;
use crate::ground::merkle;
use crate::ground::merkle::Tile;
use crate::ground::note::KeyName;
use crate::ground::note::SignedCheckpoint;
use crate::ground::sign::KeyId;
use crate::ground::sign::PublicKey;
use crate::ground::sign::Signed;
use crate::ground::sign::Signer;
use crate::ground::sign::Unverified;
use crate::ground::sign::Verified;
use crate::ground::time::Timestamp;
use crate::ledger::checkpoint;
use crate::ledger::error::LedgerError;
use crate::ledger::fold::Breach;
use crate::ledger::fold::Candidate;
use crate::ledger::fold::Fact;
use crate::ledger::fold::VerifiedEvent;
use crate::ledger::open;
use crate::ledger::open::Head;
use crate::ledger::open::Ledger;
use crate::ledger::rules;
use crate::ledger::rules::Claim;
use crate::num::Count;
use crate::store::Durability;
use crate::store::NewEntry;
use crate::store::Reader;
use crate::store::RowChange;
use crate::store::StoredCheckpoint;
use crate::store::StoredSnapshot;
use crate::store::WriteTxn;

/// Entries after which fold snapshots are written again.
const SNAPSHOT_EVERY: u64 = 1024;
/// Digests held in memory before the index takes them in.
const TAIL_MAX: usize = 200_000;
/// Digests that a batch may leave to the index inside its own transaction.
const TAIL_SMALL: usize = 4_096;

/// Something to be said, not signed yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// What.
    pub payload: Payload,
    /// What it belongs to.
    pub experiment: Option<ExperimentId>,
    /// What it stands on.
    pub refs: Vec<EventId>,
    /// When; the clock's time when absent.
    pub at: Option<Timestamp>,
}

impl Command {
    /// A command with no references, at the time of its append.
    pub fn new(payload: impl Into<Payload>, experiment: Option<ExperimentId>) -> Self {
        Self {
            payload: payload.into(),
            experiment,
            refs: Vec::new(),
            at: None,
        }
    }
}

/// An event signed elsewhere.
pub type SignedEvent = Signed<Unverified>;

/// Where an event stands now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Its position.
    pub seq: u64,
    /// Its id.
    pub id: EventId,
    /// It was there before: this call added nothing for it.
    pub already: bool,
}

/// A signed event with everything derived from its bytes alone.
pub(super) struct Prepared {
    index: usize,
    signed: Signed<Verified>,
    decoded: Decoded,
    blobs: Vec<(Digest, u64)>,
}

impl Prepared {
    pub(super) fn from_signed(index: usize, signed: Signed<Verified>) -> Result<Self, LedgerError> {
        let decoded =
            header::decode(signed.body()).map_err(|source| LedgerError::Body { index, source })?;
        let blobs = rules::blobs(signed.body());
        Ok(Self {
            index,
            signed,
            decoded,
            blobs,
        })
    }
}

/// An event that passed the rules, ready to be inserted.
struct Admitted {
    seq: u64,
    author_seq: u64,
    signed: Signed<Verified>,
}

/// What an answer to a submission still waits for.
enum Slot {
    Known(Appended),
    New,
    /// The same as the submission of this index in the same batch.
    SameAs(usize),
}

impl Ledger {
    /// Signs and appends commands as one batch. Commands whose natural key is recorded with the same data
    /// answer with the recorded entry.
    ///
    /// # Errors
    /// [`LedgerError`]; then nothing was appended.
    pub fn append(
        &mut self,
        commands: &[Command],
        signer: &Signer,
    ) -> Result<Vec<Appended>, LedgerError> {
        self.append_with_blobs(commands, signer, &[])
    }

    /// As [`Ledger::append`], storing `blobs` in the same transaction.
    ///
    /// # Errors
    /// [`LedgerError`]; then nothing was appended and no blob was stored.
    pub fn append_with_blobs(
        &mut self,
        commands: &[Command],
        signer: &Signer,
        blobs: &[Vec<u8>],
    ) -> Result<Vec<Appended>, LedgerError> {
        self.in_transaction(blobs, |head, reader, recorded_at| {
            let slots = known_commands(head, reader, commands)?;
            let fresh: Vec<_> = slots
                .iter()
                .enumerate()
                .filter(|(_, slot)| matches!(slot, Slot::New))
                .map(|(at, _)| at)
                .collect();
            let drafts = number(head, commands, &fresh, signer, recorded_at);
            let prepared: Result<Vec<_>, LedgerError> = drafts
                .into_par_iter()
                .map(|(index, draft)| {
                    let body = draft
                        .to_body()
                        .map_err(|source| LedgerError::Body { index, source })?;
                    let id = EventId(Digest::sha256(&body));
                    let blobs = rules::blobs(&body);
                    let v = draft.payload.kind().version();
                    let decoded = Decoded {
                        id,
                        header: draft.header,
                        v,
                        payload: Ok(draft.payload),
                    };
                    Ok(Prepared {
                        index,
                        signed: Signed::sign(PAYLOAD_TYPE, body, signer),
                        decoded,
                        blobs,
                    })
                })
                .collect();
            Ok((slots, prepared?))
        })
    }

    /// Appends events signed elsewhere, as one batch. Events that are recorded byte for byte answer with
    /// their entry.
    ///
    /// # Errors
    /// [`LedgerError`]; then nothing was appended.
    pub fn submit(&mut self, events: Vec<SignedEvent>) -> Result<Vec<Appended>, LedgerError> {
        self.in_transaction(&[], |head, reader, _| {
            let mut slots = Vec::with_capacity(events.len());
            let mut fresh = Vec::new();
            let mut in_batch: BTreeMap<(KeyId, u64), usize> = BTreeMap::new();
            for (index, signed) in events.into_iter().enumerate() {
                let decoded = header::decode(signed.body())
                    .map_err(|source| LedgerError::Body { index, source })?;
                let key = (decoded.header.author, decoded.header.author_seq);
                if let Some(known) = known_signed(head, reader, index, &signed, &decoded)? {
                    slots.push(Slot::Known(known));
                } else if let Some(&earlier) = in_batch.get(&key) {
                    slots.push(Slot::SameAs(earlier));
                    if !fresh
                        .iter()
                        .any(|(at, other, _): &(usize, SignedEvent, Decoded)| {
                            *at == earlier && *other == signed
                        })
                    {
                        return Err(author_seq_conflict(index, key.1, None));
                    }
                } else {
                    in_batch.insert(key, index);
                    slots.push(Slot::New);
                    fresh.push((index, signed, decoded));
                }
            }
            let keys = batch_keys(head, &fresh);
            let prepared: Result<Vec<_>, _> = fresh
                .into_par_iter()
                .map(|(index, signed, decoded)| verify_foreign(&keys, index, signed, decoded))
                .collect();
            Ok((slots, prepared?))
        })
    }

    pub(super) fn append_genesis(&mut self, genesis: Prepared) -> Result<(), LedgerError> {
        self.in_transaction(&[], |_, _, _| Ok((vec![Slot::New], vec![genesis])))
            .map(drop)
    }

    /// Stores blobs alone, for events that will name them.
    ///
    /// # Errors
    /// [`LedgerError`]; then no blob was stored.
    pub fn put_blobs(&mut self, blobs: &[Vec<u8>]) -> Result<(), LedgerError> {
        self.in_transaction(blobs, |_, _, _| Ok((Vec::new(), Vec::new())))
            .map(drop)
    }

    /// Gives the key that the log rotates to; needed to append `log_key.rotated`.
    pub fn set_next_log_key(&mut self, signer: Signer) {
        self.next_log_key = Some(signer);
    }

    /// Runs one append: `plan` decides what is new, everything else is the same for all.
    fn in_transaction(
        &mut self,
        blobs: &[Vec<u8>],
        plan: impl FnOnce(
            &Head,
            Reader<'_>,
            Timestamp,
        ) -> Result<(Vec<Slot>, Vec<Prepared>), LedgerError>,
    ) -> Result<Vec<Appended>, LedgerError> {
        if self.log_key.is_none() {
            return Err(LedgerError::LogKey(
                "is missing: this ledger was opened to be read".to_owned(),
            ));
        }
        let result = self.try_transaction(blobs, plan);
        match result {
            Ok((appended, checkpoint)) => {
                self.after_commit(checkpoint.as_ref())?;
                Ok(appended)
            }
            Err((error, touched)) => {
                if touched {
                    // State moved past what was committed; what stands in the file is read again.
                    self.reload()?;
                }
                Err(error)
            }
        }
    }

    #[expect(
        clippy::type_complexity,
        reason = "the flag says whether memory moved past the file"
    )]
    fn try_transaction(
        &mut self,
        blobs: &[Vec<u8>],
        plan: impl FnOnce(
            &Head,
            Reader<'_>,
            Timestamp,
        ) -> Result<(Vec<Slot>, Vec<Prepared>), LedgerError>,
    ) -> Result<(Vec<Appended>, Option<SignedCheckpoint>), (LedgerError, bool)> {
        let Self {
            store,
            ambient,
            head,
            log_key,
            next_log_key,
            ..
        } = self;
        let clean = |error: LedgerError| (error, false);
        let txn = store.begin().map_err(|error| clean(error.into()))?;
        open::catch_up(head, txn.reader()).map_err(clean)?;
        let recorded_at =
            recorded_at(ambient.now(), head.state.keyring.recorded_at).map_err(clean)?;
        for blob in blobs {
            txn.put_blob(blob).map_err(|error| clean(error.into()))?;
        }
        let (slots, prepared) = plan(head, txn.reader(), recorded_at).map_err(clean)?;
        if prepared.is_empty() {
            txn.commit().map_err(|error| clean(error.into()))?;
            return Ok((answers(slots, Vec::new()), None));
        }
        let before = head.size();
        let touched = |error: LedgerError| (error, true);
        let mut batch = Batch::default();
        admit(head, txn.reader(), recorded_at, prepared, &mut batch).map_err(touched)?;
        let checkpoint =
            sign_head(head, before, log_key.as_ref(), next_log_key.as_ref()).map_err(touched)?;
        write(&txn, head, recorded_at, &batch, &checkpoint).map_err(touched)?;
        txn.commit().map_err(|error| touched(error.into()))?;
        Ok((answers(slots, batch.appended), Some(checkpoint)))
    }

    fn after_commit(&mut self, checkpoint: Option<&SignedCheckpoint>) -> Result<(), LedgerError> {
        let Some(checkpoint) = checkpoint else {
            return Ok(());
        };
        let rotated = |next: &mut Signer| {
            self.head
                .state
                .keyring
                .log_key()
                .is_some_and(|key| key.key().public_key() == next.public_bytes())
        };
        if let Some(next) = self.next_log_key.take_if(rotated) {
            self.log_key = Some(next);
        }
        match &self.pin {
            Some(pin) if self.store.durability() == Durability::Full => {
                pin.advance(checkpoint).map_err(open::pin_error)
            }
            _ => Ok(()),
        }
    }
}

/// What one transaction adds.
#[derive(Default)]
struct Batch {
    admitted: Vec<Admitted>,
    appended: Vec<Appended>,
    rows: Vec<RowChange>,
    tiles: Vec<Tile>,
    needs_index: bool,
}

fn recorded_at(now: Timestamp, last: Option<Timestamp>) -> Result<Timestamp, LedgerError> {
    match last {
        Some(head) if now.plus_seconds(rules::CLOCK_TOLERANCE_SECONDS) < head => {
            Err(LedgerError::ClockBehind { now, head })
        }
        Some(head) => Ok(now.max(head)),
        None => Ok(now),
    }
}

fn answers(slots: Vec<Slot>, new: Vec<Appended>) -> Vec<Appended> {
    let mut new = new.into_iter();
    let mut out: Vec<Appended> = Vec::with_capacity(slots.len());
    for slot in slots {
        out.push(match slot {
            Slot::Known(appended) => appended,
            Slot::New => new.next().expect("BUG: every new slot was appended"),
            Slot::SameAs(earlier) => Appended {
                already: true,
                ..out[earlier]
            },
        });
    }
    out
}

/// Finds the commands whose natural key is recorded already, in the log or earlier in the batch.
fn known_commands(
    head: &Head,
    reader: Reader<'_>,
    commands: &[Command],
) -> Result<Vec<Slot>, LedgerError> {
    let keys: Vec<Option<Digest>> = commands
        .par_iter()
        .map(|command| command.payload.natural_key(command.experiment.as_ref()))
        .collect();
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
fn find<'d>(
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
            found.entry(*digest).or_insert(*seq);
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
fn number(
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

fn author_seq_conflict(index: usize, author_seq: u64, in_the_way: Option<u64>) -> LedgerError {
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
fn known_signed(
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
fn batch_keys(
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

fn verify_foreign(
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
    })
}

/// Judges prepared events in order and takes them into memory. On error `head` has moved and must be
/// reloaded.
fn admit(
    head: &mut Head,
    reader: Reader<'_>,
    recorded_at: Timestamp,
    prepared: Vec<Prepared>,
    batch: &mut Batch,
) -> Result<(), LedgerError> {
    let rulebook = head.state.rulebook();
    let first = head.size();
    let leaves: Vec<_> = (first..).zip(&prepared).collect::<Vec<_>>();
    let leaves: Vec<Digest> = leaves
        .into_par_iter()
        .map(|(seq, event)| {
            let mut line = Vec::new();
            let signed = &event.signed;
            entry::write_line(
                &mut line,
                seq,
                recorded_at,
                signed.body(),
                &signed.signer(),
                signed.signature(),
            );
            merkle::leaf_hash(&line)
        })
        .collect();
    let mut events = Vec::with_capacity(prepared.len());
    let mut wanted = Vec::new();
    for (
        seq,
        Prepared {
            index,
            signed,
            decoded,
            blobs,
        },
    ) in (first..).zip(prepared)
    {
        judge_header(
            head,
            reader,
            seq,
            recorded_at,
            index,
            &signed,
            &decoded,
            first,
        )?;
        let event = decoded
            .into_event()
            .expect("BUG: a payload that does not decode was refused");
        let candidate = Candidate {
            seq,
            recorded_at,
            event: &event,
        };
        let refuse = |breach: Breach| LedgerError::Refused {
            index,
            breach,
            in_the_way: None,
        };
        let mut breaches = Vec::new();
        rules::custody(&head.state, &candidate, &mut breaches);
        for rule in rulebook.rules {
            rule.judge(&head.state, &candidate, &mut breaches);
        }
        if let Some(breach) = first_breach(breaches) {
            return Err(refuse(breach));
        }
        for (digest, bytes) in &blobs {
            let found = reader.blob_len(digest)?;
            if found != Some(*bytes) {
                let found =
                    found.map_or("no such blob".to_owned(), |found| format!("{found} bytes"));
                return Err(refuse(Breach::new(
                    "blob",
                    format!("blob {digest} of {bytes} bytes"),
                    found,
                )));
            }
        }
        let verified = VerifiedEvent::new(candidate);
        head.state.rows(&verified, &mut batch.rows);
        head.state.apply(&verified);
        let mut facts = Vec::new();
        open::all_facts(rulebook, &candidate, &mut facts);
        batch.needs_index |= facts.iter().any(|fact| matches!(fact, Fact::Needs { .. }));
        wanted.push((index, seq, facts));
        events.push(Appended {
            seq,
            id: event.id,
            already: false,
        });
        batch.admitted.push(Admitted {
            seq,
            author_seq: event.header.author_seq,
            signed,
        });
    }
    judge_facts(head, reader, &wanted)?;
    for leaf in leaves {
        batch.tiles.extend(head.tiler.push(leaf));
    }
    batch.appended = events;
    Ok(())
}

fn first_breach(breaches: Vec<Breach>) -> Option<Breach> {
    let place = |breach: &Breach| rules::RULES.iter().position(|rule| *rule == breach.rule);
    breaches.into_iter().min_by_key(place)
}

#[expect(
    clippy::too_many_arguments,
    reason = "one entry and where it would stand"
)]
fn judge_header(
    head: &Head,
    reader: Reader<'_>,
    seq: u64,
    recorded_at: Timestamp,
    index: usize,
    signed: &Signed<Verified>,
    decoded: &Decoded,
    batch_size: u64,
) -> Result<(), LedgerError> {
    let mut breaches = Vec::new();
    let claim = Claim {
        seq,
        recorded_at,
        keyid: signed.signer(),
        decoded,
    };
    rules::header(&head.state, &claim, &mut breaches);
    if let Some(seen) = decoded.header.seen {
        let size = seen.size.value();
        let own = size == batch_size && seen.root.0 == head.root();
        if !own && breaches.iter().all(|breach| breach.rule != "seen") {
            judge_seen(reader, seen, &mut breaches)?;
        }
        if size > 0 && size <= batch_size {
            let entry = if size == batch_size && !own {
                None
            } else {
                reader.entry(size - 1)?
            };
            if let Some(entry) = entry {
                breaches.extend(rules::not_backdated(decoded.header.at, entry.recorded_at));
            }
        }
    }
    match first_breach(breaches) {
        None => Ok(()),
        Some(breach) => {
            let in_the_way = None;
            Err(LedgerError::Refused {
                index,
                breach,
                in_the_way,
            })
        }
    }
}

/// Judges the root in `seen` against the kept checkpoint of that size.
fn judge_seen(
    reader: Reader<'_>,
    seen: Seen,
    breaches: &mut Vec<Breach>,
) -> Result<(), LedgerError> {
    let size = seen.size.value();
    let found = format!("size {size}, root {}", seen.root.0.to_base64());
    match reader.checkpoint(size)? {
        None => breaches.push(Breach::new(
            "seen",
            format!("a kept checkpoint of size {size}"),
            found,
        )),
        Some(stored) => {
            let root = open::parse_checkpoint(&stored)?.checkpoint().root;
            if root != seen.root.0 {
                breaches.push(Breach::new(
                    "seen",
                    format!("root {} at size {size}", root.to_base64()),
                    found,
                ));
            }
        }
    }
    Ok(())
}

/// Judges what is exact only over the whole history: references, natural keys, seals, charges.
fn judge_facts(
    head: &mut Head,
    reader: Reader<'_>,
    wanted: &[(usize, u64, Vec<Fact>)],
) -> Result<(), LedgerError> {
    let asked = wanted
        .iter()
        .flat_map(|(_, _, facts)| facts)
        .filter_map(|fact| match fact {
            Fact::Gives {
                digest,
                once: Some(_),
            }
            | Fact::Needs { digest, .. } => Some(digest),
            Fact::Gives { .. } => None,
        });
    let found = find(head, reader, asked)?;
    for (index, seq, facts) in wanted {
        for fact in facts {
            judge_fact(&found, &head.tail, *seq, fact).map_err(|(breach, in_the_way)| {
                LedgerError::Refused {
                    index: *index,
                    breach,
                    in_the_way,
                }
            })?;
        }
        open::remember(&mut head.tail, *seq, facts);
        head.known = seq + 1;
    }
    Ok(())
}

fn judge_fact(
    found: &BTreeMap<Digest, u64>,
    tail: &BTreeMap<Digest, u64>,
    seq: u64,
    fact: &Fact,
) -> Result<(), (Breach, Option<u64>)> {
    let giver = |digest: &Digest| found.get(digest).or_else(|| tail.get(digest)).copied();
    match fact {
        Fact::Gives {
            digest,
            once: Some(rule),
        } => match giver(digest) {
            Some(earlier) if earlier < seq => Err((
                Breach::new(
                    rule,
                    "one event per natural key",
                    format!("seq {earlier} has it"),
                ),
                Some(earlier),
            )),
            _ => Ok(()),
        },
        Fact::Gives { once: None, .. } => Ok(()),
        Fact::Needs {
            digest,
            before,
            rule,
        } => match giver(digest) {
            Some(earlier) if earlier < *before => Ok(()),
            other => Err((need_breach(rule, digest, *before, other), other)),
        },
    }
}

/// The wording of an unmet need, the same at append and in `verify`.
pub(super) fn need_breach(
    rule: &'static str,
    digest: &Digest,
    before: u64,
    giver: Option<u64>,
) -> Breach {
    let expected = match rule {
        "refs" => format!("event {digest} at a seq below {before}"),
        "seal" => {
            format!(
                "an earlier label.sealed of that row with commitment or envelope to match ({digest})"
            )
        }
        "charge" => {
            format!("a budget.charged at a seq below {before}, under the checkpoint that was seen")
        }
        "seen" => format!("this tree's root at that size ({digest})"),
        _ => format!("{digest} at a seq below {before}"),
    };
    let found = giver.map_or("none".to_owned(), |seq| format!("it at seq {seq}"));
    Breach::new(rule, expected, found)
}

fn sign_head(
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
fn write(
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
