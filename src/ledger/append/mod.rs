//! Append: inside one `BEGIN IMMEDIATE`, catch up, decide, number, sign, judge, insert, sign the checkpoint, commit.
//!
//! A batch is one transaction and one checkpoint; every event in it is signed by itself. It lands whole or
//! not at all. Retries are safe in two layers: a signed body is known by (author, `author_seq`) and compared
//! byte for byte; an unsigned command is known by its natural key and compared by its data.

mod admit;
mod plan;
mod unmet;
mod wording;
mod write;

pub use unmet::UnmetDemand;

pub(super) use plan::find;
pub(super) use wording::agree_breach;
pub(super) use wording::forbid_breach;
pub(super) use wording::need_breach;
pub(super) use wording::read_breach;
pub(super) use wording::says_breach;
pub(super) use write::TAIL_MAX;
pub(super) use write::index;
pub(super) use write::write_snapshots;

use std::borrow::Cow;

use clover_event::Event;
use clover_event::PAYLOAD_TYPE;
use clover_event::Payload;
use clover_event::header;
use clover_event::header::DecodedBody;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_ground::digest::Digest;
use clover_ground::merkle::Tile;
use clover_ground::note::SignedCheckpoint;
use clover_ground::sign::Signed;
use clover_ground::sign::Signer;
use clover_ground::sign::Unverified;
use clover_ground::sign::Verified;
use clover_ground::time::Timestamp;
use clover_store::Durability;
use clover_store::Reader;
use rayon::prelude::*;

use crate::catch_up;
use crate::claim;
use crate::claim::Body;
use crate::error::LedgerError;
use crate::fold::RuleComputation;
use crate::kinds::KindRuns;
use crate::open::Head;
use crate::open::Ledger;
use crate::pin::PinError;
use crate::read::RecordedValues;
use crate::rules;

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

/// Blobs that the canonical body of an event names, as (BLAKE3, length).
pub fn named_blobs(body: &[u8]) -> Vec<(Digest, u64)> {
    claim::blobs(body)
}

/// An event signed elsewhere.
pub type SignedEvent = Signed<Unverified>;

/// Where an event stands now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendedEvent {
    /// Its position.
    pub seq: u64,
    /// Its id.
    pub id: EventId,
    /// It was there before: this call added nothing for it.
    pub already: bool,
}

/// Items from which on work is spread over all cores.
pub(super) const SPREAD_MIN: usize = 32;
/// Events of a batch that are prepared, judged and inserted together.
const PART_LEN: usize = 1_024;

/// A signed event with everything derived from its bytes alone.
pub(super) struct PreparedEvent {
    index: usize,
    signed: Signed<Verified>,
    said: Body,
    natural_key: Option<Digest>,
    blobs: Vec<(Digest, u64)>,
    /// Made by this call, which has found its natural key to be new.
    is_own: bool,
}

impl PreparedEvent {
    pub(super) fn from_signed(
        index: usize,
        signed: Signed<Verified>,
    ) -> Result<Box<Self>, LedgerError> {
        let decoded =
            header::decode(signed.body()).map_err(|source| LedgerError::Body { index, source })?;
        Ok(Self::foreign(index, signed, decoded))
    }

    /// Of an event that was made elsewhere.
    fn foreign(index: usize, signed: Signed<Verified>, decoded: DecodedBody) -> Box<Self> {
        let experiment = decoded.header.experiment.as_ref();
        let payload = decoded.payload.as_ref().ok();
        Box::new(Self {
            index,
            natural_key: payload.and_then(|payload| payload.natural_key(experiment)),
            blobs: claim::blobs(signed.body()),
            signed,
            said: decoded.into(),
            is_own: false,
        })
    }
}

