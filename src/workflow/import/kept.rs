//! Fields that imports kept beside rows, such as a response's domain: public words, under the root of their
//! `data.ingested`.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::id::FieldId;
use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::payload::intake::PolicyFields;
use clover_ground::merkle;
use clover_ground::merkle::Frontier;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_num::Count;
use clover_projection::iterations::rows::IngestedRows;
use clover_projection::iterations::rows::Key;
use serde::Deserialize;

use crate::environments::SAMPLED_AT;
use crate::import::ImportRow;

/// Words of rows by field.
pub type FieldWords = BTreeMap<Key, BTreeMap<FieldId, String>>;

/// Why the rows in an event's blob cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// A blob is not at hand: it was erased, or did not come along.
    #[error("the blob of seq {seq} is not at hand")]
    Absent {
        /// The event.
        seq: u64,
    },
    /// A blob is not what its event says.
    #[error("the rows of seq {seq}: {what}")]
    Damaged {
        /// The event.
        seq: u64,
        /// What is wrong.
        what: String,
    },
}

/// Why fields cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Their rows.
    #[error(transparent)]
    Unread(#[from] Unread),
}

#[derive(Deserialize)]
struct FieldWordsRecord {
    draw: Count,
    #[serde(default)]
    fields: BTreeMap<FieldId, String>,
    item: ItemId,
    policy: PolicyId,
    #[serde(default)]
    sampled_at: Option<String>,
}

/// Rows of a policy that were taken in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnscoredRows {
    /// How many.
    pub rows: u64,
    /// How many of them have no score of the judge.
    pub unscored: u64,
}

#[derive(Deserialize)]
struct RowKeyRecord {
    draw: Count,
    item: ItemId,
    policy: PolicyId,
}

/// The names of all fields that rows were taken in with.
///
/// # Errors
/// [`KeptError`].
pub fn names(
    history: &dyn History,
    ingested: &[IngestedRows],
) -> Result<BTreeSet<FieldId>, KeptError> {
    let mut found = BTreeSet::new();
    for IngestedRows { seq, rows, .. } in ingested {
        let bytes = history.blob(&rows.blake3)?;
        let bytes = bytes.ok_or(Unread::Absent { seq: *seq })?;
        let lines = bytes.split(|byte| *byte == b'\n');
        for line in lines.filter(|line| !line.is_empty()) {
            let line: FieldWordsRecord =
                serde_json::from_slice(line).map_err(|error| Unread::Damaged {
                    seq: *seq,
                    what: error.to_string(),
                })?;
            found.extend(line.fields.into_keys());
        }
    }
    Ok(found)
}

/// Of the fields of rows that are to be taken in, by policy, those of which an import has not said each word before.
///
/// # Errors
/// [`KeptError`].
pub fn new_fields(
    history: &dyn History,
    ingested: &[IngestedRows],
    rows: &[ImportRow],
) -> Result<Vec<PolicyFields>, KeptError> {
    let names: BTreeSet<&FieldId> = rows.iter().flat_map(|row| row.fields.keys()).collect();
    let known = fields(history, ingested, &names.into_iter().collect::<Vec<_>>())?;
    let mut found: BTreeMap<&PolicyId, BTreeSet<&FieldId>> = BTreeMap::new();
    for row in rows {
        let key = (row.policy.clone(), row.item.clone(), row.draw.value());
        let before = known.get(&key);
        let is_new = |field: &&FieldId| before.is_none_or(|of| !of.contains_key(*field));
        let new = row.fields.keys().filter(is_new);
        found.entry(&row.policy).or_default().extend(new);
    }
    let said = found.into_iter().filter(|(_, fields)| !fields.is_empty());
    let said = said.map(|(policy, fields)| PolicyFields {
        fields: fields.into_iter().cloned().collect(),
        policy: policy.clone(),
    });
    Ok(said.collect())
}

