//! Runs of models behind HTTP: what is held before anything is sent, each call, and what it came to. `schema/ENDPOINTS.md`
//! says how one follows from the other.

use std::fmt;

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error as _;

use crate::calls::ATTEMPTS_MAX;
use crate::calls::CallAttempt;
use crate::calls::CallOutcome;
use crate::calls::TokenCounts;
use crate::id::AccountId;
use crate::id::EndpointId;
use crate::id::EventId;
use crate::id::ItemId;
use crate::id::JudgeId;
use crate::id::PolicyId;
use crate::id::PriceTableId;
use crate::id::Root;
use crate::id::RunId;
use crate::id::Text;
use crate::payload::PrivateRef;
use crate::payload::Verdict;
use crate::payload::budget::at_least_one;
use crate::payload::endpoint::words;
use crate::payload::sgd::SgdPart;

words! {
    /// How a run ended.
    RunEnd {
        /// What is left did not fit into its account or its cap.
        Capped "capped",
        /// Every ask came to something.
        Completed "completed",
        /// It stopped before its end.
        Stopped "stopped",
    }
}

words! {
    /// What an answer says of its tokens.
    UsageState {
        /// Nothing: the call is priced at its bound.
        Absent "absent",
        /// Numbers that fit.
        Ok "ok",
        /// Numbers that do not fit: the call is priced at its bound.
        Suspect "suspect",
    }
}

/// A judge is asked again about a sample of what it answered, to see how much its scores waver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RescoreTerms {
    /// Which sample of the judge it is, from 1.
    pub number: Count,
    /// How many answers that gave a score it is drawn from: all of them.
    pub of: Count,
}

/// A judge is about to ask a model behind HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JudgeRunOpened {
    /// The account that pays; absent at a free endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountId>,
    /// How many asks it has.
    pub asks: Count,
    /// Merkle root of the keys of its asks, in their order. Where answers are asked for again, the labelled digest of the
    /// entries of the calls that the sample is drawn from.
    pub asks_root: Root,
    /// The program that asks.
    pub build: Text,
    /// The most that it may cost, in millionths of a dollar; absent where the account alone says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_usd_micro: Option<Count>,
    /// Where it asks.
    pub endpoint: EndpointId,
    /// The judge, of the experiment in the header.
    pub judge: JudgeId,
    /// The table that it is priced by; absent at a free endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<PriceTableId>,
    /// What is asked again; absent where rows are scored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rescore: Option<RescoreTerms>,
    /// Its name.
    pub run: RunId,
    /// The run of a prompt that it scores rows for; absent where it scores for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sgd: Option<SgdAsked>,
}

/// Rows of a run of a prompt that a judge behind HTTP is asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdAsked {
    /// Which rows.
    pub part: SgdPart,
    /// The prompt that the judge is told.
    pub prompt_digest: Digest,
    /// The run.
    pub run: RunId,
}

/// A run that was cut goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JudgeRunResumed {
    /// How often it went on, from 1. What an older epoch still says is refused.
    pub epoch: Count,
    /// The run.
    pub run: RunId,
}

/// How many calls of a run came to something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutcomeCount {
    /// How many.
    pub calls: Count,
    /// What they came to.
    pub outcome: CallOutcome,
}

/// Reads counts in order of outcomes, each once.
fn outcomes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<OutcomeCount>, D::Error> {
    let counts = Vec::<OutcomeCount>::deserialize(deserializer)?;
    if counts
        .windows(2)
        .all(|pair| pair[0].outcome < pair[1].outcome)
    {
        return Ok(counts);
    }
    Err(D::Error::custom("expected outcomes in order, each once"))
}

/// A run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JudgeRunClosed {
    /// What its calls came to, in order.
    #[serde(deserialize_with = "outcomes")]
    pub by_outcome: Vec<OutcomeCount>,
    /// What its calls cost, in millionths of a dollar.
    pub cost_usd_micro: Count,
    /// How it ended.
    pub end: RunEnd,
    /// Asks that were never sent.
    pub left: Count,
    /// The run.
    pub run: RunId,
    /// What it was charged, in millionths of a dollar.
    pub settled_usd_micro: Count,
}

/// Money is held for asks that are about to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetReserved {
    /// The account.
    pub account: AccountId,
    /// How much, at least 1.
    #[serde(deserialize_with = "at_least_one")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub amount: Count,
    /// How many asks it covers: those that are open still, and those that follow.
    pub asks: Count,
    /// Its name: the run, its epoch and a number from 0, with slashes between.
    pub hold: Text,
    /// The run.
    pub run: RunId,
}

/// A hold is charged what was spent, and the rest is free again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetSettled {
    /// What is charged.
    pub amount: Count,
    /// The hold.
    pub hold: Text,
    /// Whether more is charged than was held.
    pub overrun: bool,
    /// The run.
    pub run: RunId,
    /// The part of it that nobody knows to be spent: bounds of attempts that a provider may have billed.
    pub unknown: Count,
}

/// The texts that a judge was asked about, as keyed digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskedTexts {
    /// The response.
    pub a_hash: Digest,
    /// The prompt.
    pub x_hash: Digest,
}

