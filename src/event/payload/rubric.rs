//! Rubrics and the patches that are proposed to them. `schema/RUBRIC.md` gives the hashes.

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error as _;

use crate::id::EventId;
use crate::id::IterationId;
use crate::id::PatchFamilyId;
use crate::id::PatchId;
use crate::id::RunId;
use crate::id::Text;

/// Most bytes of a source text.
pub const SOURCE_MAX: usize = 8 << 10;

/// A YAML document as it was written: at most 8,192 bytes of UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("maxLength" = 8192)))]
pub struct SourceText(String);

impl SourceText {
    /// `None` when too long.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (text.len() <= SOURCE_MAX).then_some(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for SourceText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?)
            .ok_or_else(|| D::Error::custom("expected a document of at most 8192 bytes"))
    }
}

/// What stands at a leaf of a rubric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LeafValue {
    /// A whole number.
    Count(Count),
    /// True or false.
    Flag(bool),
    /// Host names or topics, ascending, each once.
    List(Vec<String>),
    /// A share from 0 to 1.
    ShareMicro(Micro),
    /// A text.
    Text(String),
}

/// One leaf of a rubric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RubricLeaf {
    /// Its dotted path.
    pub path: String,
    /// What stands there.
    pub value: LeafValue,
}

/// The rubric that an experiment starts from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RubricRegistered {
    /// Its leaves by path.
    pub leaves: Vec<RubricLeaf>,
    /// Hash of the leaves.
    pub rubric_hash: Digest,
    /// Its version, MAJOR.MINOR.
    pub version: String,
    /// The document.
    pub yaml: SourceText,
}

/// Whether a leaf is set or a list gets more elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ChangeOp {
    /// Elements join the list.
    Append,
    /// The value takes the place of the old one.
    Set,
}

/// One leaf that a patch changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeafChange {
    /// How.
    pub op: ChangeOp,
    /// The leaf's dotted path.
    pub path: String,
    /// The new value, or the new elements.
    pub value: LeafValue,
}

/// Code length of a patch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodeLength {
    /// Edits to abstention.
    pub abstention_edits: Count,
    /// The code length.
    pub kappa: Count,
    /// Leaves that did not exist before.
    pub new_fields: Count,
    /// Guard leaves that did not exist before.
    pub new_guards: Count,
    /// Tokens that come.
    pub tokens_added: Count,
    /// Tokens that go.
    pub tokens_removed: Count,
}

/// Who wrote a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AuthorKind {
    /// A person.
    Human,
    /// A model or a search program.
    Llm,
}

/// A patch is proposed to the rubric of an open iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PatchProposed {
    /// Who wrote it.
    pub author_kind: AuthorKind,
    /// What changes, by path.
    pub diff: Vec<LeafChange>,
    /// Its family.
    pub family: PatchFamilyId,
    /// What it was written from: digests of cards, receipts and rubrics.
    pub inputs: Vec<Digest>,
    /// The iteration.
    pub iteration: IterationId,
    /// Its code length.
    pub length: CodeLength,
    /// The model that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Text>,
    /// Its id, one for all time.
    pub patch: PatchId,
    /// Hash of the diff.
    pub patch_hash: Digest,
    /// Digest of the prompt that the model had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_digest: Option<Digest>,
    /// Hash of the rubric that results.
    pub result_hash: Digest,
    /// The run of an optimizer that returned it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The document.
    pub yaml: SourceText,
}

/// Where a patch was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RejectStage {
    /// By a gate on the confirm block.
    Confirm,
    /// By a gate on dev.
    Dev,
    /// It is no patch for this rubric, and was never proposed.
    Schema,
    /// Another candidate was chosen.
    Selection,
}

/// A patch is rejected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PatchRejected {
    /// The check or gate, such as `cross_family` or P4.
    pub code: Text,
    /// Gate events that say so.
    pub gate_refs: Vec<EventId>,
    /// The iteration.
    pub iteration: IterationId,
    /// The candidate; absent for a document that never became one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<PatchId>,
    /// Where.
    pub stage: RejectStage,
    /// SHA-256 of the document.
    pub yaml_sha256: Digest,
}

/// A patch is taken back by its author.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PatchWithdrawn {
    /// The iteration.
    pub iteration: IterationId,
    /// The candidate.
    pub patch: PatchId,
    /// Why.
    pub reason: Text,
}
