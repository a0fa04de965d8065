//! The search: a beam of workflows, as a state machine that asks and is told.
//!
//! Each turn runs every candidate that was not run, keeps the best, and expands them. Order is by score (none is least),
//! then by cost (dollars, tokens, calls), then by id, so that nothing hangs on time or chance. Every candidate stays
//! addressable by its id, which is the digest of its workflow.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use clover_ground::digest::Digest;
use serde::Serialize;

use crate::difference::Locality;
use crate::executor::Usage;
use crate::patch::JsonPatch;
use crate::repair::edit::Edit;
use crate::repair::edit::EditBudget;
use crate::repair::edit::Operator;
use crate::repair::edit::Rejection;
use crate::repair::feedback::Feedback;
use crate::value::Data;
use crate::workflow::Workflow;

/// Most candidates that a search begins from: the first program and two templates.
pub const BEGUN_MAX: usize = 3;

/// What a search may spend. Nothing is begun once any of it is spent; a call that is under way is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SearchBudget {
    /// Calls of models.
    pub calls: u64,
    /// Tokens, in and out.
    pub tokens: u64,
    /// Millionths of a US dollar.
    pub usd_micro: u64,
}

/// How a search goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BeamSettings {
    /// Candidates that are kept (K).
    pub beam: usize,
    /// What may be spent.
    pub budget: SearchBudget,
    /// What an edit may touch.
    pub edits: EditBudget,
    /// Turns (T).
    pub iterations: usize,
    /// Least gain of the best score that is progress, in millionths.
    pub least_gain: i64,
    /// Operators that are allowed.
    pub operators: Vec<Operator>,
    /// Proposals for each candidate that is kept (m).
    pub proposals: usize,
    /// Turns without progress after which a search stops.
    pub stagnation: usize,
    /// Least score of a candidate that passes, in millionths.
    pub theta: i64,
}

impl Default for BeamSettings {
    fn default() -> Self {
        Self {
            beam: 4,
            budget: SearchBudget {
                calls: 10_000,
                tokens: 10_000_000,
                usd_micro: 10_000_000,
            },
            edits: EditBudget::default(),
            iterations: 6,
            least_gain: 1_000,
            operators: Operator::STANDARD.to_vec(),
            proposals: 3,
            stagnation: 3,
            theta: 900_000,
        }
    }
}

/// A workflow that a search knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its workflow, whose digest is its id.
    pub workflow: Workflow,
    /// The candidate that it was made of; `None` for what a search begins from.
    pub parent: Option<Digest>,
    /// The turn in which it came, from 1.
    pub iteration: usize,
    /// The operator that made it.
    pub operator: Option<Operator>,
    /// The operator's arguments.
    pub arguments: Data,
    /// The patch that makes it of its parent.
    pub patch: JsonPatch,
    /// How much the edit touches.
    pub locality: Locality,
    /// What the verifier says; `None` before it was run.
    pub feedback: Option<Feedback>,
    /// What its runs cost.
    pub cost: Usage,
}

/// Why a search stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A candidate passes.
    Pass,
    /// Turns, calls, tokens or dollars are spent.
    Budget,
    /// The best score no longer rises, or nothing new was proposed.
    Stagnation,
    /// No candidate has a score.
    CrashOut,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Why.
    pub reason: StopReason,
    /// The best candidate that passes, else the best; `None` where none was run.
    pub winner: Option<Digest>,
}

/// What is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// These are to be run over the batch and judged.
    Judge(Vec<Digest>),
    /// For these, edits are to be proposed.
    Propose(Vec<Digest>),
    /// Nothing: it has stopped.
    Nothing(Stop),
}

/// What a turn kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its number, from 1.
    pub iteration: usize,
    /// Kept, the best first.
    pub kept: Vec<Digest>,
    /// Dropped, the best first.
    pub dropped: Vec<Digest>,
}

/// Why the search was told what it had not asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BeamFault {
    /// This candidate is not to be judged now.
    #[error("the candidate {0} is not to be judged now")]
    NotToJudge(Digest),
    /// No proposals for this candidate are wanted now.
    #[error("no proposals for {0} are wanted now")]
    NotToExpand(Digest),
    /// It has no candidate to begin from, or too many, or the same twice.
    #[error("expected one to three different workflows to begin from")]
    NoBeginning,
}

/// A search.
#[derive(Clone, Debug)]
pub struct Beam {
    settings: BeamSettings,
    candidates: BTreeMap<Digest, Candidate>,
    iteration: usize,
    /// Kept by the last turn.
    kept: Vec<Digest>,
    to_expand: Vec<Digest>,
    turns: Vec<Turn>,
    best: Option<i64>,
    without_gain: usize,
    spent: Usage,
    stop: Option<Stop>,
}

