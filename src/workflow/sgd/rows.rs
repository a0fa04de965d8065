//! The labelled rows of an experiment, each with what people say of it.

use std::collections::BTreeMap;

use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::payload::label::LabelPurpose;
use clover_event::payload::label::LabelRecorded;
use clover_event::payload::sgd::SgdRow;
use clover_event::payload::sgd::SgdSplit;
use clover_event::payload::sgd::SgdTarget;
use clover_ground::digest::Digest;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::reader::LogReader;

use crate::sgd::numbers;

/// What several labels of a row say, in millionths, to the nearest; half goes away from 0.
pub fn target(labels: &mut [i64], of: SgdTarget) -> Option<Micro> {
    let count = i64::try_from(labels.len())
        .ok()
        .filter(|count| *count > 0)?;
    let halved = |sum: i64, by: i64| {
        let doubled = sum.checked_mul(2)?;
        let away = if sum < 0 { -by } else { by };
        Some((doubled + away) / (2 * by))
    };
    let value = match of {
        SgdTarget::Mean => {
            let sum = labels
                .iter()
                .try_fold(0_i64, |sum, of| sum.checked_add(*of))?;
            halved(sum, count)?
        }
        SgdTarget::Median => {
            labels.sort_unstable();
            let (low, high) = ((labels.len() - 1) / 2, labels.len() / 2);
            halved(labels[low].checked_add(labels[high])?, 2)?
        }
    };
    Micro::new(value)
}

/// Rows with a label for calibration through a position, in the order of item, policy and draw.
///
/// # Errors
/// When the log cannot be read.
pub fn labelled(
    history: &dyn History,
    (experiment, through): (&ExperimentId, u64),
    of: SgdTarget,
) -> Result<Vec<SgdRow>, LedgerError> {
    let entries = LogReader::through(history, through).of(experiment);
    let wanted = |label: &LabelRecorded| label.purpose == LabelPurpose::Calibrate;
    let mut found: BTreeMap<(ItemId, PolicyId, Count), Vec<i64>> = BTreeMap::new();
    for label in entries.all::<LabelRecorded>(wanted)? {
        let said = label.said;
        let of = found.entry((said.item, said.policy, said.draw));
        of.or_default().push(said.value_micro.value());
    }
    let rows = found
        .into_iter()
        .filter_map(|((item, policy, draw), mut labels)| {
            Some(SgdRow {
                draw,
                item,
                policy,
                target_micro: target(&mut labels, of)?,
            })
        });
    Ok(rows.collect())
}

/// Most rows of one `sgd.rows_listed`.
pub const LISTED_MAX: usize = 250;

/// Rows by part: an item with all its rows is a cluster, and is in one part.
pub fn parts(rows: Vec<SgdRow>, seed: Digest) -> BTreeMap<SgdSplit, Vec<SgdRow>> {
    let mut items: Vec<ItemId> = rows.iter().map(|row| row.item.clone()).collect();
    items.dedup();
    let parts = numbers::parts(items.len(), seed);
    let parts: BTreeMap<ItemId, SgdSplit> = items.into_iter().zip(parts).collect();
    let mut found: BTreeMap<SgdSplit, Vec<SgdRow>> = BTreeMap::new();
    for row in rows {
        if let Some(part) = parts.get(&row.item) {
            found.entry(*part).or_default().push(row);
        }
    }
    found
}
