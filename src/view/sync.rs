//! A ledger that several people share through a folder: what one `clover sync` did.

use serde::Serialize;

use crate::ground::shell;
use crate::ledger::Ledger;
use crate::view::View;
use crate::view::signed::FileTaken;
use crate::view::signed::put_files;
use crate::view::text::escape;
use crate::view::text::thousands;

/// A file that a rule refuses as the ledger stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FileRefused {
    /// Its name.
    pub file: String,
    /// Why.
    pub message: String,
}

/// What the copy that publishes did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PublisherSync {
    /// The shared folder.
    pub folder: String,
    /// Entries that this copy lacked and took from the folder.
    pub fetched: u64,
    /// Files that were taken in.
    pub taken: Vec<FileTaken>,
    /// Files that a rule refuses; they stay until their authors take them back.
    pub refused: Vec<FileRefused>,
    /// Entries that are published now and were not before.
    pub published: u64,
}

/// What a reader's copy did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReaderSync {
    /// The shared folder.
    pub folder: String,
    /// Entries that are new here.
    pub fetched: u64,
    /// Files of this person that are recorded now.
    pub recorded: u64,
    /// Files of this person that a rule refuses; they were taken back.
    pub refused: Vec<FileRefused>,
    /// Files of this person that wait in the folder.
    pub waiting: u64,
    /// The log key of this ledger.
    pub log_key: String,
    /// Whether the copy was made just now.
    pub is_new: bool,
}

fn headed(view: &mut View, ledger: &Ledger) {
    let root = ledger.root().to_base64();
    view.line(format!(
        "{} entries · root {root}",
        thousands(ledger.size())
    ));
    view.checkpoint = Some((ledger.size(), root));
}

/// The answer of the copy that publishes.
pub fn served(ledger: &Ledger, facts: &PublisherSync) -> View {
    let mut view = View::of(facts).with_verdict("published");
    if facts.fetched > 0 {
        let fetched = thousands(facts.fetched);
        view.line(format!(
            "fetched {fetched} entries that were published and not here"
        ));
    }
    put_files(&mut view, &facts.taken);
    for one in &facts.refused {
        view.line(format!("refused {}: {}", one.file, escape(&one.message)));
    }
    view.line(format!(
        "published {} entries in {}",
        thousands(facts.published),
        facts.folder
    ));
    headed(&mut view, ledger);
    view
}

/// The answer of a reader's copy.
pub fn followed(ledger: &Ledger, facts: &ReaderSync) -> View {
    let mut view = View::of(facts).with_verdict("followed");
    view.line(format!(
        "fetched {} entries from {}",
        thousands(facts.fetched),
        facts.folder
    ));
    if facts.recorded > 0 {
        view.line(format!("{} files of yours are recorded", facts.recorded));
    }
    for one in &facts.refused {
        view.line(format!("refused {}: {}", one.file, escape(&one.message)));
    }
    if facts.waiting > 0 {
        view.line(format!(
            "{} files of yours wait for the writer",
            facts.waiting
        ));
    }
    headed(&mut view, ledger);
    if facts.is_new {
        view.line(format!("log key {}", facts.log_key));
        view.sentence(
            "Compare the log key by voice with the owner, who reads it by: clover key export --log. A copy that begins from a folder knows only that the folder agrees with itself.",
        );
        let key = shell::word(&facts.log_key);
        return view.with_next(format!("clover verify --log-key {key}"));
    }
    view
}
