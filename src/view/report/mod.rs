//! Reports: what documents are made of, and what the verb answers; those of iterations are published, listed and read
//! back too.

pub mod change;
mod compared;
mod course;
pub mod coverage;
pub mod descent;
pub mod documents;
mod environments;
pub mod erasure;
pub mod estimate;
pub mod evidence;
pub mod experiment;
pub mod expiry;
pub mod gate;
mod gate_steps;
mod independence;
pub mod iteration;
pub mod made;
mod model_runs;
mod picked;
mod principles;
mod registers;
pub mod repair;
mod repair_measured;
mod repair_traces;
pub mod requirements;
pub mod retention;
pub mod samples;
pub mod trail;
pub mod values;
mod versions;
mod withheld;

use serde::Serialize;

use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::id::IterationId;
use crate::event::payload::report::ReportGap;
use crate::event::payload::report::ReportPart;
use crate::event::payload::report::ReportPublished;
use crate::ground::shell;
use crate::projection::bundle::Bundle;
use crate::projection::bundle::Section;
use crate::report::document::Document;
use crate::report::iteration::OwnReasons;
use crate::report::shown;
use crate::view::View;
use crate::view::appended;

/// Something that a report does not show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GapShown {
    /// The part that lacks it.
    pub part: ReportPart,
    /// What is not shown.
    pub what: String,
    /// Why.
    pub why: String,
}

impl GapShown {
    fn all(gaps: &[ReportGap]) -> Vec<Self> {
        let of = |gap: &ReportGap| Self {
            part: gap.part,
            what: gap.what.as_str().to_owned(),
            why: gap.why.as_str().to_owned(),
        };
        gaps.iter().map(of).collect()
    }

    fn sentence(&self) -> String {
        let title = shown::title(self.part.title());
        let (what, why) = (shown::words(&self.what), shown::words(&self.why));
        format!("not shown: {title}: {what} ({why})")
    }
}

/// A part of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PartShown {
    /// Which part.
    pub part: ReportPart,
    /// How much of it there is: `whole`, `in part` or `missing`.
    pub standing: &'static str,
    /// Its facts and rows of its tables.
    pub rows: u64,
}

impl PartShown {
    fn of(part: &Section) -> Self {
        let rows = part.tables.iter().map(|table| table.rows.len()).sum();
        let rows: usize = rows;
        Self {
            part: part.part,
            standing: match (part.is_present(), part.missing.is_empty()) {
                (false, _) => "missing",
                (true, false) => "in part",
                (true, true) => "whole",
            },
            rows: (rows + part.facts.len()) as u64,
        }
    }
}

/// The report of an iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IterationReport {
    /// The iteration.
    pub iteration: IterationId,
    /// Its experiment.
    pub experiment: ExperimentId,
    /// What was decided, and whether it was rolled back since.
    pub answer: String,
    /// When it opened and ended, and by whom, in words.
    pub period: String,
    /// The last entry that was read.
    pub through_seq: u64,
    /// The digest of its bundle, in hex: `schema/REPORT.md` gives the bytes.
    pub bundle_hash: String,
    /// Its parts, in reading order.
    pub parts: Vec<PartShown>,
    /// Parts that show anything, in the order of their words.
    pub present: Vec<ReportPart>,
    /// What it does not show.
    pub gaps: Vec<GapShown>,
    /// The report in the form of `--format`, where no file was named; of `json` these are the bytes of the bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// Bytes of the file that was written; absent where none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl IterationReport {
    /// Of a bundle, and the document that is drawn of it.
    pub fn of(bundle: &Bundle, document: &Document) -> Self {
        Self {
            iteration: bundle.iteration.clone(),
            experiment: bundle.experiment.clone(),
            answer: document.head.answer.clone(),
            period: document.head.period.clone(),
            through_seq: bundle.through_seq,
            bundle_hash: bundle.digest().to_hex(),
            parts: bundle.parts.iter().map(PartShown::of).collect(),
            present: bundle.present(),
            gaps: GapShown::all(&bundle.gaps()),
            document: None,
            bytes: None,
        }
    }
}

/// What a publication says beside where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PublicationFacts {
    /// The digest of the bundle, in hex.
    pub bundle_hash: String,
    /// What the report does not show.
    pub gaps: Vec<GapShown>,
}

/// A report on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReportRow {
    /// The entry of its publication.
    pub seq: u64,
    /// The id of that event, in hex.
    pub id: String,
    /// The iteration.
    pub iteration: IterationId,
    /// The last entry that was read.
    pub through_seq: u64,
    /// How many things it does not show.
    pub gaps: u64,
    /// The newest report of the same iteration; `null` where this is it.
    pub superseded_by: Option<u64>,
    /// The digest of the bundle, in hex.
    pub bundle_hash: String,
    /// BLAKE3 of the bundle's bytes, in hex: `clover blob get` reads them.
    pub blake3: String,
}

/// Every report on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReportList {
    /// In the order of the log.
    pub reports: Vec<ReportRow>,
}

/// One report on record, whose bundle is what was signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReportShown {
    /// The entry of its publication.
    pub seq: u64,
    /// The iteration.
    pub iteration: IterationId,
    /// The last entry that was read.
    pub through_seq: u64,
    /// The digest of the bundle, in hex.
    pub bundle_hash: String,
    /// Parts that show anything, in the order of their words.
    pub present: Vec<ReportPart>,
    /// What it does not show.
    pub gaps: Vec<GapShown>,
}

