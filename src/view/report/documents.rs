//! What the verb answers about a document: its head for people, and what it shows and lacks for machines.

use serde::Serialize;

use crate::projection::bundle::Table;
use crate::report::document::Chapter;
use crate::report::document::Document;
use crate::report::shown;
use crate::view::View;

/// Rows of a table of the head that a terminal shows; a file has all.
const ROWS_MAX: usize = 12;

/// A part of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChapterRow {
    /// Which part.
    pub part: &'static str,
    /// Its heading.
    pub title: String,
    /// How much of it there is: `whole`, `in part` or `missing`.
    pub standing: &'static str,
    /// Its facts and rows of its tables.
    pub rows: u64,
}

impl ChapterRow {
    fn of(part: &Chapter) -> Self {
        Self {
            part: part.key,
            title: part.title.clone(),
            standing: match (part.is_present(), part.missing.is_empty()) {
                (false, _) => "missing",
                (true, false) => "in part",
                (true, true) => "whole",
            },
            rows: part.rows() as u64,
        }
    }
}

/// Something that a report does not show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChapterGap {
    /// The part that lacks it.
    pub part: &'static str,
    /// What is not shown.
    pub what: String,
    /// Why.
    pub why: String,
}

/// A report that was drawn from the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DocumentFacts {
    /// What it is: the word of the verb.
    pub report: &'static str,
    /// Its title.
    pub title: String,
    /// What was decided or found.
    pub answer: String,
    /// From when to when, in words.
    pub period: String,
    /// The first entry that was read.
    pub from_seq: u64,
    /// The last entry that was read.
    pub through_seq: u64,
    /// Its parts and appendices, in reading order.
    pub parts: Vec<ChapterRow>,
    /// What it does not show, and why.
    pub gaps: Vec<ChapterGap>,
    /// The report in the form of `--format`, where no file was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// Bytes of the file that was written; absent where none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl DocumentFacts {
    /// Of a document.
    pub fn of(document: &Document) -> Self {
        let gaps = document.chapters().flat_map(|part| {
            part.missing.iter().map(|gap| ChapterGap {
                part: part.key,
                what: gap.what.clone(),
                why: gap.why.clone(),
            })
        });
        Self {
            report: document.kind.as_str(),
            title: document.title.clone(),
            answer: document.head.answer.clone(),
            period: document.head.period.clone(),
            from_seq: document.from_seq,
            through_seq: document.through_seq,
            parts: document.chapters().map(ChapterRow::of).collect(),
            gaps: gaps.collect(),
            document: None,
            bytes: None,
        }
    }
}

/// The head of a report, its parts, and what it lacks.
pub fn summary(document: &Document, command: &str) -> View {
    let facts = DocumentFacts::of(document);
    let mut view = View::of(&facts);
    head(&mut view, document);
    let rows = facts.parts.iter().map(|of| {
        let (title, standing) = (of.title.clone(), of.standing.to_owned());
        vec![title, standing, of.rows.to_string()]
    });
    view.table(&["part", "shown", "rows"], rows);
    lacking(&mut view, &facts);
    view.with_next(format!("{command} -o report.html"))
}

/// What a report begins with.
pub(super) fn head(view: &mut View, document: &Document) {
    let said = &document.head;
    view.answer(said.answer.clone());
    for text in &said.rest {
        view.sentence(text.clone());
    }
    view.sentence(said.period.clone());
    for remark in &said.separation {
        view.sentence(remark.text.clone());
    }
    for table in said.people.iter().chain(&said.since) {
        if !table.rows.is_empty() {
            view.gap();
            put(view, table);
        }
    }
    view.gap();
}

fn put(view: &mut View, table: &Table) {
    view.line(table.title.clone());
    let mut head: Vec<&'static str> = table.columns.iter().map(|of| of.head).collect();
    head.push("entry");
    let skipped = table.rows.len().saturating_sub(ROWS_MAX);
    let rows = table.rows.iter().skip(skipped).map(|row| {
        let mut cells: Vec<String> = row.cells.iter().map(shown::alone).collect();
        cells.push(row.events.first().map_or(String::new(), u64::to_string));
        cells
    });
    view.table(&head, rows);
    if skipped > 0 {
        view.line(format!("{skipped} earlier rows"));
    }
}

fn lacking(view: &mut View, facts: &DocumentFacts) {
    if !facts.gaps.is_empty() {
        view.gap();
    }
    for gap in &facts.gaps {
        view.sentence(format!("not covered: {}: {}", gap.what, gap.why));
    }
}

/// A report that was written to a file.
pub fn written(document: &Document, file: &str, bytes: usize) -> View {
    let facts = DocumentFacts {
        bytes: Some(bytes as u64),
        ..DocumentFacts::of(document)
    };
    let mut view = View::of(&facts);
    view.answer(facts.answer.clone());
    view.line(format!("{file}: {bytes} bytes"));
    lacking(&mut view, &facts);
    view
}

/// A report in the form asked for, for programs; people read it as it is.
pub fn given(document: &Document, text: String) -> View {
    View::of(&DocumentFacts {
        document: Some(text),
        ..DocumentFacts::of(document)
    })
}
