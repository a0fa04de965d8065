//! What a report is made of: parts with facts and tables, every row with the entries that it comes from.
//!
//! One model, three renderings: the JSON below is the bundle itself, pages and Markdown are drawn from the same value.
//! `schema/REPORT.md` gives the bytes.

use std::collections::BTreeSet;

use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::PatchId;
use clover_event::payload::Verdict;
use clover_event::payload::report::ReportGap;
use clover_event::payload::report::ReportLayout;
use clover_event::payload::report::ReportPart;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ground::time::Timestamp;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use serde::Serialize;
use serde::Serializer;
use serde::ser::SerializeMap;
use serde::ser::SerializeStruct;

/// Label of the digest of a bundle of what entries say.
pub const BUNDLE_LABEL: &str = "clover/iteration-report/v1";
/// Label of the digest of a bundle that has what is computed from rows too.
pub const BUNDLE_LABEL_ROWS: &str = "clover/iteration-report/v2";
/// Label of the digest of the table of assumptions in it.
pub const ASSUMPTIONS_LABEL: &str = "clover/report-assumptions/v1";

/// The label of a bundle of some layout, which is its format too.
pub fn label(layout: Option<ReportLayout>) -> &'static str {
    match layout {
        None => BUNDLE_LABEL,
        Some(ReportLayout::Rows) => BUNDLE_LABEL_ROWS,
    }
}

/// What stands in one place of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing is recorded.
    Absent,
    /// A count.
    Count(Count),
    /// A digest.
    Digest(Digest),
    /// Yes or no.
    Flag(bool),
    /// Low and high end.
    Interval(Finite, Finite),
    /// A number.
    Number(Finite),
    /// Words, as people wrote them.
    Text(String),
    /// A verdict.
    Verdict(Verdict),
}

impl Cell {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A count.
    pub fn count(value: u64) -> Self {
        Count::new(value).map_or(Self::Absent, Self::Count)
    }

    /// A number; what is none is absent.
    pub fn number(value: f64) -> Self {
        Finite::new(value).map_or(Self::Absent, Self::Number)
    }

    /// Millionths as a number.
    pub fn micro(value: Micro) -> Self {
        Self::number(value.value() as f64 / 1e6)
    }

    /// What may be absent.
    pub fn maybe<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Absent, cell)
    }

    /// The number that stands here, if one does.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(count.value() as f64),
            Self::Number(number) => Some(number.value()),
            _ => None,
        }
    }
}

impl From<Finite> for Cell {
    fn from(value: Finite) -> Self {
        Self::Number(value)
    }
}

impl From<Count> for Cell {
    fn from(value: Count) -> Self {
        Self::Count(value)
    }
}

impl From<Digest> for Cell {
    fn from(value: Digest) -> Self {
        Self::Digest(value)
    }
}

impl From<Verdict> for Cell {
    fn from(value: Verdict) -> Self {
        Self::Verdict(value)
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absent => serializer.serialize_none(),
            Self::Count(count) => count.serialize(serializer),
            Self::Digest(digest) => serializer.serialize_str(&digest.to_hex()),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Interval(low, high) => {
                let mut ends = serializer.serialize_struct("Interval", 2)?;
                ends.serialize_field("high", high)?;
                ends.serialize_field("low", low)?;
                ends.end()
            }
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Verdict(verdict) => verdict.serialize(serializer),
        }
    }
}

/// A column: its key in JSON, and its heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The key.
    pub key: &'static str,
    /// The heading.
    pub head: &'static str,
}

