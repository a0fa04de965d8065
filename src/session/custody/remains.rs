//! What entries say of the rows of an erased subject beside its texts: labels of people, and evidence that judges took from
//! the texts. None of it is erased.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::payload::label::row_of_draw;
use clover_ground::digest::Digest;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;

use crate::custody::release::IngestedRow;
use crate::error::SessionError;

/// Rows of a subject by their experiment, as [`row_of_draw`] writes them.
pub(super) type RowsOfSubject = BTreeMap<Option<ExperimentId>, BTreeSet<String>>;

/// Entries through a position that say something of these rows, by kind.
///
/// # Errors
/// What reading the log gives.
pub(super) fn said_of_rows(
    ledger: &Ledger,
    rows: &RowsOfSubject,
    through: u64,
) -> Result<BTreeMap<Kind, Vec<u64>>, SessionError> {
    let mut found: BTreeMap<Kind, Vec<u64>> = BTreeMap::new();
    let mut records: Vec<(u64, Digest)> = Vec::new();
    ledger.entries::<LedgerError>(0, through.saturating_add(1), |read| {
        let Some(own) = rows.get(&read.event.header.experiment) else {
            return Ok(());
        };
        let row = match &read.event.payload {
            Payload::LabelRecorded(said) => row_of_draw(&said.policy, &said.item, said.draw),
            Payload::LabelRevealed(said) => said.row.to_string(),
            Payload::LabelSealed(said) => said.row.to_string(),
            Payload::SealAccepted(said) => said.row.to_string(),
            Payload::EvidenceRecorded(said) => {
                records.push((read.stored.seq, said.records.blake3));
                return Ok(());
            }
            _ => return Ok(()),
        };
        if own.contains(&row) {
            let of = found.entry(read.event.kind()).or_default();
            of.push(read.stored.seq);
        }
        Ok(())
    })?;
    let reader = ledger.store().reader();
    for (seq, blob) in records {
        // Records that are not at hand may be about the rows.
        let is_own = reader.blob(&blob)?.is_none_or(|bytes| names(&bytes, rows));
        if is_own {
            found.entry(Kind::EvidenceRecorded).or_default().push(seq);
        }
    }
    Ok(found)
}

/// Whether a line is about one of the rows; a line that nobody can read may be.
fn names(lines: &[u8], rows: &RowsOfSubject) -> bool {
    let mut lines = lines.split(|byte| *byte == b'\n');
    lines.any(|line| {
        let read: Option<IngestedRow> = serde_json::from_slice(line).ok();
        let row = read.map(|of| row_of_draw(&of.policy, &of.item, of.draw));
        let is_own = |row: String| rows.values().any(|of| of.contains(&row));
        !line.is_empty() && row.is_none_or(is_own)
    })
}
