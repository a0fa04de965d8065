//! How judges score: who a judge is, what was found in what it scored, and whether it says the same again.

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::id::EndpointId;
use crate::id::IterationId;
use crate::id::JudgeId;
use crate::id::ManifestId;
use crate::id::Root;
use crate::id::Text;
use crate::payload::BlobRef;
use crate::payload::estimated::ScaleEnds;
use crate::payload::predicate::RowsRead;

/// How a judge is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum JudgePort {
    /// The text judge of the program itself.
    Builtin,
    /// A child process.
    Command,
    /// A model behind HTTP.
    Endpoint,
    /// Not at all: its scores were imported.
    Recorded,
}

impl JudgePort {
    /// The word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Command => "command",
            Self::Endpoint => "endpoint",
            Self::Recorded => "recorded",
        }
    }
}

/// How a judge's model is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decoding {
    /// Temperature in millionths.
    pub temperature_micro: Micro,
}

/// Where and how a judge behind HTTP is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskedAt {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// How much its scores may waver, as a standard deviation in millionths; absent where each has to come out the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_sd_max_micro: Option<Count>,
    /// The model that has to answer.
    pub pin: Text,
    /// The plan: how rows are shown, and how answers are read.
    pub plan: BlobRef,
    /// Its digest.
    pub plan_digest: Digest,
    /// How many levels there are where the score is their mean, each weighed by its probability; absent where the level that was
    /// said is the score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weighed_levels: Option<Count>,
}

/// What a judge's raw scores depend on besides the text: one name, one meaning, from its first score on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JudgeRegistered {
    /// Where and how it is asked behind HTTP; absent for other ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedAt>,
    /// How its model is decoded.
    pub decoding: Decoding,
    /// Version of the evidence record.
    pub evidence_schema: Text,
    /// Version of the extractor.
    pub extractor: Text,
    /// Its name.
    pub judge: JudgeId,
    /// What was recorded of sources, tool calls and facts before it scored; absent when nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<BlobRef>,
    /// The model.
    pub model: Text,
    /// The judge that it is but for what it is told; absent for one that stands for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<JudgeId>,
    /// How it is asked.
    pub port: JudgePort,
    /// What it is told with every ask; absent where it is told nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<BlobRef>,
    /// SHA-256 of its template with the rubric fields that it shows.
    pub prompt_hash: Digest,
    /// Which repeat of its asks it stands for, from 1, where a run of a prompt asks more than once about a row; absent for the
    /// first, and for every other judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Count>,
    /// The scale that its program answers on, where that is not 0 to 1: scores on record are its shares, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<ScaleEnds>,
    /// SHA-256 of the bytes of `known`, or of none.
    pub tool_snapshot: Digest,
}

/// First digits of a prompt's hash that stand in the name of a judge.
const NAME_DIGITS: usize = 12;

/// The name of the judge that another is when it is told something else: that judge, `+`, and the first 12 digits of the
/// prompt's hash. `None` where that is no name.
pub fn derived_name(of: &JudgeId, prompt_hash: &Digest) -> Option<JudgeId> {
    let digits: String = prompt_hash.to_hex().chars().take(NAME_DIGITS).collect();
    JudgeId::new(format!("{of}+{digits}")).ok()
}

/// The name of a judge that is asked again about the same texts: that of the first, a full stop, and the repeat. The first is
/// repeat 0 and keeps its name. `None` where that is no name.
pub fn repeated_name(of: &JudgeId, prompt_hash: &Digest, repeat: Option<Count>) -> Option<JudgeId> {
    let first = derived_name(of, prompt_hash)?;
    match repeat {
        None => Some(first),
        Some(repeat) => JudgeId::new(format!("{first}.{repeat}")).ok(),
    }
}

impl JudgeRegistered {
    /// This judge, told the prompt of a run and asked for the `repeat`th time, from 0; `None` where its name is none.
    pub fn asked_again(&self, prompt: BlobRef, prompt_hash: Digest, repeat: u64) -> Option<Self> {
        let repeat = Count::new(repeat).filter(|of| of.value() > 0);
        Some(Self {
            judge: repeated_name(self.root(), &prompt_hash, repeat)?,
            repeat,
            ..self.told(prompt, prompt_hash)?
        })
    }

