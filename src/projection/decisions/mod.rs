//! Decisions of an iteration: its classification, what its gates said, what was sealed, seen and accepted.

pub mod block;
mod calls;
mod hypotheses;
mod paid;
mod passing;
mod reviews;
mod rules;
mod sealing;
mod select;
pub mod sequence;
mod terms;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

pub use block::check_unsealing;
pub use calls::dev_calls_elsewhere;
pub(crate) use calls::dev_calls_made;
pub use paid::patch_payer;
pub use reviews::check_reviewed;
pub use rules::CARD_LABEL;
pub use rules::CLASSIFICATION_LABEL;
pub(crate) use rules::Live;
pub use rules::Predicate;
pub(crate) use rules::live;
pub(crate) use rules::plan_of;
pub use sealing::COMPOSITE_LABEL;
pub use sealing::SealingRules;
pub use sealing::acceptable;
pub use sealing::composite_of;
pub use sealing::stopped;
pub use select::ACCEPTED_MAX;
pub use select::RankedCandidate;
pub use select::select;
pub use terms::thresholds_of;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::IterationId;
use clover_event::id::PatchId;
use clover_event::payload::Verdict;
use clover_event::payload::predicate::ConfirmUnsealed;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::GateEvaluated;
use clover_event::payload::predicate::SealedHypothesis;
use clover_event::payload::rubric::PatchProposed;
use clover_ground::digest::Digest;
use clover_ground::time::Timestamp;
use clover_ledger::Fold;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use clover_num::Finite;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::CalibratorFitted,
    Kind::CandidatesSealed,
    Kind::CardPublished,
    Kind::ConfirmUnsealed,
    Kind::DevObjectiveQueried,
    Kind::GateEvaluated,
    Kind::IterationOpened,
    Kind::IterationPausedForLabels,
    Kind::PatchAccepted,
    Kind::PatchProposed,
    Kind::ResidualsAudited,
    Kind::ScoresRecomputed,
    Kind::SlicesClassified,
];

/// Gates before sealing.
pub const DEV_CRITERIA: [Criterion; 8] = [
    Criterion::P0,
    Criterion::P1,
    Criterion::P2,
    Criterion::P3,
    Criterion::P4,
    Criterion::P5,
    Criterion::P6,
    Criterion::P7,
];
/// Gates after unsealing.
pub const CONFIRM_CRITERIA: [Criterion; 5] = [
    Criterion::P4,
    Criterion::P6,
    Criterion::P8,
    Criterion::P9,
    Criterion::P10,
];

/// What a gate said of a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateSaid {
    /// The gate.
    pub gate: Criterion,
    /// Its event.
    pub id: EventId,
    /// Position of that.
    pub seq: u64,
    /// On which rows.
    pub split: CriterionSplit,
    /// Under the profile that binds.
    pub verdict: Verdict,
}

/// What is known of a candidate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateDecision {
    /// Its gates, in the order in which they were evaluated.
    pub gates: Vec<GateSaid>,
    /// Kolmogorov-Smirnov count over the logs.
    pub ks_count: Option<u64>,
    /// Risk improvement on confirm.
    pub risk_improve: Option<Finite>,
}

impl CandidateDecision {
    /// What a gate said.
    pub fn said(&self, gate: Criterion, split: CriterionSplit) -> Option<&GateSaid> {
        let is = |said: &&GateSaid| said.gate == gate && said.split == split;
        self.gates.iter().find(is)
    }
}

/// Something that happened once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Once {
    /// The event.
    pub id: EventId,
    /// Its position.
    pub seq: u64,
}

/// What was sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedSet {
    /// Hypotheses.
    pub hypotheses: Vec<SealedHypothesis>,
    /// Its event.
    pub once: Once,
}

impl SealedSet {
    /// Whether a candidate is among them.
    pub fn holds(&self, candidate: Digest) -> bool {
        self.hypotheses.iter().any(|one| one.candidate == candidate)
    }
}

