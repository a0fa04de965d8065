//! A judge prompt as parameters: sections with a kind and a place, some of them open.

use std::collections::BTreeSet;

use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::normal;
use crate::sentence;

/// Most bytes of a prompt file.
pub const FILE_MAX: usize = 256 << 10;
/// Most sections of a prompt.
pub const SECTIONS_MAX: usize = 64;
/// Most Unicode scalars of a section's text.
pub const SECTION_CHARS_MAX: u32 = 16_000;
/// Most lines of a section's text.
pub const LINES_MAX: usize = 1_000;
/// Most sentences of a section's text.
pub const SENTENCES_MAX: usize = 400;
/// Most Unicode scalars of a rendered prompt.
pub const PROMPT_CHARS_MAX: u64 = 64_000;
/// Most Unicode scalars of a title.
pub const TITLE_MAX: u64 = 120;
/// Largest place of a section.
pub const ORD_MAX: u32 = 1_000_000;
/// Most axes.
const AXES_MAX: usize = 32;

/// What a section is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SectionKind {
    /// What is judged, and for whom. Always frozen.
    Goal,
    /// A dimension of the judgement. Always frozen.
    Axis,
    /// What the judge is warned of.
    AntiBias,
    /// What the numbers mean. Always frozen.
    Scale,
    /// What the judge answers with. Always frozen.
    OutputSpec,
    /// A worked example.
    Example,
    /// How to judge.
    Policy,
}

impl SectionKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Goal,
        Self::Axis,
        Self::AntiBias,
        Self::Scale,
        Self::OutputSpec,
        Self::Example,
        Self::Policy,
    ];

    /// Whether no step may touch a section of this kind.
    pub fn is_always_frozen(self) -> bool {
        matches!(
            self,
            Self::Goal | Self::Axis | Self::Scale | Self::OutputSpec
        )
    }

    /// Whether a step may add a section of this kind.
    pub fn may_be_added(self) -> bool {
        matches!(self, Self::AntiBias | Self::Policy)
    }

    /// The word in files and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Goal => "goal",
            Self::Axis => "axis",
            Self::AntiBias => "anti_bias",
            Self::Scale => "scale",
            Self::OutputSpec => "output_spec",
            Self::Example => "example",
            Self::Policy => "policy",
        }
    }

    /// The kind of a word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// One section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptSection {
    /// Whether steps may edit it.
    pub editable: bool,
    /// What it is for.
    pub kind: SectionKind,
    /// Most Unicode scalars that its text may have, 1 to 16,000.
    pub max_chars: u32,
    /// Its place: sections are rendered by ascending place. 0 to 1,000,000, each once.
    pub ord: u32,
    /// Its name: `a-z`, then up to 31 of `a-z`, `0-9`, `_` and `-`.
    pub section_id: String,
    /// Its text in normal form; may be empty, and is then not rendered.
    pub text: String,
    /// Its heading on one line, at most 120 scalars; empty for none.
    pub title: String,
}

impl PromptSection {
    /// Whether a step may edit, move or remove it.
    pub fn is_open(&self) -> bool {
        self.editable && !self.kind.is_always_frozen()
    }

    /// Its title and text as the judge reads them; `None` without a text.
    pub fn rendered(&self) -> Option<String> {
        match (self.title.as_str(), self.text.as_str()) {
            (_, "") => None,
            ("", text) => Some(text.to_owned()),
            (title, text) => Some(format!("## {title}\n{text}")),
        }
    }
}

/// Fields of a judge prompt, before they are checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptParts {
    /// Names of what is judged; each as an id of a section.
    pub axes: Vec<String>,
    /// SHA-256 of what the judge must answer with.
    pub output_schema_digest: Digest,
    /// The digest of the version before; absent for version 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_digest: Option<Digest>,
    /// The name of the prompt, as an id of a section.
    pub prompt_id: String,
    /// The best score, in millionths.
    pub score_hi: Micro,
    /// The worst score, below the best, in millionths.
    pub score_lo: Micro,
    /// The sections, by ascending place.
    pub sections: Vec<PromptSection>,
    /// Steps since version 0.
    pub version: u32,
}

