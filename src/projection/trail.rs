//! Who signed what, which outcomes somebody saw and what for, and whether each plan was in force before: what an auditor
//! asks of a log first.

use std::collections::BTreeMap;

use clover_event::Event;
use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::record::ReadOutcome;
use clover_ground::sign::KeyId;

use crate::drifts;
use crate::manifests::ManifestRecord;
use crate::manifests::ManifestVersion;
use crate::manifests::Manifests;
use crate::reader::Model;

/// Events of one kind by one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signatures {
    /// How many.
    pub events: u64,
    /// The first.
    pub first_seq: u64,
    /// The last.
    pub last_seq: u64,
}

impl Signatures {
    fn add(&mut self, seq: u64) {
        self.events += 1;
        self.last_seq = seq;
    }

    fn first(seq: u64) -> Self {
        Self {
            events: 1,
            first_seq: seq,
            last_seq: seq,
        }
    }
}

/// Who signed what: one entry for each key and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signers {
    /// By key, then by kind.
    pub by_key: BTreeMap<(KeyId, Kind), Signatures>,
    /// The first row or label of each experiment.
    pub first_rows: BTreeMap<ExperimentId, u64>,
    /// Erasures of subjects.
    pub erasures: u64,
}

/// Kinds that put a row or a label on record.
const ROWS: [Kind; 4] = [
    Kind::DataIngested,
    Kind::LabelRecorded,
    Kind::LabelSealed,
    Kind::ScoreRecorded,
];

impl Model for Signers {
    fn take(&mut self, seq: u64, event: &Event) {
        let kind = event.kind();
        if let Some(id) = event.experiment().filter(|_| ROWS.contains(&kind)) {
            self.first_rows.entry(id.clone()).or_insert(seq);
        }
        self.erasures += u64::from(kind == Kind::SubjectErased);
        let place = (event.header.author, kind);
        self.by_key
            .entry(place)
            .and_modify(|of| of.add(seq))
            .or_insert_with(|| Signatures::first(seq));
    }
}

/// Outcomes that somebody could see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek {
    /// The events that show them: neighbours of one kind, key and charge count as one peek.
    pub seen: Signatures,
    /// Their kind.
    pub kind: Kind,
    /// Whose outcomes: an iteration, a gate, a design, a class of data.
    pub of: String,
    /// Who signed it.
    pub by: KeyId,
    /// Who was given them, where that is another key.
    pub reader: Option<KeyId>,
    /// What for, in the words of whoever signed it or paid.
    pub purpose: Option<String>,
    /// The account that paid.
    pub account: Option<String>,
    /// The charge to it.
    pub charge: Option<EventId>,
    /// Whether they were given; a refused read is on record too.
    pub given: bool,
}

/// Every peek, in order.
#[derive(Clone, Debug)]
pub struct Peeks<'a> {
    /// The peeks.
    pub all: Vec<Peek>,
    manifests: &'a Manifests,
    /// Account and purpose of each charge.
    charges: BTreeMap<EventId, (String, String)>,
}

impl<'a> Peeks<'a> {
    /// None yet; manifests name what is exposed.
    pub fn new(manifests: &'a Manifests) -> Self {
        Self {
            all: Vec::new(),
            manifests,
            charges: BTreeMap::new(),
        }
    }

    fn add(&mut self, peek: Peek) {
        if let Some(last) = self.all.last_mut() {
            let same = last.kind == peek.kind
                && (&last.of, last.by, last.reader, last.given)
                    == (&peek.of, peek.by, peek.reader, peek.given)
                && (&last.purpose, last.charge) == (&peek.purpose, peek.charge);
            if same {
                return last.seen.add(peek.seen.last_seq);
            }
        }
        self.all.push(peek);
    }

    fn paid(&self, charge: EventId) -> (Option<String>, Option<String>) {
        match self.charges.get(&charge) {
            Some((account, purpose)) => (Some(account.clone()), Some(purpose.clone())),
            None => (None, None),
        }
    }
}

