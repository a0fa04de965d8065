//! What the log says of one iteration, and which step is due.

use std::collections::BTreeMap;

use clover_event::Event;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::JudgeId;
use clover_event::payload::audit::CoverageChecked;
use clover_event::payload::audit::OuaEstimated;
use clover_event::payload::battery::BatteryEvaluated;
use clover_event::payload::battery::ExploitDiscovered;
use clover_event::payload::card::CardPublished;
use clover_event::payload::card::SliceClass;
use clover_event::payload::diagnosis::IterationPausedForLabels;
use clover_event::payload::diagnosis::LabelProcessAudited;
use clover_event::payload::diagnosis::PrenticeChecked;
use clover_event::payload::estimate::CalibratorFitted;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::iteration::IterationClosed;
use clover_event::payload::iteration::IterationOpened;
use clover_event::payload::label::row_of_draw;
use clover_event::payload::predicate::CandidatesSealed;
use clover_event::payload::predicate::ConfirmLooked;
use clover_event::payload::predicate::ConfirmUnsealed;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::GateEvaluated;
use clover_event::payload::predicate::PatchAccepted;
use clover_event::payload::predicate::SequentialStop;
use clover_event::payload::rubric::PatchProposed;
use clover_event::payload::rubric::PatchRejected;
use clover_event::payload::rubric::RubricLeaf;
use clover_event::payload::scoring::JudgePort;
use clover_event::payload::scoring::JudgeRegistered;
use clover_event::payload::scoring::ScoreReplayed;
use clover_event::payload::scoring::ScoresRecomputed;
use clover_event::payload::slices::ResidualsAudited;
use clover_event::payload::slices::SlicesClassified;
use clover_event::payload::synthesis::DevObjectiveQueried;
use clover_ground::digest::Digest;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_num::Micro;

use crate::batteries;
use crate::batteries::Stress;
use crate::decisions::CONFIRM_CRITERIA;
use crate::decisions::DEV_CRITERIA;
use crate::decisions::composite_of;
use crate::iterations::step::Step;
pub use crate::iterations::synth_record::SynthRecord;
use crate::reader::LogReader;
use crate::reader::LogStatement;
use crate::reader::Model;

/// What attacks on the rubric in force earned, as cards show it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attacks {
    /// By family and slice.
    pub stress: Stress,
    /// Exploits: the row, the attacks in turn, and what they earn.
    pub exploits: Vec<(String, String, Micro)>,
}

/// Everything that was said of one iteration, in the order of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct IterationRecord {
    /// Its name.
    pub iteration: IterationId,
    /// Its experiment.
    pub experiment: ExperimentId,
    /// Its opening.
    pub opened: LogStatement<IterationOpened>,
    /// Leaves of the rubric that it starts from; none where the log does not have it.
    pub rubric: Vec<RubricLeaf>,
    /// The newest battery of its rubric.
    pub battery: Option<LogStatement<BatteryEvaluated>>,
    /// Batteries of candidates.
    pub attacked: Vec<LogStatement<BatteryEvaluated>>,
    /// Calibrators that were fitted in it.
    pub fitted: Vec<LogStatement<CalibratorFitted>>,
    /// The share of the variance that the calibrator of the rubric in force causes.
    pub oua: Option<LogStatement<OuaEstimated>>,
    /// Whether scores lie where labels are.
    pub coverage: Option<LogStatement<CoverageChecked>>,
    /// Scores under candidates.
    pub recomputed: Vec<LogStatement<ScoresRecomputed>>,
    /// Dev calls of its plan in other iterations, where the rulebook in force counts them: whoever knows the state says so.
    pub dev_calls_elsewhere: u64,
    /// Answers of the dev objective.
    pub receipts: Vec<LogStatement<DevObjectiveQueried>>,
    /// Runs of optimizers.
    pub synths: Vec<SynthRecord>,
    /// Exploits that were discovered in it.
    pub exploits: Vec<LogStatement<ExploitDiscovered>>,
    /// Judges of the experiment that are registered.
    pub judges: Vec<JudgeRegistered>,
    /// Re-scores since then, of any judge.
    pub replayed: Vec<LogStatement<ScoreReplayed>>,
    /// Scores that differed from recorded ones, by judge, ever.
    pub conflicts: Vec<JudgeId>,
    /// How rows came to be labelled.
    pub label_process: Option<LogStatement<LabelProcessAudited>>,
    /// Whether anything but the reward predicts residuals.
    pub prentice: Option<LogStatement<PrenticeChecked>>,
    /// The residual audit.
    pub audited: Option<LogStatement<ResidualsAudited>>,
    /// The frozen classification.
    pub classified: Option<LogStatement<SlicesClassified>>,
    /// The pause for labels.
    pub paused: Option<LogStatement<IterationPausedForLabels>>,
    /// Residual cards.
    pub cards: Vec<LogStatement<CardPublished>>,
    /// Patches.
    pub proposed: Vec<LogStatement<PatchProposed>>,
    /// Patches taken back.
    pub withdrawn: Vec<clover_event::id::PatchId>,
    /// Patches and documents that were rejected.
    pub rejected: Vec<LogStatement<PatchRejected>>,
    /// Gates.
    pub gates: Vec<LogStatement<GateEvaluated>>,
    /// What was sealed.
    pub sealed: Option<LogStatement<CandidatesSealed>>,
    /// The one look at confirm.
    pub unsealed: Option<LogStatement<ConfirmUnsealed>>,
    /// Looks at confirm, where the test is sequential.
    pub looks: Vec<LogStatement<ConfirmLooked>>,
    /// Patches that were accepted.
    pub accepted: Vec<LogStatement<PatchAccepted>>,
    /// Its end.
    pub closed: Option<LogStatement<IterationClosed>>,
}