impl Beam {
    /// A search from a first program and at most two templates.
    ///
    /// # Errors
    /// [`BeamFault::NoBeginning`] for none, too many, or two alike.
    pub fn new(
        settings: BeamSettings,
        begin: impl IntoIterator<Item = Workflow>,
    ) -> Result<Self, BeamFault> {
        let mut candidates = BTreeMap::new();
        for workflow in begin {
            let candidate = Candidate {
                parent: None,
                iteration: 1,
                operator: None,
                arguments: Data::Null,
                patch: JsonPatch::default(),
                locality: Locality::default(),
                feedback: None,
                cost: Usage::default(),
                workflow,
            };
            let id = candidate.workflow.digest();
            if candidates.insert(id, candidate).is_some() {
                return Err(BeamFault::NoBeginning);
            }
        }
        if candidates.is_empty() || candidates.len() > BEGUN_MAX {
            return Err(BeamFault::NoBeginning);
        }
        Ok(Self {
            settings,
            candidates,
            iteration: 1,
            kept: Vec::new(),
            to_expand: Vec::new(),
            turns: Vec::new(),
            best: None,
            without_gain: 0,
            spent: Usage::default(),
            stop: None,
        })
    }

    /// What is due.
    pub fn due(&self) -> Due {
        if let Some(stop) = self.stop {
            return Due::Nothing(stop);
        }
        if self.to_expand.is_empty() {
            Due::Judge(self.unjudged())
        } else {
            Due::Propose(self.to_expand.clone())
        }
    }

    fn unjudged(&self) -> Vec<Digest> {
        let all = self.candidates.iter();
        let all = all.filter(|(_, of)| of.feedback.is_none());
        all.map(|(id, _)| *id).collect()
    }

    /// A candidate.
    pub fn candidate(&self, id: &Digest) -> Option<&Candidate> {
        self.candidates.get(id)
    }

    /// Every candidate, by id.
    pub fn candidates(&self) -> &BTreeMap<Digest, Candidate> {
        &self.candidates
    }

    /// What each turn kept and dropped.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// What was spent so far.
    pub fn spent(&self) -> Usage {
        self.spent
    }

    /// Whether nothing may be begun any more once this is spent too.
    pub fn is_spent_with(&self, more: Usage) -> bool {
        let all = self.spent.plus(more);
        let budget = self.settings.budget;
        all.calls >= budget.calls
            || all.tokens_in.saturating_add(all.tokens_out) >= budget.tokens
            || all.usd_micro > budget.usd_micro
    }

    /// Tells what the verifier says of a candidate, and what its runs cost.
    ///
    /// # Errors
    /// [`BeamFault::NotToJudge`] where it was judged before, or the search does not wait for it.
    pub fn judged(&mut self, id: Digest, feedback: Feedback, cost: Usage) -> Result<(), BeamFault> {
        let waits = self.stop.is_none() && self.to_expand.is_empty();
        let candidate = self
            .candidates
            .get_mut(&id)
            .filter(|of| waits && of.feedback.is_none());
        let candidate = candidate.ok_or(BeamFault::NotToJudge(id))?;
        candidate.feedback = Some(feedback);
        candidate.cost = cost;
        self.spent = self.spent.plus(cost);
        if self.unjudged().is_empty() {
            self.turn();
        } else if self.is_spent_with(Usage::default()) {
            self.end(StopReason::Budget);
        }
        Ok(())
    }

    /// Tells that the budget ended within the runs of a candidate: they cost so much and say nothing.
    pub fn broken_off(&mut self, cost: Usage) {
        self.spent = self.spent.plus(cost);
        if self.stop.is_none() {
            self.end(StopReason::Budget);
        }
    }

    /// Tells the edits that are proposed for a candidate; the first m count. Each has an answer: the id of the candidate
    /// that it makes, which may be known already, or why it is rejected.
    ///
    /// # Errors
    /// [`BeamFault::NotToExpand`] where the search does not wait for them.
    pub fn proposed(
        &mut self,
        parent: Digest,
        edits: &[Edit],
    ) -> Result<Vec<Result<Digest, Rejection>>, BeamFault> {
        let place = self.to_expand.iter().position(|of| *of == parent);
        let place = place.ok_or(BeamFault::NotToExpand(parent))?;
        self.to_expand.remove(place);
        let mut answers = Vec::new();
        for edit in edits.iter().take(self.settings.proposals) {
            answers.push(self.add(parent, edit));
        }
        if self.to_expand.is_empty() {
            if self.unjudged().is_empty() {
                self.end(StopReason::Stagnation);
            } else {
                self.iteration += 1;
            }
        }
        Ok(answers)
    }

