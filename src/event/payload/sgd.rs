//! Runs that lower the loss of a judge's prompt step by step: what a run is held to, its rows, what it scored and what that
//! is worth. `schema/SGD.md` says how one follows from the other; [`crate::payload::sgd_steps`] has the steps.

use std::fmt;

use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error as _;

use crate::id::AccountId;
use crate::id::ItemId;
use crate::id::JudgeId;
use crate::id::PolicyId;
use crate::id::RunId;
use crate::id::Text;
use crate::payload::endpoint::words;
use crate::payload::gate::DrawnFrom;
use crate::payload::intake::PartRoot;
use crate::payload::model_calls::AskedModel;

/// Longest document of a run, in bytes of UTF-8: a prompt, a request, a gradient or a patch.
pub const DOCUMENT_MAX: usize = 32_768;
/// Most rows of one event.
pub const SGD_ROWS_MAX: usize = 500;
/// Most repeats of a score.
pub const REPEATS_MAX: usize = 9;

words! {
    /// Part of the labelled rows.
    SgdSplit {
        /// Nobody reads it before a gate.
        Confirm "confirm",
        /// Read once, at the end.
        Test "test",
        /// Gradients come from it.
        Train "train",
        /// Checkpoints are chosen on it.
        Val "val",
    }
}

words! {
    /// Which rows were scored, and for what.
    SgdPart {
        /// All rows of train under prompt 0.
        Base "base",
        /// The rows of a batch.
        Batch "batch",
        /// All rows of confirm, under a gate.
        Confirm "confirm",
        /// All rows of test.
        Test "test",
        /// All rows of val.
        Val "val",
    }
}

impl SgdPart {
    /// The part of the labelled rows that they are of.
    pub fn split(self) -> SgdSplit {
        match self {
            Self::Base | Self::Batch => SgdSplit::Train,
            Self::Confirm => SgdSplit::Confirm,
            Self::Test => SgdSplit::Test,
            Self::Val => SgdSplit::Val,
        }
    }
}

words! {
    /// Who writes gradients and patches.
    SgdAgents {
        /// The deterministic pair `aggregate/1` of this program.
        Aggregate "aggregate",
        /// A program of people's own.
        Command "command",
        /// A model behind HTTP.
        Endpoint "endpoint",
    }
}

words! {
    /// How far a score is from its target.
    SgdDistance {
        /// Huber's, with a bend at 0.1.
        Huber "huber",
        /// Its absolute value.
        Mae "mae",
    }
}

words! {
    /// How pairs of high and low rows are weighed.
    SgdRanking {
        /// Nothing is left once the human gap is reproduced.
        Hinge "hinge",
        /// Softplus of the gap.
        Logistic "logistic",
    }
}

words! {
    /// What of several labels of a row is its target.
    SgdTarget {
        /// Their mean.
        Mean "mean",
        /// Their median; of an even number the mean of the middle two.
        Median "median",
    }
}

/// A document of a run as it was written: at most 32,768 bytes of UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("maxLength" = 32768)))]
pub struct SgdDocument(String);

impl SgdDocument {
    /// `None` when too long.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (text.len() <= DOCUMENT_MAX).then_some(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for SgdDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?)
            .ok_or_else(|| D::Error::custom("expected a document of at most 32768 bytes"))
    }
}

/// Constants that a run is held to, whole or in millionths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdTerms {
    /// Weight of the distance to the targets.
    pub alpha_micro: Micro,
    /// Rows of a batch, a multiple of 3.
    pub batch: Count,
    /// Weight of the ranking, at most that of the distance.
    pub beta_micro: Micro,
    /// Which distance.
    pub distance: SgdDistance,
    /// Weight of instability.
    pub eta_micro: Micro,
    /// Steps after a stop was triggered.
    pub extra: Count,
    /// Weight of contraction.
    pub gamma_micro: Micro,
    /// Highest learning rate, at the end of warm-up.
    pub lr_max_micro: Micro,
    /// Lowest learning rate, at the end.
    pub lr_min_micro: Micro,
    /// Which ranking.
    pub ranking: SgdRanking,
    /// Scores of a row.
    pub repeats: Count,
    /// Whether a step that makes val worse twice is taken back.
    pub reverts: bool,
    /// Most steps.
    pub steps: Count,
    /// What of several labels is the target.
    pub target: SgdTarget,
    /// Learning rate from which sections may be added, removed and moved.
    pub tau_micro: Micro,
    /// Steps of warm-up.
    pub warmup: Count,
    /// Weight of scores that could not be read.
    pub zeta_micro: Micro,
}

/// Roots over the rows of each part, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdSplits {
    /// Of confirm.
    pub confirm: PartRoot,
    /// Of test.
    pub test: PartRoot,
    /// Of train.
    pub train: PartRoot,
    /// Of val.
    pub val: PartRoot,
}

impl SgdSplits {
    /// The root of a part.
    pub fn of(&self, split: SgdSplit) -> PartRoot {
        match split {
            SgdSplit::Confirm => self.confirm,
            SgdSplit::Test => self.test,
            SgdSplit::Train => self.train,
            SgdSplit::Val => self.val,
        }
    }
}