/// Applies `f` to every item, on all cores where there are enough to be worth waking another for.
fn spread<T: Send, U: Send, C>(items: Vec<T>, f: impl Fn(T) -> U + Send + Sync) -> C
where
    C: FromIterator<U> + FromParallelIterator<U>,
{
    if items.len() < SPREAD_MIN {
        items.into_iter().map(f).collect()
    } else {
        items.into_par_iter().map(f).collect()
    }
}

/// Events of a batch, a part at a time. It knows how many parts are left.
type BatchParts<'p> = Box<dyn ExactSizeIterator<Item = Result<BatchPart, LedgerError>> + Send + 'p>;
type BatchPart = Vec<Box<PreparedEvent>>;

/// Takes the parts in order. While one is taken the next is prepared on another thread: signing keeps the other cores busy
/// where rules and rows need one alone.
fn each_ahead(
    parts: BatchParts<'_>,
    mut take: impl FnMut(BatchPart) -> Result<(), LedgerError>,
) -> Result<(), LedgerError> {
    std::thread::scope(|scope| {
        let mut parts = parts;
        let mut next = parts.next();
        while let Some(part) = next {
            if parts.len() == 0 {
                return take(part?);
            }
            let ahead = scope.spawn(move || {
                let next = parts.next();
                (parts, next)
            });
            take(part?)?;
            (parts, next) = match ahead.join() {
                Ok(ahead) => ahead,
                Err(panic) => std::panic::resume_unwind(panic),
            };
        }
        Ok(())
    })
}

/// Prepares items part by part, when each part is asked for: of a large batch, no more than the processor's
/// caches hold.
fn in_parts<'p, T: Send + 'p>(
    mut items: impl ExactSizeIterator<Item = T> + Send + 'p,
    prepare: impl Fn(T) -> Result<Box<PreparedEvent>, LedgerError> + Send + Sync + 'p,
) -> BatchParts<'p> {
    let parts = 0..items.len().div_ceil(PART_LEN);
    Box::new(parts.map(move |_| {
        let part: Vec<T> = items.by_ref().take(PART_LEN).collect();
        spread(part, &prepare)
    }))
}

/// What one transaction came to; the flag of an error says whether memory moved past the file.
type TransactionResult =
    Result<(Vec<AppendedEvent>, Option<SignedCheckpoint>), (LedgerError, bool)>;

/// What an answer to a submission still waits for.
enum Slot {
    Known(AppendedEvent),
    New,
    /// The same as the submission of this index in the same batch.
    SameAs(usize),
}

