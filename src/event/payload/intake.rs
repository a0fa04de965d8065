//! Data with provenance: what was taken in, from which bytes, and which clusters may serve for what.

use clover_ground::time::Timestamp;
use clover_num::Count;
use serde::Deserialize;
use serde::Serialize;

use crate::id::FieldId;
use crate::id::ItemId;
use crate::id::PolicyId;
use crate::id::Root;
use crate::id::SealRecipient;
use crate::id::SplitId;
use crate::payload::BlobRef;
use crate::payload::PrivateRef;
use crate::payload::Verdict;

/// The form of an imported file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ImportFormat {
    /// JSON Lines of judge-scored responses, as `cje-eval` reads them.
    Cje,
    /// Comma-separated values with a header.
    Csv,
    /// A log of Inspect: an archive, or the JSON of one.
    Inspect,
    /// Scores of Langfuse: pages of its API, or an export.
    Langfuse,
    /// Records of OpenAI evals.
    OpenaiEvals,
    /// Log records of OpenTelemetry, as OTLP/JSON.
    Otel,
    /// Results of promptfoo.
    Promptfoo,
}

impl std::fmt::Display for ImportFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Cje => "cje",
            Self::Csv => "csv",
            Self::Inspect => "inspect",
            Self::Langfuse => "langfuse",
            Self::OpenaiEvals => "openai_evals",
            Self::Otel => "otel",
            Self::Promptfoo => "promptfoo",
        })
    }
}

/// The original bytes, readable only by a custodian.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceEnvelope {
    /// age v1 file with the original bytes, then line feeds up to a rounded length.
    pub blob: BlobRef,
    /// To whom it is encrypted.
    pub recipient: SealRecipient,
}

/// How the original bytes are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Source {
    /// For the custodian alone, since the file holds labels that are not open.
    Envelope(SourceEnvelope),
    /// As a private blob.
    Private(PrivateRef),
}

/// Fields of one policy's rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyFields {
    /// The fields, in order of their names.
    pub fields: Vec<FieldId>,
    /// The policy.
    pub policy: PolicyId,
}

/// A file was taken in: its rows by their root, its original bytes by reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataIngested {
    /// Fields of which it says a word that no import said before, by policy; of others nothing is read from it. Absent in events
    /// of older programs, of which every field is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<PolicyFields>>,
    /// Form of the file.
    pub format: ImportFormat,
    /// Rows that carry a label.
    pub labelled: Count,
    /// Scores and labels that lost digits beyond the sixth decimal.
    pub rounded: Count,
    /// The rows without texts and labels, one canonical JSON object a line: what `rows_root` is over.
    pub rows: BlobRef,
    /// Records read.
    pub rows_in: Count,
    /// Rows recorded.
    pub rows_out: Count,
    /// Merkle root of the lines of `rows`, in their order.
    pub rows_root: Root,
    /// First `sampled_at` of its rows; absent unless every row has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled_from: Option<Timestamp>,
    /// Last `sampled_at` of its rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled_to: Option<Timestamp>,
    /// The original bytes.
    pub source: Source,
}

/// What the clusters of a part of a split serve for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SplitPart {
    /// To confirm what was decided on the others.
    Confirm,
    /// To choose.
    Dev,
    /// To fit.
    Fit,
}

impl SplitPart {
    /// Every part, alphabetical.
    pub const ALL: [Self; 3] = [Self::Confirm, Self::Dev, Self::Fit];

    /// The word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confirm => "confirm",
            Self::Dev => "dev",
            Self::Fit => "fit",
        }
    }
}

impl std::fmt::Display for SplitPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// By which rule listed clusters fall into their part, said before the split is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedBy {
    /// How clusters are put into parts.
    pub cluster_rule: ClusterRule,
    /// Seed of the hash.
    pub seed: Count,
    /// How confirm is kept apart.
    pub separation: SplitSeparation,
}

/// Clusters of one part of a split that is being formed, in ascending order of their bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SplitsListed {
    /// By which rule they fall into this part; absent, nobody can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<ListedBy>,
    /// The clusters: ids of items.
    pub clusters: Vec<ItemId>,
    /// How many clusters of this part were listed before.
    pub first: Count,
    /// The part.
    pub part: SplitPart,
    /// The split.
    pub split: SplitId,
}

/// Members of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartRoot {
    /// How many clusters.
    pub count: Count,
    /// Merkle root over them, length-prefixed and sorted.
    pub root: Root,
}

/// How confirm is kept apart from what was fitted and chosen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Separation"))]
pub enum SplitSeparation {
    /// By hash, a quarter of the clusters: not separated in time.
    Hashed,
    /// A later block of time after a gap.
    Time,
}

impl SplitSeparation {
    /// The word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hashed => "hashed",
            Self::Time => "time",
        }
    }
}

/// How clusters fall into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ClusterRule {
    /// By BLAKE2b-64 of id, seed and modulus, as `SPLITS.md` has it.
    #[serde(rename = "blake2b-mod3/1")]
    Blake2bMod3,
}

/// A split is closed: its listed clusters are all there are, before any confirm label exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SplitsFormed {
    /// How clusters were put into parts.
    pub cluster_rule: ClusterRule,
    /// Confirm.
    pub confirm: PartRoot,
    /// Dev.
    pub dev: PartRoot,
    /// Fit.
    pub fit: PartRoot,
    /// Whether the gap in time was checked: `pass` or `not_checked`.
    pub gap: Verdict,
    /// Seconds between the end of fit and dev, and the start of confirm; absent when not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_seconds: Option<Count>,
    /// Seed of the hash.
    pub seed: Count,
    /// How confirm is kept apart.
    pub separation: SplitSeparation,
    /// The split.
    pub split: SplitId,
    /// End of the time of fit and dev, exclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub t1: Option<Timestamp>,
    /// End of the time of confirm, exclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub t2: Option<Timestamp>,
}
