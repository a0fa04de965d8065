//! A ledger that was written somewhere else: exported, backed up, made again from an export.

use std::path::Path;

use serde::Serialize;

use crate::ground::note::Checkpoint;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::ledger::verify::Report;
use crate::session::Home;
use crate::view::View;
use crate::view::text::escape;
use crate::view::text::thousands;
use crate::view::verify::VerifyReport;

/// An export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Exported {
    /// Its folder; `null` where entry lines went to standard output.
    pub folder: Option<String>,
    /// Entries in it.
    pub entries: u64,
    /// Blobs in it.
    pub blobs: u64,
    /// Files that were written.
    pub files: u64,
}

/// A backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BackedUp {
    /// Its folder.
    pub folder: String,
    /// Names of the files in it.
    pub files: Vec<&'static str>,
    /// Entries of the ledger.
    pub entries: u64,
    /// Bytes of the ledger file.
    pub bytes: u64,
}

/// A ledger that was made from an export.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LedgerImported {
    /// The folder of the ledger.
    pub folder: String,
    /// Its entries.
    pub entries: u64,
    /// Its blobs.
    pub blobs: u64,
    /// What the verification of the export found.
    pub report: VerifyReport,
}

/// An export under a checkpoint; one that went to standard output is shown already.
pub fn exported(facts: &Exported, checkpoint: &Checkpoint) -> View {
    let mut view = View::of(facts);
    if let Some(folder) = &facts.folder {
        let root = checkpoint.root.to_base64();
        view.line(format!(
            "exported {} entries · {} blobs · {} files · root {root} · {folder}",
            thousands(facts.entries),
            facts.blobs,
            facts.files
        ));
        view.verdict = "exported";
        view.checkpoint = Some((checkpoint.size, root));
    }
    view
}

/// A backup into `target`.
pub fn backed_up(ledger: &Ledger, target: &Home, files: Vec<&'static str>, bytes: u64) -> View {
    let facts = BackedUp {
        folder: target.folder().display().to_string(),
        files,
        entries: ledger.size(),
        bytes,
    };
    let mut view = View::of(&facts).with_verdict("backed_up");
    view.line(format!(
        "backed up {} entries · {} bytes · {} · {}",
        thousands(facts.entries),
        thousands(bytes),
        facts.files.join(" "),
        facts.folder
    ));
    view.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    view.with_next(format!(
        "clover verify {}",
        shell::word(&target.database().display())
    ))
}

/// A ledger that was made from an export, of which `report` tells.
pub fn imported(home: &Home, ledger: &Ledger, report: &Report) -> View {
    let facts = LedgerImported {
        folder: home.folder().display().to_string(),
        entries: ledger.size(),
        blobs: ledger.store().reader().blob_count().unwrap_or(0),
        report: report.into(),
    };
    let root = ledger.root().to_base64();
    let mut view = View::of(&facts).with_verdict("imported");
    view.line(format!(
        "imported {} entries · {} blobs · root {root} · {}",
        thousands(facts.entries),
        facts.blobs,
        facts.folder
    ));
    view.line(escape(&report.verdict_line()));
    view.line(format!(
        "to be read by all; who holds the log key and keys of its authors may append: {}",
        home.log_key().display()
    ));
    view.checkpoint = Some((ledger.size(), root));
    let folder = home.folder().parent().unwrap_or(Path::new("."));
    view.with_next(format!(
        "clover replay --all --ledger {}",
        shell::word(&folder.display())
    ))
}
