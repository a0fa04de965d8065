//! Residual cards: what an optimizer may know of a slice where the judge is off. No text, no label, no score, no row.

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::id::AttackId;
use crate::id::CardId;
use crate::id::FamilyId;
use crate::id::FieldId;
use crate::id::IterationId;
use crate::id::SliceId;
use crate::id::Text;
use crate::payload::Verdict;
use crate::payload::intake::SplitPart;
use crate::payload::manifest::SliceCondition;

/// Class of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Direction {
    /// Scores are too high.
    OverScored,
    /// Scores are too low.
    UnderScored,
}

/// A partially pooled mean residual with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BinnedFeature {
    /// Quarter, from 0.
    pub bin: Count,
    /// The feature.
    pub feature: FieldId,
}

/// A row of which only bins are shown, and which rules of the rubric in force its record met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RedactedRow {
    /// Its features in order of name.
    pub features: Vec<BinnedFeature>,
    /// Paths of the rules that fired on it, ascending, each once; absent without an evidence record, and in a card
    /// without a basis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fired: Option<Vec<Text>>,
}

/// What a card was computed on: nothing of it is about a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CardBasis {
    /// Digest of the calibrator whose residuals these are: that of `calibrator.fitted`.
    pub calibrator: Digest,
    /// The iteration.
    pub iteration: IterationId,
    /// Hash of the rubric in force.
    pub rubric_hash: Digest,
    /// Conditions of the slice as registered; empty for `other`, which is whatever lies in no cell.
    pub selector: Vec<SliceCondition>,
    /// The part whose labels were read.
    pub split: SplitPart,
}

/// Two ends of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CardInterval {
    /// High end.
    pub high_micro: Micro,
    /// Low end.
    pub low_micro: Micro,
}

/// An explanation that was checked automatically.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StressDelta {
    /// The attack.
    pub attack: AttackId,
    /// Mean uplift.
    pub mean_micro: Micro,
    /// Seeds.
    pub seeds: Count,
}

/// The optimizer's projection of a card. Statistics are rounded to four decimals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublicCard {
    /// What it was computed on; a card without it has no raw interval, raw p, shrinkage or fired rules either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basis: Option<CardBasis>,
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
    /// 95 % interval of the mean residual, cluster-robust; absent below 40 rows, and for one cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_raw: Option<CardInterval>,
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
    /// Two-sided p before adjustment; absent below 40 rows, for one cluster, and without spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_raw_micro: Option<Micro>,
    /// Labelled rows.
    pub rows: Count,
    /// Weight of the common mean in the pooled one, B in 0 to 1; absent without spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shrink_micro: Option<Micro>,
    /// The slice.
    pub slice: SliceId,
    /// Stakes.
    pub stakes_micro: Micro,
    /// Uplift of attacks.
    pub stress: Vec<StressDelta>,
}

/// A residual card is published: the optimizer's projection whole, the full one by its digest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CardPublished {
    /// The program that computed it; absent where the card has no basis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<Text>,
    /// What the optimizer sees.
    pub card: PublicCard,
    /// Digest of the full card, which names rows.
    pub full_digest: Digest,
    /// The iteration.
    pub iteration: IterationId,
    /// Digest of `card`.
    pub public_digest: Digest,
}

#[cfg(test)]
mod tests {
    use crate::Payload;
    use crate::registry;

    /// As it was written before cards said what they were computed on.
    const BEFORE: &str = r#"{"card":{"candidate_paths":["text-1"],"card":"text-1","class":"green","clusters":1,"counterexamples":[{"features":[{"bin":1,"feature":"text-1"}]}],"direction":"over_scored","exemplars":[{"features":[{"bin":1,"feature":"text-1"}]}],"explanations":[{"explanation":"text-1","score_micro":-250000,"verdict":"fail"}],"exposure_micro":-250000,"family":"text-1","hints":[{"feature":"text-1","reference_micro":-250000,"rows":1,"smd_micro":-250000,"worst_micro":-250000}],"mean_raw_micro":-250000,"mean_shrunk":{"high_micro":-250000,"low_micro":-250000,"mean_micro":-250000},"mse_micro":-250000,"p_adjusted_micro":-250000,"rows":1,"slice":"text-1","stakes_micro":-250000,"stress":[{"attack":"text-1","mean_micro":-250000,"seeds":1}]},"full_digest":"788de5096f8b530eef97a4015cffb7cfeb260c23795b846bf8112682a93b1101","iteration":"text-1","public_digest":"788de5096f8b530eef97a4015cffb7cfeb260c23795b846bf8112682a93b1101"}"#;

    #[test]
    fn a_card_without_a_basis_is_read_and_stays_as_it_is() {
        let (payload, bytes) = registry::decode("card.published", 1, BEFORE).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), BEFORE);
        let Payload::CardPublished(said) = payload else {
            unreachable!("a card");
        };
        assert!(said.build.is_none() && said.card.basis.is_none());
    }
}
