//! A ledger that was written somewhere else: exported, backed up, made again from an export.

use std::path::Path;

use serde::Serialize;

use crate::ground::note::Checkpoint;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::ledger::verify::Report;
use crate::session::Home;
use crate::session::backup;
use crate::session::backup::Restoration;
use crate::view::View;
use crate::view::text::escape;
use crate::view::text::thousands;
use crate::view::verify::VerifyReport;

/// An export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExportFacts {
    /// Its format.
    pub format: &'static str,
    /// Its folder or file; `null` where it went to standard output.
    pub path: Option<String>,
    /// Entries of the log that it was made from.
    pub entries: u64,
    /// Of a format of other tools: what it holds, such as statements, cases, values or rows; `null` for the log itself.
    pub items: Option<u64>,
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
    pub files: Vec<String>,
    /// What belongs to the ledger and is not in it.
    pub left_out: Vec<String>,
    /// Entries of the ledger.
    pub entries: u64,
    /// Bytes of the ledger file; of all files, where everything was backed up.
    pub bytes: u64,
}

/// A ledger that was restored from a backup of everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LedgerRestored {
    /// The folder of the ledger.
    pub folder: String,
    /// Its entries.
    pub entries: u64,
    /// Key files that were written; those that were here stay as they are.
    pub keys: Vec<String>,
    /// Subjects whose keys were in the backup and are destroyed, as the ledger says that they were erased.
    pub erased: u64,
    /// Files of a whole backup that this one had not: `vault.db` (private texts stay closed), `log.key` (nothing is appended).
    pub missing: Vec<String>,
    /// Entries that this machine saw and that are lost; `null` where it saw no more than was restored.
    pub lost: Option<LostEntriesFacts>,
}

/// Entries of which no copy is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LostEntriesFacts {
    /// Entries of the log when it was last seen.
    pub seen: u64,
    /// The root of those, in base64.
    pub root: String,
    /// The file that keeps that checkpoint.
    pub checkpoint: String,
}

/// A backup as it was made.
#[derive(Clone, Debug)]
pub struct Backup<'a> {
    /// Its folder.
    pub folder: &'a Path,
    /// Names of the files in it.
    pub files: Vec<String>,
    /// What is not in it.
    pub left_out: Vec<String>,
    /// Their bytes.
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
pub fn exported(facts: &ExportFacts, checkpoint: &Checkpoint) -> View {
    let mut view = View::of(facts);
    if let Some(path) = &facts.path {
        let root = checkpoint.root.to_base64();
        let entries = thousands(facts.entries);
        view.line(match facts.items {
            None => format!(
                "exported {entries} entries · {} blobs · {} files · root {root} · {path}",
                facts.blobs, facts.files
            ),
            Some(items) => format!(
                "exported {} · {} items from {entries} entries · root {root} · {path}",
                facts.format,
                thousands(items)
            ),
        });
        view.verdict = "exported";
        view.checkpoint = Some((checkpoint.size, root));
    }
    view
}

/// An audit bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BundleFacts {
    /// The format of the export.
    pub format: &'static str,
    /// Its file or folder.
    pub path: String,
    /// Entries of the log.
    pub entries: u64,
    /// Of these, entries that are withheld.
    pub withheld: u64,
    /// What was left out on request.
    pub redacted: Vec<String>,
    /// Blobs in it.
    pub blobs: u64,
    /// Blobs that entries name and that the ledger does not have.
    pub without: Vec<String>,
    /// Reports in it.
    pub reports: Vec<String>,
    /// Files in it.
    pub files: u64,
    /// Whether it is one file, an archive.
    pub is_one_file: bool,
}

/// Files of an archive up to which Python starts the program in it.
const PYTHON_FILES_MAX: u64 = 65_535;

