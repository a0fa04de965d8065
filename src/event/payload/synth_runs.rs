//! Runs of an optimizer that sees only cards: what it was to do, what it was shown, what it returned, and how it ended.
//! `schema/SYNTHESIS.md` says how one follows from the other.

use std::fmt;

use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_num::Count;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error as _;

use crate::id::EventId;
use crate::id::IterationId;
use crate::id::PatchId;
use crate::id::RunId;
use crate::id::Text;
use crate::payload::BlobRef;
use crate::payload::endpoint::words;
use crate::payload::model_calls::AskedModel;
use crate::payload::rubric::SourceText;

/// Most candidates of one answer that are read.
pub const K_MAX: u64 = 8;
/// Most rounds of a run.
pub const ROUNDS_MAX: u64 = 64;
/// Most candidates that an answer may have at all.
pub const CANDIDATES_MAX: usize = 32;
/// Most cards that a candidate may name.
pub const CARDS_MAX: usize = 8;

words! {
    /// Who writes candidates.
    OptimizerKind {
        /// The deterministic search `cards/1` of this program.
        Cards "cards",
        /// A program of people's own.
        Command "command",
        /// A model behind HTTP.
        Endpoint "endpoint",
    }
}

words! {
    /// What became of an answer as a whole.
    AnswerState {
        /// It is longer than an answer may be, and was not kept.
        Oversize "oversize",
        /// Candidates were read from it.
        Read "read",
        /// It is no answer.
        Unreadable "unreadable",
    }
}

words! {
    /// Why a candidate is none: the check of patches that it failed, or what else it is not.
    CandidateCode {
        /// It says that it needs no new answers of the judge, and needs them.
        AffectsRescore "affects_rescore",
        /// It appends to what is no list.
        Append "append",
        /// It stands beyond the most that an answer may have.
        BeyondK "beyond_k",
        /// It names a card that was not shown.
        Cards "cards",
        /// It changes one leaf twice.
        Conflict "conflict",
        /// It has a leaf of another family.
        CrossFamily "cross_family",
        /// Its edit was seen before.
        DuplicateDiff "duplicate_diff",
        /// Its name was used before.
        DuplicateId "duplicate_id",
        /// It touches what no patch may touch.
        Frozen "frozen",
        /// It has other keys than the grammar's.
        Keys "keys",
        /// It changes nothing.
        Noop "noop",
        /// It is longer than a patch may be, or the answer is longer than its record.
        Oversize "oversize",
        /// It is no document.
        Parse "parse",
        /// It names a path that no rubric has.
        Path "path",
        /// A value is out of range.
        Range "range",
        /// It needs new answers of the judge, which a run does not ask for.
        Rescore "rescore",
        /// What results is no rubric.
        Rubric "rubric",
        /// It changes too much.
        Size "size",
        /// A value is of another type.
        Type "type",
    }
}

words! {
    /// Why a run ended.
    SynthEnd {
        /// No dev call is left to it.
        DevCalls "dev_calls",
        /// Four in five candidates of two rounds were seen before.
        Duplicates "duplicates",
        /// The optimizer returned no candidate.
        Empty "empty",
        /// A person stopped it.
        Person "person",
        /// Every round was had.
        Rounds "rounds",
        /// Two rounds brought nothing better.
        Stalled "stalled",
        /// Half of what two rounds returned could not be read.
        Unreadable "unreadable",
    }
}

/// A run is opened in an iteration: what its optimizer may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SynthOpened {
    /// The model that is asked; absent where a program of this machine writes candidates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedModel>,
    /// The program that runs it.
    pub build: Text,
    /// Most dev calls of it.
    pub dev_calls: Count,
    /// The iteration.
    pub iteration: IterationId,
    /// Most candidates of a round.
    pub k: Count,
    /// The optimizer's key: what it returns and what is proposed is signed by it.
    pub key: KeyId,
    /// What writes candidates, in words: `cards/1`, a command with the digest of its files, or a model and its endpoint.
    pub model: Text,
    /// Who writes candidates.
    pub optimizer: OptimizerKind,
    /// Most rounds.
    pub rounds: Count,
    /// Its name.
    pub run: RunId,
}

/// What was looked through before a view was handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeakTest {
    /// Ids of rows.
    pub ids: Count,
    /// Texts of rows.
    pub texts: Count,
    /// Texts that could not be read, of rows that were erased.
    pub unreadable: Count,
}

/// A view was handed to the optimizer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SynthAsked {
    /// The program that made the view.
    pub build: Text,
    /// What stands in it: digests of cards, the rubric and the grammars, and receipts.
    pub inputs: Vec<Digest>,
    /// The iteration.
    pub iteration: IterationId,
    /// What was looked through: none of it stands in the view.
    pub leak_test: LeakTest,
    /// The round, from 0.
    pub round: Count,
    /// The run.
    pub run: RunId,
    /// The last entry that the view reads.
    pub through_seq: Count,
    /// The view.
    pub view: BlobRef,
    /// SHA-256 of the view's bytes.
    pub view_digest: Digest,
}

/// One candidate of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SynthCandidate {
    /// Cards that it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<Digest>,
    /// Why it is none; absent for a patch that passes every check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<CandidateCode>,
    /// Hash of its diff, where it passes every check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch_hash: Option<Digest>,
    /// Its document; absent where it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yaml: Option<SourceText>,
}

/// The optimizer answered a view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SynthReturned {
    /// Its answer, byte for byte; absent where it was too long to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<BlobRef>,
    /// The call that gave it, of a model behind HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<EventId>,
    /// Its candidates in their order.
    #[serde(deserialize_with = "candidates")]
    pub candidates: Vec<SynthCandidate>,
    /// The iteration.
    pub iteration: IterationId,
    /// The round, from 0.
    pub round: Count,
    /// The run.
    pub run: RunId,
    /// What became of it.
    pub state: AnswerState,
}

/// Reads at most as many candidates as an answer may have.
fn candidates<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SynthCandidate>, D::Error> {
    let all = Vec::<SynthCandidate>::deserialize(deserializer)?;
    if all.len() <= CANDIDATES_MAX && all.iter().all(|of| of.cards.len() <= CARDS_MAX) {
        return Ok(all);
    }
    let expected =
        format!("expected at most {CANDIDATES_MAX} candidates of at most {CARDS_MAX} cards");
    Err(D::Error::custom(expected))
}

/// A run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SynthStopped {
    /// Dev calls that it made.
    pub dev_calls: Count,
    /// The iteration.
    pub iteration: IterationId,
    /// Patches that came of it, by family.
    pub proposed: Vec<PatchId>,
    /// Why.
    pub reason: SynthEnd,
    /// Rounds that it had.
    pub rounds: Count,
    /// The run.
    pub run: RunId,
}