    fn add(&mut self, parent: Digest, edit: &Edit) -> Result<Digest, Rejection> {
        let from = &self.candidates[&parent].workflow;
        let made = edit.apply(from, &self.settings.operators, &self.settings.edits)?;
        let id = made.workflow.digest();
        let iteration = self.iteration + 1;
        self.candidates.entry(id).or_insert_with(|| Candidate {
            parent: Some(parent),
            iteration,
            operator: Some(edit.operator()),
            arguments: edit.document(),
            patch: made.patch,
            locality: made.locality,
            feedback: None,
            cost: Usage::default(),
            workflow: made.workflow,
        });
        Ok(id)
    }

    /// The order of two candidates: the better is less.
    fn order(&self, a: &Digest, b: &Digest) -> Ordering {
        let rank = |id: &Digest| {
            let of = &self.candidates[id];
            let score = of.feedback.as_ref().and_then(|feedback| feedback.score);
            let tokens = of.cost.tokens_in.saturating_add(of.cost.tokens_out);
            (
                std::cmp::Reverse(score),
                of.cost.usd_micro,
                tokens,
                of.cost.calls,
                *id,
            )
        };
        rank(a).cmp(&rank(b))
    }

    fn passes(&self, id: &Digest) -> bool {
        let feedback = self.candidates[id].feedback.as_ref();
        feedback.is_some_and(|feedback| feedback.passes(self.settings.theta))
    }

    /// Ends a turn whose candidates are all judged.
    fn turn(&mut self) {
        let mut all = self.kept.clone();
        let new = self
            .candidates
            .iter()
            .filter(|(_, of)| of.iteration == self.iteration);
        all.extend(new.map(|(id, _)| *id).filter(|id| !self.kept.contains(id)));
        all.sort_by(|a, b| self.order(a, b));
        let dropped = all.split_off(all.len().min(self.settings.beam));
        self.kept.clone_from(&all);
        self.turns.push(Turn {
            iteration: self.iteration,
            kept: all,
            dropped,
        });
        let best = self
            .kept
            .first()
            .and_then(|id| self.candidates[id].feedback.as_ref()?.score);
        let gains = match (best, self.best) {
            (Some(best), Some(before)) => best >= before + self.settings.least_gain,
            (Some(_), None) => true,
            (None, _) => false,
        };
        self.without_gain = if gains { 0 } else { self.without_gain + 1 };
        self.best = self.best.max(best);
        if self.kept.iter().any(|id| self.passes(id)) {
            self.end(StopReason::Pass);
        } else if best.is_none() && self.without_gain >= self.settings.stagnation {
            self.end(StopReason::CrashOut);
        } else if self.without_gain >= self.settings.stagnation {
            self.end(StopReason::Stagnation);
        } else if self.iteration >= self.settings.iterations || self.is_spent_with(Usage::default())
        {
            self.end(StopReason::Budget);
        } else {
            self.to_expand.clone_from(&self.kept);
        }
    }

