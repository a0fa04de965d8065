//! Tallies: how many entries there are of each kind, and how many scores of each draw. What is listed from an index is held
//! against them.

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_ground::digest::Digest;
use clover_ledger::Fold;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use serde::Deserialize;
use serde::Serialize;

/// It takes in every kind.
pub const READS: &[Kind] = Kind::ALL;

/// Scores of one draw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawTally {
    /// How many.
    pub scores: u64,
    /// Four words of 32 bits: the first words of the digests of their items, added up. Other items have other sums.
    pub items: [u64; 4],
}

/// Scores by draw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, DrawTally)>", into = "Vec<(u64, DrawTally)>")]
pub struct DrawTallies(BTreeMap<u64, DrawTally>);

impl From<Vec<(u64, DrawTally)>> for DrawTallies {
    fn from(all: Vec<(u64, DrawTally)>) -> Self {
        Self(all.into_iter().collect())
    }
}

impl From<DrawTallies> for Vec<(u64, DrawTally)> {
    fn from(all: DrawTallies) -> Self {
        all.0.into_iter().collect()
    }
}

/// How many draws a judge scored of a policy's items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DrawCounts {
    /// Items.
    pub items: u64,
    /// Scores, one for each draw.
    pub scores: u64,
    /// Items with more than one draw.
    pub redrawn: u64,
    /// Draws of the item that has the most.
    pub draws_max: u64,
}

impl DrawTallies {
    fn add(&mut self, draw: u64, item: &ItemId) {
        let of = self.0.entry(draw).or_default();
        of.scores += 1;
        let digest = Digest::sha256(item.as_str().as_bytes()).0;
        for (sum, word) in of.items.iter_mut().zip(digest.chunks_exact(4)) {
            let word = word
                .iter()
                .fold(0, |word, byte| word << 8 | u64::from(*byte));
            *sum = (*sum + word) & 0xffff_ffff;
        }
    }

    /// Whether two policies have scores of the same items; `None` where [`counts`](Self::counts) of either are not known.
    pub fn same_items(first: &Self, second: &Self) -> Option<bool> {
        first.counts()?;
        second.counts()?;
        let items = |of: &Self| of.0.values().next().cloned();
        Some(items(first) == items(second))
    }

    /// How many items, scores and draws; `None` where some items have other draws than the rest, which only a walk over the
    /// scores can tell apart.
    pub fn counts(&self) -> Option<DrawCounts> {
        let mut draws = self.0.values();
        let Some(first) = draws.next() else {
            return Some(DrawCounts::default());
        };
        draws.all(|of| of == first).then(|| DrawCounts {
            items: first.scores,
            scores: self.0.values().map(|of| of.scores).sum(),
            redrawn: if self.0.len() > 1 { first.scores } else { 0 },
            draws_max: self.0.len() as u64,
        })
    }
}

/// What there is of everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tallies {
    /// Entries by kind.
    pub kinds: BTreeMap<String, u64>,
    /// Scores by experiment, judge and policy.
    pub scores: BTreeMap<ExperimentId, BTreeMap<JudgeId, BTreeMap<PolicyId, DrawTallies>>>,
}

impl Tallies {
    /// Entries of a kind.
    pub fn of_kind(&self, kind: Kind) -> u64 {
        self.kinds.get(kind.as_str()).copied().unwrap_or(0)
    }
}

/// The value under a key, made where there is none.
fn under<'m, K: Ord + Clone, V: Default>(map: &'m mut BTreeMap<K, V>, key: &K) -> &'m mut V {
    map.entry(key.clone()).or_default()
}

impl Fold for Tallies {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let event = event.event();
        let kind = event.kind().as_str();
        match self.kinds.get_mut(kind) {
            Some(entries) => *entries += 1,
            None => {
                self.kinds.insert(kind.to_owned(), 1);
            }
        }
        if let (Payload::ScoreRecorded(said), Some(experiment)) =
            (&event.payload, &event.header.experiment)
        {
            let judges = under(&mut self.scores, experiment);
            let draws = under(under(judges, &said.judge), &said.policy);
            draws.add(said.draw.value(), &said.item);
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(all: &[(u64, &[&str])]) -> Option<DrawCounts> {
        let mut draws = DrawTallies::default();
        for (draw, items) in all {
            for item in *items {
                draws.add(*draw, &item.parse().unwrap());
            }
        }
        draws.counts()
    }

    #[test]
    fn draws_are_counted_where_every_item_has_the_same() {
        let counts = |items, scores, redrawn, draws_max| {
            Some(DrawCounts {
                items,
                scores,
                redrawn,
                draws_max,
            })
        };
        assert_eq!(drawn(&[]), counts(0, 0, 0, 0));
        assert_eq!(drawn(&[(0, &["a", "b"])]), counts(2, 2, 0, 1));
        assert_eq!(drawn(&[(3, &["a"])]), counts(1, 1, 0, 1));
        let both = [(0, &["a", "b"][..]), (1, &["b", "a"])];
        assert_eq!(drawn(&both), counts(2, 4, 2, 2));
        // One of two items drawn twice; as many of each draw, of other items.
        assert_eq!(drawn(&[(0, &["a", "b"]), (1, &["a"])]), None);
        assert_eq!(drawn(&[(0, &["a", "b"]), (1, &["a", "c"])]), None);
    }
}
