//! What judges said.

use serde::Deserialize;
use serde::Serialize;

use crate::event::id::ItemId;
use crate::event::id::JudgeId;
use crate::event::id::PolicyId;
use crate::event::payload::PrivateRef;
use crate::num::Count;
use crate::num::Micro;

/// A judge scored one draw of a policy on one item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScoreRecorded {
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