/// A call with the texts that it was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallOf {
    /// The call.
    pub call: EventId,
    /// The texts.
    pub texts: AskedTexts,
}

/// Reads attempts, at most 16.
pub(super) fn attempts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<CallAttempt>, D::Error> {
    let attempts = Vec::<CallAttempt>::deserialize(deserializer)?;
    if attempts.len() <= ATTEMPTS_MAX {
        return Ok(attempts);
    }
    Err(D::Error::custom("expected at most 16 attempts"))
}

/// The call that gave a score first, where its ask is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FirstCall {
    /// The call.
    pub call: EventId,
    /// The score that it gave.
    pub score_micro: Micro,
    /// Its entry.
    pub seq: Count,
}

/// An ask came to something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallRecorded {
    /// The ask's key: HMAC of its canonical bytes under the ledger's pepper.
    pub ask: Digest,
    /// Every attempt, in order.
    #[serde(deserialize_with = "attempts")]
    pub attempts: Vec<CallAttempt>,
    /// The most that one attempt may cost, in millionths of a dollar.
    pub bound_usd_micro: Count,
    /// What it cost, in millionths of a dollar, attempts that may have been billed included.
    pub cost_usd_micro: Count,
    /// What is wrong, in a word or as the provider says it; absent where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Text>,
    /// How often the run had gone on.
    pub epoch: Count,
    /// Fingerprint of the system that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Text>,
    /// The call about the same texts that gave a score, where this one asks again; absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<FirstCall>,
    /// The hold; absent at a free endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Text>,
    /// The judge, of the experiment in the header.
    pub judge: JudgeId,
    /// What the answer says of each level at the place of the score; absent where the level that was said is the score.
    #[serde(
        default,
        deserialize_with = "masses",
        skip_serializing_if = "Option::is_none"
    )]
    pub masses: Option<Vec<LevelMass>>,
    /// The model that answered, as it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_returned: Option<Text>,
    /// Which call of the ask, from 0.
    pub nth: Count,
    /// What it came to.
    pub outcome: CallOutcome,
    /// The provider's name of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_request: Option<Text>,
    /// The answer's body, private.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<PrivateRef>,
    /// The run.
    pub run: RunId,
    /// The score that was read, as a share of the levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_micro: Option<Micro>,
    /// The texts that it was about.
    pub texts: AskedTexts,
    /// Tokens, where the answer says them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenCounts>,
    /// What the answer says of its tokens.
    pub usage: UsageState,
}

/// Most alternatives of a score that are kept.
pub const MASSES_MAX: usize = 32;

/// A token that a model weighed in place of a score, and that is one level but for white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LevelMass {
    /// Which level, from 0 for the lowest.
    pub level: Count,
    /// Its log-probability in millionths of a nat: from -100 nats to 0.
    pub logprob_micro: Micro,
}

fn masses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<LevelMass>>, D::Error> {
    let list = Option::<Vec<LevelMass>>::deserialize(deserializer)?;
    let many = list.as_ref().map_or(0, Vec::len);
    if many > MASSES_MAX {
        return Err(D::Error::custom(format!(
            "expected at most {MASSES_MAX} masses, found {many}"
        )));
    }
    Ok(list)
}

impl CallRecorded {
    /// Attempts that a provider may have billed though they gave no answer that counts.
    pub fn maybe_billed(&self) -> u64 {
        let maybe = self.attempts.iter().filter(|of| of.class.is_maybe_billed());
        maybe.count() as u64
    }
}

/// A row has no score: what its ask came to is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScoreMissed {
    /// The call.
    pub call: CallOf,
    /// Which draw of the policy on this item, from 0.
    pub draw: Count,
    /// What was judged.
    pub item: ItemId,
    /// Who judged.
    pub judge: JudgeId,
    /// How often it was missed before.
    pub nth: Count,
    /// Whose output it was.
    pub policy: PolicyId,
    /// What the call came to.
    pub reason: CallOutcome,
}

/// How much scores of a judge waver, on rows that it was asked about twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoiseFigures {
    /// Rows that have both scores.
    pub answered: Count,
    /// Rows that were drawn.
    pub asked: Count,
    /// Rows of both scores that differ.
    pub differing: Count,
    /// Rows whose second ask came to no answer.
    pub missed: Count,
    /// Standard deviation of one score in millionths; absent below two rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sd_micro: Option<Count>,
    /// Half of the width of the shift's interval of .95, in millionths; absent below two rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift_half_micro: Option<Count>,
    /// Mean of the second scores less the first ones, in millionths; absent below two rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift_micro: Option<Micro>,
}

/// A run that asked again ended: how much scores of its judge waver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoiseMeasured {
    /// Of this run.
    pub figures: NoiseFigures,
    /// The judge.
    pub judge: JudgeId,
    /// Of every run of the judge that asked again, this one included.
    pub pooled: NoiseFigures,
    /// The run.
    pub run: RunId,
    /// The standard deviation that the plan allows, in millionths; absent where scores have to come out the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sd_max_micro: Option<Count>,
    /// What all runs together say: pass where scores waver no more than is allowed.
    pub verdict: Verdict,
}
