//! Repairs in sixteen cells as one registered plan: what edits may change, how capable executor and optimizer are, and whether an
//! update of the outer loop is in force, crossed over the same tasks.

use std::fmt;

use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error as _;

use crate::id::MetaPlanId;
use crate::id::UpdateId;
use crate::payload::endpoint::words;
use crate::payload::meta::MetaGate;

/// Most tasks of a plan.
pub const PLAN_TASKS_MAX: u64 = 500;

words! {
    /// What a plan predicts.
    MetaClaim {
        /// The update raises gamma.
        OuterGamma "outer_gamma",
        /// The update raises kappa.
        OuterKappa "outer_kappa",
        /// Edits of structure raise kappa more for a weak executor than for a strong one.
        StructureKappa "structure_kappa",
    }
}

/// A plan: its runs are named by it, `PLAN-tT-cC`, with T from 1 to `tasks` and C from 1 to 16.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetaPlanned {
    /// Level of the whole family of claims, in millionths: above 0 and at most 0.05.
    pub alpha_micro: Micro,
    /// What it predicts: every claim, in order.
    #[serde(deserialize_with = "claims")]
    pub claims: Vec<MetaClaim>,
    /// Its name.
    pub plan: MetaPlanId,
    /// Tasks, 1 to 500: the unit of every claim.
    pub tasks: Count,
    /// The update that half of the cells begin from.
    pub update: UpdateId,
    /// Least utility of a workflow that is of use, in millionths.
    pub useful_micro: Micro,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetaClaimResult {
    /// The claim.
    pub claim: MetaClaim,
    /// Its own gate, over tasks in their order; its level is that of the family.
    pub gate: MetaGate,
    /// Whether it holds: its e-value in the closed family reaches 1 over the level.
    pub holds: bool,
    /// Logarithm of its e-value in the family, closed by the mean.
    pub log_closed: Finite,
}

/// A plan was gone through.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetaConcluded {
    /// What became of each claim, in the order of the plan.
    #[serde(deserialize_with = "results")]
    pub claims: Vec<MetaClaimResult>,
    /// The plan.
    pub plan: MetaPlanId,
}

fn family<'de, T: Deserialize<'de>, D: Deserializer<'de>>(of: D) -> Result<Vec<T>, D::Error> {
    let all = Vec::<T>::deserialize(of)?;
    // The rule asks for every claim; here only the size is bounded.
    if all.len() <= MetaClaim::ALL.len() {
        return Ok(all);
    }
    Err(D::Error::custom("expected at most 3 claims"))
}

/// Reads at most as many claims as a plan has.
fn claims<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<MetaClaim>, D::Error> {
    family(deserializer)
}

/// Reads at most as many results as a plan has claims.
fn results<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<MetaClaimResult>, D::Error> {
    family(deserializer)
}
