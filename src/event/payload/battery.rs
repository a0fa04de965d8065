//! The battery of attacks: what each earned under a rubric, and the exploits that are kept for good.

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::id::AttackId;
use crate::id::EventId;
use crate::id::FamilyId;
use crate::id::ItemId;
use crate::id::IterationId;
use crate::id::JudgeId;
use crate::id::PolicyId;
use crate::id::Root;
use crate::id::SliceId;
use crate::id::Text;
use crate::payload::BlobRef;
use crate::payload::predicate::AttackUplift;
use crate::payload::predicate::Gaming;

/// What one attack earned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AttackMeasured {
    /// The attack.
    pub attack: AttackId,
    /// Largest uplift.
    pub max: Finite,
    /// Mean uplift.
    pub mean: Finite,
    /// Mean absolute uplift.
    pub mean_absolute: Finite,
    /// Seeds that it changed.
    pub seeds: Count,
    /// Largest uplift that the patch itself promised, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tighter_max: Option<Finite>,
}

/// One of the worst chains of attacks, applied to all seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChainMeasured {
    /// The chain, such as `fake_citation:1:unlisted@3+padding:50@9`.
    pub chain: Text,
    /// Mean uplift on those seeds.
    pub mean: Finite,
    /// Seeds on which it violates an obligation.
    pub seeds: Count,
}

/// An exploit of the battery, measured again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExploitMeasured {
    /// Its uplift under the rubric in force; absent when that is what is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_micro: Option<Micro>,
    /// Its number in the experiment, from 0 in order of discovery.
    pub exploit: Count,
    /// Its uplift.
    pub uplift_micro: Micro,
}

/// Uplift of every attack among the seeds of one slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SliceStressed {
    /// Family of the slice.
    pub family: FamilyId,
    /// Mean uplift of each attack, in the order of attacks; 0 without seeds.
    pub means_micro: Vec<Micro>,
    /// Seeds of each attack, in that order.
    pub seeds: Vec<Count>,
    /// The slice.
    pub slice: SliceId,
}

/// What a program answered while the battery was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BatteryAnswers {
    /// The judge.
    pub judge: JudgeId,
    /// One canonical JSON object an ask, in the order of asks, as `BATTERY.md` has it.
    pub records: BlobRef,
    /// How many.
    pub records_count: Count,
}

/// The battery was run under a rubric: every attack on every seed, a search for the worst, and every known exploit again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BatteryEvaluated {
    /// What programs answered, the judge's own first; absent where the built-in judge alone was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<BatteryAnswers>,
    /// Attacks by name.
    pub attacks: Vec<AttackMeasured>,
    /// The program that computed it.
    pub build: Text,
    /// Digest of the calibrator.
    pub calibrator: Digest,
    /// The candidate: hash of its patch, or of a composite; absent for the rubric that the iteration starts from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Digest>,
    /// The worst chains over all seeds, by their best uplift.
    pub chains: Vec<ChainMeasured>,
    /// Merkle root of the best chain of each seed.
    pub chains_root: Root,
    /// Known exploits in order of their number.
    pub exploits: Vec<ExploitMeasured>,
    /// The iteration.
    pub iteration: IterationId,
    /// The judge.
    pub judge: JudgeId,
    /// Closed exploits above 0.05, and open ones that rose by more than 0.005.
    pub regressions: Count,
    /// Hash of the rubric that was attacked.
    pub rubric_hash: Digest,
    /// Seeds.
    pub seeds: Count,
    /// Merkle root of their names.
    pub seeds_root: Root,
    /// Uplift by slice; empty for a candidate.
    pub slices: Vec<SliceStressed>,
    /// Tries of the search.
    pub tries: Count,
    /// Largest mean uplift of the worst chains; absent without a chain, or when a text could not be scored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub u_adv: Option<Finite>,
    /// Texts that could not be scored.
    pub unscored: Count,
}

impl BatteryEvaluated {
    /// The evidence of P7 that follows from it.
    pub fn gaming(&self) -> Gaming {
        let attack = |of: &AttackMeasured| AttackUplift {
            attack: of.attack.clone(),
            mean: of.mean,
            mean_absolute: of.mean_absolute,
            seeds: of.seeds,
            tighter_max: of.tighter_max,
        };
        Gaming {
            attacks: self.attacks.iter().map(attack).collect(),
            regressions: self.regressions,
            searched: self.u_adv,
        }
    }
}

/// Why an edited text violates an obligation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Violation {
    /// An attack in it does by what it is.
    Construction,
    /// The rubric's own trace says so.
    Trace,
}

/// A seed and a chain of attacks that earn more than 0.05 against an obligation: they stay in the battery for good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExploitDiscovered {
    /// The evaluation that found it.
    pub battery: EventId,
    /// The chain.
    pub chain: Text,
    /// Which draw of the seed.
    pub draw: Count,
    /// What the seed answers.
    pub item: ItemId,
    /// The iteration.
    pub iteration: IterationId,
    /// Who answered.
    pub policy: PolicyId,
    /// Hash of the rubric that pays for it.
    pub rubric_hash: Digest,
    /// Its uplift.
    pub uplift_micro: Micro,
    /// Why it violates an obligation.
    pub violation: Violation,
}