impl Ledger {
    /// Signs and appends commands as one batch. Commands whose natural key is recorded with the same data
    /// answer with the recorded entry. Commands that are given away need not be copied.
    ///
    /// # Errors
    /// [`LedgerError`]; then nothing was appended.
    pub fn append<'c>(
        &mut self,
        commands: impl Into<Cow<'c, [Command]>>,
        signer: &Signer,
    ) -> Result<Vec<AppendedEvent>, LedgerError> {
        self.append_all(commands.into(), signer, &[], RecordedValues::default())
    }

    /// As [`Ledger::append`], of commands made of values that were read already. Rules hold the commands against them as
    /// against any recorded value.
    ///
    /// # Errors
    /// [`LedgerError`]; then nothing was appended.
    pub fn append_read<'c>(
        &mut self,
        commands: impl Into<Cow<'c, [Command]>>,
        signer: &Signer,
        values: RecordedValues,
    ) -> Result<Vec<AppendedEvent>, LedgerError> {
        let values = values.of(self.store.path());
        self.append_all(commands.into(), signer, &[], values)
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
    ) -> Result<Vec<AppendedEvent>, LedgerError> {
        self.append_all(commands.into(), signer, blobs, RecordedValues::default())
    }

    fn append_all(
        &mut self,
        commands: Cow<'_, [Command]>,
        signer: &Signer,
        blobs: &[Vec<u8>],
        values: RecordedValues,
    ) -> Result<Vec<AppendedEvent>, LedgerError> {
        self.in_transaction(blobs, values, |head, reader, recorded_at| {
            let (slots, keys) = plan::known_commands(head, reader, &commands)?;
            let numbering = plan::Numbering::new(head, signer, recorded_at);
            let numbered = plan::NumberedCommands::new(numbering.first, &slots, commands);
            let prepare = move |(author_seq, index, command): (u64, usize, Command)| {
                let draft = numbering.draft(author_seq, command);
                let body = draft
                    .to_body()
                    .map_err(|source| LedgerError::Body { index, source })?;
                Ok(Box::new(PreparedEvent {
                    index,
                    said: Body::Event(Event {
                        id: EventId(Digest::sha256(&body)),
                        header: draft.header,
                        v: draft.payload.kind().version(),
                        payload: draft.payload,
                    }),
                    natural_key: keys[index],
                    blobs: claim::blobs(&body),
                    signed: Signed::sign(PAYLOAD_TYPE, body, signer),
                    is_own: true,
                }))
            };
            Ok((slots, in_parts(numbered, prepare)))
        })
    }

    /// Appends events signed elsewhere, as one batch. Events that are recorded byte for byte answer with
    /// their entry.
    ///
    /// # Errors
    /// [`LedgerError`]; then nothing was appended.
    pub fn submit(&mut self, events: Vec<SignedEvent>) -> Result<Vec<AppendedEvent>, LedgerError> {
        self.submit_with_blobs(events, &[])
    }

    /// As [`Ledger::submit`], storing `blobs` in the same transaction.
    ///
    /// # Errors
    /// [`LedgerError`]; then nothing was appended and no blob was stored.
    pub fn submit_with_blobs(
        &mut self,
        events: Vec<SignedEvent>,
        blobs: &[Vec<u8>],
    ) -> Result<Vec<AppendedEvent>, LedgerError> {
        self.in_transaction(blobs, RecordedValues::default(), |head, reader, _| {
            plan::signed(head, reader, events)
        })
    }

    /// Takes in a batch as the log that this copy follows took it in: judged by every rule as at its append, at its time, and
    /// under its checkpoint, which must cover it. No log key is needed.
    ///
    /// # Errors
    /// [`LedgerError`]; then nothing was taken in.
    pub fn follow(
        &mut self,
        events: Vec<SignedEvent>,
        blobs: &[Vec<u8>],
        taken: (Timestamp, &SignedCheckpoint),
    ) -> Result<(), LedgerError> {
        let plan = |head: &Head, reader: Reader<'_>, _| plan::signed(head, reader, events);
        let (before, values) = (self.size(), RecordedValues::default());
        let result = self.try_transaction(blobs, values, plan, Some(taken));
        self.after_transaction((before, result)).map(drop)
    }

    pub(super) fn append_genesis(
        &mut self,
        genesis: Box<PreparedEvent>,
    ) -> Result<(), LedgerError> {
        self.in_transaction(&[], RecordedValues::default(), |_, _, _| {
            let part: BatchParts<'_> = Box::new(std::iter::once(Ok(vec![genesis])));
            Ok((vec![Slot::New], part))
        })
        .map(drop)
    }

    /// Stores blobs alone, for events that will name them.
    ///
    /// # Errors
    /// [`LedgerError`]; then no blob was stored.
    pub fn put_blobs(&mut self, blobs: &[Vec<u8>]) -> Result<(), LedgerError> {
        self.in_transaction(blobs, RecordedValues::default(), |_, _, _| {
            Ok((Vec::new(), Box::new(std::iter::empty())))
        })
        .map(drop)
    }

    /// Lets the index take in what large batches left in memory, so that the next to open need not read it
    /// again. Worth calling after the last of them.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn settle(&mut self) -> Result<(), LedgerError> {
        if self.head.tail.len() == 0 {
            return Ok(());
        }
        let txn = self.store.begin()?;
        catch_up::catch_up(&mut self.head, txn.reader())?;
        let settled = index(&txn, &mut self.head).and_then(|()| Ok(txn.commit()?));
        if settled.is_err() {
            self.reload()?;
        }
        settled
    }

    /// Lets the next appends be recorded more than [`rules::CLOCK_AHEAD_SECONDS`] after the newest entry: the ledger
    /// rested, and the clock is right.
    pub fn allow_clock_ahead(&mut self) {
        self.clock_ahead = true;
    }

    /// Gives the key that the log rotates to; needed to append `log_key.rotated`.
    pub fn set_next_log_key(&mut self, signer: Signer) {
        self.next_log_key = Some(signer);
    }

    /// Runs one append: `plan` decides what is new, everything else is the same for all.
    fn in_transaction<'p>(
        &mut self,
        blobs: &[Vec<u8>],
        values: RecordedValues,
        plan: impl FnOnce(
            &Head,
            Reader<'_>,
            Timestamp,
        ) -> Result<(Vec<Slot>, BatchParts<'p>), LedgerError>,
    ) -> Result<Vec<AppendedEvent>, LedgerError> {
        if self.log_key.is_none() {
            return Err(LedgerError::LogKey(
                "is missing: this ledger was opened to be read".to_owned(),
            ));
        }
        let tried = (self.size(), self.try_transaction(blobs, values, plan, None));
        self.after_transaction(tried)
    }

    fn after_transaction(
        &mut self,
        (before, result): (u64, TransactionResult),
    ) -> Result<Vec<AppendedEvent>, LedgerError> {
        match result {
            Ok((appended, checkpoint)) => {
                self.after_commit(checkpoint.as_ref());
                self.keep_state(before);
                Ok(appended)
            }
            Err((error, touched)) => {
                if touched {
                    // State moved past what was committed; what stands in the file is read again.
                    self.computing = RuleComputation::default();
                    self.reload()?;
                }
                Err(error)
            }
        }
    }

    fn try_transaction<'p>(
        &mut self,
        blobs: &[Vec<u8>],
        values: RecordedValues,
        plan: impl FnOnce(
            &Head,
            Reader<'_>,
            Timestamp,
        ) -> Result<(Vec<Slot>, BatchParts<'p>), LedgerError>,
        taken: Option<(Timestamp, &SignedCheckpoint)>,
    ) -> TransactionResult {
        let Self {
            store,
            ambient,
            head,
            log_key,
            next_log_key,
            computing,
            clock_ahead,
            ..
        } = self;
        let clean = |error: LedgerError| (error, false);
        let txn = store.begin().map_err(|error| clean(error.into()))?;
        no_stray(txn.reader()).map_err(clean)?;
        catch_up::catch_up(head, txn.reader()).map_err(clean)?;
        newest_format(head).map_err(clean)?;
        let last = head.state.keyring.recorded_at;
        let recorded_at = match taken {
            Some((recorded_at, _)) => recorded_at,
            None => recorded_at(ambient.now(), last, *clock_ahead).map_err(clean)?,
        };
        for blob in blobs {
            txn.put_blob(blob).map_err(|error| clean(error.into()))?;
        }
        let (slots, parts) = plan(head, txn.reader(), recorded_at).map_err(clean)?;
        if !slots.iter().any(|slot| matches!(slot, Slot::New)) {
            txn.commit().map_err(|error| clean(error.into()))?;
            return Ok((plan::answers(slots, Vec::new()), None));
        }
        let touched = |error: LedgerError| (error, true);
        let mut batch = Batch::new(head, recorded_at, values);
        let rows = txn
            .rows(slots.len())
            .map_err(|error| touched(error.into()))?;
        let take = |part: BatchPart| {
            let first = head.size();
            admit::admit(head, txn.reader(), &part, &mut batch, computing)?;
            write::write_part(&rows, head, &mut batch, first, &part)
        };
        each_ahead(parts, take).map_err(touched)?;
        if taken.is_none() {
            admit::is_finished(head, &batch, &slots).map_err(touched)?;
        }
        rows.end().map_err(|error| touched(error.into()))?;
        head.tail.add(std::mem::take(&mut batch.given));
        let size = batch.before.size;
        let checkpoint = match taken {
            Some((_, signed)) => write::covers(head, size, signed),
            None => write::sign_head(head, size, log_key.as_ref(), next_log_key.as_ref()),
        };
        let checkpoint = checkpoint.map_err(touched)?;
        write::write_head(&txn, head, &mut batch, &checkpoint).map_err(touched)?;
        txn.commit().map_err(|error| touched(error.into()))?;
        Ok((plan::answers(slots, batch.appended), Some(checkpoint)))
    }

    fn after_commit(&mut self, checkpoint: Option<&SignedCheckpoint>) {
        let Some(checkpoint) = checkpoint else {
            return;
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
        self.keep_mark();
        // The append stands whatever becomes of the pin, which may lag behind the log.
        self.pin_failure = match &self.pin {
            Some(pin) if self.store.durability() == Durability::Full => {
                let origin = &self.head.state.keyring.origin;
                let place = self.place.as_ref().map(|place| place.keep(origin));
                let place = place.and_then(Result::err).map(PinError::from);
                pin.advance(checkpoint).err().or(place)
            }
            _ => None,
        };
    }

    /// Why the pin did not follow the last append, when it did not.
    pub fn pin_failure(&self) -> Option<&PinError> {
        self.pin_failure.as_ref()
    }
}

