//! Deployments: what runs, what ran before, and what it may be rolled back to; with the calibrators and audits that a
//! deployment may stand on.

pub mod rollouts;

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::payload::deployment::DeploymentActivated;
use clover_event::payload::deployment::DeploymentRolledBack;
use clover_event::payload::deployment::RecalibrationCompleted;
use clover_event::payload::deployment::Versions;
use clover_event::payload::estimated::TransportState;
use clover_ground::digest::Digest;
use clover_ledger::Breach;
use clover_ledger::Fold;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use clover_ledger::rulebooks::Question;
use serde::Deserialize;
use serde::Serialize;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::CalibratorFitted,
    Kind::DeploymentActivated,
    Kind::DeploymentRolledBack,
    Kind::GuardrailChecked,
    Kind::JudgeRegistered,
    Kind::RecalibrationCompleted,
    Kind::TransportTested,
];

/// A calibrator that was fitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibratorFit {
    /// Whose scores.
    pub judge: JudgeId,
    /// Rubrics whose gates were evaluated with it; none of an estimate's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rubrics: Vec<Digest>,
    /// The newest entry that fitted it.
    pub seq: u64,
}

/// A calibrator that was fitted for one judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeFit {
    /// Rubrics whose gates were evaluated with it; none of an estimate's.
    pub rubrics: Vec<Digest>,
    /// The newest entry that fitted it.
    pub seq: u64,
}

impl CalibratorFit {
    /// Whether gates of a rubric were evaluated with it, under any of these hashes.
    pub fn is_of(&self, rubrics: &[Digest]) -> bool {
        self.rubrics.iter().any(|of| rubrics.contains(of))
    }
}

/// An audit of transport.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransportAudit {
    /// The calibrator.
    pub calibrator: Digest,
    /// Its entry.
    pub seq: u64,
    /// What it found.
    pub state: TransportState,
}

/// A recalibration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recalibration {
    /// The calibrator.
    pub calibrator: Digest,
    /// What is to be deployed with it.
    pub commit: EventId,
    /// The judge.
    pub judge: JudgeId,
    /// Its entry.
    pub seq: u64,
}

/// A deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deployment {
    /// What was committed.
    pub commit: EventId,
    /// Its event.
    pub id: EventId,
    /// The one before.
    pub previous: Option<EventId>,
    /// Where it was rolled back.
    pub rolled_back: Option<u64>,
    /// Hash of its rubric.
    pub rubric_hash: Digest,
    /// Position of its event.
    pub seq: u64,
    /// What runs together.
    pub versions: Versions,
}

/// A check of guardrails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardrailCheck {
    /// Its event.
    pub id: EventId,
    /// Whether a guardrail failed.
    pub is_breach: bool,
    /// Position of its event.
    pub seq: u64,
}

/// Deployments of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentDeployments {
    /// What runs.
    pub active: Option<EventId>,
    /// Calibrators that were fitted, each with the judge of its newest fit and the rubrics of all.
    pub calibrators: BTreeMap<Digest, CalibratorFit>,
    /// Fits of each judge: two judges that answer alike have one calibrator.
    pub fits: BTreeMap<JudgeId, BTreeMap<Digest, JudgeFit>>,
    /// The newest check of what runs.
    pub checked: Option<GuardrailCheck>,
    /// Deployments, oldest first.
    pub deployments: Vec<Deployment>,
    /// Models of judges that are registered.
    pub models: BTreeMap<JudgeId, String>,
    /// Recalibrations by their event.
    pub recalibrations: BTreeMap<EventId, Recalibration>,
    /// Audits of transport by their event.
    pub transports: BTreeMap<EventId, TransportAudit>,
}

impl ExperimentDeployments {
    /// A deployment by its event.
    pub fn deployment(&self, id: EventId) -> Option<&Deployment> {
        self.deployments.iter().find(|of| of.id == id)
    }

    /// The newest calibrator of a judge with which gates of a rubric were evaluated, under any of its hashes.
    pub fn evaluated(&self, judge: &JudgeId, rubrics: &[Digest]) -> Option<Digest> {
        let mine = self.fits.get(judge).into_iter().flatten();
        let mine = mine.filter(|(_, of)| rubrics.iter().any(|one| of.rubrics.contains(one)));
        mine.max_by_key(|(_, of)| of.seq).map(|(digest, _)| *digest)
    }

    /// The newest calibrator of a judge that no gate was evaluated with: an estimate's, or one that was recalibrated.
    pub fn unevaluated(&self, judge: &JudgeId) -> Option<Digest> {
        let mine = self.fits.get(judge).into_iter().flatten();
        let mine = mine.filter(|(_, of)| of.rubrics.is_empty());
        mine.max_by_key(|(_, of)| of.seq).map(|(digest, _)| *digest)
    }

    /// The fit of a calibrator for a judge.
    pub fn fit(&self, judge: &JudgeId, calibrator: Digest) -> Option<&JudgeFit> {
        self.fits.get(judge)?.get(&calibrator)
    }

    fn fitted(
        &mut self,
        (judge, calibrator): (&JudgeId, Digest),
        seq: u64,
        rubric: Option<Digest>,
    ) {
        let mine = self.fits.entry(judge.clone()).or_default();
        let of = mine.entry(calibrator).or_default();
        of.seq = seq;
        of.rubrics.extend(rubric);
    }