/// A judge prompt that is well formed.
///
/// Its JSON is its [`PromptParts`]; its digest is SHA-256 of their canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PromptParts", into = "PromptParts")]
pub struct JudgePrompt(PromptParts);

/// Why fields are no judge prompt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct PromptFault {
    /// The field, such as `sections[2].text`.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

fn fault(path: impl Into<String>, message: impl Into<String>) -> PromptFault {
    PromptFault {
        path: path.into(),
        message: message.into(),
    }
}

/// Whether a text is an id of a section: `a-z`, then up to 31 of `a-z`, `0-9`, `_` and `-`.
pub fn is_id(text: &str) -> bool {
    let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    text.len() <= 32 && text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(rest)
}

const ID: &str = "expected a-z, then up to 31 of a-z, 0-9, _ and -";

impl TryFrom<PromptParts> for JudgePrompt {
    type Error = PromptFault;

    fn try_from(parts: PromptParts) -> Result<Self, PromptFault> {
        Self::new(parts)
    }
}

impl From<JudgePrompt> for PromptParts {
    fn from(prompt: JudgePrompt) -> Self {
        prompt.0
    }
}

impl JudgePrompt {
    /// A prompt of these parts; sections are put in the order of their places.
    ///
    /// # Errors
    /// [`PromptFault`] with the first field that is wrong.
    pub fn new(mut parts: PromptParts) -> Result<Self, PromptFault> {
        if !is_id(&parts.prompt_id) {
            return Err(fault("prompt_id", ID));
        }
        if parts.score_lo >= parts.score_hi {
            return Err(fault("score_lo", "expected a score below score_hi"));
        }
        if (parts.version == 0) != parts.parent_digest.is_none() {
            return Err(fault(
                "parent_digest",
                "expected one from version 1 on, and none in version 0",
            ));
        }
        check_axes(&parts.axes)?;
        if parts.sections.is_empty() || parts.sections.len() > SECTIONS_MAX {
            let found = parts.sections.len();
            return Err(fault(
                "sections",
                format!("expected 1 to {SECTIONS_MAX}, found {found}"),
            ));
        }
        let (mut ids, mut places) = (BTreeSet::new(), BTreeSet::new());
        for (at, section) in parts.sections.iter().enumerate() {
            let at = |field: &str| format!("sections[{at}].{field}");
            check_section(section).map_err(|(field, message)| fault(at(field), message))?;
            if !ids.insert(&section.section_id) {
                return Err(fault(at("section_id"), "expected each id once"));
            }
            if !places.insert(section.ord) {
                return Err(fault(at("ord"), "expected each place once"));
            }
        }
        parts.sections.sort_by_key(|section| section.ord);
        let prompt = Self(parts);
        let chars = normal::scalars(&prompt.render());
        if chars > PROMPT_CHARS_MAX {
            let message =
                format!("expected at most {PROMPT_CHARS_MAX} characters in all, found {chars}");
            return Err(fault("sections", message));
        }
        Ok(prompt)
    }

    /// Its parts.
    pub fn parts(&self) -> &PromptParts {
        &self.0
    }

    /// Its sections by ascending place.
    pub fn sections(&self) -> &[PromptSection] {
        &self.0.sections
    }

    /// The section of an id.
    pub fn section(&self, id: &str) -> Option<&PromptSection> {
        self.0
            .sections
            .iter()
            .find(|section| section.section_id == id)
    }

    /// Steps since version 0.
    pub fn version(&self) -> u32 {
        self.0.version
    }