/// Of each policy, how many rows were taken in, and how many of them are not among those that `is_scored` knows.
///
/// # Errors
/// [`KeptError`].
pub fn unscored(
    history: &dyn History,
    ingested: &[IngestedRows],
    is_scored: &dyn Fn(&Key) -> bool,
) -> Result<BTreeMap<PolicyId, UnscoredRows>, KeptError> {
    let mut known: BTreeSet<Key> = BTreeSet::new();
    for IngestedRows { seq, rows, .. } in ingested {
        let bytes = history.blob(&rows.blake3)?;
        let bytes = bytes.ok_or(Unread::Absent { seq: *seq })?;
        let lines = bytes.split(|byte| *byte == b'\n');
        for line in lines.filter(|line| !line.is_empty()) {
            let line: RowKeyRecord =
                serde_json::from_slice(line).map_err(|error| Unread::Damaged {
                    seq: *seq,
                    what: error.to_string(),
                })?;
            known.insert((line.policy, line.item, line.draw.value()));
        }
    }
    let mut found: BTreeMap<PolicyId, UnscoredRows> = BTreeMap::new();
    for key in known {
        let scored = is_scored(&key);
        let of = found.entry(key.0).or_default();
        of.rows += 1;
        of.unscored += u64::from(!scored);
    }
    found.retain(|_, of| of.unscored > 0);
    Ok(found)
}

/// One field of ingested rows, with the import that said it; of a row, what was taken in first.
///
/// # Errors
/// [`KeptError`].
pub fn places(
    history: &dyn History,
    ingested: &[IngestedRows],
    field: &FieldId,
) -> Result<BTreeMap<Key, (u64, String)>, KeptError> {
    let mut found = BTreeMap::new();
    for one in ingested {
        let rows = fields(history, std::slice::from_ref(one), &[field])?;
        for (key, words) in rows {
            for (_, word) in words {
                found.entry(key.clone()).or_insert((one.seq, word));
            }
        }
    }
    Ok(found)
}

/// Wanted fields of ingested rows, the time at which they were sampled among them; of a row and field, what was taken in first.
///
/// # Errors
/// [`KeptError`].
pub fn fields(
    history: &dyn History,
    ingested: &[IngestedRows],
    wanted: &[&FieldId],
) -> Result<FieldWords, KeptError> {
    let (found, _) = fields_before(history, ingested, wanted, &|_| None)?;
    Ok(found)
}

/// The same, of a row only what was said before a position, where `readable` gives one: whoever could read its label chooses no
/// word of it any more. Beside them the rows of which something was said too late.
///
/// # Errors
/// [`KeptError`].
pub fn fields_before(
    history: &dyn History,
    ingested: &[IngestedRows],
    wanted: &[&FieldId],
    readable: &dyn Fn(&Key) -> Option<u64>,
) -> Result<(FieldWords, BTreeSet<Key>), KeptError> {
    let (mut found, mut late) = (FieldWords::new(), BTreeSet::new());
    if wanted.is_empty() {
        return Ok((found, late));
    }
    let timed = wanted.iter().find(|field| field.as_str() == SAMPLED_AT);
    for one in ingested {
        let IngestedRows {
            seq, rows, root, ..
        } = one;
        let damaged = |what: String| Unread::Damaged { seq: *seq, what };
        let bytes = history.blob(&rows.blake3)?;
        let bytes = bytes.ok_or(Unread::Absent { seq: *seq })?;
        let mut tree = Frontier::new();
        let lines = bytes.split(|byte| *byte == b'\n');
        for line in lines.filter(|line| !line.is_empty()) {
            tree.push(merkle::leaf_hash(line));
            let line: FieldWordsRecord =
                serde_json::from_slice(line).map_err(|error| damaged(error.to_string()))?;
            let mut kept = line.fields;
            kept.retain(|field, _| wanted.contains(&field) && one.says(&line.policy, field));
            if let (Some(field), Some(at)) = (timed, line.sampled_at) {
                kept.insert(FieldId::clone(field), at);
            }
            if kept.is_empty() {
                continue;
            }
            let key = (line.policy, line.item, line.draw.value());
            if readable(&key).is_some_and(|readable| *seq > readable) {
                let known = found.get(&key);
                let is_new =
                    |field| known.is_none_or(|of: &BTreeMap<_, _>| !of.contains_key(field));
                if kept.keys().any(is_new) {
                    late.insert(key);
                }
                continue;
            }
            let of = found.entry(key).or_default();
            for (field, word) in kept {
                of.entry(field).or_insert(word);
            }
        }
        if tree.root() != root.0 {
            return Err(damaged("rows that are not under their root".to_owned()).into());
        }
    }
    Ok((found, late))
}
