//! What documents are made of: a ledger, its state and a chronicle of a range; and how each is finished, with the entries
//! that it cites.

use crate::event::id::ExperimentId;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::State;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Fact;
use crate::report::document::CitedEntry;
use crate::report::document::Document;
use crate::report::document::ReadCheckpoint;
use crate::session::chronicle;
use crate::session::chronicle::Chronicle;
use crate::session::chronicle::ChronicleEntry;
use crate::session::chronicle::ChronicleScope;
use crate::view::report::picked;
use crate::view::report::withheld;
use crate::workflow::estimate::terms::BUILD;

/// What a report is made of.
#[derive(Clone, Copy)]
pub struct ReportSource<'a> {
    /// The ledger.
    pub ledger: &'a Ledger,
    /// Its state after the last entry that is read.
    pub state: &'a State,
    /// The first entry that is read.
    pub from_seq: u64,
    /// The last entry that is read.
    pub through_seq: u64,
}

impl std::fmt::Debug for ReportSource<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReportSource({}..={})", self.from_seq, self.through_seq)
    }
}

impl ReportSource<'_> {
    /// What the log says in the range.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn chronicle(&self, experiment: Option<&ExperimentId>) -> Result<Chronicle, LedgerError> {
        let scope = ChronicleScope {
            experiment,
            from_seq: self.from_seq,
            through_seq: self.through_seq,
        };
        Chronicle::read(self.ledger, scope)
    }

    /// The document with its ledger, its range, and the entries that it cites.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn finish(&self, mut document: Document) -> Result<Document, LedgerError> {
        document.ledger.clone_from(&self.state.keyring.origin);
        document.from_seq = self.from_seq;
        document.through_seq = self.through_seq;
        document
            .appendices
            .extend(withheld::chapter(self, &document)?);
        let size = self.through_seq + 1;
        let root = self.ledger.root_at(size)?.to_base64();
        document.checkpoint = Some(ReadCheckpoint { root, size });
        document.program = BUILD;
        document.list_entries(|seq| {
            let read = self.ledger.entry(seq)?;
            Ok::<_, LedgerError>(read.map(|read| {
                let author = read.event.header.author;
                CitedEntry {
                    author,
                    holder: chronicle::holder(self.state, &author),
                    id: read.event.id,
                    kind: read.event.kind().as_str(),
                    leaf: Some(chronicle::leaf(&read)),
                    recorded_at: read.stored.recorded_at,
                    seq,
                }
            }))
        })?;
        Ok(document)
    }
}

/// A fact of a document's head.
pub(super) fn fact(
    events: Vec<u64>,
    key: &'static str,
    title: &'static str,
    value: impl Into<Cell>,
) -> Fact {
    Fact {
        events,
        key,
        title,
        value: value.into(),
    }
}

/// From when to when, in words.
pub(super) fn period(chronicle: &Chronicle) -> String {
    let Some((first, last)) = chronicle.period else {
        return "Nothing was recorded in this range.".to_owned();
    };
    let day = |at: String| at.chars().take("2026-11-20".len()).collect::<String>();
    format!(
        "From {} to {}, entries {} to {}.",
        day(first.to_string()),
        day(last.to_string()),
        chronicle.from_seq,
        chronicle.through_seq
    )
}

/// When something happened, in words: the day of an entry, where the range has it, and its position.
pub(super) fn on(chronicle: &Chronicle, seq: u64) -> String {
    let found = chronicle.entries.iter().find(|entry| entry.seq == seq);
    found.map_or_else(
        || format!("at seq {seq}"),
        |entry| format!("on {}, at seq {seq}", picked::day(entry)),
    )
}

/// `n things`, or `1 thing`.
pub(super) fn counted(n: u64, one: &str, many: &str) -> String {
    if n == 1 {
        format!("1 {one}")
    } else {
        format!("{n} {many}")
    }
}

/// A text of at most so many characters: one that is cut ends in an ellipsis, and its entry has the whole.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Positions of entries.
pub(super) fn seqs<'c>(entries: impl Iterator<Item = &'c ChronicleEntry>) -> Vec<u64> {
    entries.map(|entry| entry.seq).collect()
}
