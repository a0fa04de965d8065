//! What was looked at and said about the record itself.

use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_num::Count;
use serde::Deserialize;
use serde::Serialize;

use crate::id::ClassId;
use crate::id::PatchId;
use crate::id::Root;
use crate::id::Text;
use crate::payload::BlobRef;
use crate::payload::Role;
use crate::payload::Verdict;

/// A note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoteRecorded {
    /// Attached content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<BlobRef>,
    /// What it says.
    pub text: Text,
}

/// One file of reference vectors, as a qualification ran it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QualifiedFile {
    /// Cases in it.
    pub cases: Count,
    /// SHA-256 of its bytes.
    pub digest: Digest,
    /// Cases that failed.
    pub failed: Count,
    /// Its name.
    pub name: Text,
    /// Cases that were not run.
    pub not_run: Count,
}

/// A build was qualified on a machine: reference vectors with known answers were run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QualificationRecorded {
    /// Version of the program.
    pub build: Text,
    /// Every file that was run, or that there was no runner for.
    pub files: Vec<QualifiedFile>,
    /// Processor and operating system.
    pub platform: Text,
    /// `pass` if no case failed and every case was run, `fail` if one failed, else `inconclusive`.
    pub verdict: Verdict,
}

/// Whether a read was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReadOutcome {
    /// It was.
    Allowed,
    /// It was refused.
    Denied,
}

/// Rows, labels or cards were released to a key, or the release was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataRead {
    /// The class of data.
    pub class: ClassId,
    /// Whether it was given.
    pub outcome: ReadOutcome,
    /// What for.
    pub purpose: Text,
    /// The key that asked.
    pub reader: KeyId,
    /// The role in which it asked; all that it holds when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Merkle root of the row ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_root: Option<Root>,
}

/// What a reviewer concluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReviewOutcome {
    /// Nothing stands against it.
    Accepted,
    /// Something does.
    Disputed,
    /// Seen, without a judgement.
    Noted,
}

/// A range of the log was reviewed by a person; a proposed patch, by one who knows its field, if it names one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReviewRecorded {
    /// What was found.
    pub findings: Text,
    /// First entry reviewed.
    pub from_seq: Count,
    /// What was concluded.
    pub outcome: ReviewOutcome,
    /// The proposed patch that it is about; its proposal is among the entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<PatchId>,
    /// Last entry reviewed.
    pub through_seq: Count,
}

/// An auditor states what a verification of the log at a size showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditAttested {
    /// Root of the tree that was verified.
    pub root: Root,
    /// Its size.
    pub size: Count,
    /// In the auditor's words.
    pub statement: Text,
    /// What was found.
    pub verdict: Verdict,
}
