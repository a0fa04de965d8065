//! Calls of models: how each attempt ended, and what the ask came to. `schema/ENDPOINTS.md` says what each word means.

use std::fmt;

use clover_num::Count;
use serde::Deserialize;
use serde::Serialize;

use crate::payload::endpoint::words;

words! {
    /// What an ask came to.
    CallOutcome {
        /// It was read.
        Answered "answered",
        /// Its attempts were used up on limits, failures and transport.
        Exhausted "exhausted",
        /// A filter of the provider took it out.
        Filtered "filtered",
        /// It was perhaps sent, under a hold that a crash left open.
        Lost "lost",
        /// Another model answered than was pinned.
        Mismatched "mismatched",
        /// The model declined.
        Refused "refused",
        /// The request was not taken: 400, 404, 413 or 422.
        Rejected "rejected",
        /// It stopped at the limit of tokens.
        Truncated "truncated",
        /// Log-probabilities did not cover the levels.
        Uncovered "uncovered",
        /// It has not the closed form that was asked for.
        Unparsed "unparsed",
    }
}

words! {
    /// How an attempt ended.
    AttemptClass {
        /// The connection was lost after the request was sent.
        Cut "cut",
        /// The key was refused: 401, 402 or 403.
        Denied "denied",
        /// 500, 502 or 504.
        Failed "failed",
        /// 200 with something that is no JSON.
        Foreign "foreign",
        /// No answer within the time.
        Late "late",
        /// 429.
        Limited "limited",
        /// An answer.
        Ok "ok",
        /// 408, 425, 503 or 529.
        Overloaded "overloaded",
        /// The answer is longer than is read.
        Oversize "oversize",
        /// 3xx: the URL is wrong.
        Redirected "redirected",
        /// The request is wrong: other 4xx.
        Rejected "rejected",
        /// No connection came about.
        Unreachable "unreachable",
    }
}

impl AttemptClass {
    /// Whether the provider may have billed it though it gave no answer that counts.
    pub fn is_maybe_billed(self) -> bool {
        matches!(
            self,
            Self::Cut | Self::Failed | Self::Foreign | Self::Late | Self::Oversize
        )
    }
}

/// Tokens of one call, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenCounts {
    /// Input that was read from a cache.
    pub cache_read: Count,
    /// Input that was written to a cache.
    pub cache_write: Count,
    /// Input that was neither.
    pub input: Count,
    /// Output, with what was reasoned.
    pub output: Count,
    /// What was reasoned.
    pub reasoning: Count,
}

/// One attempt to send an ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallAttempt {
    /// How it ended.
    pub class: AttemptClass,
    /// Milliseconds that it took.
    pub ms: Count,
    /// The status of HTTP; absent where none came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Count>,
}

/// Most attempts of one ask.
pub const ATTEMPTS_MAX: usize = 16;