/// The ledger as it was before a batch.
struct BatchStart {
    size: u64,
    root: Digest,
    recorded_at: Option<Timestamp>,
}

/// What one transaction adds.
struct Batch {
    before: BatchStart,
    recorded_at: Timestamp,
    appended: Vec<AppendedEvent>,
    tiles: Vec<Tile>,
    /// Digests that the tail does not hold yet.
    given: Vec<(Digest, u64)>,
    kinds: KindRuns,
    /// Values that were read for it.
    values: RecordedValues,
}

impl Batch {
    fn new(head: &Head, recorded_at: Timestamp, values: RecordedValues) -> Self {
        Self {
            before: BatchStart {
                size: head.size(),
                root: head.root(),
                recorded_at: head.state.keyring.recorded_at,
            },
            recorded_at,
            appended: Vec::new(),
            tiles: Vec::new(),
            given: Vec::new(),
            kinds: KindRuns::default(),
            values,
        }
    }
}

/// An older format is read for ever and never added to: its rules asked less. Whatever is added would be taken for more.
fn newest_format(head: &Head) -> Result<(), LedgerError> {
    let (found, writes) = (head.state.keyring.format, rules::FORMAT);
    if head.size() == 0 || found >= writes {
        return Ok(());
    }
    Err(LedgerError::OldFormat { found, writes })
}

/// Nothing is appended beside a row that no log can have: it may hold the number that the next entry needs.
fn no_stray(reader: Reader<'_>) -> Result<(), LedgerError> {
    let stray = reader.stray()?;
    stray.map_or(Ok(()), |(_, expected, found)| {
        let found = format!("expected {expected}, found {found}; a backup without it can be used");
        Err(LedgerError::Integrity { seq: 0, found })
    })
}

/// `far` lets the clock stand far ahead of the newest entry: the ledger rested.
fn recorded_at(
    now: Timestamp,
    last: Option<Timestamp>,
    far: bool,
) -> Result<Timestamp, LedgerError> {
    match last {
        Some(head) if !far && now > head.plus_seconds(rules::CLOCK_AHEAD_SECONDS) => {
            Err(LedgerError::ClockAhead { now, head })
        }
        Some(head) if now.plus_seconds(rules::CLOCK_TOLERANCE_SECONDS) < head => {
            Err(LedgerError::ClockBehind { now, head })
        }
        Some(head) => Ok(now.max(head)),
        None => Ok(now),
    }
}
