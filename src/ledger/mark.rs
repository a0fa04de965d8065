//! The mark: how far this machine has checked a log itself, kept beside the pin and outside the ledger's folder.
//!
//! Signatures below the mark were checked, and need not be again while the tree there has the marked root. Snapshots are
//! believed only where their digest is marked: whoever can write the ledger's file can write others into it. A mark may lag
//! behind; then more is checked than was necessary, never less.

use std::path::Path;
use std::path::PathBuf;

use clover_ground::ambient;
use clover_ground::digest::Digest;
use clover_store::StoredSnapshot;

use crate::pin::Pin;

/// First line of a mark.
const HEAD: &str = "clover checked 1";
/// Entries that are worth a new mark.
const WORTH: u64 = 256;

/// What was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CheckMark {
    /// Entries, their signatures included.
    pub size: u64,
    /// The root over them.
    pub root: Digest,
    /// Digest of the stored snapshots, where they are what the entries give.
    pub snapshots: Option<Digest>,
}

impl CheckMark {
    /// Whether it says enough more than `before` to be kept.
    pub(super) fn is_worth(&self, before: Option<&Self>) -> bool {
        before.is_none_or(|before| {
            self.snapshots != before.snapshots
                || self.size < before.size
                || self.size - before.size >= WORTH
        })
    }
}

/// Where one origin's mark lies.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    path: PathBuf,
}

impl Mark {
    /// The mark beside a pin.
    pub(super) fn beside(pin: &Pin) -> Self {
        let mut path = pin.path().as_os_str().to_owned();
        path.push(".checked");
        Self { path: path.into() }
    }

    /// What is marked. A mark that cannot be read says nothing: then everything is checked.
    pub(super) fn load(&self) -> Option<CheckMark> {
        let bytes = ambient::read(&self.path).ok()?;
        let text = std::str::from_utf8(&bytes).ok()?;
        let [head, size, root, snapshots] = text.lines().collect::<Vec<_>>().try_into().ok()?;
        (head == HEAD).then_some(())?;
        Some(CheckMark {
            size: size.parse().ok()?,
            root: Digest::from_hex(root)?,
            snapshots: Digest::from_hex(snapshots),
        })
    }

    /// Keeps a mark. Without one more is checked next time, so a failure is no error.
    pub(super) fn keep(&self, checked: &CheckMark) {
        let snapshots = checked.snapshots.map(|digest| digest.to_hex());
        let text = format!(
            "{HEAD}\n{}\n{}\n{}\n",
            checked.size,
            checked.root.to_hex(),
            snapshots.as_deref().unwrap_or("none")
        );
        let folder = self.path.parent().unwrap_or(Path::new("."));
        if ambient::create_private_dirs(folder).is_ok() {
            ambient::replace_private(&self.path, text.as_bytes(), false).ok();
        }
    }
}

/// Digest of snapshots, which belong together.
pub(super) fn digest(snapshots: &[(&'static str, StoredSnapshot)]) -> Digest {
    let mut all = Vec::new();
    for (name, snapshot) in snapshots {
        let head = format!("{name} {} {}\n", snapshot.rulebook, snapshot.size);
        all.extend_from_slice(head.as_bytes());
        all.extend_from_slice(&snapshot.root.0);
        all.extend_from_slice(&Digest::sha256(&snapshot.state).0);
    }
    Digest::sha256(&all)
}