/// A patch that was written from something that was never published to whoever writes patches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaintedPatch {
    /// What it was written from.
    pub input: Digest,
    /// The patch.
    pub patch: PatchId,
    /// Where it was proposed.
    pub seq: u64,
}

impl TaintedPatch {
    /// In words.
    pub fn line(&self) -> String {
        let Self { input, patch, seq } = self;
        let input = input.short();
        format!("tainted at seq {seq}: {patch} was written from {input}, which was not published")
    }
}

/// Texts that every optimizer may know, by name: the grammars of patches and rubrics, and the evidence record.
pub const GRAMMARS: [&str; 3] = ["clover-patch/1", "clover-rubric/1", "evidence/1"];

/// The decisions of one iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decisions {
    /// Patches that were accepted, by hash, in order.
    pub accepted: Vec<Digest>,
    /// The residual audit.
    pub audited: Option<Once>,
    /// Calibrators that were fitted: by candidate, and without digits of the rubric that the iteration starts from.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calibrators: BTreeMap<String, Digest>,
    /// Candidates by hash.
    pub candidates: BTreeMap<String, CandidateDecision>,
    /// What a patch may be written from beside receipts: digests of published cards, and the hash of the rubric.
    pub published: Vec<Digest>,
    /// Answers of the dev objective.
    pub receipts: Vec<EventId>,
    /// The first patch that was written from anything else.
    pub tainted: Option<TaintedPatch>,
    /// Where scores under a candidate were recorded, by its digits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub recomputed: BTreeMap<String, u64>,
    /// The classification and its digest.
    pub classified: Option<(Digest, Once)>,
    /// The pause for labels.
    pub paused: Option<Once>,
    /// What was sealed.
    pub sealed: Option<SealedSet>,
    /// The unsealing of confirm.
    pub unsealed: Option<Once>,
}

impl Decisions {
    /// The calibrator of a candidate, or of the rubric that the iteration starts from.
    pub fn calibrator(&self, candidate: Option<Digest>) -> Option<Digest> {
        let key = candidate.map_or_else(String::new, |hash| hash.to_hex());
        self.calibrators.get(&key).copied()
    }

    /// What is known of a candidate.
    pub fn candidate(&self, hash: Digest) -> Option<&CandidateDecision> {
        self.candidates.get(&hash.to_hex())
    }

    /// Whether a patch may be written from something by then.
    pub fn is_published(&self, input: Digest) -> bool {
        let grammar = |name: &&str| Digest::sha256(name.as_bytes()) == input;
        self.published.contains(&input)
            || self.receipts.contains(&EventId(input))
            || GRAMMARS.iter().any(grammar)
    }

    fn proposed(&mut self, seq: u64, said: &PatchProposed) {
        let strange = said.inputs.iter().find(|input| !self.is_published(**input));
        if let (Some(input), None) = (strange, &self.tainted) {
            self.tainted = Some(TaintedPatch {
                input: *input,
                patch: said.patch.clone(),
                seq,
            });
        }
    }
}

/// Decisions of every iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllDecisions {
    /// By iteration.
    pub by_id: BTreeMap<IterationId, Decisions>,
    /// Confirm blocks that were unsealed in each quarter, over all accounts.
    pub quarters: BTreeMap<String, u64>,
    /// Where each charge paid for an unsealing, by its digits.
    pub charges: BTreeMap<String, u64>,
    /// Where each charge paid for an accepted patch, by its digits.
    pub paid_patches: BTreeMap<String, u64>,
    /// Where each confirm root was unsealed, by its digits.
    pub roots: BTreeMap<String, u64>,
}

impl AllDecisions {
    /// Those of an iteration; `None` before anything was said of it.
    pub fn of(&self, iteration: &IterationId) -> Option<&Decisions> {
        self.by_id.get(iteration)
    }

