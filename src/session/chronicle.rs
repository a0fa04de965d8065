//! What the log says in a range, for reports: entries that each say something, and kinds that come by thousands, counted.

use std::collections::BTreeMap;

use clover_event::Event;
use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_ground::digest::Digest;
use clover_ground::merkle;
use clover_ground::sign::KeyId;
use clover_ground::time::Timestamp;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_ledger::State;
use clover_ledger::read::LogEntry;
use clover_ledger::write_stored;

/// Kinds that come by thousands: a report counts them, and a trail sets neighbours of one kind on one line.
pub const BULK: &[Kind] = &[
    Kind::CallRecorded,
    Kind::EvidenceRecorded,
    Kind::GateObserved,
    Kind::LabelRecorded,
    Kind::LabelRevealed,
    Kind::LabelSealed,
    Kind::LogprobRecorded,
    Kind::OrderListed,
    Kind::ScoreMissed,
    Kind::ScoreRecorded,
    Kind::ScoreReplayed,
    Kind::SealAccepted,
    Kind::SplitsListed,
    Kind::UnitsListed,
];

/// Which entries are read.
#[derive(Clone, Copy, Debug)]
pub struct ChronicleScope<'a> {
    /// Those of one experiment, and of the ledger as a whole.
    pub experiment: Option<&'a ExperimentId>,
    /// The first entry.
    pub from_seq: u64,
    /// The last entry.
    pub through_seq: u64,
}

/// An entry that says something by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ChronicleEntry {
    /// What was said.
    pub event: Event,
    /// The hash of its leaf.
    pub leaf: Digest,
    /// When the ledger took it.
    pub recorded_at: Timestamp,
    /// Its position.
    pub seq: u64,
}

/// How often a kind stands in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindTally {
    /// How many.
    pub count: u64,
    /// The first.
    pub first_seq: u64,
    /// The last.
    pub last_seq: u64,
}

/// What times of entries say of when they were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockTally {
    /// Entries whose signed time and time of record lie more than a day apart.
    pub apart: u64,
    /// The first of them.
    pub first_apart: Option<u64>,
    /// Entries that were recorded before the entry at their left, by the times on record.
    pub back: u64,
    /// The first of them.
    pub first_back: Option<u64>,
    /// Entries that were read.
    pub entries: u64,
    /// The widest distance of signed time and time of record, in microseconds, with its entry.
    pub widest: Option<(i64, u64)>,
}

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

impl ClockTally {
    /// Adds an entry: its position, when it was signed, when it was recorded, and when the one before it was.
    fn take(&mut self, seq: u64, (signed, recorded): (Timestamp, Timestamp), before: Timestamp) {
        self.entries += 1;
        let distance = signed.micros().abs_diff(recorded.micros());
        let distance = i64::try_from(distance).unwrap_or(i64::MAX);
        if self.widest.is_none_or(|(widest, _)| distance > widest) {
            self.widest = Some((distance, seq));
        }
        if distance > DAY {
            self.apart += 1;
            self.first_apart.get_or_insert(seq);
        }
        if recorded < before {
            self.back += 1;
            self.first_back.get_or_insert(seq);
        }
    }
}

/// What the log says in a range.
#[derive(Clone, Debug, PartialEq)]
pub struct Chronicle {
    /// How often each key signed each kind in it.
    pub authors: BTreeMap<(KeyId, Kind), KindTally>,
    /// Charges that entries of the range name as what paid for them, each with the first entry that does.
    pub charged: BTreeMap<EventId, u64>,
    /// What its times say of when its entries were made.
    pub clock: ClockTally,
    /// Entries that say something by themselves, in order.
    pub entries: Vec<ChronicleEntry>,
    /// When the ledger took the first and the last entry of the range.
    pub period: Option<(Timestamp, Timestamp)>,
    /// The first entry of the range.
    pub from_seq: u64,
    /// How often each kind stands in it.
    pub tallies: BTreeMap<Kind, KindTally>,
    /// The last entry of the range.
    pub through_seq: u64,
}

/// The hash of the leaf of an entry.
pub fn leaf(read: &LogEntry) -> Digest {
    let mut line = Vec::new();
    write_stored(&mut line, &read.stored.as_ref());
    merkle::leaf_hash(&line)
}

/// Gives every entry from one through another, in order.
///
/// # Errors
/// [`LedgerError`].
pub fn each(
    ledger: &Ledger,
    (from, through): (u64, u64),
    mut take: impl FnMut(LogEntry),
) -> Result<(), LedgerError> {
    ledger.entries::<LedgerError>(from, through.saturating_add(1), |read| {
        take(read);
        Ok(())
    })
}

impl Chronicle {
    /// Reads a range once.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn read(ledger: &Ledger, scope: ChronicleScope<'_>) -> Result<Self, LedgerError> {
        let mut found = Self {
            authors: BTreeMap::new(),
            charged: BTreeMap::new(),
            clock: ClockTally::default(),
            entries: Vec::new(),
            period: None,
            from_seq: scope.from_seq,
            tallies: BTreeMap::new(),
            through_seq: scope.through_seq,
        };
        each(ledger, (scope.from_seq, scope.through_seq), |read| {
            let of = read.event.experiment();
            let at = read.stored.recorded_at;
            let (first, before) = found.period.unwrap_or((at, at));
            found.period = Some((first, at));
            let times = (read.event.header.at, at);
            found.clock.take(read.stored.seq, times, before);
            if of.is_none() || scope.experiment.is_none() || of == scope.experiment {
                found.take(read);
            }
        })?;
        Ok(found)
    }

    fn take(&mut self, read: LogEntry) {
        let (seq, kind) = (read.stored.seq, read.event.kind());
        let first = KindTally {
            count: 0,
            first_seq: seq,
            last_seq: seq,
        };
        let by = (read.event.header.author, kind);
        for tally in [
            self.tallies.entry(kind).or_insert(first),
            self.authors.entry(by).or_insert(first),
        ] {
            tally.count += 1;
            tally.last_seq = seq;
        }
        if let Some(charge) = paid_by(&read.event.payload) {
            self.charged.entry(charge).or_insert(seq);
        }
        if !BULK.contains(&kind) {
            self.entries.push(ChronicleEntry {
                leaf: leaf(&read),
                recorded_at: read.stored.recorded_at,
                seq,
                event: read.event,
            });
        }
    }

    /// How often a kind stands in the range.
    pub fn count(&self, kind: Kind) -> u64 {
        self.tallies.get(&kind).map_or(0, |tally| tally.count)
    }

    /// Entries of one kind.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &ChronicleEntry> {
        let entries = self.entries.iter();
        entries.filter(move |entry| entry.event.kind() == kind)
    }

    /// The entry of an event.
    pub fn by_id(&self, id: EventId) -> Option<&ChronicleEntry> {
        self.entries.iter().find(|entry| entry.event.id == id)
    }
}

/// The charge that an entry names.
fn paid_by(payload: &Payload) -> Option<EventId> {
    match payload {
        Payload::LabelRevealed(said) => Some(said.charge),
        Payload::ConfirmUnsealed(said) => Some(said.charge),
        Payload::TransportTested(said) => said.charge,
        _ => None,
    }
}

/// The holder of a key.
pub fn holder(state: &State, key: &KeyId) -> String {
    let record = state.keyring.keys.get(key);
    record.map_or_else(|| "unknown".to_owned(), |of| of.holder.to_string())
}
