//! Splits: which clusters fit, choose and confirm, as a pure function of their ids, a seed, and where confirm is
//! a later block of time, when they were first sampled. The bytes are those of `schema/SPLITS.md`.

use std::collections::BTreeMap;
use std::fmt;

use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::Root;
use clover_event::id::SplitId;
use clover_event::payload::Verdict;
use clover_event::payload::intake::ClusterRule;
use clover_event::payload::intake::DataIngested;
use clover_event::payload::intake::ListedBy;
use clover_event::payload::intake::PartRoot;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::intake::SplitSeparation;
use clover_event::payload::intake::SplitsFormed;
use clover_event::payload::intake::SplitsListed;
use clover_ground::merkle::Frontier;
use clover_ground::time::Timestamp;
use clover_ledger::History;
use clover_num::Count;
use clover_projection::reader::LogReader;
use clover_projection::reader::LogStatement;
use clover_projection::splits::GAP_SECONDS_MIN;
use clover_projection::splits::cluster_leaf;
use clover_stats::folds;
use serde::Deserialize;

use crate::import::kept::KeptError;
use crate::import::kept::Unread;

/// Gap in seconds where nothing else is said: 72 hours.
pub const GAP_SECONDS_DEFAULT: u64 = 259_200;
/// Bytes of cluster ids in one `splits.listed`, as they stand in JSON.
const LISTED_BYTES: usize = 20_000;

/// How confirm is kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// A quarter of the clusters, by hash.
    Hashed,
    /// Clusters first sampled from `t1` and the gap on, before `t2`.
    Time {
        /// End of fit and dev, exclusive.
        t1: Timestamp,
        /// End of confirm, exclusive.
        t2: Timestamp,
        /// Seconds between.
        gap_seconds: u64,
    },
}

/// Why clusters cannot be split.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// The gap is too short.
    #[error("expected a gap of at least {GAP_SECONDS_MIN} s (48 h), found {0} s")]
    Gap(u64),
    /// A cluster has no time.
    #[error(
        "cluster {0} has no sampled_at, so confirm cannot be a later block: register hashed separation"
    )]
    NoTime(ItemId),
    /// A part is empty.
    #[error("no cluster falls into {}{}", .0, times_of(.1.as_ref()))]
    Empty(SplitPart, Option<SampledTimes>),
}

fn times_of(times: Option<&SampledTimes>) -> String {
    times.map_or_else(String::new, |times| format!("; {times}"))
}

/// When clusters were first sampled, and the days that would split them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledTimes {
    /// The first of all.
    pub first: Timestamp,
    /// The last of all.
    pub last: Timestamp,
    /// Days that end fit and dev, and confirm, where a gap fits between.
    pub days: Option<(Timestamp, Timestamp)>,
}

impl fmt::Display for SampledTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "its rows were first sampled from {} to {}",
            self.first, self.last
        )
    }
}

/// Seconds of a day.
const DAY: i64 = 86_400;
const MICROS: i64 = 1_000_000;

/// The first moment of a time's day.
fn whole(at: Timestamp) -> Option<Timestamp> {
    Timestamp::from_micros(at.micros() - at.micros().rem_euclid(DAY * MICROS))
}

impl SampledTimes {
    /// Of clusters with the time each was first sampled; `None` where one has none. The days leave a quarter of the clusters or
    /// more to confirm.
    pub fn of(
        times: impl IntoIterator<Item = Option<Timestamp>>,
        gap_seconds: u64,
    ) -> Option<Self> {
        let times: Option<Vec<_>> = times.into_iter().collect();
        let mut times = times?;
        times.sort_unstable();
        let (first, last) = (*times.first()?, *times.last()?);
        let gap = i64::try_from(gap_seconds).ok()?;
        let quarter = times[times.len() - times.len().div_ceil(4)];
        let days = whole(quarter.plus_seconds(-gap))
            .zip(whole(last.plus_seconds(DAY)))
            .filter(|(t1, _)| *t1 > first);
        Some(Self { first, last, days })
    }
}

/// The day of a time, as people write it.
pub fn day_of(at: Timestamp) -> String {
    at.to_string().chars().take("2027-01-31".len()).collect()
}

/// The members of an ingested row that a split reads.
#[derive(Deserialize)]
struct SplitRow {
    item: ItemId,
    #[serde(default)]
    sampled_at: Option<Timestamp>,
}