    /// The judge that stands for itself: this one, or the one that it is but for what it is told.
    pub fn root(&self) -> &JudgeId {
        self.of.as_ref().unwrap_or(&self.judge)
    }

    /// This judge, told something else; `None` where its name is none.
    pub fn told(&self, prompt: BlobRef, prompt_hash: Digest) -> Option<Self> {
        Some(Self {
            judge: derived_name(self.root(), &prompt_hash)?,
            of: Some(self.root().clone()),
            prompt: Some(prompt),
            prompt_hash,
            ..self.clone()
        })
    }
}

/// What the extractor found in rows that a judge scored, with their keys and base scores: written once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EvidenceRecorded {
    /// The judge.
    pub judge: JudgeId,
    /// One canonical JSON object a line, as `SCORING.md` has it.
    pub records: BlobRef,
    /// How many.
    pub records_count: Count,
    /// Merkle root of the lines, in their order.
    pub records_root: Root,
}

/// Recorded rows were scored again, to see whether a judge is deterministic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScoreReplayed {
    /// The judge.
    pub judge: JudgeId,
    /// How many keys were scored again: 30 or more.
    pub keys: Count,
    /// Merkle root of the raw keys, ascending.
    pub keys_root: Root,
    /// How many gave another base score or another record.
    pub mismatches: Count,
    /// Seed of the sample.
    pub seed: Count,
}

/// The rows of an iteration under the rubric that a candidate gives: S of each from its raw record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScoresRecomputed {
    /// The program that computed it.
    pub build: Text,
    /// Hash of the patch, or of the composite.
    pub candidate: Digest,
    /// What was read.
    pub inputs: RowsRead,
    /// The iteration.
    pub iteration: IterationId,
    /// The judge that was asked anew, told what the candidate changes; absent where nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeId>,
    /// Rows and anchors whose S was computed from the record that was there.
    pub recomputed: Count,
    /// Rows and anchors whose judge was asked anew first.
    pub rescored: Count,
    /// Hash of the rubric that results.
    pub rubric_hash: Digest,
    /// Merkle root over rows, then anchors, as `SCORING.md` has it.
    pub scores_root: Root,
}

/// A plan that named a comparison of judges before the first label for calibration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedComparison {
    /// Comparisons of judges that it names: they share the error rate.
    pub comparisons: Count,
    /// The plan.
    pub manifest: ManifestId,
}

/// What stands against a claim of which judge is better.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparisonDoubts {
    /// Policies of which more or fewer rows are labelled than the designs of their labels draw.
    pub chosen: Count,
    /// Rows that one of them scored once a label of the policy could be read, of prompts with such a label.
    pub late: Count,
    /// Labelled rows that neither scored.
    pub unscored: Count,
    /// By how much the difference could move if late and missing scores were the worst.
    pub worst: Finite,
}

/// Two judges were held against the same labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JudgeCompared {
    /// The judge that agrees better; absent where the interval holds 0, and with a plan where doubts could change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub better: Option<JudgeId>,
    /// The program that computed it.
    pub build: Text,
    /// Error of the first less error of the second.
    pub difference: Finite,
    /// What stands against a claim; absent before rulebook 24.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubts: Option<ComparisonDoubts>,
    /// One judge.
    pub first: JudgeId,
    /// Mean squared error that it leaves.
    pub first_error: Finite,
    /// Folds of the curves.
    pub folds: Count,
    /// Upper end of the interval of the difference.
    pub high: Finite,
    /// Items among the rows.
    pub items: Count,
    /// Lower end of the interval of the difference.
    pub low: Finite,
    /// The plan; absent where the comparison is exploratory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<NamedComparison>,
    /// Labelled rows that both scored.
    pub rows: Count,
    /// The other judge.
    pub second: JudgeId,
    /// Mean squared error that it leaves.
    pub second_error: Finite,
    /// The last entry that it was computed from.
    pub through_seq: Count,
    /// Labelled rows that one of them did not score.
    pub unpaired: Count,
}
