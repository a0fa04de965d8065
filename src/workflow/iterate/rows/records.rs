//! What blobs hold of an iteration's rows: evidence records of a judge, and imported fields.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

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

/// Which rows are of confirm, and where they were unsealed.
pub(super) type ConfirmRows<'a> = (&'a dyn Fn(&Key) -> bool, Option<u64>);

/// What imports said of rows in time, and the rows of which something was said too late.
pub(super) type TimelyFields = (FieldWords, BTreeSet<Key>);

/// The same of an iteration's rows, as far as it was said before the row's label could be read: a label of confirm from the
/// unsealing on, another from its own entry on. Beside them the rows of which something was said too late.
pub(super) fn imported_before(
    history: &dyn History,
    log: &RowLog,
    wanted: &[&FieldId],
    (confirm, unsealed): ConfirmRows<'_>,
) -> Result<TimelyFields, IterationRowsError> {
    if !log.asks_fields_before {
        return Ok((imported(history, log, wanted)?, BTreeSet::new()));
    }
    let mut first: BTreeMap<&Key, u64> = BTreeMap::new();
    let open = log.labels.iter().filter(|label| !label.is_confirm);
    for label in open.chain(&log.audited) {
        first.entry(&label.key).or_insert(label.seq);
    }
    let readable = |key: &Key| {
        if confirm(key) {
            unsealed
        } else {
            first.get(key).copied()
        }
    };
    Ok(kept::fields_before(
        history,
        &log.ingested,
        wanted,
        &readable,
    )?)
}

/// Wanted fields of ingested rows; of a row and field, what was taken in first.
pub(super) fn imported(
    history: &dyn History,
    log: &RowLog,
    wanted: &[&FieldId],
) -> Result<FieldWords, IterationRowsError> {
    Ok(kept::fields(history, &log.ingested, wanted)?)
}
