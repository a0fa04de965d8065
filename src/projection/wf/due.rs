//! What is due in a run, by what stands on record. The order of candidates, what a turn keeps and why a run ends follow from
//! scores and costs alone, so that nobody chooses them.

use std::cmp::Reverse;
use std::fmt;

use clover_event::payload::repair::WfBudget;
use clover_event::payload::repair::WfEnd;
use clover_event::payload::repair::WfLocality;
use clover_event::payload::repair::WfStopped;
use clover_event::payload::repair::WfUsage;
use clover_event::payload::repair_feedback::WfIterationClosed;
use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Micro;

use super::WfCandidate;
use super::WfRun;
use super::count;
use super::plus;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WfDue {
    /// A candidate is executed: calls of it, then what it came to.
    Execution {
        /// The candidate.
        candidate: Digest,
        /// Place of the item, from 0.
        item: u64,
        /// Which execution of the item, from 0.
        rerun: u64,
    },
    /// The verifier says what it makes of a candidate.
    Feedback(Digest),
    /// A candidate gets its score.
    Score(Digest),
    /// A turn keeps the best.
    Prune,
    /// Edits are proposed, or the turn is closed.
    Proposals,
    /// The run ends.
    Stop(WfEnd),
    /// It has ended: edits in pairs, or what candidates are worth.
    Worth,
}

impl fmt::Display for WfDue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Execution {
                candidate,
                item,
                rerun,
            } => write!(
                f,
                "the execution of {candidate} on item {item}, time {rerun}"
            ),
            Self::Feedback(candidate) => write!(f, "feedback on {candidate}"),
            Self::Score(candidate) => write!(f, "the score of {candidate}"),
            Self::Prune => f.write_str("what the turn keeps"),
            Self::Proposals => f.write_str("a proposal, or the end of the turn"),
            Self::Stop(reason) => write!(f, "the end of the run by {reason}"),
            Self::Worth => f.write_str("what its candidates are worth"),
        }
    }
}

impl WfCandidate {
    /// What its executions cost together.
    pub fn cost(&self) -> WfUsage {
        let all = self.executions.iter().map(|of| of.cost);
        all.fold(WfUsage::default(), plus)
    }

    /// Its score in millionths.
    pub fn score(&self) -> Option<i64> {
        self.scored.as_ref()?.score_micro.map(Micro::value)
    }

    fn passes(&self) -> bool {
        self.scored.as_ref().is_some_and(|of| of.passes)
    }
}

/// By what candidates are ordered: the better is less.
type Rank = (Reverse<Option<i64>>, u64, u64, u64, Digest);

impl WfRun {
    /// Executions that a candidate has.
    pub fn executions(&self) -> usize {
        let reruns = usize::try_from(self.said.terms.reruns.value()).unwrap_or(usize::MAX);
        self.said
            .items
            .len()
            .saturating_mul(reruns.saturating_add(1))
    }

    /// The turn that goes on, from 1.
    pub fn turn(&self) -> u64 {
        self.closed.len() as u64 + 1
    }

    /// Whether nothing may be begun any more.
    pub fn is_spent(&self) -> bool {
        self.is_spent_with(WfUsage::default())
    }

    /// Whether nothing may be begun any more once this is spent too.
    pub fn is_spent_with(&self, more: WfUsage) -> bool {
        let (spent, budget) = (plus(self.spent, more), &self.said.terms.budget);
        spent.calls >= budget.calls
            || spent.tokens() >= budget.tokens.value()
            || spent.usd_micro > budget.usd_micro
    }

    fn rank(&self, id: &Digest) -> Rank {
        let of = &self.candidates[id];
        let cost = of.cost();
        let calls = cost.calls.value();
        (
            Reverse(of.score()),
            cost.usd_micro.value(),
            cost.tokens(),
            calls,
            *id,
        )
    }

    /// Candidates of the turn, by id, that have no score.
    pub fn unjudged(&self) -> Vec<Digest> {
        let turn = self.turn();
        let all = self.candidates.iter();
        let all = all.filter(|(_, of)| of.iteration == turn && of.scored.is_none());
        all.map(|(id, _)| *id).collect()
    }

    /// What a turn whose candidates are judged keeps, and what it drops, the best first.
    pub fn pruned(&self) -> (Vec<Digest>, Vec<Digest>) {
        let turn = self.turn();
        let before = usize::try_from(turn).unwrap_or(usize::MAX).checked_sub(2);
        let before = before.and_then(|at| self.turns.get(at));
        let mut all: Vec<Digest> = before.map_or_else(Vec::new, |of| of.kept.clone());
        let new = self.candidates.iter();
        let new = new.filter(|(_, of)| of.iteration == turn && of.scored.is_some());
        all.extend(new.map(|(id, _)| *id));
        all.retain(|id| self.candidates.contains_key(id));
        all.sort_by_key(|id| self.rank(id));
        let beam = usize::try_from(self.said.terms.beam.value()).unwrap_or(usize::MAX);
        let dropped = all.split_off(all.len().min(beam));
        (all, dropped)
    }

    /// The best score of the turns so far, and how many in a row were without progress.
    pub fn progress(&self) -> (Option<i64>, u64) {
        let gain = self.said.terms.least_gain_micro.value();
        let (mut best, mut without): (Option<i64>, u64) = (None, 0);
        for turn in &self.turns {
            let first = turn.kept.first().and_then(|id| self.candidates.get(id));
            let score = first.and_then(WfCandidate::score);
            let gains = match (score, best) {
                (Some(score), Some(before)) => score >= before.saturating_add(gain),
                (Some(_), None) => true,
                (None, _) => false,
            };
            without = if gains { 0 } else { without + 1 };
            best = best.max(score);
        }
        (best, without)
    }

