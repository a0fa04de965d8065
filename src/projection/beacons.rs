//! Beacons: for each entry that may bring a manifest version into force, that seals candidates or decides a gate, the first
//! checkpoint above it that an entry named. Nobody could know it when that was written; an order or a sample is drawn
//! from it.

use std::collections::BTreeMap;

use clover_event::Event;
use clover_event::Kind;
use clover_event::Payload;
use clover_event::SeenCheckpoint;
use clover_event::id::ExperimentId;
use clover_event::payload::gate::DrawnFrom;
use clover_event::payload::label::LabelPurpose;
use clover_ledger::Fold;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use serde::Deserialize;
use serde::Serialize;

/// It takes in every kind: the first entry that names a checkpoint may be of any.
pub const READS: &[Kind] = Kind::ALL;

/// Checkpoints named after versions of manifests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beacons {
    /// The newest entry that fixes what an order or a sample is drawn for. The next entry names the checkpoint above it, so
    /// that nobody waits for one that suits (question `beacon_place`).
    pub fixed: Option<u64>,
    /// Entries, ascending, each with the first checkpoint above it that a later entry named.
    pub found: Vec<(u64, DrawnFrom)>,
    /// By experiment: its newest label for calibration, and the first checkpoint above it that a later entry named.
    pub labels: BTreeMap<ExperimentId, LabelBeacon>,
    /// Entries above which no checkpoint was named yet.
    pub waiting: Vec<u64>,
}

/// The newest label for calibration of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelBeacon {
    /// The first checkpoint above it that a later entry named.
    pub named: Option<DrawnFrom>,
    /// The label.
    pub seq: u64,
}

impl Beacons {
    /// The first checkpoint above an entry that a later entry named.
    pub fn above(&self, seq: u64) -> Option<DrawnFrom> {
        let at = self.found.binary_search_by_key(&seq, |(from, _)| *from);
        at.ok().map(|at| self.found[at].1)
    }

    /// The first checkpoint above the newest label for calibration of an experiment; where no entry has named one yet, an
    /// entry that names `seen` does.
    pub fn above_labels(
        &self,
        experiment: &ExperimentId,
        seen: Option<SeenCheckpoint>,
    ) -> Option<DrawnFrom> {
        let of = self.labels.get(experiment)?;
        let seen = seen.filter(|seen| seen.size.value() > of.seq);
        let seen = seen.map(|seen| DrawnFrom {
            root: seen.root,
            size: seen.size,
        });
        of.named.or(seen)
    }

    /// Takes in what an entry names, and the label that it is.
    fn labelled(&mut self, seq: u64, event: &Event) {
        if let Some(seen) = event.header.seen {
            let size = seen.size.value();
            let beacon = DrawnFrom {
                root: seen.root,
                size: seen.size,
            };
            let all = self.labels.values_mut();
            for of in all.filter(|of| of.named.is_none() && of.seq < size && size <= seq) {
                of.named = Some(beacon);
            }
        }
        if let (Payload::LabelRecorded(said), Some(experiment)) =
            (&event.payload, &event.header.experiment)
            && said.purpose == LabelPurpose::Calibrate
        {
            let newest = LabelBeacon { named: None, seq };
            match self.labels.get_mut(experiment) {
                Some(of) => *of = newest,
                None => {
                    self.labels.insert(experiment.clone(), newest);
                }
            }
        }
    }
}

impl Fold for Beacons {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        self.labelled(seq, event);
        if !self.waiting.is_empty()
            && let Some(seen) = event.header.seen
        {
            let size = seen.size.value();
            let named = |from: &u64| size > *from && size <= seq;
            let beacon = DrawnFrom {
                root: seen.root,
                size: seen.size,
            };
            let found = self.waiting.iter().copied().filter(|from| named(from));
            self.found.extend(found.map(|from| (from, beacon)));
            self.waiting.retain(|from| !named(from));
        }
        if let Payload::ManifestCountersigned(_)
        | Payload::CandidatesSealed(_)
        | Payload::GateDecided(_) = &event.payload
        {
            self.fixed = Some(seq);
        }
        // What a judge is asked again is drawn from the checkpoint after its run was opened.
        if let Payload::JudgeRunOpened(said) = &event.payload
            && said.rescore.is_some()
        {
            self.fixed = Some(seq);
            self.waiting.push(seq);
        }
        if let Payload::ManifestRegistered(_)
        | Payload::ManifestAmended(_)
        | Payload::ManifestCountersigned(_)
        | Payload::CandidatesSealed(_)
        | Payload::GateDecided(_) = &event.payload
        {
            self.waiting.push(seq);
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}
