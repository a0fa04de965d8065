//! What judges said.

use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error as _;

use crate::id::EventId;
use crate::id::ItemId;
use crate::id::JudgeId;
use crate::id::PolicyId;
use crate::payload::PrivateRef;
use crate::payload::estimated::ScaleEnds;
use crate::payload::model_runs::CallOf;

/// A judge scored one draw of a policy on one item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScoreRecorded {
    /// The call that gave it; absent for judges that are not behind HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallOf>,
    /// Which draw of the policy on this item, from 0.
    pub draw: Count,
    /// What was judged.
    pub item: ItemId,
    /// Who judged.
    pub judge: JudgeId,
    /// Whose output it was.
    pub policy: PolicyId,
    /// The prompt, private.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PrivateRef>,
    /// The response, private.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<PrivateRef>,
    /// The score in millionths.
    pub score_micro: Micro,
}

/// The scale of the scores that are imported of a judge, said before its first score. Without it they go from 0 to 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScoreScaleDeclared {
    /// The greatest score that there can be, in millionths.
    pub high_micro: Micro,
    /// Whose scores.
    pub judge: JudgeId,
    /// The least, in millionths.
    pub low_micro: Micro,
}

impl ScoreScaleDeclared {
    /// Its ends.
    pub fn ends(&self) -> ScaleEnds {
        ScaleEnds {
            high_micro: self.high_micro,
            low_micro: self.low_micro,
        }
    }
}

/// A judge gave a draw another score than is recorded; the recorded one stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScoreConflict {
    /// Which draw of the policy on this item, from 0.
    pub draw: Count,
    /// What was judged.
    pub item: ItemId,
    /// Who judged.
    pub judge: JudgeId,
    /// Whose output it was.
    pub policy: PolicyId,
    /// The `score.recorded` that stands.
    pub recorded: EventId,
    /// Its score in millionths.
    pub recorded_micro: Micro,
    /// The other score in millionths.
    pub score_micro: Micro,
}

/// What another policy would have given a logged response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetLogprob {
    /// Log-probability of the logged response under it.
    pub logprob: Finite,
    /// The policy.
    pub policy: PolicyId,
}

/// Log-probabilities of one logged response, under the policy that gave it and under others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogprobRecorded {
    /// Log-probability under the logged policy.
    pub base: Finite,
    /// Which draw of the policy on this item, from 0.
    pub draw: Count,
    /// What was answered.
    pub item: ItemId,
    /// The logged policy.
    pub policy: PolicyId,
    /// The same response under other policies, by name, each once.
    #[serde(deserialize_with = "targets")]
    pub targets: Vec<TargetLogprob>,
}

/// Reads log-probabilities in order of their policies, each once.
fn targets<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<TargetLogprob>, D::Error> {
    let targets = Vec::<TargetLogprob>::deserialize(deserializer)?;
    if targets
        .windows(2)
        .all(|pair| pair[0].policy < pair[1].policy)
    {
        return Ok(targets);
    }
    Err(D::Error::custom("expected policies in order, each once"))
}
