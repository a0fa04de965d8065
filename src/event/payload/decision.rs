//! Gates, second half: looks, decisions, continuations, the closing of families, promotions.

use clover_ground::digest::Digest;
use clover_ground::time::Timestamp;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use clover_num::Probability;
use serde::Deserialize;
use serde::Serialize;

use crate::id::DesignId;
use crate::id::EventId;
use crate::id::FamilyId;
use crate::id::ManifestId;
use crate::id::Text;
use crate::payload::gate::DrawnFrom;
use crate::payload::manifest::Bettor;
use crate::payload::manifest::FamilyMethod;

/// Where a gate stands after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Standing {
    /// Nothing is decided; more units may be observed.
    Continue,
    /// The effect is not the margin.
    Different,
    /// The effect lies within the margin.
    Equivalent,
    /// The planned effect is not there.
    Futile,
    /// The candidate is worse.
    Kill,
    /// Past its own level, and not past what its family needs.
    Leading,
    /// Not worse by more than the margin.
    Noninferior,
    /// Better by the margin.
    Promote,
    /// All units that were planned are observed, and nothing is decided: no evidence of no effect.
    UndecidedAtNMax,
}

impl Standing {
    /// Its word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Different => "different",
            Self::Equivalent => "equivalent",
            Self::Futile => "futile",
            Self::Kill => "kill",
            Self::Leading => "leading",
            Self::Noninferior => "noninferior",
            Self::Promote => "promote",
            Self::UndecidedAtNMax => "undecided_at_n_max",
        }
    }
}

/// How a gate ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Outcome {
    /// The effect is not the margin.
    Different,
    /// The effect lies within the margin.
    Equivalent,
    /// The planned effect is not there.
    Futile,
    /// The candidate is worse.
    Kill,
    /// Not worse by more than the margin.
    Noninferior,
    /// Better by the margin.
    Promote,
    /// Another manifest replaced this one.
    Superseded,
    /// All planned units are observed, and nothing is decided: no evidence of no effect.
    UndecidedAtNMax,
    /// Its sealed plan was not revealed in time.
    Void,
}

/// On what a decision rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EvidenceClass {
    /// An asymptotic confidence sequence.
    Asymptotic,
    /// A test whose error rate holds at every number of units.
    Exact,
}

/// Logarithms of wealth, one for each null hypothesis; what is past 10^9 in magnitude stands as that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogWealth {
    /// Against the null hypothesis of the claim; absent where nothing is claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<Finite>,
    /// Against the planned effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub futile: Option<Finite>,
    /// Against the candidate's being no worse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill: Option<Finite>,
    /// Against the claim's second null hypothesis, where it has two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<Finite>,
}

/// What a gate's observations show by now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateLooked {
    /// Error rate, as registered.
    pub alpha_micro: Micro,
    /// How it bets, as registered.
    pub bettor: Bettor,
    /// Highest mean improvement that no look up to this one excludes, in millionths, rounded outward.
    pub cs_hi_micro: Micro,
    /// Lowest mean improvement that no look up to this one excludes, in millionths, rounded outward.
    pub cs_lo_micro: Micro,
    /// Digest of the manifest version in force.
    pub digest: Digest,
    /// The gate.
    pub gate: ManifestId,
    /// Wealth of each guardrail, in the manifest's order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guardrails: Option<Vec<Finite>>,
    /// Logarithm of the evidence for the claim, which merges and is held against the threshold.
    pub log_e: Finite,
    /// Wealth of each test.
    pub log_wealth: LogWealth,
    /// Units observed.
    pub n: Count,
    /// Always-valid p value: the least of all looks.
    pub p: Probability,
    /// Where it stands.
    pub standing: Standing,
    /// Digest of the observations, chained.
    pub state_digest: Digest,
}

