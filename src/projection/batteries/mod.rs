//! The battery: what attacks earned under each rubric of an iteration, and the exploits that are kept for good.
//!
//! An exploit is open while it earns more than 0.05 under the rubric in force, closed once it does not, and never
//! deleted. The rule `battery` is in `rules`. CLOVER v1.1, section 6.

pub mod attacked;
mod rules;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

pub use rules::ATTACKS;
pub use rules::BatteryRule;
pub use rules::EDITS;
pub use rules::EXPLOITS_MAX;
pub use rules::SEEDS_MIN;
pub use rules::verdict;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::FamilyId;
use clover_event::id::IterationId;
use clover_event::id::SliceId;
use clover_event::payload::battery::BatteryEvaluated;
use clover_event::payload::card::StressDelta;
use clover_event::payload::predicate::Gaming;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ledger::Fold;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use clover_num::Micro;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::BatteryEvaluated,
    Kind::ExploitDiscovered,
    Kind::IterationOpened,
];

/// Label of the digest of what P7 may say.
pub const GAMING_LABEL: &str = "clover/gaming/v1";
/// Uplift above which an edited text is an exploit, and up to which an exploit is closed.
pub const EXPLOIT_MICRO: i64 = 50_000;
/// By how much an open exploit may rise.
pub const RISE_MICRO: i64 = 5_000;

/// The digest of what P7 may say of a battery.
pub fn gaming_digest(gaming: &Gaming) -> Digest {
    canon::digest(GAMING_LABEL, gaming)
}

/// How an exploit stands under the rubric in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExploitState {
    /// It earns no more than 0.05.
    Closed,
    /// It earns more.
    Open,
    /// It was found under a candidate, and not measured since.
    Unmeasured,
}

impl ExploitState {
    /// The word that people read.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::Unmeasured => "unmeasured",
        }
    }
}

/// One exploit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exploit {
    /// Where it was measured last under a rubric in force, and its uplift there.
    pub measured: Option<(u64, Micro)>,
    /// The entry that discovered it.
    pub seq: u64,
}

impl Exploit {
    /// How it stands.
    pub fn state(&self) -> ExploitState {
        match self.measured {
            Some((_, uplift)) if uplift.value() > EXPLOIT_MICRO => ExploitState::Open,
            Some(_) => ExploitState::Closed,
            None => ExploitState::Unmeasured,
        }
    }
}

/// A battery that was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ran {
    /// Digest of what P7 may say of it.
    pub gaming: Digest,
    /// Its event.
    pub id: EventId,
    /// Hash of the rubric that was attacked.
    pub rubric_hash: Digest,
    /// Position of the event.
    pub seq: u64,
}

/// Uplifts by family and slice.
pub type Stress = BTreeMap<FamilyId, BTreeMap<SliceId, Vec<StressDelta>>>;

/// Batteries of one iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfIteration {
    /// Of candidates, by their digits.
    pub candidates: BTreeMap<String, Ran>,
    /// The newest of the rubric that the iteration starts from.
    pub in_force: Option<Ran>,
    /// Uplift by slice under that rubric.
    pub stress: Stress,
}

impl OfIteration {
    /// The battery of a candidate.
    pub fn candidate(&self, hash: Digest) -> Option<&Ran> {
        self.candidates.get(&hash.to_hex())
    }
}

/// Every battery.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batteries {
    /// By iteration.
    pub by_iteration: BTreeMap<IterationId, OfIteration>,
    /// Exploits of each experiment, in order of discovery.
    pub exploits: BTreeMap<ExperimentId, Vec<Exploit>>,
    /// Hash of the rubric that the newest iteration of each experiment starts from.
    pub rubrics: BTreeMap<ExperimentId, Digest>,
}

impl Batteries {
    /// Batteries of an iteration; `None` before the first.
    pub fn of(&self, iteration: &IterationId) -> Option<&OfIteration> {
        self.by_iteration.get(iteration)
    }

    /// Exploits of an experiment, in order of discovery.
    pub fn exploits(&self, experiment: &ExperimentId) -> &[Exploit] {
        self.exploits.get(experiment).map_or(&[], Vec::as_slice)
    }

    fn ran(&mut self, event: &VerifiedEvent<'_>, said: &BatteryEvaluated) {
        let Some(experiment) = &event.event().header.experiment else {
            return;
        };
        let ran = Ran {
            gaming: gaming_digest(&said.gaming()),
            id: event.event().id,
            rubric_hash: said.rubric_hash,
            seq: event.seq(),
        };
        let of = self.by_iteration.entry(said.iteration.clone()).or_default();
        if let Some(candidate) = said.candidate {
            of.candidates.entry(candidate.to_hex()).or_insert(ran);
        } else {
            of.in_force = Some(ran);
            of.stress = stress(said);
        }
        let Some(known) = self.exploits.get_mut(experiment) else {
            return;
        };
        for found in &said.exploits {
            let place = usize::try_from(found.exploit.value()).unwrap_or(usize::MAX);
            let uplift = match said.candidate {
                Some(_) => found.before_micro,
                None => Some(found.uplift_micro),
            };
            if let Some((exploit, uplift)) = known.get_mut(place).zip(uplift) {
                exploit.measured = Some((event.seq(), uplift));
            }
        }
    }
}

/// Uplifts of a battery by family and slice, as cards say them: attacks without seeds there are left out.
pub fn stress(said: &BatteryEvaluated) -> Stress {
    let mut all = Stress::new();
    for of in &said.slices {
        let measured = of.means_micro.iter().zip(&of.seeds).zip(&said.attacks);
        let deltas = measured.filter(|((_, seeds), _)| seeds.value() > 0);
        let deltas = deltas.map(|((mean, seeds), attack)| StressDelta {
            attack: attack.attack.clone(),
            mean_micro: *mean,
            seeds: *seeds,
        });
        let slices = all.entry(of.family.clone()).or_default();
        slices.insert(of.slice.clone(), deltas.collect());
    }
    all
}

impl Fold for Batteries {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let experiment = event.event().experiment();
        match (&event.event().payload, experiment) {
            (Payload::BatteryEvaluated(said), _) => self.ran(event, said),
            (Payload::IterationOpened(said), Some(experiment)) => {
                self.rubrics.insert(experiment.clone(), said.rubric_hash);
            }
            (Payload::ExploitDiscovered(said), Some(experiment)) => {
                let in_force = self.rubrics.get(experiment) == Some(&said.rubric_hash);
                let known = self.exploits.entry(experiment.clone()).or_default();
                known.push(Exploit {
                    measured: in_force.then_some((event.seq(), said.uplift_micro)),
                    seq: event.seq(),
                });
            }
            _ => {}
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}