/// Every cluster of an experiment's rows that were ingested below a position, with the time it was first sampled; a row
/// without one leaves its cluster without.
///
/// # Errors
/// [`KeptError`].
pub fn clusters(
    history: &dyn History,
    experiment: &ExperimentId,
    below: u64,
) -> Result<BTreeMap<ItemId, Option<Timestamp>>, KeptError> {
    let entries = LogReader::below(history, below).of(experiment);
    let mut clusters: BTreeMap<ItemId, Option<Timestamp>> = BTreeMap::new();
    for LogStatement { seq, said, .. } in entries.all::<DataIngested>(|_| true)? {
        let bytes = history.blob(&said.rows.blake3)?;
        let bytes = bytes.ok_or(Unread::Absent { seq })?;
        let lines = bytes.split(|byte| *byte == b'\n');
        for line in lines.filter(|line| !line.is_empty()) {
            let row: SplitRow = serde_json::from_slice(line).map_err(|error| Unread::Damaged {
                seq,
                what: error.to_string(),
            })?;
            let first = clusters.entry(row.item).or_insert(row.sampled_at);
            *first = first.zip(row.sampled_at).map(|(a, b)| a.min(b));
        }
    }
    Ok(clusters)
}

/// Members of each part, in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartMembers {
    /// By part.
    pub members: BTreeMap<SplitPart, Vec<ItemId>>,
    /// Clusters in the gap or outside the time of both.
    pub left_out: usize,
}

/// Puts clusters, with the time each was first sampled, into parts.
///
/// # Errors
/// [`SplitError`].
pub fn parts(
    clusters: &BTreeMap<ItemId, Option<Timestamp>>,
    seed: u64,
    apart: Apart,
) -> Result<PartMembers, SplitError> {
    let mut members: BTreeMap<_, Vec<ItemId>> =
        SplitPart::ALL.map(|part| (part, Vec::new())).into();
    let mut left_out = 0;
    if let Apart::Time { gap_seconds, .. } = apart
        && gap_seconds < GAP_SECONDS_MIN
    {
        return Err(SplitError::Gap(gap_seconds));
    }
    for (cluster, sampled) in clusters {
        let confirm = match apart {
            Apart::Hashed => Some(folds::hash_mod(cluster.as_str(), 4, seed) == 3),
            Apart::Time {
                t1,
                t2,
                gap_seconds,
            } => {
                let at = sampled.ok_or_else(|| SplitError::NoTime(cluster.clone()))?;
                let seconds = i64::try_from(gap_seconds).unwrap_or(i64::MAX);
                let from = t1.plus_seconds(seconds);
                match (at < t1, at >= from && at < t2) {
                    (true, _) => Some(false),
                    (_, true) => Some(true),
                    _ => None,
                }
            }
        };
        let part = match confirm {
            None => {
                left_out += 1;
                continue;
            }
            Some(true) => SplitPart::Confirm,
            Some(false) if folds::hash_mod(cluster.as_str(), 3, seed) == 2 => SplitPart::Dev,
            Some(false) => SplitPart::Fit,
        };
        members.entry(part).or_default().push(cluster.clone());
    }
    let empty = members.iter().find(|(_, members)| members.is_empty());
    match empty {
        Some((part, _)) => {
            let sampled = match apart {
                Apart::Hashed => None,
                Apart::Time { gap_seconds, .. } => {
                    SampledTimes::of(clusters.values().copied(), gap_seconds)
                }
            };
            Err(SplitError::Empty(*part, sampled))
        }
        None => Ok(PartMembers { members, left_out }),
    }
}

/// RFC 6962 root over clusters in ascending order.
pub fn root(clusters: &[ItemId]) -> PartRoot {
    let mut tree = Frontier::new();
    for cluster in clusters {
        tree.push(cluster_leaf(cluster));
    }
    PartRoot {
        count: count(clusters.len() as u64),
        root: Root(tree.root()),
    }
}

fn count(value: u64) -> Count {
    Count::new(value).expect("BUG: nobody holds 2^53 clusters")
}

/// By which rule listings say that their clusters fall into parts.
pub fn listed_by(seed: Count, separation: SplitSeparation) -> ListedBy {
    ListedBy {
        cluster_rule: ClusterRule::Blake2bMod3,
        seed,
        separation,
    }
}