    fn unsealed(&mut self, once: Once, at: Timestamp, said: &ConfirmUnsealed) {
        let root = said.confirm_root.0.to_hex();
        self.roots.entry(root).or_insert(once.seq);
        let charge = said.charge.0.to_hex();
        self.charges.entry(charge).or_insert(once.seq);
        *self.quarters.entry(at.quarter().to_string()).or_default() += 1;
        let of = self.by_id.entry(said.iteration.clone()).or_default();
        of.unsealed.get_or_insert(once);
    }

    fn gate(&mut self, once: Once, said: &GateEvaluated) {
        let of = self.by_id.entry(said.iteration.clone()).or_default();
        let candidate = of.candidates.entry(said.candidate.to_hex()).or_default();
        if candidate.said(said.gate, said.split).is_some() {
            return;
        }
        match (&said.evidence, said.split) {
            (Evidence::P4(blast), CriterionSplit::Dev) => {
                candidate.ks_count = Some(blast.ks_count.value());
            }
            (Evidence::P8(loss), _) => candidate.risk_improve = Some(loss.risk_improve),
            _ => {}
        }
        candidate.gates.push(GateSaid {
            gate: said.gate,
            id: once.id,
            seq: once.seq,
            split: said.split,
            verdict: said.verdicts.under(said.thresholds.profile),
        });
    }
}

impl Fold for AllDecisions {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let once = Once {
            id: event.event().id,
            seq: event.seq(),
        };
        match &event.event().payload {
            Payload::CalibratorFitted(said) => {
                if let Some(terms) = &said.terms.iteration {
                    let of = self.by_id.entry(terms.iteration.clone()).or_default();
                    let key = terms
                        .candidate
                        .map_or_else(String::new, |hash| hash.to_hex());
                    of.calibrators.entry(key).or_insert(said.calibrator);
                }
            }
            Payload::ResidualsAudited(said) => {
                let of = self.by_id.entry(said.iteration.clone()).or_default();
                of.audited.get_or_insert(once);
            }
            Payload::SlicesClassified(said) => {
                let of = self.by_id.entry(said.iteration.clone()).or_default();
                of.classified
                    .get_or_insert((said.classification_hash, once));
            }
            Payload::IterationPausedForLabels(said) => {
                let of = self.by_id.entry(said.iteration.clone()).or_default();
                of.paused.get_or_insert(once);
            }
            Payload::IterationOpened(said) => {
                let of = self.by_id.entry(said.iteration.clone()).or_default();
                of.published.push(said.rubric_hash);
            }
            Payload::CardPublished(said) => {
                let of = self.by_id.entry(said.iteration.clone()).or_default();
                of.published.push(said.public_digest);
            }
            Payload::DevObjectiveQueried(said) => {
                let of = self.by_id.entry(said.iteration.clone()).or_default();
                of.receipts.push(once.id);
            }
            Payload::PatchProposed(said) => {
                let of = self.by_id.entry(said.iteration.clone()).or_default();
                of.proposed(once.seq, said);
            }
            Payload::GateEvaluated(said) => self.gate(once, said),
            Payload::ScoresRecomputed(said) => {
                let of = self.by_id.entry(said.iteration.clone()).or_default();
                let key = said.candidate.to_hex();
                of.recomputed.entry(key).or_insert(once.seq);
            }
            Payload::CandidatesSealed(said) => {
                let of = self.by_id.entry(said.iteration.clone()).or_default();
                of.sealed.get_or_insert(SealedSet {
                    hypotheses: said.hypotheses.clone(),
                    once,
                });
            }
            Payload::ConfirmUnsealed(said) => self.unsealed(once, event.recorded_at(), said),
            Payload::PatchAccepted(said) => {
                let of = self.by_id.entry(said.iteration.clone()).or_default();
                of.accepted.push(said.candidate);
                if let Some(charge) = said.charge {
                    let paid = self.paid_patches.entry(charge.0.to_hex());
                    paid.or_insert(once.seq);
                }
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
