//! What an import of scores and labels found in files, and what it added to the record.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::ledger::Ledger;
use crate::num::Micro;
use crate::session::intake::InputFile;
use crate::session::intake::counts::Counts;
use crate::session::intake::counts::IntakeCounts;
use crate::view::LOG;
use crate::view::View;
use crate::view::text::thousands;
use crate::workflow::import::ImportRows;
use crate::workflow::import::plan::ImportPlan;

/// Events of one sort.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NewAndAlready {
    /// Events that are new.
    pub new: u64,
    /// Events that stood in the ledger already.
    pub already: u64,
}

/// Events by what they say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EventCounts {
    /// Scores.
    pub scores: NewAndAlready,
    /// Open labels.
    pub labels: NewAndAlready,
    /// Sealed labels.
    pub sealed: NewAndAlready,
    /// Log-probabilities.
    pub logprobs: NewAndAlready,
    /// Files that were read.
    pub files: NewAndAlready,
}

/// A file and its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FileImported {
    /// Its name as given.
    pub file: String,
    /// Its rows.
    pub rows: u64,
    /// Rows with a label.
    pub labelled: u64,
    /// Values that lost digits beyond the sixth decimal.
    pub rounded: u64,
    /// Its events; `files` counts the file itself.
    #[serde(flatten)]
    pub events: EventCounts,
}

/// A file, and what would become of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FileRehearsed {
    /// The file and the events that would be.
    #[serde(flatten)]
    pub file: FileImported,
    /// Policies in it, by name.
    pub policies: Vec<String>,
    /// The least and the largest score, on the scale of the file; `null` without any.
    pub score_range: Option<[f64; 2]>,
    /// The least and the largest label, on the scale of the file; `null` without any.
    pub label_range: Option<[f64; 2]>,
    /// From which column or member each field came.
    pub mapping: BTreeMap<String, String>,
    /// Scores that differ from those on record.
    pub conflicts: u64,
}

/// What follows from when rows were sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TimeGrade {
    /// Whether a gap in time between splits can be checked, in words.
    pub gap: &'static str,
    /// The grade that follows, in words.
    pub grade: &'static str,
}

/// Files that were imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FilesImported {
    /// Each file.
    pub files: Vec<FileImported>,
    /// What their times allow.
    #[serde(flatten)]
    pub time: TimeGrade,
    /// Events of all files together.
    pub recorded: EventCounts,
}

/// Files that would be imported.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FilesRehearsed {
    /// Each file.
    pub files: Vec<FileRehearsed>,
    /// What their times allow.
    #[serde(flatten)]
    pub time: TimeGrade,
}

impl From<IntakeCounts> for NewAndAlready {
    fn from(of: IntakeCounts) -> Self {
        Self {
            new: of.new,
            already: of.already,
        }
    }
}

impl From<&Counts> for EventCounts {
    fn from(of: &Counts) -> Self {
        Self {
            scores: of.scores.into(),
            labels: of.labels.into(),
            sealed: of.sealed.into(),
            logprobs: of.logprobs.into(),
            files: of.files.into(),
        }
    }
}

impl FileImported {
    fn of(rows: &ImportRows, counts: &Counts) -> Self {
        Self {
            file: rows.file.clone(),
            rows: rows.rows.len() as u64,
            labelled: rows.labelled(),
            rounded: rows.rounded,
            events: counts.into(),
        }
    }
}

impl FileRehearsed {
    fn of(rows: &ImportRows, plan: &ImportPlan) -> Self {
        let policies = rows.policies();
        Self {
            file: FileImported::of(rows, &Counts::of(plan)),
            policies: policies.into_iter().map(ToString::to_string).collect(),
            score_range: range(rows.rows.iter().map(|row| row.score)),
            label_range: range(rows.rows.iter().filter_map(|row| row.label)),
            mapping: rows.mapping.clone(),
            conflicts: plan.conflicts.len() as u64,
        }
    }
}

impl TimeGrade {
    fn of(files: &[InputFile]) -> Self {
        if files.iter().all(|file| file.rows.sampled().is_some()) {
            return Self {
                gap: "checked when splits are formed",
                grade: "as the split allows",
            };
        }
        Self {
            gap: "not_checked",
            grade: "EXPLORATORY",
        }
    }

