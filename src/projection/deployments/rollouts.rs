//! What runs and what it was made of, as the log says it below any position: versions of a rubric, the iterations that
//! judged them, recalibrations and deployments.

use std::collections::BTreeMap;

use clover_event::Event;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::payload::deployment::DeploymentActivated;
use clover_event::payload::deployment::RecalibrationCompleted;
use clover_event::payload::rubric::RubricLeaf;
use clover_ground::digest::Digest;
use clover_ledger::History;
use clover_ledger::LedgerError;

use crate::reader::LogReader;
use crate::reader::LogStatement;
use crate::reader::Model;

/// A version of a rubric as it was registered or committed.
#[derive(Clone, Debug)]
struct RubricVersion {
    hash: Digest,
    iteration: Option<IterationId>,
    leaves: Vec<RubricLeaf>,
}

/// What was released in one experiment, as far as the log was read: versions, recalibrations and deployments.
#[derive(Debug, Default)]
pub struct Rollouts {
    /// Deployments, oldest first.
    pub deployments: Vec<LogStatement<DeploymentActivated>>,
    recalibrations: BTreeMap<EventId, LogStatement<RecalibrationCompleted>>,
    versions: BTreeMap<EventId, RubricVersion>,
    /// The iteration of each acceptance.
    accepted: BTreeMap<EventId, IterationId>,
    /// The first iteration that starts from each rubric.
    starts: BTreeMap<Digest, IterationId>,
    /// The first iteration that fitted each calibrator for the rubric that it starts from, with that rubric.
    fits: BTreeMap<Digest, (IterationId, Digest)>,
}

impl Model for Rollouts {
    fn take(&mut self, seq: u64, event: &Event) {
        let id = event.id;
        match &event.payload {
            Payload::RubricRegistered(said) => {
                let version = RubricVersion {
                    hash: said.rubric_hash,
                    iteration: None,
                    leaves: said.leaves.clone(),
                };
                self.versions.insert(id, version);
            }
            Payload::IterationOpened(said) => {
                let of = self.starts.entry(said.rubric_hash);
                of.or_insert_with(|| said.iteration.clone());
            }
            Payload::CalibratorFitted(said) => {
                let of = said.terms.iteration.as_ref();
                if let Some(of) = of.filter(|of| of.candidate.is_none()) {
                    let first = self.fits.entry(said.calibrator);
                    first.or_insert_with(|| (of.iteration.clone(), of.rubric_hash));
                }
            }
            Payload::PatchAccepted(said) => {
                self.accepted.insert(id, said.iteration.clone());
            }
            Payload::PromptCommitted(said) => {
                let version = RubricVersion {
                    hash: said.rubric_hash,
                    iteration: self.accepted.get(&said.acceptance).cloned(),
                    leaves: said.leaves.clone(),
                };
                self.versions.insert(id, version);
            }
            Payload::RecalibrationCompleted(said) => {
                let said = (**said).clone();
                self.recalibrations
                    .insert(id, LogStatement { seq, id, said });
            }
            Payload::DeploymentActivated(said) => {
                let said = (**said).clone();
                self.deployments.push(LogStatement { seq, id, said });
            }
            _ => {}
        }
    }
}

impl Rollouts {
    /// Releases of an experiment below a position.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn below(
        history: &dyn History,
        experiment: &ExperimentId,
        below: u64,
    ) -> Result<Self, LedgerError> {
        let entries = LogReader::below(history, below).of(experiment);
        entries.into_model(Self::default())
    }

    /// A recalibration by its event.
    pub fn recalibration(&self, id: EventId) -> Option<&LogStatement<RecalibrationCompleted>> {
        self.recalibrations.get(&id)
    }

    /// A deployment by its event.
    pub fn deployment(&self, id: EventId) -> Option<&LogStatement<DeploymentActivated>> {
        self.deployments.iter().find(|of| of.id == id)
    }

    /// The rubric of a version, leaf by leaf.
    pub fn leaves(&self, commit: EventId) -> Option<&[RubricLeaf]> {
        Some(&self.versions.get(&commit)?.leaves)
    }

    /// The iteration that judged a version by this calibrator: of a first rubric, the one that starts from it and fitted the
    /// calibrator, where there is one; else as [`iteration`](Self::iteration).
    pub fn iteration_by(&self, commit: EventId, calibrator: Digest) -> Option<&IterationId> {
        let version = self.versions.get(&commit)?;
        let of = self.fits.get(&calibrator);
        let of = of.filter(|(_, rubric)| version.iteration.is_none() && *rubric == version.hash);
        of.map(|(iteration, _)| iteration)
            .or_else(|| self.iteration(commit))
    }

    /// The iteration that judged a version; of a first rubric, the first that starts from it.
    pub fn iteration(&self, commit: EventId) -> Option<&IterationId> {
        let version = self.versions.get(&commit)?;
        let iteration = version.iteration.as_ref();
        iteration.or_else(|| self.starts.get(&version.hash))
    }
}
