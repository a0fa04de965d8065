//! What a claim rests on: the label protocol and its bridge to what is meant, and waivers.

use clover_ground::digest::Digest;
use clover_ground::time::Timestamp;
use clover_num::Finite;
use serde::Deserialize;
use serde::Serialize;

use crate::id::EventId;
use crate::id::ProtocolId;
use crate::id::Text;

/// An assumption of the assumptions ledger. Closed: there are no others. CLOVER v1.1, section 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Assumption {
    /// The bridge: the label means what it stands for.
    #[serde(rename = "A0")]
    A0,
    /// Deliberative stability, evidence monotonicity, instrumental invariance.
    #[serde(rename = "A1-A3")]
    A1A3,
    /// What gaming can gain is bounded.
    #[serde(rename = "ADV")]
    Adv,
    /// A patch changes little else.
    #[serde(rename = "BLAST")]
    Blast,
    /// A fixed logger, a stable judge, moments and rates.
    #[serde(rename = "CJE.D1-R3")]
    CjeD1R3,
    /// Labelled rows are drawn as the logs are.
    #[serde(rename = "CJE.J1")]
    CjeJ1,
    /// The mean of the label is monotone in the score or its index.
    #[serde(rename = "CJE.J2-M")]
    CjeJ2M,
    /// The calibrated judge is right on average.
    #[serde(rename = "CJE.T1")]
    CjeT1,
    /// More evidence does not raise the risk.
    #[serde(rename = "CLOVER.J1")]
    CloverJ1,
    /// Scoring is deterministic.
    #[serde(rename = "CLOVER.J2")]
    CloverJ2,
    /// Confirm is untouched and replicates.
    H1,
    /// Labels are missing at random.
    L1,
    /// Every stratum of scores has labels.
    L2,
    /// Logged responses overlap with those of the policies.
    #[serde(rename = "OPE")]
    Ope,
    /// The calibrator's own uncertainty is counted.
    #[serde(rename = "OUA")]
    Oua,
    /// Given the score, nothing else tells of the label.
    S1,
    /// Given the score, the environment tells nothing of the label.
    S2,
    /// Scores lie where labels were.
    #[serde(rename = "SUP")]
    Sup,
}

impl Assumption {
    /// Every assumption, in order of its code.
    pub const ALL: [Self; 18] = [
        Self::A0,
        Self::A1A3,
        Self::Adv,
        Self::Blast,
        Self::CjeD1R3,
        Self::CjeJ1,
        Self::CjeJ2M,
        Self::CjeT1,
        Self::CloverJ1,
        Self::CloverJ2,
        Self::H1,
        Self::L1,
        Self::L2,
        Self::Ope,
        Self::Oua,
        Self::S1,
        Self::S2,
        Self::Sup,
    ];

    /// The code in events and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::A0 => "A0",
            Self::A1A3 => "A1-A3",
            Self::Adv => "ADV",
            Self::Blast => "BLAST",
            Self::CjeD1R3 => "CJE.D1-R3",
            Self::CjeJ1 => "CJE.J1",
            Self::CjeJ2M => "CJE.J2-M",
            Self::CjeT1 => "CJE.T1",
            Self::CloverJ1 => "CLOVER.J1",
            Self::CloverJ2 => "CLOVER.J2",
            Self::H1 => "H1",
            Self::L1 => "L1",
            Self::L2 => "L2",
            Self::Ope => "OPE",
            Self::Oua => "OUA",
            Self::S1 => "S1",
            Self::S2 => "S2",
            Self::Sup => "SUP",
        }
    }

    /// Whether it is about the whole ledger, and not about one experiment.
    pub fn is_of_ledger(self) -> bool {
        matches!(self, Self::A0 | Self::A1A3)
    }
}

impl std::fmt::Display for Assumption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Assumption {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|code| code.as_str() == text);
        found.ok_or_else(|| {
            let codes = Self::ALL.map(Self::as_str).join(", ");
            format!("expected one of {codes}")
        })
    }
}

/// What rubrics and calibrators aim at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Target {
    /// What people label under the protocol.
    Y,
    /// What the labels stand for.
    #[serde(rename = "Y_star")]
    YStar,
}

/// A version of the protocol by which people label is registered; what was said of the bridge is stale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SdpVersionRegistered {
    /// SHA-256 of the protocol's text.
    pub document: Digest,
    /// From when labels are given by it.
    pub effective_at: Timestamp,
    /// The protocol, with its version.
    pub sdp_version: ProtocolId,
    /// What its labels are used as.
    pub target: Target,
}

/// How a bridge was assessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum BridgeKind {
    /// People attest the axioms A1 to A3.
    Attestation,
    /// An audit of construct validity.
    Construct,
    /// The share of a policy effect on long-run outcomes that labels explain.
    Pte,
    /// Test and retest, raters among each other, anchor items.
    Stability,
}

impl BridgeKind {
    /// The word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Attestation => "attestation",
            Self::Construct => "construct",
            Self::Pte => "pte",
            Self::Stability => "stability",
        }
    }
}

/// What an assessment came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Assessed"))]
pub enum Assessment {
    /// It fails.
    Fail,
    /// The evidence does not decide.
    Inconclusive,
    /// It holds.
    Pass,
    /// It holds with reservations.
    Warn,
}

/// A person assessed the bridge from labels to what they stand for, under one protocol and for a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BridgeAssessed {
    /// Upper end of the estimate's interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci_hi: Option<Finite>,
    /// Lower end of the estimate's interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci_lo: Option<Finite>,
    /// SHA-256 of the assessment's report.
    pub document: Digest,
    /// The estimate, where there is a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Finite>,
    /// Until when it holds.
    pub expires_at: Timestamp,
    /// How it was assessed.
    pub kind: BridgeKind,
    /// The protocol that it is about.
    pub sdp_version: ProtocolId,
    /// What it came to.
    pub status: Assessment,
}

/// A person proposes to go on for a time without an assumption that does not hold; a second key agrees or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AssumptionWaived {
    /// The assumption.
    pub code: Assumption,
    /// When the waiver ends.
    pub expires_at: Timestamp,
    /// Why.
    pub reason: Text,
}

/// A second key agrees to a waiver; from here on it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AssumptionCountersigned {
    /// The `assumption.waived` that it agrees to.
    pub waiver: EventId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_read_back() {
        let ordered =
            |pair: &[Assumption]| pair[0] < pair[1] && pair[0].as_str() < pair[1].as_str();
        assert!(Assumption::ALL.windows(2).all(ordered));
        for code in Assumption::ALL {
            assert_eq!(serde_json::to_string(&code).unwrap(), format!("\"{code}\""));
            assert_eq!(code.as_str().parse(), Ok(code));
        }
    }
}