/// How a table is drawn, beside being a table. Numbers name columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plot {
    /// One estimate with its interval a row.
    Forest {
        /// Columns that name the row.
        label: (usize, usize),
        /// The estimate.
        estimate: usize,
        /// Its interval, if there is one.
        interval: Option<usize>,
        /// Where a line is drawn.
        reference: Option<f64>,
        /// What the axis measures.
        axis: &'static str,
        /// Where the estimate stood before, drawn hollow.
        before: Option<usize>,
    },
    /// Points over a measured axis, some with whiskers, beside what they are to be compared with.
    Points {
        /// Across, and what it measures.
        x: (usize, &'static str),
        /// What y measures.
        y: &'static str,
        /// What is joined by a line, and what that is.
        line: Option<(usize, &'static str)>,
        /// Filled points, their whiskers, and what they are.
        dots: (usize, Option<usize>, &'static str),
        /// Hollow points, and what they are.
        hollow: Option<(usize, &'static str)>,
        /// How much stands behind a point: its area.
        weight: usize,
        /// A line across.
        reference: Option<f64>,
    },
    /// A row for each candidate, a column for each gate, in it what was said.
    Matrix {
        /// Columns of rows.
        row: usize,
        /// Columns that name a column.
        column: (usize, usize),
        /// What stands there.
        value: usize,
    },
    /// Rows as a tree: each below an earlier one that it was made of.
    Tree {
        /// What names a row.
        node: usize,
        /// What names the row that it was made of.
        parent: usize,
        /// What it is, in words.
        about: usize,
        /// Its number.
        score: usize,
        /// Words that set it apart; a row without them is drawn hollow.
        mark: usize,
    },
    /// Circles as large as their weight, with a line where x and y are equal.
    Reliability {
        /// Words that tell one series from another.
        series: usize,
        /// Across.
        x: usize,
        /// Up.
        y: usize,
        /// The weight.
        weight: usize,
    },
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    /// One cell for each column.
    pub cells: Vec<Cell>,
    /// Entries that it comes from, ascending.
    pub events: Vec<u64>,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The key.
    pub key: &'static str,
    /// What it shows.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows.
    pub rows: Vec<TableRow>,
    /// How it is drawn.
    pub plot: Option<Plot>,
}

impl Table {
    /// An empty table of `(key, heading)` columns.
    pub fn new(
        key: &'static str,
        title: impl Into<String>,
        columns: &[(&'static str, &'static str)],
    ) -> Self {
        let column = |(key, head): &(&'static str, &'static str)| Column { key, head };
        Self {
            key,
            title: title.into(),
            columns: columns.iter().map(column).collect(),
            rows: Vec::new(),
            plot: None,
        }
    }

    /// Adds a row that one entry says.
    pub fn row(&mut self, event: u64, cells: Vec<Cell>) {
        self.row_of(vec![event], cells);
    }

    /// Adds a row that several entries say.
    pub fn row_of(&mut self, mut events: Vec<u64>, cells: Vec<Cell>) {
        events.sort_unstable();
        events.dedup();
        self.rows.push(TableRow { cells, events });
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut table = serializer.serialize_struct("Table", 3)?;
        table.serialize_field("rows", &KeyedRows(self))?;
        table.serialize_field("table", self.key)?;
        table.serialize_field("title", &self.title)?;
        table.end()
    }
}

struct KeyedRows<'a>(&'a Table);

impl Serialize for KeyedRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of = self.0;
        serializer.collect_seq(of.rows.iter().map(|row| KeyedCells(&of.columns, row)))
    }
}

struct KeyedCells<'a>(&'a [Column], &'a TableRow);

impl Serialize for KeyedCells<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (column, cell) in self.0.iter().zip(&self.1.cells) {
            if *cell != Cell::Absent {
                map.serialize_entry(column.key, cell)?;
            }
        }
        map.serialize_entry("events", &self.1.events)?;
        map.end()
    }
}

/// One fact of a part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact {
    /// Entries that it comes from, ascending.
    pub events: Vec<u64>,
    /// The key.
    #[serde(rename = "fact")]
    pub key: &'static str,
    /// What it is.
    pub title: &'static str,
    /// The value.
    pub value: Cell,
}

/// A text of several lines, shown as it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Listing {
    /// Entries that it comes from, ascending.
    pub events: Vec<u64>,
    /// What it is.
    pub title: String,
    /// The text.
    pub text: String,
}

/// Something that a part does not show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

/// A part of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Section {
    /// What it says to a reader, in a sentence.
    pub about: &'static str,
    /// Facts.
    pub facts: Vec<Fact>,
    /// Texts.
    pub listings: Vec<Listing>,
    /// What it does not show.
    pub missing: Vec<Gap>,
    /// Which part.
    pub part: ReportPart,
    /// Tables.
    pub tables: Vec<Table>,
    /// Its heading.
    pub title: &'static str,
}

impl Section {
    /// Nothing yet.
    pub fn new(part: ReportPart, about: &'static str) -> Self {
        Self {
            about,
            facts: Vec::new(),
            listings: Vec::new(),
            missing: Vec::new(),
            part,
            tables: Vec::new(),
            title: part.title(),
        }
    }

    /// Adds a fact that one entry says.
    pub fn fact(
        &mut self,
        event: u64,
        key: &'static str,
        title: &'static str,
        value: impl Into<Cell>,
    ) {
        let value = value.into();
        if value != Cell::Absent {
            self.facts.push(Fact {
                events: vec![event],
                key,
                title,
                value,
            });
        }
    }