/// A run is opened: everything that it is held to, before its first step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdOpened {
    /// Who writes gradients and patches.
    pub agents: SgdAgents,
    /// The model that is asked for them; absent where none behind HTTP is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedModel>,
    /// The first checkpoint above its newest label: parts and batches are drawn from it. Absent before rulebook 27.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beacon: Option<DrawnFrom>,
    /// The program that runs it.
    pub build: Text,
    /// The judge whose prompt it is.
    pub judge: JudgeId,
    /// The agents' key: gradients and patches are signed by it.
    pub key: KeyId,
    /// Digest of the modal lexicon.
    pub lexicon: Digest,
    /// What writes gradients and patches, in words.
    pub model: Text,
    /// Prompt 0, as canonical JSON.
    pub prompt: SgdDocument,
    /// Its digest.
    pub prompt_digest: Digest,
    /// Its name.
    pub run: RunId,
    /// Who pays where its judge is behind HTTP; absent for every other judge. New with rulebook 29.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scoring: Option<SgdScoring>,
    /// Seed of its batches.
    pub seed: Digest,
    /// Roots of its rows, by part.
    pub splits: SgdSplits,
    /// Constants.
    pub terms: SgdTerms,
    /// The last entry whose labels it reads.
    pub through_seq: Count,
}

/// Who pays for the scores of a run whose judge is behind HTTP, and how much at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdScoring {
    /// The account; absent at a free endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountId>,
    /// The most that all its scores may cost, in millionths of a dollar; absent where the account alone says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_usd_micro: Option<Count>,
}

/// An ask about a row that came to no score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdMissed {
    /// Place of the row among those of the event, from 0.
    pub row: Count,
    /// Which repeat, from 0.
    pub repeat: Count,
}

/// A labelled row of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdRow {
    /// What was answered: its cluster.
    pub item: ItemId,
    /// Who answered.
    pub policy: PolicyId,
    /// Which draw.
    pub draw: Count,
    /// What people say of it, in millionths.
    pub target_micro: Micro,
}

/// Rows of a part are listed, in the order of item, policy and draw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdRowsListed {
    /// Place of the first, from 0.
    pub first: Count,
    /// The rows.
    #[serde(deserialize_with = "rows")]
    pub rows: Vec<SgdRow>,
    /// The run.
    pub run: RunId,
    /// The part.
    pub split: SgdSplit,
}

/// Reads at most as many rows as an event may have.
fn rows<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SgdRow>, D::Error> {
    let all = Vec::<SgdRow>::deserialize(deserializer)?;
    if all.len() <= SGD_ROWS_MAX {
        return Ok(all);
    }
    let expected = format!("expected at most {SGD_ROWS_MAX} rows");
    Err(D::Error::custom(expected))
}

/// Rows were scored under a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdScored {
    /// Place of the first, from 0.
    pub first: Count,
    /// Asks that came to no score, by row and repeat, where the judge is behind HTTP; each leaves its score out.
    #[serde(
        default,
        deserialize_with = "missed",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub missed: Vec<SgdMissed>,
    /// Which rows.
    pub part: SgdPart,
    /// The prompt.
    pub prompt_digest: Digest,
    /// The run.
    pub run: RunId,
    /// Scores of each row in millionths, repeat by repeat; one that could not be read is left out.
    #[serde(deserialize_with = "scores")]
    pub scores: Vec<Vec<Micro>>,
    /// The step, from 0.
    pub step: Count,
}

/// Reads at most as many misses as an event may have scores, in order and each once.
fn missed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SgdMissed>, D::Error> {
    let all = Vec::<SgdMissed>::deserialize(deserializer)?;
    let ascend = all.windows(2).all(|pair| pair[0] < pair[1]);
    if ascend && all.len() <= SGD_ROWS_MAX * REPEATS_MAX {
        return Ok(all);
    }
    Err(D::Error::custom("expected misses in order, each once"))
}

/// Reads at most as many rows and repeats as an event may have.
fn scores<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<Micro>>, D::Error> {
    let all = Vec::<Vec<Micro>>::deserialize(deserializer)?;
    if all.len() <= SGD_ROWS_MAX && all.iter().all(|of| of.len() <= REPEATS_MAX) {
        return Ok(all);
    }
    let expected =
        format!("expected at most {SGD_ROWS_MAX} rows of at most {REPEATS_MAX} scores each");
    Err(D::Error::custom(expected))
}

/// A loss with its terms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdLoss {
    /// Mean distance to the targets, in units of the constant judge's.
    pub abs: Finite,
    /// Share of pairs in the right order, by weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concordance: Option<Finite>,
    /// Penalty for contraction.
    pub contraction: Finite,
    /// Entropy of mean scores, from 0 to 1.
    pub entropy: Finite,
    /// Share of scores that could not be read.
    pub failures: Finite,
    /// The sum.
    pub loss: Finite,
    /// Pairs of a high and a low row.
    pub pairs: Count,
    /// Loss of the ranking; absent without a pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<Finite>,
    /// Spread of mean scores, in units of the targets' spread; absent where that is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sd_ratio: Option<Finite>,
    /// Mean variance of the scores of a row.
    pub selfvar: Finite,
    /// Spearman's rank correlation; absent where a side is constant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spearman: Option<Finite>,
    /// Kendall's tau-b; absent where a side is constant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tau_b: Option<Finite>,
}

/// What scores are worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdLossComputed {
    /// The loss.
    pub loss: SgdLoss,
    /// Which rows.
    pub part: SgdPart,
    /// The prompt.
    pub prompt_digest: Digest,
    /// The run.
    pub run: RunId,
    /// The step, from 0.
    pub step: Count,
}

/// The rows of test were read, once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdTestRead {
    /// Loss of prompt 0.
    pub base: SgdLoss,
    /// Loss of the checkpoint.
    pub chosen: SgdLoss,
    /// The checkpoint.
    pub prompt_digest: Digest,
    /// The run.
    pub run: RunId,
}
