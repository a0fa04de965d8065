//! Calls of models for another purpose than judging: who may be asked for it, and what one call came to.
//! `schema/SYNTHESIS.md` says how one follows from the other.

use std::fmt;

use clover_ground::digest::Digest;
use clover_num::Count;
use serde::Deserialize;
use serde::Serialize;

use crate::calls::CallAttempt;
use crate::calls::CallOutcome;
use crate::calls::TokenCounts;
use crate::id::AccountId;
use crate::id::EndpointId;
use crate::id::PriceTableId;
use crate::id::RunId;
use crate::id::Text;
use crate::payload::BlobRef;
use crate::payload::Role;
use crate::payload::endpoint::words;
use crate::payload::model_runs::UsageState;
use crate::payload::model_runs::attempts;
use crate::payload::model_terms::TextClass;

/// Longest text of an answer that is kept, in bytes.
pub const ANSWER_MAX: usize = 64 << 10;
/// Longest body of an answer that is kept, in bytes.
pub const BODY_MAX: usize = 256 << 10;
/// Most tokens of output that an ask may have.
pub const OUTPUT_MAX: u64 = 131_072;

words! {
    /// What a model is asked for, beside scores.
    CallPurpose {
        /// Gradients and patches of a judge's prompt, in a run that lowers its loss.
        Descend "descend",
        /// Patches of a rubric, in a run of an optimizer.
        Propose "propose",
    }
}

impl CallPurpose {
    /// Who asks, and which texts go out: a line a purpose.
    pub fn terms(self) -> (Role, TextClass) {
        match self {
            Self::Descend | Self::Propose => (Role::Optimizer, TextClass::Aggregates),
        }
    }
}

/// Which model a run asks, in which form, and who pays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskedModel {
    /// The account that pays; absent at a free endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountId>,
    /// The most that the run may cost, in millionths of a dollar; absent where the account alone says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_usd_micro: Option<Count>,
    /// Where it is asked.
    pub endpoint: EndpointId,
    /// Instructions and form of its asks: `propose/1` or `descend/1`.
    pub form: Text,
    /// Most tokens of an answer, from 1 to 131072.
    pub max_output_tokens: Count,
    /// The model that is asked for.
    pub model: Text,
    /// The model that has to answer.
    pub pin: Text,
    /// The table that it is priced by; absent at a free endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<PriceTableId>,
    /// Whether each ask has a seed that follows from it.
    pub seeded: bool,
    /// Temperature in millionths; absent for the model's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_micro: Option<Count>,
}

/// An ask of a run came to something, for another purpose than judging. Its texts hold no row, so they stand in the open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelCallRecorded {
    /// The ask's key: SHA-256 of its canonical bytes.
    pub ask: Digest,
    /// Every attempt, in order.
    #[serde(deserialize_with = "attempts")]
    pub attempts: Vec<CallAttempt>,
    /// The most that one attempt may cost, in millionths of a dollar.
    pub bound_usd_micro: Count,
    /// The program that asked.
    pub build: Text,
    /// What it cost, in millionths of a dollar, attempts that may have been billed included.
    pub cost_usd_micro: Count,
    /// What is wrong, in a word or as the provider says it; absent where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Text>,
    /// Fingerprint of the system that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Text>,
    /// The hold; absent at a free endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Text>,
    /// The model that answered, as it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_returned: Option<Text>,
    /// Which call of the ask, from 0.
    pub nth: Count,
    /// What it came to.
    pub outcome: CallOutcome,
    /// Which ask of the run, from 0: the round of an optimizer; of step t 4 t for its gradient, and 4 t + 1 and on for its
    /// proposals.
    pub place: Count,
    /// The provider's name of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_request: Option<Text>,
    /// What it was asked for.
    pub purpose: CallPurpose,
    /// The body of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<BlobRef>,
    /// The run.
    pub run: RunId,
    /// SHA-256 of what was shown: the view of an optimizer, the request for a gradient, or the gradient that a patch is to answer.
    pub shown: Digest,
    /// The text of the answer; absent where it is none that is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<BlobRef>,
    /// Tokens, where the answer says them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenCounts>,
    /// What the answer says of its tokens.
    pub usage: UsageState,
}

/// Whether an ask that came to this has come to its end: nobody asks it again.
pub fn is_final(outcome: CallOutcome) -> bool {
    matches!(
        outcome,
        CallOutcome::Answered
            | CallOutcome::Filtered
            | CallOutcome::Refused
            | CallOutcome::Truncated
            | CallOutcome::Unparsed
    )
}
