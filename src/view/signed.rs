//! Events that were signed where the log is not written, and what became of them where it is.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::event::SeenCheckpoint;
use crate::event::header;
use crate::ground::shell;
use crate::ledger::AppendedEvent;
use crate::ledger::Ledger;
use crate::session::outbox::SignedBatch;
use crate::store::StoreError;
use crate::view::View;
use crate::view::text::thousands;

/// An event that was signed and not appended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SignedEvents {
    /// The file for whoever writes the log.
    pub file: String,
    /// Ids of the events in it.
    pub ids: Vec<String>,
    /// The key that signed the first.
    pub author: String,
    /// The author's number of the first.
    pub author_seq: u64,
    /// Entries of the checkpoint that they have seen.
    pub seen_size: u64,
    /// Its root, in base64.
    pub seen_root: String,
    /// Files that wait in the outbox, this one among them.
    pub waiting: u64,
}

/// Where an event of a file stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EventTaken {
    /// It stood in the ledger before.
    pub already: bool,
    /// Its id.
    pub id: String,
    /// Its kind; `null` where it cannot be read.
    pub kind: Option<&'static str>,
    /// When the ledger took it in.
    pub recorded_at: Option<String>,
    /// Its position.
    pub seq: u64,
}

/// A file whose events stand in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FileTaken {
    /// Its name.
    pub file: String,
    /// Its events, in their order.
    pub results: Vec<EventTaken>,
}

/// Files of signed events that were taken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SubmissionFacts {
    /// Events that are new.
    pub appended: u64,
    /// Events that stood in the ledger already.
    pub already: u64,
    /// File by file.
    pub files: Vec<FileTaken>,
}

impl FileTaken {
    /// Of a file and where its events stand.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn new(
        ledger: &Ledger,
        file: String,
        appended: &[AppendedEvent],
    ) -> Result<Self, StoreError> {
        let reader = ledger.store().reader();
        let results = appended.iter().map(|one| {
            let stored = reader.entry(one.seq)?;
            let body = stored.as_ref();
            let decoded = body.and_then(|stored| header::decode(&stored.body).ok());
            let payload = decoded.and_then(|decoded| decoded.payload.ok());
            Ok(EventTaken {
                already: one.already,
                id: one.id.to_string(),
                kind: payload.map(|payload| payload.kind().as_str()),
                recorded_at: stored.map(|stored| stored.recorded_at.to_string()),
                seq: one.seq,
            })
        });
        let results = results.collect::<Result<_, StoreError>>()?;
        Ok(Self { file, results })
    }
}

/// An event that was signed into a file; `is_synced` where a shared folder carries it to whoever writes the log.
pub fn signed(
    batch: &SignedBatch,
    file: &Path,
    seen: SeenCheckpoint,
    (waiting, is_synced): (usize, bool),
) -> View {
    let (author, author_seq) = batch.first();
    let facts = SignedEvents {
        file: file.display().to_string(),
        ids: batch.ids().iter().map(ToString::to_string).collect(),
        author: author.to_string(),
        author_seq,
        seen_size: seen.size.value(),
        seen_root: seen.root.0.to_base64(),
        waiting: waiting as u64,
    };
    let mut view = View::of(&facts).with_verdict("signed");
    view.line(format!("signed {} · {}", facts.ids.join(" "), facts.file));
    view.pairs([
        ("number", format!("{author_seq} of key {author}")),
        ("seen", format!("the first {} entries", facts.seen_size)),
    ]);
    view.events.clone_from(&facts.ids);
    if is_synced {
        view.sentence("It is not recorded yet: it waits in your outbox, and clover sync sends it.");
        return view.with_next("clover sync");
    }
    view.sentence("It is not recorded yet: whoever writes the log submits the file.");
    view.with_next(format!("clover submit {}", shell::word(&facts.file)))
}

/// Where each event of files stands that were taken in.
fn put_taken(view: &mut View, files: &[FileTaken]) {
    for file in files {
        for one in &file.results {
            let already = if one.already {
                "  already recorded"
            } else {
                ""
            };
            view.line(format!(
                "seq {}  {}  {}{already}",
                one.seq, one.id, file.file
            ));
        }
    }
}

/// Where the events of each file stand, in one line a file.
pub(super) fn put_files(view: &mut View, files: &[FileTaken]) {
    for file in files {
        let seqs = || file.results.iter().map(|one| one.seq);
        let (Some(first), Some(last)) = (seqs().min(), seqs().max()) else {
            continue;
        };
        let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
        for one in &file.results {
            *kinds.entry(one.kind.unwrap_or("unread")).or_default() += 1;
        }
        let kinds = kinds.into_iter();
        let kinds = kinds.map(|(kind, count)| format!("{} {kind}", thousands(count)));
        let already = file.results.iter().filter(|one| one.already).count() as u64;
        let already = match already {
            0 => String::new(),
            _ => format!("; {} recorded before", thousands(already)),
        };
        let place = if first == last {
            format!("seq {first}")
        } else {
            format!("seq {first} to {last}")
        };
        view.line(format!(
            "{place}  {}  {}{already}",
            kinds.collect::<Vec<_>>().join(", "),
            file.file
        ));
    }
}

/// Files that were taken in.
pub fn submitted(ledger: &Ledger, files: Vec<FileTaken>) -> View {
    let results = || files.iter().flat_map(|file| &file.results);
    let already = results().filter(|one| one.already).count() as u64;
    let appended = results().count() as u64 - already;
    let events = results().map(|one| one.id.clone()).collect();
    let facts = SubmissionFacts {
        appended,
        already,
        files,
    };
    let mut view = View::of(&facts);
    put_taken(&mut view, &facts.files);
    view.events = events;
    view.verdict = match appended {
        0 => "already_recorded",
        _ => "appended",
    };
    view.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    view
}
