//! How a gate is decided, and what that costs its family.

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::id::FamilyId;
use crate::id::StratumId;

/// A betting strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum BettorName {
    /// Approximate growth-rate adaptive bets, capped.
    Agrapa,
    /// A uniform mixture over a grid of fractions.
    GridKelly,
    /// Hedged capital, for two-sided intervals.
    Hedged,
}

/// How the test bets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bettor {
    /// Largest bet, for capped bettors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap_micro: Option<Micro>,
    /// Fractions of the grid, for `grid_kelly`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grid: Option<Count>,
    /// The strategy.
    pub name: BettorName,
}

/// Which side is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Side {
    /// The mean is at least the null.
    Lower,
    /// The mean is the null.
    TwoSided,
    /// The mean is at most the null.
    Upper,
}

/// What nobody could choose, and the order of units is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Beacon {
    /// A round of the drand network.
    Drand,
    /// The first checkpoint after registration.
    FirstCheckpoint,
}

/// Most strata of a confirm set.
pub const STRATA_MAX: usize = 64;

/// What is expected of a stratum of the confirm set, before any of its outcomes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prediction {
    /// Mean difference that is expected of its units: candidate less baseline, in millionths of the metric.
    pub predicted_micro: Micro,
    /// The stratum, as units are listed with it.
    pub stratum: StratumId,
    /// How many units it has.
    pub units: Count,
}

/// The test of a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Test {
    /// Error rate of stopping for harm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha_kill_micro: Option<Micro>,
    /// Error rate of the conclusion.
    pub alpha_micro: Micro,
    /// What the order of units is drawn from.
    pub beacon: Beacon,
    /// Error rate of stopping for futility.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta_futile_micro: Option<Micro>,
    /// How it bets.
    pub bettor: Bettor,
    /// Digest of the manifest whose evidence is carried on: the same null hypothesis, other units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_of: Option<Digest>,
    /// Strata whose expected differences are taken out of those observed, in order of their names: noise that is known
    /// beforehand. Of a test of exactly these units alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_variate: Option<Vec<Prediction>>,
    /// The effect that it is planned for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta_design_micro: Option<Micro>,
    /// Looks after so many units, ascending; after each when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look_at: Option<Vec<Count>>,
    /// Most units.
    pub n_max: Count,
    /// Units before which nothing is concluded.
    pub n_min: Count,
    /// The effect that the null hypothesis allows.
    pub null_margin_micro: Micro,
    /// Which side is tested.
    pub side: Side,
    /// Whether it is about exactly these units, in a random order.
    pub without_replacement: bool,
}

/// How a family keeps its error rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FamilyMethod {
    /// Closed e-BH.
    ClosedEbh,
    /// Closed testing by mean e-values.
    ClosedMean,
    /// e-BH.
    Ebh,
    /// e-LOND, in order of registration.
    Elond,
    /// Each member has a part of the family's alpha.
    Spend,
}

/// The family that the manifest belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Multiplicity {
    /// The family.
    pub family: FamilyId,
    /// Its error rate, as it was opened.
    pub family_alpha_micro: Micro,
    /// How it keeps it, as it was opened.
    pub method: FamilyMethod,
}

/// What a simulation before registration showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Preflight {
    /// Smallest number of units that could decide.
    pub horizon_n: Count,
    /// Units at which half the simulated runs had decided.
    pub n50: Count,
    /// Units at which nine tenths had.
    pub n90: Count,
    /// Power at the planned effect.
    pub power_at_delta_micro: Micro,
    /// Seed of the simulation.
    pub seed: Digest,
}