    /// Its canonical JSON (RFC 8785), which [`JudgePrompt::from_json`] reads back.
    ///
    /// # Panics
    /// Never: texts, integers and flags have a canonical form.
    pub fn to_json(&self) -> Vec<u8> {
        canon::to_bytes(&self.0).expect("BUG: texts and integers have a canonical form")
    }

    /// SHA-256 of its canonical JSON.
    pub fn digest(&self) -> Digest {
        Digest::sha256(&self.to_json())
    }

    /// What the judge is told: the texts of the sections by ascending place, each under its title, with an empty line
    /// between. A section without a text is left out.
    pub fn render(&self) -> String {
        render(&self.0.sections)
    }

    /// Reads a prompt from its JSON.
    ///
    /// # Errors
    /// [`PromptFault`] with the field, or with the line and column of what is no JSON.
    pub fn from_json(bytes: &[u8]) -> Result<Self, PromptFault> {
        if bytes.len() > FILE_MAX {
            let message = format!("expected at most {FILE_MAX} bytes, found {}", bytes.len());
            return Err(fault("file", message));
        }
        let parts: PromptParts =
            serde_json::from_slice(bytes).map_err(|error| fault("json", error.to_string()))?;
        Self::new(parts)
    }
}

/// The texts of sections, which are in the order of their places.
pub(crate) fn render(sections: &[PromptSection]) -> String {
    let texts: Vec<String> = sections
        .iter()
        .filter_map(PromptSection::rendered)
        .collect();
    texts.join("\n\n")
}

fn check_axes(axes: &[String]) -> Result<(), PromptFault> {
    if axes.len() > AXES_MAX {
        return Err(fault(
            "axes",
            format!("expected at most {AXES_MAX}, found {}", axes.len()),
        ));
    }
    for (at, axis) in axes.iter().enumerate() {
        let path = || format!("axes[{at}]");
        if !is_id(axis) {
            return Err(fault(path(), ID));
        }
        if axes[..at].contains(axis) {
            return Err(fault(path(), "expected each axis once"));
        }
    }
    Ok(())
}

/// The field that is wrong, and what is wrong with it.
fn check_section(section: &PromptSection) -> Result<(), (&'static str, String)> {
    if !is_id(&section.section_id) {
        return Err(("section_id", ID.to_owned()));
    }
    if section.editable && section.kind.is_always_frozen() {
        let message = format!(
            "a section of kind {} is always frozen",
            section.kind.as_str()
        );
        return Err(("editable", message));
    }
    if section.ord > ORD_MAX {
        return Err(("ord", format!("expected at most {ORD_MAX}")));
    }
    if section.max_chars == 0 || section.max_chars > SECTION_CHARS_MAX {
        return Err(("max_chars", format!("expected 1 to {SECTION_CHARS_MAX}")));
    }
    check_title(&section.title).map_err(|message| ("title", message))?;
    normal::check(&section.text).map_err(|fault| ("text", fault.to_string()))?;
    let chars = normal::scalars(&section.text);
    if chars > u64::from(section.max_chars) {
        let most = section.max_chars;
        return Err((
            "text",
            format!("expected at most {most} characters, found {chars}"),
        ));
    }
    let lines = section.text.split('\n').count();
    if lines > LINES_MAX {
        return Err((
            "text",
            format!("expected at most {LINES_MAX} lines, found {lines}"),
        ));
    }
    let sentences = sentence::sentences(&section.text).len();
    if sentences > SENTENCES_MAX {
        let message = format!("expected at most {SENTENCES_MAX} sentences, found {sentences}");
        return Err(("text", message));
    }
    Ok(())
}

/// Whether a text may be a title.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_title(title: &str) -> Result<(), String> {
    normal::check(title).map_err(|fault| fault.to_string())?;
    let chars = normal::scalars(title);
    if title.contains('\n') || title.trim() != title || chars > TITLE_MAX {
        return Err(format!(
            "expected one line of at most {TITLE_MAX} characters, without blanks around it"
        ));
    }
    Ok(())
}