/// What a report shows of each part, and what it lacks.
pub fn summary(bundle: &Bundle, document: &Document) -> View {
    let facts = IterationReport::of(bundle, document);
    let mut view = View::of(&facts);
    documents::head(&mut view, document);
    view.line(format!(
        "iteration {}  experiment {}  entries 0 to {}",
        facts.iteration, facts.experiment, facts.through_seq
    ));
    view.gap();
    let rows = facts.parts.iter().map(|of| {
        let (part, standing) = (of.part.to_string(), of.standing.to_owned());
        vec![part, standing, of.rows.to_string()]
    });
    view.table(&["part", "shown", "rows"], rows);
    view.gap();
    lacking(&mut view, bundle);
    view.line(format!("bundle {}", bundle.digest()));
    let iteration = shell::word(&bundle.iteration);
    view.with_next(format!(
        "clover report iteration {iteration} -o report.html"
    ))
}

/// What a report lacks, in its own words: an event bounds them.
fn lacking(view: &mut View, bundle: &Bundle) {
    let own = OwnReasons::of(bundle);
    for part in &bundle.parts {
        for gap in &part.missing {
            let title = shown::title(part.title);
            let why = own.why(gap).unwrap_or(&gap.why);
            let (what, why) = (shown::words(&gap.what), shown::words(why));
            view.sentence(format!("not shown: {title}: {what} ({why})"));
        }
    }
}

/// A report that was written to a file.
pub fn written((bundle, drawn): (&Bundle, &Document), file: &str, bytes: usize) -> View {
    let facts = IterationReport {
        bytes: Some(bytes as u64),
        ..IterationReport::of(bundle, drawn)
    };
    let mut view = View::of(&facts);
    view.answer(facts.answer.clone());
    view.line(format!("{file}: {bytes} bytes"));
    lacking(&mut view, bundle);
    let iteration = shell::word(&bundle.iteration);
    view.with_next(format!("clover report iteration {iteration} --publish"))
}

/// A report in the form asked for, for programs; people read it as it is.
pub fn document((bundle, drawn): (&Bundle, &Document), document: String) -> View {
    View::of(&IterationReport {
        document: Some(document),
        ..IterationReport::of(bundle, drawn)
    })
}

/// Adds the bundle to the view of its publication; `written` is a file with its length in bytes.
///
/// # Panics
/// Where the view is none of an append, which the first test of the verb finds.
pub fn published(mut view: View, bundle: &Bundle, written: Option<(String, usize)>) -> View {
    if let Some((file, bytes)) = written {
        view.line(format!("{file}: {bytes} bytes"));
    }
    view.line(format!("bundle {}", bundle.digest()));
    let facts = PublicationFacts {
        bundle_hash: bundle.digest().to_hex(),
        gaps: GapShown::all(&bundle.gaps()),
    };
    appended::and(view, &facts)
}

/// Every report on record: positions, ids and what was said.
pub fn list(found: &[(u64, EventId, ReportPublished)]) -> View {
    let newest = |iteration: &IterationId| {
        let mut newer = found.iter().rev();
        let same = newer.find(|(_, _, said)| said.iteration == *iteration);
        same.map(|(seq, ..)| *seq)
    };
    let reports = found.iter().map(|(seq, id, said)| ReportRow {
        seq: *seq,
        id: id.to_string(),
        iteration: said.iteration.clone(),
        through_seq: said.through_seq.value(),
        gaps: said.gaps.len() as u64,
        superseded_by: newest(&said.iteration).filter(|by| by != seq),
        bundle_hash: said.bundle_hash.to_hex(),
        blake3: said.bundle.blake3.to_hex(),
    });
    let facts = ReportList {
        reports: reports.collect(),
    };
    let mut view = View::of(&facts);
    let rows = facts.reports.iter().zip(found).map(|(of, (_, _, said))| {
        let by = of.superseded_by;
        vec![
            of.seq.to_string(),
            of.iteration.to_string(),
            format!("0 to {}", of.through_seq),
            of.gaps.to_string(),
            by.map_or("newest".to_owned(), |by| format!("superseded at seq {by}")),
            said.bundle_hash.short().to_string(),
        ]
    });
    let head = [
        "seq",
        "iteration",
        "entries read",
        "gaps",
        "standing",
        "bundle",
    ];
    view.table(&head, rows);
    view
}

/// One report on record; `written` is the file of its bundle with its length in bytes.
pub fn show(seq: u64, said: &ReportPublished, written: Option<(String, usize)>) -> View {
    let facts = ReportShown {
        seq,
        iteration: said.iteration.clone(),
        through_seq: said.through_seq.value(),
        bundle_hash: said.bundle_hash.to_hex(),
        present: said.present.clone(),
        gaps: GapShown::all(&said.gaps),
    };
    let mut view = View::of(&facts);
    view.pairs([
        ("iteration", said.iteration.to_string()),
        ("published", format!("seq {seq}")),
        ("entries read", format!("0 to {}", said.through_seq)),
        ("bundle", format!("{}, as signed", said.bundle_hash)),
        ("assumptions", said.assumptions_digest.to_hex()),
        ("computed by", said.build.as_str().to_owned()),
    ]);
    for gap in &facts.gaps {
        view.sentence(gap.sentence());
    }
    if let Some((file, bytes)) = written {
        view.line(format!("{file}: {bytes} bytes"));
    }
    view.with_next(format!(
        "clover at {} -- report iteration {} -o report.html",
        said.through_seq,
        shell::word(&said.iteration)
    ))
}