    /// Why a turn that was pruned ends the run.
    fn end_of_turn(&self) -> Option<WfEnd> {
        let terms = &self.said.terms;
        let kept = self.turns.last().map_or(&[][..], |of| &of.kept);
        let mut kept = kept.iter().filter_map(|id| self.candidates.get(id));
        let (best, without) = self.progress();
        let is_stuck = without >= terms.stagnation.value();
        if kept.any(WfCandidate::passes) {
            return Some(WfEnd::Pass);
        }
        if is_stuck {
            let none = best.is_none();
            return Some(if none {
                WfEnd::CrashOut
            } else {
                WfEnd::Stagnation
            });
        }
        let is_last = self.turns.len() as u64 >= terms.iterations.value();
        (is_last || self.is_spent()).then_some(WfEnd::Budget)
    }

    /// The best candidate that passes, else the best.
    pub fn winner(&self) -> Option<Digest> {
        let judged = self.candidates.iter();
        let judged = judged.filter(|(_, of)| of.scored.is_some());
        let mut judged: Vec<Digest> = judged.map(|(id, _)| *id).collect();
        judged.sort_by_key(|id| self.rank(id));
        let passing = judged.iter().find(|id| self.candidates[*id].passes());
        passing.or(judged.first()).copied()
    }

    /// What closes the turn.
    pub fn closing(&self) -> WfIterationClosed {
        let turn = self.turn();
        let new = self.candidates.values();
        let new: Vec<_> = new.filter(|of| of.iteration == turn + 1).collect();
        let sum = |part: fn(&WfLocality) -> u64| {
            let all = new.iter().map(|of| part(&of.locality));
            count(all.fold(0, u64::saturating_add))
        };
        let rejected = self.rejected.iter();
        let rejected = rejected.filter(|of| of.iteration.value() == turn).count();
        let (spent, budget) = (&self.spent, &self.said.terms.budget);
        let left = |budget: Count, spent: u64| count(budget.value().saturating_sub(spent));
        WfIterationClosed {
            added: count(new.len() as u64),
            best_micro: self.progress().0.and_then(Micro::new),
            iteration: count(turn),
            left: WfBudget {
                calls: left(budget.calls, spent.calls.value()),
                tokens: left(budget.tokens, spent.tokens()),
                usd_micro: left(budget.usd_micro, spent.usd_micro.value()),
            },
            locality: WfLocality {
                ast_nodes: sum(|of| of.ast_nodes.value()),
                new_llm_calls: sum(|of| of.new_llm_calls.value()),
                prompt_chars: sum(|of| of.prompt_chars.value()),
                steps_touched: sum(|of| of.steps_touched.value()),
            },
            rejected: count(rejected as u64),
            run: self.said.run.clone(),
        }
    }

    /// What ends the run, for a reason.
    pub fn stopping(&self, reason: WfEnd) -> WfStopped {
        let winner = self.winner();
        let passed = winner.and_then(|id| self.candidates.get(&id));
        WfStopped {
            candidates: count(self.candidates.len() as u64),
            iterations: count(self.turns.len() as u64),
            passed: passed.is_some_and(WfCandidate::passes),
            reason,
            run: self.said.run.clone(),
            spent: self.spent,
            winner,
        }
    }

    /// The execution that is next of a candidate; `None` where it has all.
    fn next_of(&self, candidate: Digest) -> Option<WfDue> {
        let done = self.candidates.get(&candidate)?.executions.len();
        if done >= self.executions() {
            return None;
        }
        let each = self.said.terms.reruns.value() + 1;
        Some(WfDue::Execution {
            candidate,
            item: done as u64 / each,
            rerun: done as u64 % each,
        })
    }

    fn due_after(&self) -> WfDue {
        let arms = self.pairs.iter();
        let mut arms = arms.flat_map(|of| [of.targeted.candidate, of.control.candidate]);
        let next = arms.find_map(|id| self.next_of(id));
        next.unwrap_or(WfDue::Worth)
    }

    /// What is due.
    pub fn due(&self) -> WfDue {
        if self.end.is_some() {
            return self.due_after();
        }
        if self.turns.len() > self.closed.len() {
            return match self.end_of_turn() {
                Some(reason) => WfDue::Stop(reason),
                None => WfDue::Proposals,
            };
        }
        let unjudged = self.unjudged();
        let Some(first) = unjudged.first() else {
            let turn = self.turn();
            let has_new = self.candidates.values().any(|of| of.iteration == turn);
            // Nothing new was proposed in the turn before.
            return if has_new {
                WfDue::Prune
            } else {
                WfDue::Stop(WfEnd::Stagnation)
            };
        };
        let of = &self.candidates[first];
        if of.feedback.is_some() {
            return WfDue::Score(*first);
        }
        let Some(next) = self.next_of(*first) else {
            return WfDue::Feedback(*first);
        };
        if self.pending.is_empty() && self.is_spent() {
            return WfDue::Stop(WfEnd::Budget);
        }
        next
    }

    /// Candidates that were executed on all items and have no worth yet, in the order in which they came.
    pub fn unworthed(&self) -> Vec<Digest> {
        let all = self.order.iter().filter(|id| {
            let of = self.candidates.get(*id);
            of.is_some_and(|of| of.utilities.is_none() && of.executions.len() >= self.executions())
        });
        all.copied().collect()
    }
}
