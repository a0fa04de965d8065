//! Entries of the log as they stand: listed, shown, and proven to be in it.

use serde::Serialize;
use serde_json::Value;

use crate::ground::canon;
use crate::ground::digest::Digest;
use crate::ground::merkle;
use crate::ground::note::ProofFile;
use crate::ledger;
use crate::ledger::State;
use crate::ledger::read::LogEntry;
use crate::view::View;
use crate::view::text::Screen;
use crate::view::text::cut;
use crate::view::text::escape;
use crate::view::text::escape_lines;
use crate::view::text::short_time;

/// An entry.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EntryFacts {
    /// Its position.
    pub seq: u64,
    /// When the ledger took it: RFC 3339, UTC, with microseconds.
    pub recorded_at: String,
    /// The id of its event, in hex.
    pub id: String,
    /// The body as it was signed: free JSON, whose `data` the schema of its kind in `schema/event/` describes.
    pub body: Value,
}

/// Entries of the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EntryList {
    /// In the order of the log.
    pub entries: Vec<EntryFacts>,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EntryShown {
    /// The entry.
    #[serde(flatten)]
    pub entry: EntryFacts,
    /// The hash of its leaf in the tree, in hex.
    pub leaf: String,
}

/// A proof that an entry is in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InclusionProof {
    /// The entry's position.
    pub seq: u64,
    /// Entries under the checkpoint of the proof.
    pub size: u64,
    /// Hashes in it.
    pub hashes: u64,
    /// The proof: a C2SP tlog-proof.
    pub proof: String,
}

/// A proof that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProofChecked {
    /// The position that the proof is about.
    pub index: u64,
    /// Entries under its checkpoint.
    pub size: u64,
    /// The hash of the entry line that was given, in hex.
    pub leaf: String,
}

/// The part of an entry that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryForm {
    /// Who signed what, in words.
    Readable,
    /// The entry line: the leaf of the tree.
    Line,
    /// The exact signed body.
    Body,
}

/// An entry as facts.
///
/// # Errors
/// Where its body is no JSON, which no ledger that verifies holds.
pub fn facts(read: &LogEntry) -> Result<EntryFacts, serde_json::Error> {
    Ok(EntryFacts {
        seq: read.stored.seq,
        recorded_at: read.stored.recorded_at.to_string(),
        id: read.event.id.to_string(),
        body: serde_json::from_slice(&read.stored.body)?,
    })
}

/// Entries that were listed, whose lines were written already.
pub fn listed((size, root): (u64, Digest), entries: Vec<EntryFacts>) -> View {
    let mut view = View::of(&EntryList { entries });
    view.checkpoint = Some((size, root.to_base64()));
    view
}

/// The heading of a list of entries.
pub fn head(screen: Screen) -> String {
    let line = format!(
        "{:>7}  {:20}  {:21}  {:12}  data",
        "seq", "recorded", "kind", "holder"
    );
    match screen {
        Screen::Pipe => format!("{line}\n"),
        Screen::Terminal(_) => format!("{}\n", cut(&line, screen.columns())),
    }
}

/// An entry as a line of a list: whole, or in a terminal as much of it as fits.
pub fn row(state: &State, read: &LogEntry, screen: Screen) -> String {
    let cut = |text: &str, width: usize| match screen {
        Screen::Pipe => text.to_owned(),
        Screen::Terminal(_) => cut(text, width),
    };
    let holder = state.keyring.keys.get(&read.event.header.author);
    let holder = holder.map_or("?", |record| record.holder.as_str());
    let data = canon::to_bytes(&read.event.payload).unwrap_or_default();
    let line = format!(
        "{:>7}  {:20}  {:21}  {:12}  {}",
        read.stored.seq,
        short_time(read.stored.recorded_at),
        read.event.kind().as_str(),
        cut(&escape(holder), 12),
        escape(&String::from_utf8_lossy(&data)),
    );
    format!("{}\n", cut(&line, screen.columns()))
}

/// The entry line of a stored entry.
fn line(read: &LogEntry) -> Vec<u8> {
    let mut line = Vec::new();
    ledger::write_stored(&mut line, &read.stored.as_ref());
    line
}

/// One entry.
///
/// # Errors
/// As [`facts`].
pub fn show(state: &State, read: &LogEntry, form: EntryForm) -> Result<View, serde_json::Error> {
    let line = line(read);
    let facts = EntryShown {
        entry: facts(read)?,
        leaf: merkle::leaf_hash(&line).to_hex(),
    };
    let mut view = View::of(&facts);
    match form {
        EntryForm::Line => view.source(String::from_utf8_lossy(&line)),
        EntryForm::Body => view.source(String::from_utf8_lossy(&read.stored.body)),
        EntryForm::Readable => readable(&mut view, state, read, &facts),
    }
    view.events = vec![facts.entry.id];
    Ok(view)
}

fn readable(view: &mut View, state: &State, read: &LogEntry, facts: &EntryShown) {
    let header = &read.event.header;
    let record = state.keyring.keys.get(&header.author);
    let holder = record.map(|record| format!("{} ({})", record.holder, record.roles));
    let seen = header.seen.map(|seen| {
        let root = seen.root.0.to_base64();
        format!("{} entries, root {root}", seen.size.value())
    });
    let experiment = header.experiment.as_ref().map(ToString::to_string);
    let or = |found: Option<String>, none: &str| found.unwrap_or_else(|| none.to_owned());
    let mut pairs = vec![
        ("seq", facts.entry.seq.to_string()),
        ("kind", format!("{} v{}", read.event.kind(), read.event.v)),
        ("id", facts.entry.id.clone()),
        ("holder", or(holder, "unknown")),
        (
            "author",
            format!("{} number {}", header.author, header.author_seq),
        ),
        ("at", header.at.to_string()),
        ("recorded", facts.entry.recorded_at.clone()),
        ("experiment", or(experiment, "none")),
        ("seen", or(seen, "nothing")),
        ("leaf", facts.leaf.clone()),
    ];
    pairs.extend(header.refs.iter().map(|id| ("ref", id.to_string())));
    view.pairs(pairs);
    view.source(escape_lines(&format!("{:#}", facts.entry.body["data"])));
}

/// A proof; `file` is where it was written, else it is shown.
pub fn proven(read: &LogEntry, proof: &ProofFile, file: Option<String>) -> View {
    let checkpoint = proof.checkpoint().checkpoint();
    let facts = InclusionProof {
        seq: read.stored.seq,
        size: checkpoint.size,
        hashes: proof.hashes().len() as u64,
        proof: proof.to_string(),
    };
    let mut view = View::of(&facts).with_verdict("proven");
    match file {
        None => view.source(facts.proof),
        Some(file) => view.line(format!(
            "{file}: entry {} under {} entries, {} hashes",
            facts.seq, facts.size, facts.hashes
        )),
    }
    view.events = vec![read.event.id.to_string()];
    view.checkpoint = Some((facts.size, checkpoint.root.to_base64()));
    view
}

/// A proof that holds.
pub fn proof_holds(proof: &ProofFile, facts: &ProofChecked) -> View {
    let checkpoint = proof.checkpoint().checkpoint();
    let root = checkpoint.root.to_base64();
    let mut view = View::of(facts).with_verdict("proven");
    view.line(format!(
        "PROVEN  entry {} of {} · {} · root {root}",
        facts.index, checkpoint.origin, facts.size
    ));
    view.checkpoint = Some((facts.size, root));
    view
}
