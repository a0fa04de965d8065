//! Residual cards: what an optimizer may know of a slice where the judge is off. No text, no label, no score, no row.

use serde::Deserialize;
use serde::Serialize;

use crate::event::id::AttackId;
use crate::event::id::CardId;
use crate::event::id::FamilyId;
use crate::event::id::FieldId;
use crate::event::id::IterationId;
use crate::event::id::SliceId;
use crate::event::id::Text;
use crate::event::payload::Verdict;
use crate::ground::digest::Digest;
use crate::num::Count;
use crate::num::Micro;

/// Class of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum SliceClass {
    /// Protected: it must not get worse.
    Green,
    /// Reported, not gated.
    Neutral,
    /// The judge is off here.
    Risk,
}

/// Which way the judge is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Direction {
    /// Scores are too high.
    OverScored,
    /// Scores are too low.
    UnderScored,
}

/// A partially pooled mean residual with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CardMean {
    /// High end.
    pub high_micro: Micro,
    /// Low end.
    pub low_micro: Micro,
    /// Mean.
    pub mean_micro: Micro,
}

/// A feature that differs between the worst rows of a slice and its well-judged ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Hint {
    /// The feature.
    pub feature: FieldId,
    /// Its mean in the well-judged rows.
    pub reference_micro: Micro,
    /// Rows among the worst.
    pub rows: Count,
    /// Standardised mean difference.
    pub smd_micro: Micro,
    /// Its mean in the worst rows.
    pub worst_micro: Micro,
}

/// A feature of a redacted row, by the quarter of all logs that it falls into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BinnedFeature {
    /// Quarter, from 0.
    pub bin: Count,
    /// The feature.
    pub feature: FieldId,
}

/// A row of which only bins are shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RedactedRow {
    /// Its features in order of name.
    pub features: Vec<BinnedFeature>,
}

/// An explanation that was checked automatically.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Explanation {
    /// `length_bias`, `fake_citations`, ….
    pub explanation: FieldId,
    /// Correlation or difference of mean residuals; absent when unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_micro: Option<Micro>,
    /// `pass`: it holds; `fail`: it does not; `not_checked`: the feature is not there.
    pub verdict: Verdict,
}

/// Uplift of an attack among the slice's rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StressDelta {
    /// The attack.
    pub attack: AttackId,
    /// Mean uplift.
    pub mean_micro: Micro,
    /// Seeds.
    pub seeds: Count,
}

/// The optimizer's projection of a card. Statistics are rounded to four decimals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PublicCard {
    /// Rubric paths related to the hints.
    pub candidate_paths: Vec<Text>,
    /// The card.
    pub card: CardId,
    /// Class of the slice.
    pub class: SliceClass,
    /// Clusters with a labelled row.
    pub clusters: Count,
    /// Rows near the exemplars that are judged well.
    pub counterexamples: Vec<RedactedRow>,
    /// Which way the judge is off.
    pub direction: Direction,
    /// Rows that are judged worst.
    pub exemplars: Vec<RedactedRow>,
    /// Explanations that were checked.
    pub explanations: Vec<Explanation>,
    /// Share of all logs.
    pub exposure_micro: Micro,
    /// Family of the slice.
    pub family: FamilyId,
    /// Features that differ.
    pub hints: Vec<Hint>,
    /// Mean residual; absent below 40 rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_raw_micro: Option<Micro>,
    /// Partially pooled mean residual; absent without spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_shrunk: Option<CardMean>,
    /// Mean squared residual.
    pub mse_micro: Micro,
    /// p adjusted within the family; absent below 40 rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_adjusted_micro: Option<Micro>,
    /// Labelled rows.
    pub rows: Count,
    /// The slice.
    pub slice: SliceId,
    /// Stakes.
    pub stakes_micro: Micro,
    /// Uplift of attacks.
    pub stress: Vec<StressDelta>,
}

/// A residual card is published: the optimizer's projection whole, the full one by its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CardPublished {
    /// What the optimizer sees.
    pub card: PublicCard,
    /// Digest of the full card, which names rows.
    pub full_digest: Digest,
    /// The iteration.
    pub iteration: IterationId,
    /// Digest of `card`.
    pub public_digest: Digest,
}