/// The events that form a split, in their order.
pub fn events(split: &SplitId, seed: Count, apart: Apart, parts: &PartMembers) -> Vec<Payload> {
    let separation = match apart {
        Apart::Hashed => SplitSeparation::Hashed,
        Apart::Time { .. } => SplitSeparation::Time,
    };
    let by = listed_by(seed, separation);
    let mut events = Vec::new();
    for (part, members) in &parts.members {
        let (mut from, mut bytes) = (0, 0);
        for (at, cluster) in members.iter().enumerate() {
            // Each quote and backslash of an id takes two bytes, and quotes and comma three.
            bytes += 2 * cluster.as_str().len() + 3;
            if bytes > LISTED_BYTES || at + 1 == members.len() {
                events.push(Payload::from(SplitsListed {
                    by: Some(by),
                    clusters: members[from..=at].to_vec(),
                    first: count(from as u64),
                    part: *part,
                    split: split.clone(),
                }));
                (from, bytes) = (at + 1, 0);
            }
        }
    }
    let of = |part| root(&parts.members[&part]);
    let time = match apart {
        Apart::Hashed => None,
        Apart::Time {
            t1,
            t2,
            gap_seconds,
        } => Some((t1, t2, gap_seconds)),
    };
    events.push(Payload::from(SplitsFormed {
        cluster_rule: ClusterRule::Blake2bMod3,
        confirm: of(SplitPart::Confirm),
        dev: of(SplitPart::Dev),
        fit: of(SplitPart::Fit),
        gap: time.map_or(Verdict::NotChecked, |_| Verdict::Pass),
        gap_seconds: time.map(|(.., gap)| count(gap)),
        seed,
        separation,
        split: split.clone(),
        t1: time.map(|(t1, ..)| t1),
        t2: time.map(|(_, t2, _)| t2),
    }));
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clusters(count: usize) -> BTreeMap<ItemId, Option<Timestamp>> {
        (0..i64::try_from(count).unwrap())
            .map(|i| {
                let at = Timestamp::EPOCH.plus_seconds(i * 3_600);
                (format!("p{i:03}").parse().unwrap(), Some(at))
            })
            .collect()
    }

    #[test]
    fn roots_equal_those_of_python() {
        // source: Python hashlib over the framing of schema/SPLITS.md.
        let ids: Vec<ItemId> = ["a", "arena_22", "ü"].map(|id| id.parse().unwrap()).into();
        let found = root(&ids);
        assert_eq!(found.count.value(), 3);
        assert_eq!(
            found.root.0.to_base64(),
            "2tK7I6UIfiaczMPJdJWTDQqmR8VMBb0IqSiyboH34v0="
        );
        assert_eq!(
            root(&[]).root.0.to_base64(),
            "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
        );
    }

    #[test]
    fn clusters_fall_where_python_puts_them() {
        // source: int.from_bytes(hashlib.blake2b(f"{id}-{seed}-{m}".encode(), digest_size=8).digest(), "big") % m
        let parts = parts(&clusters(12), 7, Apart::Hashed).unwrap();
        let text = |part| {
            parts.members[&part]
                .iter()
                .map(|id| &id.as_str()[1..])
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(text(SplitPart::Confirm), "002 004");
        assert_eq!(text(SplitPart::Dev), "001 006 007");
        assert_eq!(text(SplitPart::Fit), "000 003 005 008 009 010 011");
    }

    #[test]
    fn a_later_block_keeps_its_gap() {
        let (t1, t2) = (
            Timestamp::EPOCH.plus_seconds(100 * 3_600),
            Timestamp::EPOCH.plus_seconds(180 * 3_600),
        );
        let apart = |hours: u64| Apart::Time {
            t1,
            t2,
            gap_seconds: hours * 3_600,
        };
        let found = parts(&clusters(200), 1, apart(50)).unwrap();
        assert_eq!(found.members[&SplitPart::Confirm].len(), 30);
        assert_eq!(found.left_out, 50 + 20);
        assert_eq!(
            parts(&clusters(200), 1, apart(47)),
            Err(SplitError::Gap(47 * 3_600))
        );
        let mut one = clusters(2);
        one.insert("x".parse().unwrap(), None);
        assert!(matches!(
            parts(&one, 1, apart(48)),
            Err(SplitError::NoTime(_))
        ));
        // A split that leaves a part empty says when its rows are, and days that do split them.
        let early = parts(&clusters(20), 1, apart(48));
        let Err(SplitError::Empty(SplitPart::Confirm, Some(times))) = early else {
            panic!("{early:?}");
        };
        assert_eq!(times.days, None, "no gap fits into twenty hours");
        let late = Apart::Time {
            t1: Timestamp::EPOCH.plus_seconds(300 * 3_600),
            t2: Timestamp::EPOCH.plus_seconds(400 * 3_600),
            gap_seconds: GAP_SECONDS_MIN,
        };
        let Err(SplitError::Empty(SplitPart::Confirm, Some(times))) =
            parts(&clusters(200), 1, late)
        else {
            panic!("confirm begins after the last row");
        };
        assert_eq!(times.first, Timestamp::EPOCH);
        let (t1, t2) = times.days.unwrap();
        let proposed = Apart::Time {
            t1,
            t2,
            gap_seconds: GAP_SECONDS_MIN,
        };
        let found = parts(&clusters(200), 1, proposed).unwrap();
        assert!(found.members[&SplitPart::Confirm].len() >= 50);
    }
}
