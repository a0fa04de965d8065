//! Tables of what entries of some kinds say, field by field: nothing in them is computed.

use serde_json::Value;

use crate::event::Kind;
use crate::event::payload::Verdict;
use crate::ground::digest::Digest;
use crate::num::Micro;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Plot;
use crate::projection::bundle::Table;
use crate::session::chronicle::Chronicle;
use crate::session::chronicle::ChronicleEntry;

/// Names in a list before the rest is counted.
const NAMES: usize = 6;
/// Fields that hold one of a few words; names stay as they are.
const WORDS: &[&str] = &[
    "claim",
    "class",
    "manifest/hypothesis/kind",
    "op",
    "outcome",
    "selected",
    "state",
];

/// What a table shows of the entries of some kinds: columns by the path of their field, `/` between levels.
pub(super) struct PickedTable {
    /// The key of the table.
    pub key: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// The kinds.
    pub kinds: &'static [Kind],
    /// Path, key, heading. The path `kind` is the kind itself, `day` the day of the entry.
    pub columns: &'static [(&'static str, &'static str, &'static str)],
    /// How it is drawn.
    pub plot: Option<Plot>,
}

impl PickedTable {
    /// The table of the entries that `takes` wants.
    pub(super) fn of<'c>(
        &self,
        chronicle: &'c Chronicle,
        takes: impl Fn(&'c ChronicleEntry) -> bool,
    ) -> Table {
        let heads: Vec<_> = self.columns.iter().map(|of| (of.1, of.2)).collect();
        let mut table = Table::new(self.key, self.title, &heads);
        let entries = chronicle.entries.iter();
        for entry in entries.filter(|of| self.kinds.contains(&of.event.kind()) && takes(of)) {
            let data = serde_json::to_value(&entry.event.payload).unwrap_or_default();
            let cells = self.columns.iter().map(|(path, ..)| match *path {
                "kind" => Cell::text(entry.event.kind().as_str()),
                "day" => Cell::text(day(entry)),
                path => field(&data, path),
            });
            table.row(entry.seq, cells.collect());
        }
        table.plot = self.plot.filter(|_| !table.rows.is_empty());
        table
    }
}

/// The day of an entry.
pub(super) fn day(entry: &ChronicleEntry) -> String {
    let at = entry.recorded_at.to_string();
    at.chars().take("2026-11-20".len()).collect()
}

/// A field of the data of an event as a cell.
pub(super) fn field(data: &Value, path: &str) -> Cell {
    let found = path.split('/').try_fold(data, |at, name| at.get(name));
    let is_micro = path.ends_with("_micro");
    let found = found.map_or(Cell::Absent, |value| cell(value, is_micro));
    match found {
        Cell::Text(text) if WORDS.contains(&path) => Cell::text(text.replace('_', " ")),
        found => found,
    }
}

fn cell(value: &Value, is_micro: bool) -> Cell {
    match value {
        Value::Null => Cell::Absent,
        Value::Bool(flag) => Cell::Flag(*flag),
        Value::Number(number) if is_micro => number
            .as_i64()
            .and_then(Micro::new)
            .map_or(Cell::Absent, Cell::micro),
        Value::Number(number) => number.as_u64().map_or_else(
            || number.as_f64().map_or(Cell::Absent, Cell::number),
            Cell::count,
        ),
        Value::String(text) => words(text),
        Value::Array(all) => {
            let texts = all.iter().take(NAMES).map(|one| match one {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            let mut text = texts.collect::<Vec<_>>().join(", ");
            if all.len() > NAMES {
                text.push_str(&format!(" and {} more", all.len() - NAMES));
            }
            Cell::text(text)
        }
        Value::Object(of) => {
            let end = |name: &str| match cell(of.get(name)?, false) {
                Cell::Number(number) => Some(number),
                whole => crate::num::Finite::new(whole.as_number()?),
            };
            match (end("low"), end("high")) {
                (Some(low), Some(high)) => Cell::Interval(low, high),
                _ => Cell::Absent,
            }
        }
    }
}

fn words(text: &str) -> Cell {
    let verdict = match text {
        "pass" => Some(Verdict::Pass),
        "fail" => Some(Verdict::Fail),
        "inconclusive" => Some(Verdict::Inconclusive),
        "not_checked" => Some(Verdict::NotChecked),
        _ => None,
    };
    // The hash of nothing names nothing: a judge that is told nothing has it for its prompt.
    if Digest::from_hex(text) == Some(Digest::sha256(b"")) {
        return Cell::Absent;
    }
    let digest = || Digest::from_hex(text).map(Cell::Digest);
    verdict
        .map(Cell::Verdict)
        .or_else(digest)
        .unwrap_or_else(|| Cell::text(text))
}