impl Model for Peeks<'_> {
    fn take(&mut self, seq: u64, event: &Event) {
        let mut peek = Peek {
            seen: Signatures::first(seq),
            kind: event.kind(),
            of: String::new(),
            by: event.header.author,
            reader: None,
            purpose: None,
            account: None,
            charge: None,
            given: true,
        };
        match &event.payload {
            Payload::BudgetCharged(said) => {
                let paid = (said.account.to_string(), said.purpose.as_str().to_owned());
                self.charges.insert(event.id, paid);
                return;
            }
            Payload::DataRead(said) => {
                peek.of = said.class.to_string();
                peek.reader = Some(said.reader);
                peek.purpose = Some(said.purpose.as_str().to_owned());
                peek.given = said.outcome == ReadOutcome::Allowed;
            }
            Payload::LabelRevealed(said) => {
                peek.of = said.design.to_string();
                (peek.account, peek.purpose) = self.paid(said.charge);
                peek.charge = Some(said.charge);
            }
            Payload::ConfirmUnsealed(said) => {
                peek.of = said.iteration.to_string();
                (peek.account, peek.purpose) = self.paid(said.charge);
                peek.charge = Some(said.charge);
            }
            Payload::ConfirmLooked(said) => peek.of = said.iteration.to_string(),
            Payload::DevObjectiveQueried(said) => {
                peek.of = said.iteration.to_string();
                peek.reader = Some(said.requester);
            }
            Payload::ExposureOpened(said) => {
                let manifest = self.manifests.of_digest(said.digest);
                peek.of = manifest.map_or_else(|| said.digest.to_hex(), |(id, _)| id.to_string());
            }
            Payload::GateLooked(said) => peek.of = said.gate.to_string(),
            _ => return,
        }
        self.add(peek);
    }
}

/// Whether a plan was in force when an outcome could first be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// It was in force before.
    Before,
    /// An outcome could be seen while no version of it was in force.
    After,
    /// Nothing could be seen yet.
    Unseen,
}

impl Timing {
    /// Of one manifest.
    pub fn of(manifests: &Manifests, record: &ManifestRecord) -> Self {
        let Some(first) = first_seen_seq(manifests, record) else {
            return Self::Unseen;
        };
        let mut since = record.versions.iter().filter_map(ManifestVersion::since);
        if since.any(|seq| seq < first) {
            Self::Before
        } else {
            Self::After
        }
    }
}

/// The first entry by which an outcome could be seen: of a plan of audits, an open probe that it came after too; of one that
/// says how policies are compared, or how overlap is judged, the first score or label; of one of drift, the first anchor set.
pub fn first_seen_seq(manifests: &Manifests, record: &ManifestRecord) -> Option<u64> {
    let look = record.first_look.as_ref().map(|look| look.seq);
    let has = |of: fn(&Manifest) -> bool| record.versions.iter().any(|one| of(&one.manifest));
    let compares = |of: &Manifest| of.estimates.is_some() || drifts::overlap_plan(of).is_some();
    let checks = |of: &Manifest| drifts::drift_plan(of).is_some();
    let first = |of: &BTreeMap<ExperimentId, u64>| of.get(record.experiment.as_ref()?).copied();
    let outcome = first(&manifests.first_outcome).filter(|_| has(compares));
    let anchors = first(&manifests.first_anchors).filter(|_| has(checks));
    let all = [look, record.first_probe, outcome, anchors];
    all.into_iter().flatten().min()
}

/// The entry from which a version stands: its countersignature where it needs one; `None` while it waits for it.
pub fn in_force_seq(record: &ManifestRecord) -> Option<u64> {
    record.versions.iter().find_map(ManifestVersion::since)
}

/// Amendments that were made after an outcome could be seen.
pub fn amended_after(manifests: &Manifests, record: &ManifestRecord) -> u64 {
    let Some(first) = first_seen_seq(manifests, record) else {
        return 0;
    };
    // The plan itself is no amendment, whenever it came.
    let amendments = record.versions.iter().skip(1);
    let later = amendments.filter(|version| version.seq > first);
    later.count() as u64
}
