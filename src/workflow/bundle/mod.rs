//! The report of an iteration: what the log says of it, part by part, each number with the entry that says it.
//!
//! [`read`] takes what belongs to an iteration out of the log, [`bundle`] arranges it; nothing is computed but counts,
//! products and differences of recorded numbers. What needs rows is computed by `workflow` and handed in as [`Extra`]s.
//! Renderings are `report`'s.

mod before;
mod decided;
mod gates;
mod judged;
mod standing;
mod story;

pub use story::Said;
pub use story::Story;
pub use story::read;

use crate::event::id::Text;
use crate::event::payload::BlobRef;
use crate::event::payload::MediaType;
use crate::event::payload::report::ReportPublished;
use crate::ground::digest::Digest;
use crate::ground::time::Timestamp;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::State;
use crate::ledger::read::Read;
use crate::num::Count;
use crate::projection::bundle::BUNDLE_LABEL;
use crate::projection::bundle::Bundle;
use crate::projection::bundle::Cited;
use crate::projection::bundle::Part;
use crate::workflow::iterate::steps::BUILD;

/// Arranges what is known of an iteration. `state` is that of the log at the story's last entry; `extras` are parts
/// that were computed from rows, each taking the place of what its part lacked.
///
/// # Errors
/// [`LedgerError`].
pub fn bundle(
    ledger: &Ledger,
    story: &Story,
    state: &State,
    extras: Vec<Part>,
) -> Result<Bundle, LedgerError> {
    let names = story.names();
    let mut parts = vec![
        decided::decision(story, &names),
        gates::gates(story, &names),
        judged::target(story, &names),
        judged::versions(story, state),
        judged::values(story),
        before::calibration(story, &names),
        before::slices(story, &names),
        before::segments(story),
        before::residuals(story),
        before::transport(story, &names),
        gates::gaming(story, &names),
        judged::uncertainty(story, &names),
        judged::labels(story),
        decided::complexity(story),
        decided::diffs(story),
        standing::budgets(story, state),
        standing::assumptions(story, state),
    ];
    for extra in extras {
        join(&mut parts, extra);
    }
    for part in &mut parts {
        if !part.is_present() && part.missing.is_empty() {
            part.lacks(part.title, "no entry of this log says anything of it");
        }
    }
    let mut bundle = Bundle {
        events: Vec::new(),
        experiment: story.experiment.clone(),
        format: BUNDLE_LABEL,
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
    Ok(bundle)
}

fn cited(read: &Read, state: &State) -> Cited {
    let author = read.event.header.author;
    let holder = state.keyring.keys.get(&author);
    Cited {
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
pub fn published(bundle: &Bundle) -> ReportPublished {
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
        present: bundle.present(),
        through_seq: count(bundle.through_seq),
    }
}

fn join(parts: &mut [Part], extra: Part) {
    if let Some(part) = parts.iter_mut().find(|part| part.part == extra.part) {
        part.missing = extra.missing;
        part.facts.extend(extra.facts);
        part.tables.extend(extra.tables);
        part.listings.extend(extra.listings);
    }
}
