//! Proposals of a step, as an agent returns them.

use clover_ground::canon;
use clover_ground::digest::Digest;
use serde::Deserialize;
use serde::Serialize;

use crate::diff;
use crate::model::JudgePrompt;
use crate::model::PromptSection;
use crate::model::SectionKind;

/// Most Unicode scalars of a rationale.
pub const RATIONALE_MAX: u64 = 280;

/// What a patch does to its section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Its text changes; it may move too.
    Edit,
    /// It is new.
    Add,
    /// It goes.
    Remove,
    /// It moves, its text stays.
    Move,
}

/// An edit of one section of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SectionPatch {
    /// A unified diff of `sections/<section>.md` as [`diff`] says; empty where the section only moves.
    pub diff: String,
    /// The kind of a section that is added; absent for every other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<SectionKind>,
    /// The place of a section that is added or moves; a section that is added without one comes last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ord: Option<u32>,
    /// The digest of the prompt that the patch edits.
    pub parent: Digest,
    /// The section.
    pub section: String,
    /// The heading of a section that is added; absent for every other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// What an optimizer answers with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// Items of the gradient that the patch answers, by their place from 0; each once.
    pub addresses: Vec<u8>,
    /// The edit.
    pub patch: SectionPatch,
    /// Why, on one line of at most 280 characters.
    pub rationale: String,
}

impl SectionPatch {
    /// SHA-256 of its canonical JSON.
    pub fn digest(&self) -> Digest {
        let bytes = canon::to_bytes(self).expect("BUG: texts and integers have a canonical form");
        Digest::sha256(&bytes)
    }

    /// The patch that gives a section of a prompt another text. The diff is empty where the text is the same, or where the
    /// prompt has no such section.
    pub fn edit(prompt: &JudgePrompt, section: &str, text: &str) -> Self {
        let old = prompt.section(section).map(|of| of.text.as_str());
        Self {
            diff: old
                .map(|old| diff::between(section, Some(old), Some(text)))
                .unwrap_or_default(),
            kind: None,
            ord: None,
            parent: prompt.digest(),
            section: section.to_owned(),
            title: None,
        }
    }

    /// The patch that adds a section.
    pub fn add(prompt: &JudgePrompt, section: &PromptSection) -> Self {
        Self {
            diff: diff::between(&section.section_id, None, Some(&section.text)),
            kind: Some(section.kind),
            ord: Some(section.ord),
            parent: prompt.digest(),
            section: section.section_id.clone(),
            title: Some(section.title.clone()),
        }
    }

    /// The patch that removes a section.
    pub fn remove(prompt: &JudgePrompt, section: &str) -> Self {
        let old = prompt.section(section).map(|of| of.text.as_str());
        Self {
            diff: diff::between(section, old, None),
            ..Self::edit(prompt, section, "")
        }
    }

    /// The patch that moves a section.
    pub fn shift(prompt: &JudgePrompt, section: &str, ord: u32) -> Self {
        Self {
            diff: String::new(),
            ord: Some(ord),
            ..Self::edit(prompt, section, "")
        }
    }
}