    fn end(&mut self, reason: StopReason) {
        let judged = self
            .candidates
            .iter()
            .filter(|(_, of)| of.feedback.is_some());
        let mut judged: Vec<Digest> = judged.map(|(id, _)| *id).collect();
        judged.sort_by(|a, b| self.order(a, b));
        let passing = judged.iter().find(|id| self.passes(id));
        let winner = passing.or(judged.first()).copied();
        self.to_expand.clear();
        self.stop = Some(Stop { reason, winner });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::simulator::SimulatedModel;
    use crate::executor::simulator::Strength;
    use crate::item::Item;
    use crate::repair::feedback::ItemEvidence;
    use crate::repair::feedback::VerifierSettings;
    use crate::repair::feedback::feedback;
    use crate::repair::propose::propose;
    use crate::run::Bounds;
    use crate::run::run;
    use crate::task::Family;
    use crate::task::Split;
    use crate::task::TaskSet;
    use crate::trace::RunOutcome;

    fn ran(workflow: &Workflow, item: &Item, rerun: usize) -> RunOutcome {
        let model = item.model.as_ref().unwrap();
        let mut model = SimulatedModel::new(11, Strength::Weak, &item.id, model);
        run(workflow, &item.inputs, &mut model, Bounds::default(), rerun).unwrap()
    }

    /// Mean utility in millionths.
    fn utility(set: &TaskSet, workflow: &Workflow, items: &[Item]) -> u64 {
        let of = |item: &Item| {
            set.utility(item, ran(workflow, item, 0).output.as_ref())
                .unwrap()
        };
        items.iter().map(of).sum::<u64>() / items.len() as u64
    }

    /// A search over a batch, by rules and templates alone.
    fn searched(set: &TaskSet, first: &Workflow, batch: &[Item], settings: BeamSettings) -> Beam {
        let verifier = VerifierSettings {
            held_share: 850_000,
            ..VerifierSettings::default()
        };
        let mut beam = Beam::new(settings, [first.clone()]).unwrap();
        loop {
            match beam.due() {
                Due::Nothing(_) => return beam,
                Due::Judge(ids) => {
                    let id = ids[0];
                    let workflow = beam.candidate(&id).unwrap().workflow.clone();
                    let runs: Vec<_> = batch.iter().map(|item| ran(&workflow, item, 0)).collect();
                    let evidence = batch.iter().zip(&runs).map(|(item, run)| ItemEvidence {
                        item,
                        run,
                        reruns: &[],
                        critic: None,
                    });
                    let said = feedback(
                        &workflow,
                        &set.rules,
                        &evidence.collect::<Vec<_>>(),
                        &verifier,
                    );
                    let cost = runs
                        .iter()
                        .fold(Usage::default(), |all, run| all.plus(run.usage));
                    beam.judged(id, said, cost).unwrap();
                }
                Due::Propose(ids) => {
                    let of = beam.candidate(&ids[0]).unwrap();
                    let said = of.feedback.as_ref().unwrap();
                    let edits = propose(&of.workflow, &set.rules, &said.blame, 3);
                    beam.proposed(ids[0], &edits).unwrap();
                }
            }
        }
    }

    #[test]
    fn every_family_is_repaired_without_its_truth() {
        for family in Family::ALL {
            let set = TaskSet::parse(&family.lines(Split::Local, 5, 60)).unwrap();
            let (batch, held_out) = set.items.split_at(20);
            let first = Workflow::parse(family.first_program()).unwrap();
            let beam = searched(&set, &first, batch, BeamSettings::default());
            let Due::Nothing(stop) = beam.due() else {
                panic!()
            };
            let winner = &beam.candidate(&stop.winner.unwrap()).unwrap().workflow;
            let (before, after) = (
                utility(&set, &first, held_out),
                utility(&set, winner, held_out),
            );
            println!(
                "{family:?} {stop:?} {before} -> {after} of {} candidates",
                beam.candidates().len()
            );
            assert!(
                after > before + 150_000,
                "{family:?} {before} {after}\n{}",
                winner.print()
            );
            // Every child is its patch applied to its parent, within budget.
            for of in beam.candidates().values().filter(|of| of.parent.is_some()) {
                let parent = beam.candidate(&of.parent.unwrap()).unwrap();
                let again = of.patch.apply(parent.workflow.document());
                assert_eq!(again.as_ref(), Ok(of.workflow.document()));
                assert!(of.locality.steps_touched <= 2 && of.locality.ast_nodes <= 12);
            }
            // The same search again is the same, turn by turn.
            let again = searched(&set, &first, batch, BeamSettings::default());
            assert_eq!(again.turns(), beam.turns());
            assert_eq!(again.spent(), beam.spent());
        }
    }

    #[test]
    fn a_budget_ends_a_search_and_nothing_else_is_told() {
        let family = Family::Invoices;
        let set = TaskSet::parse(&family.lines(Split::Local, 5, 10)).unwrap();
        let first = Workflow::parse(family.first_program()).unwrap();
        let mut settings = BeamSettings::default();
        settings.budget.calls = 25;
        settings.theta = 2_000_000;
        let mut beam = searched(&set, &first, &set.items, settings.clone());
        let Due::Nothing(stop) = beam.due() else {
            panic!()
        };
        assert_eq!(stop.reason, StopReason::Budget);
        assert!(
            beam.spent().calls >= 25 && beam.spent().calls <= 35,
            "{:?}",
            beam.spent()
        );
        assert!(beam.proposed(first.digest(), &[]).is_err());
        let said = beam
            .candidate(&first.digest())
            .unwrap()
            .feedback
            .clone()
            .unwrap();
        assert!(beam.judged(first.digest(), said, Usage::default()).is_err());
        assert_eq!(
            Beam::new(settings.clone(), []).unwrap_err(),
            BeamFault::NoBeginning
        );
        let twice = [first.clone(), first.clone()];
        assert_eq!(
            Beam::new(settings, twice).unwrap_err(),
            BeamFault::NoBeginning
        );
    }
}