    /// What runs.
    pub fn running(&self) -> Option<&Deployment> {
        self.deployment(self.active?)
    }

    /// What a rollback restores: never supplied, always this.
    pub fn before(&self) -> Option<&Deployment> {
        self.deployment(self.running()?.previous?)
    }

    /// A breach that waits for its rollback: nothing else of the experiment is recorded before.
    pub fn breach(&self) -> Option<GuardrailCheck> {
        self.checked.filter(|of| of.is_breach)
    }

    /// Where a commit was rolled back.
    pub fn rolled_back(&self, commit: EventId) -> Option<u64> {
        let of = self.deployments.iter().filter(|of| of.commit == commit);
        of.filter_map(|of| of.rolled_back).max()
    }

    fn activated(&mut self, (id, seq): (EventId, u64), said: &DeploymentActivated) {
        self.deployments.push(Deployment {
            commit: said.commit,
            id,
            previous: self.active,
            rolled_back: None,
            rubric_hash: said.rubric_hash,
            seq,
            versions: said.versions.clone(),
        });
        self.active = Some(id);
        self.checked = None;
    }

    fn back(&mut self, seq: u64, said: &DeploymentRolledBack) {
        let before = self.before().map(|of| of.id);
        let ends = self.deployments.iter_mut();
        for deployment in ends.filter(|of| of.id == said.deployment) {
            deployment.rolled_back.get_or_insert(seq);
        }
        if self.active == Some(said.deployment) {
            self.active = before;
        }
        self.checked = None;
    }
}

/// Every deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Deployments {
    /// By experiment.
    pub by_experiment: BTreeMap<ExperimentId, ExperimentDeployments>,
}

/// A breach that waits for its rollback, whatever the experiment; asked from rulebook 24 on.
pub fn open_breach(state: &State) -> Option<(&ExperimentId, GuardrailCheck)> {
    if !state.asks(Question::AnsweredBreach) {
        return None;
    }
    let mut all = state.fold::<Deployments>().by_experiment.iter();
    all.find_map(|(experiment, of)| Some((experiment, of.breach()?)))
}

/// An append does not end with a breach: the rollback stands in the same one.
pub fn unfinished(state: &State) -> Option<(u64, Breach)> {
    let (experiment, breach) = open_breach(state)?;
    let expected = format!(
        "deployment.rolled_back of {experiment} in the same append as its breach, as clover deploy check does"
    );
    let found = Breach::new(RuleName::Rollback, expected, "the check alone");
    Some((breach.seq, found))
}

/// What runs on after a breach.
pub(super) fn notes(state: &State, notes: &mut Vec<String>) {
    for (experiment, of) in &state.fold::<Deployments>().by_experiment {
        if let Some(breach) = of.breach() {
            notes.push(format!(
                "{experiment} runs on after the breach at seq {}: its rollback is not on record",
                breach.seq
            ));
        }
    }
}

impl Deployments {
    /// Those of an experiment.
    pub fn of(&self, experiment: &ExperimentId) -> Option<&ExperimentDeployments> {
        self.by_experiment.get(experiment)
    }
}

fn recalibrated(seq: u64, said: &RecalibrationCompleted) -> Recalibration {
    Recalibration {
        calibrator: said.calibrator,
        commit: said.commit,
        judge: said.judge.clone(),
        seq,
    }
}

impl Fold for Deployments {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        let Some(experiment) = &event.header.experiment else {
            return;
        };
        let of = self.by_experiment.entry(experiment.clone()).or_default();
        match &event.payload {
            // A calibrator of one environment is read in it alone, and runs nowhere.
            Payload::CalibratorFitted(said) if said.terms.environment.is_none() => {
                let judge = said.terms.judge.clone();
                let rubric = said.terms.iteration.as_ref().map(|of| of.rubric_hash);
                of.fitted((&judge, said.calibrator), seq, rubric);
                let known = of.calibrators.remove(&said.calibrator);
                let mut rubrics = known.map(|of| of.rubrics).unwrap_or_default();
                rubrics.extend(rubric);
                let fitted = CalibratorFit {
                    judge,
                    rubrics,
                    seq,
                };
                of.calibrators.insert(said.calibrator, fitted);
            }
            Payload::DeploymentActivated(said) => of.activated((event.id, seq), said),
            Payload::DeploymentRolledBack(said) => of.back(seq, said),
            Payload::GuardrailChecked(said) => {
                of.checked = Some(GuardrailCheck {
                    id: event.id,
                    is_breach: said.verdicts.is_breach(),
                    seq,
                });
            }
            Payload::JudgeRegistered(said) => {
                let model = said.model.as_str().to_owned();
                of.models.entry(said.judge.clone()).or_insert(model);
            }
            Payload::RecalibrationCompleted(said) => {
                if said.computed.is_some() {
                    let judge = said.judge.clone();
                    of.fitted((&judge, said.calibrator), seq, None);
                    let known = of.calibrators.entry(said.calibrator);
                    let rubrics = Vec::new();
                    known
                        .and_modify(|of| of.seq = seq)
                        .or_insert(CalibratorFit {
                            judge,
                            rubrics,
                            seq,
                        });
                }
                of.recalibrations.insert(event.id, recalibrated(seq, said));
            }
            Payload::TransportTested(said) if said.terms.environment.is_none() => {
                let tested = TransportAudit {
                    calibrator: said.calibrator,
                    seq,
                    state: said.state,
                };
                of.transports.insert(event.id, tested);
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
