//! What blobs hold of an iteration's rows: evidence records of a judge, and imported fields.

use std::collections::BTreeMap;

use clover_event::id::FieldId;
use clover_event::id::JudgeId;
use clover_ledger::History;
use clover_projection::iterations::rows::Key;
use clover_projection::iterations::rows::RowLog;
use clover_rubric::evidence::Evidence;

use crate::import::kept;
use crate::import::kept::FieldWords;
use crate::import::kept::Unread;
use crate::iterate::rows::IterationRowsError;
use crate::judge::run;
use crate::judge::run::RawRecord;

/// Records of a judge's rows, the first of a draw.
pub(super) fn evidence(
    history: &dyn History,
    log: &RowLog,
    judge: &JudgeId,
) -> Result<BTreeMap<Key, Evidence>, IterationRowsError> {
    let mut found = BTreeMap::new();
    for record in records_of(history, log, judge)? {
        let key = (record.policy, record.item, record.draw.value());
        found.entry(key).or_insert(record.evidence);
    }
    Ok(found)
}

/// Records of a judge's rows, in the order of the log.
pub(super) fn records_of(
    history: &dyn History,
    log: &RowLog,
    judge: &JudgeId,
) -> Result<Vec<RawRecord>, IterationRowsError> {
    let mut found = Vec::new();
    for (seq, _, blob, root) in log.records.iter().filter(|(_, of, ..)| of == judge) {
        let damaged = |what: String| Unread::Damaged { seq: *seq, what };
        let bytes = history.blob(&blob.blake3)?;
        let bytes = bytes.ok_or(Unread::Absent { seq: *seq })?;
        found.append(&mut run::parse(&bytes, &root.0).map_err(damaged)?);
    }
    Ok(found)
}

/// Wanted fields of ingested rows; of a row and field, what was taken in first.
pub(super) fn imported(
    history: &dyn History,
    log: &RowLog,
    wanted: &[&FieldId],
) -> Result<FieldWords, IterationRowsError> {
    Ok(kept::fields(history, &log.ingested, wanted)?)
}