/// What the log says of every iteration below a position, read on as the log grows: nothing is read twice.
#[derive(Debug, Default)]
pub struct Records {
    below: u64,
    by_id: BTreeMap<IterationId, IterationRecord>,
    conflicts: Vec<(Option<ExperimentId>, JudgeId)>,
    judges: Vec<(Option<ExperimentId>, JudgeRegistered)>,
    rubrics: BTreeMap<Digest, Vec<RubricLeaf>>,
}

impl Records {
    /// What stands below a position of one iteration; `None` if it was not opened by then.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn of(
        &mut self,
        history: &dyn History,
        iteration: &IterationId,
        below: u64,
    ) -> Result<Option<&IterationRecord>, LedgerError> {
        if below < self.below {
            *self = Self::default();
        }
        let from = self.below;
        // What a failed read took in is read again.
        let entries = LogReader::below(history, below).since(from);
        let mut all = entries.into_model(std::mem::take(self))?;
        all.below = below;
        *self = all;
        Ok(self.by_id.get(iteration))
    }

    fn of_experiment<'a>(
        &'a mut self,
        experiment: Option<&'a ExperimentId>,
    ) -> impl Iterator<Item = &'a mut IterationRecord> {
        let mut of = self.by_id.values_mut();
        std::iter::from_fn(move || of.find(|record| Some(&record.experiment) == experiment))
    }
}

impl Model for Records {
    fn take(&mut self, seq: u64, event: &Event) {
        let experiment = event.experiment();
        match &event.payload {
            Payload::IterationOpened(said) if !self.by_id.contains_key(&said.iteration) => {
                let Some(mut begun) = IterationRecord::begun(seq, event) else {
                    return;
                };
                let mine = |of: &Option<ExperimentId>| of.as_ref() == experiment;
                let conflicts = self.conflicts.iter().filter(|(of, _)| mine(of));
                begun.conflicts = conflicts.map(|(_, judge)| judge.clone()).collect();
                let judges = self.judges.iter().filter(|(of, _)| mine(of));
                begun.judges = judges.map(|(_, judge)| judge.clone()).collect();
                let rubric = self.rubrics.get(&said.rubric_hash);
                begun.rubric = rubric.cloned().unwrap_or_default();
                self.by_id.insert(said.iteration.clone(), begun);
            }
            Payload::ScoreConflict(said) => {
                let of = experiment.cloned();
                self.conflicts.push((of, said.judge.clone()));
                for record in self.of_experiment(experiment) {
                    record.conflicts.push(said.judge.clone());
                }
            }
            Payload::JudgeRegistered(said) => {
                self.judges.push((experiment.cloned(), (**said).clone()));
                for record in self.of_experiment(experiment) {
                    record.judges.push((**said).clone());
                }
            }
            Payload::RubricRegistered(said) => {
                self.rubrics.insert(said.rubric_hash, said.leaves.clone());
            }
            Payload::PromptCommitted(said) => {
                self.rubrics.insert(said.rubric_hash, said.leaves.clone());
            }
            // Most entries are these, and say nothing of an iteration.
            Payload::ScoreRecorded(_) | Payload::LabelRecorded(_) | Payload::LabelRevealed(_) => {}
            _ => {
                for record in self.of_experiment(experiment) {
                    record.take(seq, event);
                }
            }
        }
    }
}

