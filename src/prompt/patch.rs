//! Proposals of a step, as an agent returns them.

use clover_ground::canon;
use clover_ground::digest::Digest;
use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::diff;
use crate::diff::FileChange;
use crate::diff::SectionDiff;
use crate::model::JudgePrompt;
use crate::model::PromptParts;
use crate::model::PromptSection;
use crate::model::SectionKind;
use crate::model::is_id;

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

/// Most bytes of an agent's answer.
pub const ANSWER_MAX: usize = 256 << 10;

/// Why an agent's answer cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerFault {
    /// Larger than [`ANSWER_MAX`].
    #[error("expected at most {ANSWER_MAX} bytes")]
    Size,
    /// No JSON, or other members than the form has; with the line, the column and what was expected there.
    #[error("{0}")]
    Json(String),
}

/// Reads a document of an agent.
///
/// # Errors
/// [`AnswerFault`] saying why it is none.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, AnswerFault> {
    if bytes.len() > ANSWER_MAX {
        return Err(AnswerFault::Size);
    }
    serde_json::from_slice(bytes).map_err(|error| AnswerFault::Json(error.to_string()))
}

impl Proposal {
    /// Reads a proposal from untrusted bytes: JSON with these members and no others.
    ///
    /// # Errors
    /// [`AnswerFault`] saying why they are none.
    pub fn from_json(bytes: &[u8]) -> Result<Self, AnswerFault> {
        read(bytes)
    }

    /// Its canonical JSON.
    ///
    /// # Panics
    /// Never: texts and integers have a canonical form.
    pub fn to_json(&self) -> Vec<u8> {
        canon::to_bytes(self).expect("BUG: texts and integers have a canonical form")
    }
}

impl SectionPatch {
    /// SHA-256 of its canonical JSON.
    ///
    /// # Panics
    /// Never: texts and integers have a canonical form.
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

impl JudgePrompt {
    /// The next version by a patch, without asking any rule; `section_chars_max` is the registered length of sections that
    /// are added ([`crate::PatchTerms::section_chars_max`]). `None` where the patch does not apply.
    pub fn applied(&self, patch: &SectionPatch, section_chars_max: u32) -> Option<Self> {
        let old = self.section(&patch.section);
        let old_text = old.map_or("", |section| section.text.as_str());
        let (change, text) = match patch.diff.as_str() {
            "" => (FileChange::Edit, old_text.to_owned()),
            diff => {
                let diff = SectionDiff::parse(diff)
                    .ok()
                    .filter(|diff| diff.section == patch.section)?;
                (diff.change, diff.apply(old_text).ok()?)
            }
        };
        if old.is_some() == (change == FileChange::Add) || patch.parent != self.digest() {
            return None;
        }
        let sections = changed(self.sections(), patch, change, text, section_chars_max);
        following(self, patch, sections)
    }
}

/// What a patch does, once its form is known.
pub(crate) struct Edit {
    pub(crate) change: ChangeKind,
    pub(crate) diff: Option<SectionDiff>,
}

/// The change that a patch says; the line of the diff (0 for the fields) where it says none.
pub(crate) fn edit_of(patch: &SectionPatch) -> Result<Edit, i64> {
    if !is_id(&patch.section) {
        return Err(0);
    }
    let diff = match patch.diff.as_str() {
        "" => None,
        text => Some(
            SectionDiff::parse(text)
                .map_err(|error| i64::try_from(error.line()).unwrap_or(i64::MAX))?,
        ),
    };
    if diff
        .as_ref()
        .is_some_and(|diff| diff.section != patch.section)
    {
        return Err(1);
    }
    let change = match diff.as_ref().map(|diff| diff.change) {
        None => ChangeKind::Move,
        Some(FileChange::Edit) => ChangeKind::Edit,
        Some(FileChange::Add) => ChangeKind::Add,
        Some(FileChange::Remove) => ChangeKind::Remove,
    };
    let added = change == ChangeKind::Add;
    let fits = added == patch.kind.is_some()
        && (added || patch.title.is_none())
        && (change != ChangeKind::Move || patch.ord.is_some())
        && (change != ChangeKind::Remove || patch.ord.is_none());
    if fits {
        Ok(Edit { change, diff })
    } else {
        Err(0)
    }
}

/// The next version with these sections; `None` where they are none of a prompt.
pub(crate) fn following(
    current: &JudgePrompt,
    patch: &SectionPatch,
    sections: Vec<PromptSection>,
) -> Option<JudgePrompt> {
    let parts = PromptParts {
        parent_digest: Some(patch.parent),
        sections,
        version: current.version() + 1,
        ..current.parts().clone()
    };
    JudgePrompt::new(parts).ok()
}

/// Sections after a change of one of them, in the order of their places. A section that is added without a place comes last.
pub(crate) fn changed(
    sections: &[PromptSection],
    patch: &SectionPatch,
    change: FileChange,
    text: String,
    section_chars_max: u32,
) -> Vec<PromptSection> {
    let mut sections = sections.to_vec();
    let last = sections.last().map_or(0, |section| section.ord);
    match (
        change,
        sections
            .iter()
            .position(|section| section.section_id == patch.section),
    ) {
        (FileChange::Remove, Some(at)) => {
            sections.remove(at);
        }
        (_, Some(at)) => {
            sections[at].text = text;
            sections[at].ord = patch.ord.unwrap_or(sections[at].ord);
        }
        (_, None) => sections.push(PromptSection {
            editable: true,
            kind: patch.kind.unwrap_or(SectionKind::Policy),
            max_chars: section_chars_max,
            ord: patch.ord.unwrap_or(last.saturating_add(10)),
            section_id: patch.section.clone(),
            text,
            title: patch.title.clone().unwrap_or_default(),
        }),
    }
    sections.sort_by_key(|section| section.ord);
    sections
}
