//! The report of an iteration: what the log says of it, part by part, each number with the entry that says it.
//!
//! A [`Story`] is what belongs to an iteration, out of the log, [`bundle`] arranges it. From entries nothing is computed
//! but counts, products and differences of recorded numbers; under [`ReportLayout::Rows`] the rows that the iteration
//! read are read again, and parts that need them join. Renderings are `report`'s.
//!
//! A report without a layout is one from before parts were computed from rows; it is written as it was then, to the
//! byte, so that published ones can be recomputed.

mod before;
pub mod decided;
pub mod gates;
mod judged;
mod measured;
mod standing;
mod uncertain;

use clover_event::id::Text;
use clover_event::payload::BlobRef;
use clover_event::payload::MediaType;
use clover_event::payload::report::ReportLayout;
use clover_event::payload::report::ReportPart;
use clover_event::payload::report::ReportPublished;
use clover_ground::digest::Digest;
use clover_ground::time::Timestamp;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_ledger::State;
use clover_ledger::read::LogEntry;
use clover_num::Count;
use clover_projection::bundle::Bundle;
use clover_projection::bundle::Citation;
use clover_projection::bundle::Names;
use clover_projection::bundle::Section;
use clover_projection::bundle::label;
use clover_projection::iterations::story::Story;

use crate::bundle::measured::NotRead;
use crate::iterate::steps::BUILD;

/// A report as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportText {
    /// The report.
    pub bundle: Bundle,
    /// Why nothing in it comes from rows, where its layout asks for that.
    pub unread: Option<String>,
}

/// Arranges what is known of an iteration. `state` is that of the log at the story's last entry.
///
/// # Errors
/// [`LedgerError`].
pub fn bundle(ledger: &Ledger, story: &Story, state: &State) -> Result<ReportText, LedgerError> {
    let names = story.names();
    let mut parts = said(story, state, &names);
    let mut unread = None;
    if story.layout == Some(ReportLayout::Rows) {
        match measured::read(ledger, story, &names) {
            Ok(found) => {
                for extra in found.parts(ledger, story, state)? {
                    join(&mut parts, extra);
                }
            }
            Err(NotRead::Ledger(error)) => return Err(error),
            Err(NotRead::Why(why)) => {
                without_rows(&mut parts, &why);
                unread = Some(why);
            }
        }
    }
    for part in &mut parts {
        if !part.is_present() && part.missing.is_empty() {
            part.lacks(part.title, "no entry of this log says anything of it");
        }
    }
    let mut bundle = Bundle {
        events: Vec::new(),
        experiment: story.experiment.clone(),
        format: label(story.layout),
        iteration: story.iteration.clone(),
        ledger: state.keyring.origin.clone(),
        parts,
        through_seq: story.through_seq,
    };
    for seq in bundle.cited() {
        if let Some(read) = ledger.entry(seq)? {
            bundle.events.push(cited(&read, state));
        }
    }
    Ok(ReportText { bundle, unread })
}

/// Every part as far as entries say it, in reading order.
fn said(story: &Story, state: &State, names: &Names) -> Vec<Section> {
    vec![
        decided::decision(story, state, names),
        gates::gates(story, names),
        judged::target(story, state, names),
        judged::versions(story, state),
        judged::values(story, state),
        before::calibration(story, names),
        before::slices(story, names),
        before::segments(story),
        before::residuals(story),
        before::transport(story, names),
        gates::gaming(story, names),
        uncertain::uncertainty(story, state, names),
        uncertain::labels(story, state),
        decided::complexity(story, state),
        decided::diffs(story, state),
        standing::budgets(story, state),
        standing::assumptions(story, state),
    ]
}

/// What the parts lack that come from rows.
const FROM_ROWS: [(ReportPart, &str); 7] = [
    (
        ReportPart::Calibration,
        "root mean squared errors and the calibration curve",
    ),
    (
        ReportPart::Slices,
        "residuals of slices under the patched rubric",
    ),
    (
        ReportPart::Segments,
        "the shortest patch that brings each within .03",
    ),
    (ReportPart::Residuals, "residuals by tenth of the reward"),
    (
        ReportPart::Transport,
        "environments under the rubric in force",
    ),
    (ReportPart::Values, "values over the logs of the iteration"),
    (ReportPart::Complexity, "rules that never fire"),
];

fn without_rows(parts: &mut [Section], why: &str) {
    for (of, what) in FROM_ROWS {
        if let Some(part) = parts.iter_mut().find(|part| part.part == of) {
            part.lacks(what, why);
        }
    }
}

fn cited(read: &LogEntry, state: &State) -> Citation {
    let author = read.event.header.author;
    let holder = state.keyring.keys.get(&author);
    Citation {
        author,
        holder: holder.map_or_else(String::new, |key| key.holder.to_string()),
        id: read.event.id,
        kind: read.event.kind().as_str(),
        recorded_at: read.stored.recorded_at,
        seq: read.stored.seq,
    }
}

/// The time of the newest entry.
fn ledger_time(state: &State) -> Timestamp {
    state.keyring.recorded_at.unwrap_or(Timestamp::EPOCH)
}

/// The event that gives a bundle out; its bytes go into the ledger's blobs.
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn published(bundle: &Bundle, layout: Option<ReportLayout>) -> ReportPublished {
    let bytes = bundle.to_bytes();
    let count = |value: u64| Count::new(value).expect("BUG: a log and a report are below 2^53");
    ReportPublished {
        assumptions_digest: bundle.assumptions_digest(),
        build: Text::new(BUILD).expect("BUG: a short plain word"),
        bundle: BlobRef {
            blake3: Digest::blake3(&bytes),
            bytes: count(bytes.len() as u64),
            media: MediaType::new("application/json").expect("BUG: a media type"),
        },
        bundle_hash: bundle.digest(),
        gaps: bundle.gaps(),
        iteration: bundle.iteration.clone(),
        layout,
        present: bundle.present(),
        through_seq: count(bundle.through_seq),
    }
}

fn join(parts: &mut [Section], extra: Section) {
    if let Some(part) = parts.iter_mut().find(|part| part.part == extra.part) {
        part.missing.extend(extra.missing);
        part.facts.extend(extra.facts);
        part.tables.extend(extra.tables);
        part.listings.extend(extra.listings);
    }
}