impl IterationRecord {
    /// The run of an optimizer that is open.
    pub fn open_synth(&self) -> Option<&SynthRecord> {
        self.synths.iter().find(|run| run.stopped.is_none())
    }

    fn begun(seq: u64, event: &Event) -> Option<Self> {
        let id = event.id;
        let experiment = event.header.experiment.clone()?;
        let Payload::IterationOpened(said) = event.payload.clone() else {
            return None;
        };
        Some(Self {
            iteration: said.iteration.clone(),
            experiment,
            opened: LogStatement {
                seq,
                id,
                said: *said,
            },
            rubric: Vec::new(),
            battery: None,
            attacked: Vec::new(),
            fitted: Vec::new(),
            recomputed: Vec::new(),
            oua: None,
            coverage: None,
            exploits: Vec::new(),
            dev_calls_elsewhere: 0,
            receipts: Vec::new(),
            synths: Vec::new(),
            judges: Vec::new(),
            replayed: Vec::new(),
            conflicts: Vec::new(),
            label_process: None,
            prentice: None,
            audited: None,
            classified: None,
            paused: None,
            cards: Vec::new(),
            proposed: Vec::new(),
            withdrawn: Vec::new(),
            rejected: Vec::new(),
            gates: Vec::new(),
            sealed: None,
            unsealed: None,
            looks: Vec::new(),
            accepted: Vec::new(),
            closed: None,
        })
    }

    /// What attacks on its rubric earned, as cards show it.
    pub fn attacks(&self) -> Attacks {
        let rubric = self.opened.said.rubric_hash;
        let of_rubric = self.exploits.iter().map(|of| &of.said);
        let of_rubric = of_rubric.filter(|said| said.rubric_hash == rubric);
        let exploits = of_rubric.map(|said| {
            let steps = said.chain.as_str().split('+');
            let operators = steps.map(|step| step.split([':', '@']).next().unwrap_or_default());
            let operators: Vec<&str> = operators.collect();
            let row = row_of_draw(&said.policy, &said.item, said.draw);
            (row, operators.join("+"), said.uplift_micro)
        });
        Attacks {
            stress: self
                .battery
                .as_ref()
                .map(|of| batteries::stress(&of.said))
                .unwrap_or_default(),
            exploits: exploits.collect(),
        }
    }

    /// Takes an event of its experiment in, if it is of this iteration.
    fn take(&mut self, seq: u64, event: &Event) {
        let id = event.id;
        macro_rules! one {
            ($place:ident, $said:ident) => {
                if $said.iteration == self.iteration {
                    self.$place.get_or_insert(LogStatement {
                        seq,
                        id,
                        said: (**$said).clone(),
                    });
                }
            };
        }
        macro_rules! many {
            ($place:ident, $said:ident) => {
                if $said.iteration == self.iteration {
                    self.$place.push(LogStatement {
                        seq,
                        id,
                        said: (**$said).clone(),
                    });
                }
            };
        }
        match &event.payload {
            Payload::ScoreReplayed(said) => self.replayed.push(LogStatement {
                seq,
                id,
                said: (**said).clone(),
            }),
            Payload::LabelProcessAudited(said) => one!(label_process, said),
            Payload::PrenticeChecked(said) => one!(prentice, said),
            Payload::ResidualsAudited(said) => one!(audited, said),
            Payload::SlicesClassified(said) => one!(classified, said),
            Payload::IterationPausedForLabels(said) => one!(paused, said),
            Payload::CardPublished(said) => many!(cards, said),
            Payload::BatteryEvaluated(said) if said.candidate.is_some() => many!(attacked, said),
            Payload::BatteryEvaluated(said) if said.iteration == self.iteration => {
                let said = (**said).clone();
                self.battery = Some(LogStatement { seq, id, said });
            }
            Payload::CalibratorFitted(said) if self.is_mine(&said.terms) => {
                let said = (**said).clone();
                self.fitted.push(LogStatement { seq, id, said });
            }
            Payload::OuaEstimated(said) if self.is_mine(&said.terms) => {
                let said = (**said).clone();
                self.oua.get_or_insert(LogStatement { seq, id, said });
            }
            Payload::CoverageChecked(said) if self.is_mine(&said.terms) => {
                let said = (**said).clone();
                self.coverage.get_or_insert(LogStatement { seq, id, said });
            }
            Payload::DevObjectiveQueried(said) => many!(receipts, said),
            Payload::ExploitDiscovered(said) => many!(exploits, said),
            Payload::PatchProposed(said) => many!(proposed, said),
            Payload::PatchRejected(said) => many!(rejected, said),
            Payload::PatchWithdrawn(said) if said.iteration == self.iteration => {
                self.withdrawn.push(said.patch.clone());
            }
            Payload::GateEvaluated(said) => many!(gates, said),
            Payload::ScoresRecomputed(said) => many!(recomputed, said),
            Payload::CandidatesSealed(said) => one!(sealed, said),
            Payload::ConfirmUnsealed(said) => one!(unsealed, said),
            Payload::ConfirmLooked(said) => many!(looks, said),
            Payload::PatchAccepted(said) => many!(accepted, said),
            Payload::IterationClosed(said) => one!(closed, said),
            _ => self.take_synth(seq, event),
        }
    }