    /// Adds a table, unless it is empty.
    pub fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.tables.push(table);
        }
    }

    /// Names something that it does not show.
    pub fn lacks(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.missing.push(Gap {
            what: what.into(),
            why: why.into(),
        });
    }

    /// Whether it shows anything.
    pub fn is_present(&self) -> bool {
        !(self.facts.is_empty() && self.tables.is_empty() && self.listings.is_empty())
    }

    fn cited(&self) -> impl Iterator<Item = u64> {
        let rows = self.tables.iter().flat_map(|table| &table.rows);
        let facts = self.facts.iter().flat_map(|fact| &fact.events);
        let listings = self.listings.iter().flat_map(|listing| &listing.events);
        let rows = rows.flat_map(|row| &row.events);
        facts.chain(rows).chain(listings).copied()
    }
}

/// An entry that a report rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Citation {
    /// Who signed it.
    pub author: KeyId,
    /// The holder of that key.
    pub holder: String,
    /// Its id.
    pub id: EventId,
    /// Its kind.
    pub kind: &'static str,
    /// When the ledger took it.
    pub recorded_at: Timestamp,
    /// Its position.
    pub seq: u64,
}

/// The report of one iteration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bundle {
    /// The entries it rests on.
    pub events: Vec<Citation>,
    /// The experiment.
    pub experiment: ExperimentId,
    /// The iteration.
    pub iteration: IterationId,
    /// The log.
    pub ledger: String,
    /// Its parts, in reading order.
    pub parts: Vec<Section>,
    /// The format.
    #[serde(rename = "report")]
    pub format: &'static str,
    /// The last entry that was read.
    pub through_seq: u64,
}

impl Bundle {
    /// A part.
    pub fn part(&self, part: ReportPart) -> Option<&Section> {
        self.parts.iter().find(|of| of.part == part)
    }

    /// Positions that its parts cite.
    pub fn cited(&self) -> BTreeSet<u64> {
        self.parts.iter().flat_map(Section::cited).collect()
    }

    /// Its bytes: canonical JSON.
    #[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
    pub fn to_bytes(&self) -> Vec<u8> {
        canon::to_bytes(self).expect("BUG: names, counts and finite numbers")
    }

    /// Its digest.
    pub fn digest(&self) -> Digest {
        Digest::labelled(self.format, &self.to_bytes())
    }

    /// Digest of its table of assumptions.
    pub fn assumptions_digest(&self) -> Digest {
        canon::digest(ASSUMPTIONS_LABEL, &self.part(ReportPart::Assumptions))
    }

    /// Parts that show anything, in the order of their words.
    pub fn present(&self) -> Vec<ReportPart> {
        let parts = self.parts.iter().filter(|part| part.is_present());
        let mut present: Vec<_> = parts.map(|part| part.part).collect();
        present.sort_unstable();
        present
    }

    /// What it does not show, in its order.
    pub fn gaps(&self) -> Vec<ReportGap> {
        let of = |part: &Section| {
            let part_id = part.part;
            let gap = move |gap: &Gap| ReportGap {
                part: part_id,
                what: bounded(&gap.what),
                why: bounded(&gap.why),
            };
            part.missing.iter().map(gap).collect::<Vec<_>>()
        };
        self.parts.iter().flat_map(of).collect()
    }
}

/// A text that an event takes.
fn bounded(text: &str) -> clover_event::id::Text {
    let clean: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(900)
        .collect();
    clover_event::id::Text::new(clean).expect("BUG: at most 3,600 bytes without control characters")
}

/// Names of candidates: what people call them.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Patches by hash.
    pub patches: Vec<(Digest, PatchId)>,
    /// Composites with their patches.
    pub composites: Vec<(Digest, Vec<Digest>)>,
}

impl Names {
    /// What a candidate is called: a patch by its id, a composite by those of its patches.
    pub fn of(&self, candidate: Digest) -> String {
        let patch = |hash: Digest| {
            let found = self.patches.iter().find(|(known, _)| *known == hash);
            found.map(|(_, id)| id.to_string())
        };
        let unknown = |hash: Digest| hash.short().to_string();
        if let Some(name) = patch(candidate) {
            return name;
        }
        let composite = self
            .composites
            .iter()
            .find(|(known, _)| *known == candidate);
        let Some((_, patches)) = composite else {
            return unknown(candidate);
        };
        let names: Vec<String> = patches
            .iter()
            .map(|hash| patch(*hash).unwrap_or_else(|| unknown(*hash)))
            .collect();
        names.join(" + ")
    }
}
