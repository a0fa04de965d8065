//! The order in which the labels of a confirm block are shown, where its test is sequential.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::id::ItemId;
use clover_event::payload::gate::DrawnFrom;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::manifest::ConfirmTest;
use clover_ground::digest::Digest;
use clover_projection::iterations::rows::Opening;
use clover_projection::iterations::rows::RowLog;
use clover_projection::iterations::rows::SplitFormation;
use clover_projection::orders;

use crate::iterate::rows::RowName;
use crate::iterate::rows::scored::Raw;

/// One cluster of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its name.
    pub item: ItemId,
    /// Rows that are scored since before the unsealing and whose label was sealed by then.
    pub rows: Vec<usize>,
    /// Labels that were sealed before the unsealing.
    pub sealed: usize,
    /// Of those, the ones that are shown.
    pub shown: usize,
}

/// The clusters of a block with a sealed label, in the order that the first checkpoint after the sealing of candidates
/// draws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// That checkpoint.
    pub beacon: DrawnFrom,
    /// What clusters are hashed with.
    pub seed: Digest,
    /// The clusters.
    pub units: Vec<Unit>,
}

impl Sequence {
    /// Of an iteration that was unsealed; `None` where its test is another, or nothing was unsealed yet.
    pub(super) fn of(
        log: &RowLog,
        opening: &Opening,
        formed: &SplitFormation,
        (unsealed, names, raw): (Option<u64>, &[RowName], &[Raw]),
    ) -> Option<Self> {
        let unsealed = unsealed.filter(|_| opening.plan.confirm_test == ConfirmTest::Sequential)?;
        let beacon = log.beacon?;
        let seed = orders::seed(opening.digest, formed.confirm_root, &beacon);
        let parts = log.parts.get(&formed.split)?;
        let mut units: BTreeMap<&ItemId, Unit> = BTreeMap::new();
        let mut sealed = BTreeSet::new();
        for (key, seq) in &log.sealed {
            if *seq < unsealed && parts.get(&key.1) == Some(&SplitPart::Confirm) {
                let unit = units.entry(&key.1).or_insert_with(|| Unit {
                    item: key.1.clone(),
                    rows: Vec::new(),
                    sealed: 0,
                    shown: 0,
                });
                unit.sealed += 1;
                sealed.insert(key);
            }
        }
        for label in log
            .labels
            .iter()
            .filter(|of| of.is_confirm && of.seq > unsealed)
        {
            if sealed.contains(&label.key)
                && let Some(unit) = units.get_mut(&label.key.1)
            {
                unit.shown += 1;
            }
        }
        for ((row, named), raw) in names.iter().enumerate().zip(raw) {
            let key = (named.policy.clone(), named.item.clone(), named.draw.value());
            if raw.seq < unsealed
                && sealed.contains(&key)
                && let Some(unit) = units.get_mut(&named.item)
            {
                unit.rows.push(row);
            }
        }
        let mut units: Vec<Unit> = units.into_values().collect();
        units.sort_by_cached_key(|unit| orders::key(seed, &unit.item));
        Some(Self {
            beacon,
            seed,
            units,
        })
    }

    /// How many of the first clusters have all their labels shown.
    pub fn shown(&self) -> usize {
        let whole = |unit: &&Unit| unit.shown >= unit.sealed;
        self.units.iter().take_while(whole).count()
    }

    /// Whether a label is shown of a cluster that is not among those.
    pub fn is_ahead(&self) -> bool {
        self.units[self.shown()..].iter().any(|unit| unit.shown > 0)
    }
}