/// A bundle that was written.
pub fn bundled(facts: &BundleFacts, root: String) -> View {
    let path = &facts.path;
    let mut view = View::of(facts).with_verdict("exported");
    let shown = thousands(facts.entries - facts.withheld);
    let entries = thousands(facts.entries);
    view.line(match facts.withheld {
        0 => format!(
            "bundled {entries} entries · {} blobs · {} reports · root {} · {path}",
            facts.blobs,
            facts.reports.len(),
            root
        ),
        withheld => format!(
            "bundled {shown} of {entries} entries · {} withheld, by leaf hash · {} blobs · {} reports · root {} · {path}",
            thousands(withheld),
            facts.blobs,
            facts.reports.len(),
            root
        ),
    });
    if facts.withheld > 0 {
        view.sentence("Of a part, rules are not checked: they take the whole log.");
        if facts.reports.is_empty() && facts.blobs == 0 {
            view.sentence("No report and no blob is in it: both quote entries, and could tell what is withheld.");
        }
    }
    if facts.is_one_file && facts.files > PYTHON_FILES_MAX {
        let count = thousands(facts.files);
        let path = shell::word(path);
        view.line(format!(
            "note: Python cannot start an archive of {count} files itself: python3 audits/verify {path}"
        ));
    }
    for blob in &facts.without {
        view.line(format!(
            "note: blob {blob} is named by an entry and not in the ledger"
        ));
    }
    view.checkpoint = Some((facts.entries, root));
    view
}

/// A backup.
pub fn backed_up(ledger: &Ledger, made: Backup<'_>) -> View {
    let Backup {
        folder,
        files,
        left_out,
        bytes,
    } = made;
    let facts = BackedUp {
        folder: folder.display().to_string(),
        files,
        left_out,
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
    view.line(format!("left out: {}", facts.left_out.join(", ")));
    view.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    view
}

/// A ledger that was restored.
pub fn restored(restored: &Restoration) -> View {
    let ledger = &restored.ledger;
    let keys = restored.keys.iter();
    let facts = LedgerRestored {
        folder: restored.home.folder().display().to_string(),
        entries: ledger.size(),
        keys: keys.map(|path| path.display().to_string()).collect(),
        erased: restored.erased,
        missing: restored
            .missing
            .iter()
            .map(|name| (*name).to_owned())
            .collect(),
        lost: restored.lost.as_ref().map(|lost| LostEntriesFacts {
            seen: lost.seen.checkpoint().size,
            root: lost.seen.checkpoint().root.to_base64(),
            checkpoint: lost.file.display().to_string(),
        }),
    };
    let root = ledger.root().to_base64();
    let mut view = View::of(&facts).with_verdict("restored");
    view.line(format!(
        "restored {} entries · {} key files · root {root} · {}",
        thousands(facts.entries),
        facts.keys.len(),
        facts.folder
    ));
    if facts.erased > 0 {
        let erased = thousands(facts.erased);
        view.line(format!(
            "{erased} subjects were erased since, and their keys are destroyed again"
        ));
    }
    for name in &restored.missing {
        view.sentence(format!("{name} was not in the backup: {}", lost(name)));
    }
    view.sentence(
        "Append here only once nobody appends to the ledger that was lost: what was recorded after the backup would become another history.",
    );
    view.checkpoint = Some((ledger.size(), root));
    let folder = restored.home.folder().parent().unwrap_or(Path::new("."));
    let folder = shell::word(&folder.display());
    match &facts.lost {
        Some(lost) => going_on(view, (lost, facts.entries), &folder),
        None => view.with_next(format!("clover status --ledger {folder}")),
    }
}

/// What is said where entries are lost: what others will find, and the note that tells them why.
fn going_on(mut view: View, (lost, entries): (&LostEntriesFacts, u64), folder: &str) -> View {
    view.sentence(format!(
        "Entries {entries} to {} are lost. Their last checkpoint is kept: {}",
        lost.seen - 1,
        lost.checkpoint
    ));
    view.sentence("Whoever holds a checkpoint of them will find rolled_back or forked. Record why before anything else.");
    view.sentence("An erasure that was recorded in them has to be done again.");
    let text = format!(
        "restored from a backup of {entries} entries: entries {entries} to {} are lost, of which a checkpoint was seen with root {}",
        lost.seen - 1,
        lost.root
    );
    let data = serde_json::json!({ "text": text }).to_string();
    view.with_next(format!(
        "clover record note.recorded --ledger {folder} --data {}",
        shell::word(&data)
    ))
}

/// What cannot be done without a file of a backup.
fn lost(name: &str) -> &'static str {
    if name == backup::VAULT {
        "private texts, if the ledger has any, cannot be read or erased here."
    } else {
        "nothing can be appended here."
    }
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
