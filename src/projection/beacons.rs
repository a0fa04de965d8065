//! Beacons: for each entry that may bring a manifest version into force, that seals candidates or decides a gate, the first
//! checkpoint above it that an entry named. Nobody could know it when that was written; an order or a sample is drawn
//! from it.

use clover_event::Kind;
use clover_event::Payload;
use clover_event::payload::gate::DrawnFrom;
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
    /// Entries above which no checkpoint was named yet.
    pub waiting: Vec<u64>,
}

impl Beacons {
    /// The first checkpoint above an entry that a later entry named.
    pub fn above(&self, seq: u64) -> Option<DrawnFrom> {
        let at = self.found.binary_search_by_key(&seq, |(from, _)| *from);
        at.ok().map(|at| self.found[at].1)
    }
}

impl Fold for Beacons {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
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
