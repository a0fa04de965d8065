//! What the optimizer asks of the dev rows: the one answer that it gets, and nothing of the rows.

use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_num::Finite;
use serde::Deserialize;
use serde::Serialize;

use crate::id::IterationId;
use crate::id::Text;
use crate::payload::Verdict;
use crate::payload::predicate::Criterion;
use crate::payload::predicate::RowsRead;

/// What one gate would say of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateAnswer {
    /// The gate.
    pub gate: Criterion,
    /// Under the profile that binds.
    pub verdict: Verdict,
}

/// An optimizer asked what a candidate would be worth on dev, and was told two things: the objective and which gates
/// pass. The event is its receipt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DevObjectiveQueried {
    /// p0 to p7, in order.
    pub answers: Vec<GateAnswer>,
    /// The program that computed it.
    pub build: Text,
    /// Hash of the patch, proposed or not.
    pub candidate: Digest,
    /// What was read.
    pub inputs: RowsRead,
    /// The iteration.
    pub iteration: IterationId,
    /// The key that asked.
    pub requester: KeyId,
    /// Risk improvement on dev, negative when better.
    pub risk_improve: Finite,
}