    fn take_synth(&mut self, seq: u64, event: &Event) {
        match &event.payload {
            Payload::SynthOpened(said) if said.iteration == self.iteration => {
                let opened = LogStatement::of(seq, event);
                self.synths.extend(opened.map(SynthRecord::begun));
            }
            Payload::SynthAsked(_) | Payload::SynthReturned(_) | Payload::SynthStopped(_) => {
                self.synths.iter_mut().for_each(|run| run.take(seq, event));
            }
            _ => {}
        }
    }

    fn is_mine(&self, terms: &EstimateTerms) -> bool {
        let of = terms.iteration.as_ref();
        of.is_some_and(|of| of.iteration == self.iteration)
    }

    /// The battery of a candidate.
    pub fn battery_of(&self, candidate: Digest) -> Option<&LogStatement<BatteryEvaluated>> {
        let mut all = self.attacked.iter();
        all.find(|of| of.said.candidate == Some(candidate))
    }

    /// The calibrator of a candidate, or of the rubric in force.
    pub fn fitted_of(&self, candidate: Option<Digest>) -> Option<&LogStatement<CalibratorFitted>> {
        let of = |terms: &EstimateTerms| terms.iteration.as_ref().and_then(|of| of.candidate);
        self.fitted
            .iter()
            .find(|one| of(&one.said.terms) == candidate)
    }

    /// The last entry that everything before confirm reads: the first computed event fixes it.
    pub fn through(&self) -> Option<u64> {
        let first = self.label_process.as_ref()?;
        Some(first.said.inputs.through_seq.value())
    }

    /// The last entry that gates on confirm read: the first of them fixes it.
    pub fn confirm_through(&self) -> Option<u64> {
        let mut gates = self.gates.iter();
        let first = gates.find(|gate| gate.said.split == CriterionSplit::Confirm)?;
        Some(first.said.inputs.through_seq.value())
    }

    /// Whether every sequential test stopped without a crossing before the end of the block: its other labels stay sealed.
    pub fn saves_labels(&self) -> bool {
        self.looks.last().is_some_and(|look| {
            let mut tests = look.said.hypotheses.iter().map(|of| of.test.stop);
            let early = look.said.units < look.said.of_units;
            early
                && tests
                    .all(|stop| matches!(stop, SequentialStop::Futile | SequentialStop::Harmful))
        })
    }

    /// Patches that were neither rejected nor taken back.
    pub fn standing(&self) -> Vec<&PatchProposed> {
        let all = self.proposed.iter().map(|of| &of.said);
        let gone = |patch: &&PatchProposed| {
            let rejected =
                |of: &LogStatement<PatchRejected>| of.said.patch.as_ref() == Some(&patch.patch);
            self.withdrawn.contains(&patch.patch) || self.rejected.iter().any(rejected)
        };
        all.filter(|patch| !gone(patch)).collect()
    }

    /// The patches that a candidate is made of: one, or the two of a composite.
    pub fn patches_of(&self, candidate: Digest) -> Option<Vec<&PatchProposed>> {
        let all: Vec<&PatchProposed> = self.proposed.iter().map(|of| &of.said).collect();
        if let Some(one) = all.iter().find(|patch| patch.patch_hash == candidate) {
            return Some(vec![one]);
        }
        let pairs = all.iter().enumerate().flat_map(|(at, a)| {
            let rest = all[at + 1..].iter();
            rest.map(move |b| [*a, *b])
        });
        let mut found = pairs
            .filter(|pair| composite_of(&[pair[0].patch_hash, pair[1].patch_hash]) == candidate);
        found.next().map(Vec::from)
    }

    /// A gate of a candidate.
    pub fn gate(
        &self,
        candidate: Digest,
        gate: Criterion,
        split: CriterionSplit,
    ) -> Option<&LogStatement<GateEvaluated>> {
        self.gates.iter().find(|of| {
            of.said.candidate == candidate && of.said.gate == gate && of.said.split == split
        })
    }