    /// The grade is that of a confirm block of these rows: values that are estimated from them do not rest on times.
    fn pairs(self) -> [(&'static str, String); 2] {
        [
            ("time gap", self.gap.to_owned()),
            ("as confirm rows", self.grade.to_owned()),
        ]
    }
}

fn range(values: impl Iterator<Item = Micro> + Clone) -> Option<[f64; 2]> {
    let ends = values.clone().min().zip(values.max())?;
    let number = |value: Micro| value.value() as f64 / 1e6;
    Some([number(ends.0), number(ends.1)])
}

fn range_in_words(range: Option<[f64; 2]>) -> String {
    range.map_or("none".to_owned(), |[low, high]| format!("{low} to {high}"))
}

fn words(of: &NewAndAlready) -> String {
    format!(
        "{} new, {} already",
        thousands(of.new),
        thousands(of.already)
    )
}

fn cell(of: &NewAndAlready) -> String {
    match (thousands(of.new), of.already) {
        (new, 0) if of.new > 0 => format!("+{new}"),
        (_, 0) => "-".to_owned(),
        (new, already) => format!("+{new} ({} already)", thousands(already)),
    }
}

/// What files would add, and how they were read.
pub fn rehearsed(files: &[InputFile], plans: &[ImportPlan]) -> View {
    let each = files.iter().zip(plans);
    let facts = FilesRehearsed {
        files: each
            .map(|(file, plan)| FileRehearsed::of(&file.rows, plan))
            .collect(),
        time: TimeGrade::of(files),
    };
    let mut view = View::of(&facts).with_verdict("dry_run");
    for (of, read) in facts.files.iter().zip(files) {
        let events = &of.file.events;
        let (scores, labels) = (
            range_in_words(of.score_range),
            range_in_words(of.label_range),
        );
        let mapping = of.mapping.iter();
        let mapping: Vec<_> = mapping
            .map(|(field, from)| format!("{field}={from}"))
            .collect();
        view.pairs([
            ("file", of.file.file.clone()),
            ("policies", of.policies.join(", ")),
            ("records", thousands(read.rows.read)),
            ("scores", format!("{scores}, {}", words(&events.scores))),
            (
                "labels",
                format!("{} in the file, {labels}", thousands(of.file.labelled)),
            ),
            ("open", words(&events.labels)),
            ("sealed", words(&events.sealed)),
            ("logprobs", words(&events.logprobs)),
            ("conflicts", of.conflicts.to_string()),
            ("rounded", of.file.rounded.to_string()),
            ("mapping", mapping.join(", ")),
        ]);
        view.gap();
    }
    view.pairs(facts.time.pairs());
    view
}

/// What files added, and what stood in the ledger already.
pub fn imported(ledger: &Ledger, files: &[InputFile], counts: &[Counts]) -> View {
    let total = Counts::sum(counts);
    let each = files.iter().zip(counts);
    let facts = FilesImported {
        files: each
            .map(|(file, counts)| FileImported::of(&file.rows, counts))
            .collect(),
        time: TimeGrade::of(files),
        recorded: (&total).into(),
    };
    let mut view = View::of(&facts);
    let rows = facts.files.iter().map(|of| {
        vec![
            of.file.clone(),
            thousands(of.rows),
            cell(&of.events.scores),
            cell(&of.events.labels),
            cell(&of.events.sealed),
            cell(&of.events.logprobs),
        ]
    });
    let head = ["file", "rows", "scores", "labels", "sealed", "logprobs"];
    view.table(&head, rows);
    let (added, already) = (total.added(), total.already());
    let nothing = if added == 0 { " · nothing new" } else { "" };
    let root = ledger.root().to_base64();
    let size = thousands(ledger.size());
    let mut pairs = vec![("recorded", format!("{added}, already {already}{nothing}"))];
    pairs.extend(facts.time.pairs());
    pairs.push((LOG, format!("{size} entries · root {root}")));
    view.pairs(pairs);
    view.checkpoint = Some((ledger.size(), root));
    view.with_verdict(if added == 0 {
        "already_recorded"
    } else {
        "appended"
    })
}
