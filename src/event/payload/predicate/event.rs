//! Events of the decision: gates, sealing, the one look at confirm, acceptance.

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Finite;
use serde::Deserialize;
use serde::Serialize;

use crate::id::EventId;
use crate::id::IterationId;
use crate::id::PatchId;
use crate::id::Root;
use crate::id::Text;
use crate::payload::gate::DrawnFrom;
use crate::payload::predicate::Criterion;
use crate::payload::predicate::CriterionSplit;
use crate::payload::predicate::Evidence;
use crate::payload::predicate::SequentialLook;
use crate::payload::predicate::Thresholds;
use crate::payload::predicate::Verdicts;

/// What a computation read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RowsRead {
    /// Digest of the rows as they were read.
    pub digest: Digest,
    /// How many.
    pub rows: Count,
    /// The last entry that was read.
    pub through_seq: Count,
}

/// The calibrators that a gate compares, by their digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateCalibrators {
    /// Of the rubric in force.
    pub baseline: Digest,
    /// Of the candidate.
    pub candidate: Digest,
}

/// A gate was evaluated for a candidate: once for each split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateEvaluated {
    /// The battery that P7 says it of; absent for other gates, and where nobody was attacked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub battery: Option<EventId>,
    /// The program that computed it.
    pub build: Text,
    /// The calibrators that are compared; absent where the candidate's rows cannot be scored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibrators: Option<GateCalibrators>,
    /// The candidate: hash of its patch, or of a composite.
    pub candidate: Digest,
    /// Digest of the frozen classification.
    pub classification_hash: Digest,
    /// Sufficient statistics.
    pub evidence: Evidence,
    /// The gate.
    pub gate: Criterion,
    /// What was read.
    pub inputs: RowsRead,
    /// The iteration.
    pub iteration: IterationId,
    /// Digest of the registered parameters.
    pub params_hash: Digest,
    /// Path of the stream of random draws from the registered seed.
    pub seed_label: Text,
    /// On which rows.
    pub split: CriterionSplit,
    /// What it was held to.
    pub thresholds: Thresholds,
    /// What both profiles say.
    pub verdicts: Verdicts,
}

/// A hypothesis that goes to confirm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SealedHypothesis {
    /// Hash of the patch, or of the composite.
    pub candidate: Digest,
    /// Patches that it is made of: one, or the two of the composite, by hash.
    pub patches: Vec<Digest>,
}

/// Candidates are sealed: what confirm will be asked, and no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CandidatesSealed {
    /// Hypotheses among which alpha is divided.
    pub divisor: Count,
    /// Hypotheses in order of hash.
    pub hypotheses: Vec<SealedHypothesis>,
    /// The iteration.
    pub iteration: IterationId,
}

/// The confirm block of an iteration is unsealed: its one exposure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfirmUnsealed {
    /// The charge of the peek.
    pub charge: EventId,
    /// Merkle root of the confirm clusters.
    pub confirm_root: Root,
    /// The iteration.
    pub iteration: IterationId,
    /// The entry that sealed the candidates.
    pub sealed: EventId,
}

/// One hypothesis at a look.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LookedHypothesis {
    /// Hash of the patch, or of the composite.
    pub candidate: Digest,
    /// Its test so far.
    pub test: SequentialLook,
}

/// A look at the confirm block of an iteration whose test is sequential: the labels of its first clusters are shown, in
/// the order that the first checkpoint after the sealing draws.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfirmLooked {
    /// The checkpoint that the order is drawn from.
    pub beacon: DrawnFrom,
    /// The program that computed it.
    pub build: Text,
    /// What was sealed, in order of hash.
    pub hypotheses: Vec<LookedHypothesis>,
    /// What was read.
    pub inputs: RowsRead,
    /// The iteration.
    pub iteration: IterationId,
    /// Clusters of the block with a sealed label.
    pub of_units: Count,
    /// Digest of the registered parameters.
    pub params_hash: Digest,
    /// What clusters are hashed with.
    pub seed: Digest,
    /// Clusters whose labels are all shown: the first of the order.
    pub units: Count,
}

/// A patch is accepted: every gate passed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PatchAccepted {
    /// Hash of the patch.
    pub candidate: Digest,
    /// The charge that pays for it; absent where no account of patches is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charge: Option<EventId>,
    /// Every gate event of it, in the order of gates and splits.
    pub gates: Vec<EventId>,
    /// The iteration.
    pub iteration: IterationId,
    /// Code length.
    pub kappa: Count,
    /// Its id.
    pub patch: PatchId,
    /// Place in the order of acceptance, from 1.
    pub rank: Count,
    /// Risk improvement on confirm, negative when better; never a gate.
    pub risk_improve: Finite,
    /// Hash of the rubric that results.
    pub result_hash: Digest,
}