    /// Whether every gate of a split was evaluated for a candidate.
    pub fn is_judged(&self, candidate: Digest, split: CriterionSplit) -> bool {
        let gates: &[Criterion] = match split {
            CriterionSplit::Confirm => &CONFIRM_CRITERIA,
            CriterionSplit::Dev => &DEV_CRITERIA,
        };
        gates
            .iter()
            .all(|&gate| self.gate(candidate, gate, split).is_some())
    }

    /// How many cards the audit calls for: one for each slice that is rejected or Risk.
    pub fn cards_due(&self) -> usize {
        let (Some(audited), Some(classified)) = (&self.audited, &self.classified) else {
            return 0;
        };
        let classes = &classified.said.slices;
        let families = audited.said.families.iter();
        let slices = families.flat_map(|family| {
            let slices = family.slices.iter();
            slices.map(move |slice| (&family.family, slice))
        });
        slices
            .filter(|(family, slice)| {
                let is_risk = classes.iter().any(|of| {
                    of.family == **family && of.slice == slice.slice && of.class == SliceClass::Risk
                });
                let rejected = slice.raw.as_ref().is_some_and(|raw| raw.rejected);
                (is_risk || rejected) && slice.rows.value() > 0
            })
            .count()
    }

    /// The judge of the iteration, if it is registered: the one that the plan names, else the only one.
    pub fn judge(&self) -> Option<&JudgeRegistered> {
        let design = self.opened.said.params.design.as_ref()?;
        if let Some(named) = &design.judge {
            return self.judges.iter().find(|judge| judge.judge == *named);
        }
        // One that is another but for what it is told counts only where it is named.
        let mut all = self.judges.iter().filter(|judge| judge.of.is_none());
        let only = all.next();
        only.filter(|_| all.next().is_none())
    }

    /// Whether its judge can be asked anew; scores that were imported cannot.
    pub fn is_callable(&self) -> bool {
        let port = self.judge().map(|judge| judge.port);
        matches!(port, Some(JudgePort::Builtin | JudgePort::Command))
    }

    /// The step that is due, by what the log says; `None` after the end. `passes` says of a candidate whether every
    /// gate of a split let it pass, `acceptable` which patches are to be accepted.
    pub fn due(
        &self,
        passes: &dyn Fn(Digest, CriterionSplit) -> bool,
        acceptable: &dyn Fn() -> usize,
    ) -> Option<Step> {
        if self.closed.is_some() {
            return None;
        }
        let asked = self
            .judge()
            .is_none_or(|judge| self.is_replayed(&judge.judge));
        if self.sealed.is_none() && self.is_callable() && !asked {
            return Some(Step::Score);
        }
        if self.label_process.is_none() {
            return Some(Step::Fit);
        }
        if self.classified.is_none() {
            return Some(Step::Audit);
        }
        if self.paused.is_some() {
            return Some(Step::Close);
        }
        let Some(sealed) = &self.sealed else {
            return Some(self.before_sealing(passes));
        };
        let judged = |hash: Digest| self.is_judged(hash, CriterionSplit::Confirm);
        let all = sealed
            .said
            .hypotheses
            .iter()
            .all(|one| judged(one.candidate));
        let all = all || self.saves_labels();
        Some(if self.unsealed.is_none() || !all {
            Step::Confirm
        } else if self.accepted.len() < acceptable() {
            Step::Accept
        } else {
            Step::Close
        })
    }

    fn before_sealing(&self, passes: &dyn Fn(Digest, CriterionSplit) -> bool) -> Step {
        let standing = self.standing();
        if standing.is_empty() {
            return if self.cards.len() < self.cards_due() {
                Step::Cards
            } else if self.proposed.is_empty() {
                Step::Propose
            } else {
                Step::Close
            };
        }
        let judged =
            |patch: &&&PatchProposed| self.is_judged(patch.patch_hash, CriterionSplit::Dev);
        if standing.iter().filter(judged).count() < standing.len() {
            return Step::Gate;
        }
        let pass = |patch: &&PatchProposed| passes(patch.patch_hash, CriterionSplit::Dev);
        if standing.iter().all(pass) {
            Step::Seal
        } else {
            // What a gate stopped is rejected by the same step.
            Step::Gate
        }
    }

    /// Whether a re-score of a judge was recorded since the opening.
    pub fn is_replayed(&self, judge: &JudgeId) -> bool {
        self.replayed.iter().any(|of| of.said.judge == *judge)
    }
}
