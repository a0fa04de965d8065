//! Plans that bind: from a commented file to a signed manifest, its amendments and deviations.

pub mod draft;
pub mod file;
pub mod peer;
pub mod record;
pub mod sign;

use serde::Serialize;

use crate::event::id::ManifestId;
use crate::ground::shell;
use crate::projection::manifests;

/// Something that was done otherwise than registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Deviation {
    /// Entries that stood when it became known.
    pub known_at_seq: u64,
    /// Whether an outcome had been seen by then.
    pub outcome_seen: bool,
    /// The part of the manifest, as a path of its fields.
    pub rule_path: String,
    /// Its entry.
    pub seq: u64,
    /// What was done.
    pub what: String,
}

impl From<&manifests::Deviation> for Deviation {
    fn from(of: &manifests::Deviation) -> Self {
        Self {
            known_at_seq: of.known_at_seq,
            outcome_seen: of.outcome_seen,
            rule_path: of.rule_path.clone(),
            seq: of.seq,
            what: of.what.clone(),
        }
    }
}

/// The command that shows a manifest.
pub fn show_command(id: &ManifestId) -> String {
    format!("clover prereg show {}", shell::word(id))
}