/// A gate is decided: final.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateDecided {
    /// On what it rests.
    pub class: EvidenceClass,
    /// Digest of the manifest version in force.
    pub digest: Digest,
    /// The gate.
    pub gate: ManifestId,
    /// Logarithm of the evidence for the claim at the last look; 0 without one.
    pub log_e: Finite,
    /// Units observed.
    pub n: Count,
    /// The outcome.
    pub outcome: Outcome,
}

/// Beside the exact verdict of a decided gate: the mean improvement by labels of a sample of its units, which a checkpoint
/// drew after the judge's scores were observed, with these scores as predictions. The interval holds as units grow and at
/// no number of them exactly; it decides nothing and promotes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateEstimated {
    /// Error rate of the interval, as registered.
    pub alpha_micro: Micro,
    /// The first checkpoint after the gate was decided, which drew the sample.
    pub beacon: DrawnFrom,
    /// Always asymptotic.
    pub class: EvidenceClass,
    /// Upper end for the mean improvement, in millionths, rounded outward.
    pub cs_hi_micro: Micro,
    /// Lower end for the mean improvement, in millionths, rounded outward.
    pub cs_lo_micro: Micro,
    /// The design whose labels were read.
    pub design: DesignId,
    /// Digest of the manifest version in force.
    pub digest: Digest,
    /// The gate.
    pub gate: ManifestId,
    /// How far what it shows may be trusted: asymptotic at best.
    pub grade: Grade,
    /// Units that were drawn and labelled.
    pub labels: Count,
    /// Units of the order that it reads, from the first.
    pub n: Count,
    /// Probability that a unit is drawn, as registered.
    pub pi_micro: Micro,
    /// What units are hashed with.
    pub seed: Digest,
    /// Whether the interval lies where the claim says.
    pub shows: bool,
}

/// A gate starts with the evidence of an undecided one: the same null hypothesis, other units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateContinued {
    /// Wealth of the parent at its last look.
    pub carried: LogWealth,
    /// The gate that goes on.
    pub gate: ManifestId,
    /// Digest of the null hypothesis of both.
    pub h0_digest: Digest,
    /// The gate that ended undecided.
    pub parent: ManifestId,
}

/// What one member brings to the closing of its family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberEvidence {
    /// Logarithm of its evidence at its last look; 0 without one.
    pub log_e: Finite,
    /// The member.
    pub member: ManifestId,
}

/// A family is closed: its procedure says which of its claims hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FamilyClosed {
    /// Its error rate, as it was opened.
    pub alpha_micro: Micro,
    /// Every member in order of registration.
    pub evidence: Vec<MemberEvidence>,
    /// The family.
    pub family: FamilyId,
    /// Most members, as it was opened; those that never came count with evidence 0.
    pub members_max: Count,
    /// How it keeps its error rate, as it was opened.
    pub method: FamilyMethod,
    /// Members whose claims hold, in order of registration.
    pub rejected: Vec<ManifestId>,
}

/// How far a claim may be trusted; derived, never chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Grade {
    /// An asymptotic test.
    Asymptotic,
    /// An exact test that ran as registered.
    Certified,
    /// An exact test that was amended in flight, or departed from before any outcome was seen.
    CertifiedAmended,
    /// Something was done otherwise after an outcome had been seen.
    Exploratory,
    /// An exact test about exactly the recorded scores of its own units, and about nothing else.
    Finite,
    /// An exact test whose order was fixed by somebody who could know its outcomes.
    SelfGoverned,
    /// Nothing may rest on it.
    Void,
}

/// A candidate is promoted on decided gates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromotionIssued {
    /// SHA-256 of the candidate.
    pub candidate_digest: Digest,
    /// Until when it may be relied on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The gates.
    pub gates: Vec<ManifestId>,
    /// The least grade of these gates.
    pub grade: Grade,
    /// How many gates tested the candidate, in every experiment of the ledger; these among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<Count>,
}

/// A promotion no longer stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromotionRevoked {
    /// The `promotion.issued` event.
    pub promotion: EventId,
    /// Why.
    pub reason: Text,
}
