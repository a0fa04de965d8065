//! Runs that repair a workflow without ground truth: candidates, executions, feedback, scores, turns, what they cost, and what
//! is due. After their end: edits in pairs, what candidates are worth, and what the outer loop makes of it.

pub mod cells;
pub mod due;
pub mod judged;
pub mod learnt;
pub mod rules;
mod traced;

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::MetaPlanId;
use clover_event::id::RunId;
use clover_event::id::TriggerId;
use clover_event::id::UpdateId;
use clover_event::payload::BlobRef;
use clover_event::payload::meta::LibTemplateAdded;
use clover_event::payload::meta::MetaTriggered;
use clover_event::payload::meta::MetaUpdated;
use clover_event::payload::meta::MetaValidated;
use clover_event::payload::meta_plan::MetaConcluded;
use clover_event::payload::meta_plan::MetaPlanned;
use clover_event::payload::repair::WfCalled;
use clover_event::payload::repair::WfCandidateAdded;
use clover_event::payload::repair::WfCrash;
use clover_event::payload::repair::WfDocument;
use clover_event::payload::repair::WfEditRejected;
use clover_event::payload::repair::WfExecuted;
use clover_event::payload::repair::WfLocality;
use clover_event::payload::repair::WfOperator;
use clover_event::payload::repair::WfRunStarted;
use clover_event::payload::repair::WfStopped;
use clover_event::payload::repair::WfUsage;
use clover_event::payload::repair_feedback::EditPairRecorded;
use clover_event::payload::repair_feedback::UtilityRecorded;
use clover_event::payload::repair_feedback::WfFeedbackGiven;
use clover_event::payload::repair_feedback::WfIterationClosed;
use clover_event::payload::repair_feedback::WfPruned;
use clover_event::payload::repair_feedback::WfScored;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ledger::Fold;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::EditPairRecorded,
    Kind::ExperimentRegistered,
    Kind::LibTemplateAdded,
    Kind::MetaConcluded,
    Kind::MetaPlanned,
    Kind::MetaTriggered,
    Kind::MetaUpdated,
    Kind::MetaValidated,
    Kind::UtilityRecorded,
    Kind::WfCalled,
    Kind::WfCandidateAdded,
    Kind::WfEditRejected,
    Kind::WfExecuted,
    Kind::WfFeedbackGiven,
    Kind::WfIterationClosed,
    Kind::WfPruned,
    Kind::WfRunStarted,
    Kind::WfScored,
    Kind::WfStopped,
];

/// The largest count, 2^53 - 1.
const COUNT_MAX: u64 = (1 << 53) - 1;

/// What an execution came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WfExecution {
    /// What models answered.
    pub answers: Option<BlobRef>,
    /// The sum of its calls.
    pub cost: WfUsage,
    /// Why it returned nothing.
    pub crash: Option<WfCrash>,
    /// Digest of what it returned.
    pub output: Option<Digest>,
    /// Digest of what it did.
    pub trace: Digest,
}

/// A candidate of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WfCandidate {
    /// The edit that made it.
    pub edit: Option<WfDocument>,
    /// Its executions, in order of item and rerun.
    pub executions: Vec<WfExecution>,
    /// What the verifier says.
    pub feedback: Option<WfFeedbackGiven>,
    /// Its workflow; `None` where the library has no such template.
    pub ir: Option<WfDocument>,
    /// The turn that judges it, from 1; 0 for the arm of a pair.
    pub iteration: u64,
    /// How much its edit touches.
    pub locality: WfLocality,
    /// The operator that made it.
    pub operator: Option<WfOperator>,
    /// The candidate that it was made of.
    pub parent: Option<Digest>,
    /// The patch that makes it of its parent.
    pub patch: Option<WfDocument>,
    /// Its score.
    pub scored: Option<WfScored>,
    /// What it is worth, item by item.
    pub utilities: Option<Vec<Micro>>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WfRun {
    /// Calls so far.
    pub calls: u64,
    /// Every candidate, by id.
    pub candidates: BTreeMap<Digest, WfCandidate>,
    /// Turns that were closed.
    pub closed: Vec<WfIterationClosed>,
    /// How it ended.
    pub end: Option<WfStopped>,
    /// The experiment.
    pub experiment: ExperimentId,
    /// Ids of candidates in the order in which they came.
    pub order: Vec<Digest>,
    /// Edits in pairs.
    pub pairs: Vec<EditPairRecorded>,
    /// Calls of the execution that is under way.
    pub pending: Vec<WfCalled>,
    /// Proposals so far, rejected ones included.
    pub proposals: u64,
    /// Edits that were rejected.
    pub rejected: Vec<WfEditRejected>,
    /// As it was opened.
    pub said: WfRunStarted,
    /// Where.
    pub seq: u64,
    /// What was spent before its end.
    pub spent: WfUsage,
    /// Proposals of the turn, by the candidate that they change, in order.
    pub tries: Vec<(Digest, u64)>,
    /// The truth that was opened, and its salt.
    pub truth: Option<UtilityRecorded>,
    /// What each turn kept.
    pub turns: Vec<WfPruned>,
}

/// An update with what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetaUpdate {
    /// The experiment.
    pub experiment: ExperimentId,
    /// What was proposed.
    pub said: MetaUpdated,
    /// Where.
    pub seq: u64,
    /// How its validation ended.
    pub validated: Option<MetaValidated>,
}

/// A plan of runs in sixteen cells, with what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossedPlan {
    /// What became of its claims.
    pub concluded: Option<MetaConcluded>,
    /// The experiment.
    pub experiment: ExperimentId,
    /// As it was registered.
    pub said: MetaPlanned,
    /// Where.
    pub seq: u64,
}

/// Every run, and what the outer loop made of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WfRuns {
    /// By name.
    pub by_id: BTreeMap<RunId, WfRun>,
    /// What registered each experiment.
    pub experiments: BTreeMap<ExperimentId, EventId>,
    /// Templates, by digest.
    pub library: BTreeMap<Digest, LibTemplateAdded>,
    /// Inputs of items whose truth was opened.
    pub opened_items: BTreeSet<Digest>,
    /// Plans of runs in sixteen cells, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plans: BTreeMap<MetaPlanId, CrossedPlan>,
    /// Keys that read what is right.
    pub readers: BTreeSet<KeyId>,
    /// Triggers, by name.
    pub triggers: BTreeMap<TriggerId, MetaTriggered>,
    /// Updates, by name.
    pub updates: BTreeMap<UpdateId, MetaUpdate>,
}

/// A count as an event has it.
pub fn count(value: u64) -> Count {
    // What is beyond a count stays the largest one: nothing is spent that turns into nothing.
    Count::new(value.min(COUNT_MAX)).unwrap_or_default()
}

/// What two cost together.
pub fn plus(a: WfUsage, b: WfUsage) -> WfUsage {
    let sum = |a: Count, b: Count| count(a.value().saturating_add(b.value()));
    WfUsage {
        calls: sum(a.calls, b.calls),
        ms: sum(a.ms, b.ms),
        tokens_in: sum(a.tokens_in, b.tokens_in),
        tokens_out: sum(a.tokens_out, b.tokens_out),
        usd_micro: sum(a.usd_micro, b.usd_micro),
    }
}

/// What a call cost.
pub fn usage_of(said: &WfCalled) -> WfUsage {
    WfUsage {
        calls: count(1),
        ms: said.ms,
        tokens_in: said.tokens_in,
        tokens_out: said.tokens_out,
        usd_micro: said.usd_micro,
    }
}

fn begun(ir: Option<WfDocument>) -> WfCandidate {
    WfCandidate {
        edit: None,
        executions: Vec::new(),
        feedback: None,
        ir,
        iteration: 1,
        locality: WfLocality::default(),
        operator: None,
        parent: None,
        patch: None,
        scored: None,
        utilities: None,
    }
}

impl WfRuns {
    fn opened(&mut self, (experiment, seq): (&ExperimentId, u64), said: &WfRunStarted) {
        let mut candidates = BTreeMap::new();
        candidates.insert(said.program_digest, begun(Some(said.program.clone())));
        let mut order = vec![said.program_digest];
        for template in &said.templates {
            let ir = self.library.get(template).map(|of| of.ir.clone());
            // A trial begins from what its update would bring.
            let tried = said.update.as_ref().and_then(|name| self.updates.get(name));
            let tried = tried.filter(|of| of.brings(template));
            let ir = ir.or(tried.map(|of| of.said.document.clone()));
            if !candidates.contains_key(template) {
                candidates.insert(*template, begun(ir));
                order.push(*template);
            }
        }
        let known = self.by_id.entry(said.run.clone());
        known.or_insert_with(|| WfRun {
            calls: 0,
            candidates,
            closed: Vec::new(),
            end: None,
            experiment: experiment.clone(),
            order,
            pairs: Vec::new(),
            pending: Vec::new(),
            proposals: 0,
            rejected: Vec::new(),
            said: said.clone(),
            seq,
            spent: WfUsage::default(),
            tries: Vec::new(),
            truth: None,
            turns: Vec::new(),
        });
    }

    fn learnt(&mut self, (experiment, seq): (&ExperimentId, u64), payload: &Payload) {
        match payload {
            Payload::MetaTriggered(said) => {
                let known = self.triggers.entry(said.trigger.clone());
                known.or_insert_with(|| *said.clone());
            }
            Payload::MetaUpdated(said) => {
                let known = self.updates.entry(said.update.clone());
                known.or_insert_with(|| MetaUpdate {
                    experiment: experiment.clone(),
                    said: *said.clone(),
                    seq,
                    validated: None,
                });
            }
            Payload::MetaValidated(said) => {
                if let Some(update) = self.updates.get_mut(&said.update) {
                    update.validated.get_or_insert_with(|| *said.clone());
                }
            }
            Payload::MetaPlanned(said) => {
                let known = self.plans.entry(said.plan.clone());
                known.or_insert_with(|| CrossedPlan {
                    concluded: None,
                    experiment: experiment.clone(),
                    said: *said.clone(),
                    seq,
                });
            }
            Payload::MetaConcluded(said) => {
                if let Some(plan) = self.plans.get_mut(&said.plan) {
                    plan.concluded.get_or_insert_with(|| *said.clone());
                }
            }
            Payload::LibTemplateAdded(said) => {
                let known = self.library.entry(said.template_digest);
                known.or_insert_with(|| *said.clone());
            }
            _ => {}
        }
    }
}

impl WfRun {
    /// A candidate.
    pub fn candidate(&self, id: &Digest) -> Option<&WfCandidate> {
        self.candidates.get(id)
    }

    fn tried(&mut self, parent: Digest) {
        self.proposals += 1;
        match self.tries.last_mut() {
            Some((of, count)) if *of == parent => *count += 1,
            _ => self.tries.push((parent, 1)),
        }
    }

    fn added(&mut self, said: &WfCandidateAdded) {
        self.tried(said.parent);
        let known = self.candidates.entry(said.candidate);
        known.or_insert_with(|| WfCandidate {
            edit: Some(said.edit.clone()),
            iteration: said.iteration.value() + 1,
            locality: said.locality,
            operator: Some(said.operator),
            parent: Some(said.parent),
            patch: Some(said.patch.clone()),
            ..begun(Some(said.ir.clone()))
        });
        self.order.push(said.candidate);
    }

    fn executed(&mut self, said: &WfExecuted) {
        self.pending = Vec::new();
        if let Some(of) = self.candidates.get_mut(&said.candidate) {
            of.executions.push(WfExecution {
                answers: said.answers.clone(),
                cost: said.cost,
                crash: said.crash,
                output: said.output,
                trace: said.trace_digest,
            });
        }
    }

    fn paired(&mut self, said: &EditPairRecorded) {
        for arm in [&said.targeted, &said.control] {
            let known = self.candidates.entry(arm.candidate);
            known.or_insert_with(|| WfCandidate {
                edit: Some(arm.edit.clone()),
                iteration: 0,
                locality: arm.locality,
                operator: Some(said.operator),
                parent: Some(said.parent),
                patch: Some(arm.patch.clone()),
                ..begun(Some(arm.ir.clone()))
            });
            if !self.order.contains(&arm.candidate) {
                self.order.push(arm.candidate);
            }
        }
        self.pairs.push(said.clone());
    }

    fn took(&mut self, payload: &Payload) {
        match payload {
            Payload::WfCandidateAdded(said) => self.added(said),
            Payload::WfEditRejected(said) => {
                self.tried(said.parent);
                self.rejected.push(*said.clone());
            }
            Payload::WfCalled(said) => {
                self.calls += 1;
                if self.end.is_none() {
                    self.spent = plus(self.spent, usage_of(said));
                }
                self.pending.push(*said.clone());
            }
            Payload::WfExecuted(said) => self.executed(said),
            Payload::WfFeedbackGiven(said) => {
                if let Some(of) = self.candidates.get_mut(&said.candidate) {
                    of.feedback.get_or_insert_with(|| *said.clone());
                }
            }
            Payload::WfScored(said) => {
                if let Some(of) = self.candidates.get_mut(&said.candidate) {
                    of.scored.get_or_insert_with(|| *said.clone());
                }
            }
            Payload::WfPruned(said) => {
                self.turns.push(*said.clone());
                self.tries = Vec::new();
            }
            Payload::WfIterationClosed(said) => self.closed.push(*said.clone()),
            Payload::WfStopped(said) => {
                self.pending = Vec::new();
                self.end.get_or_insert_with(|| *said.clone());
            }
            Payload::EditPairRecorded(said) => self.paired(said),
            Payload::UtilityRecorded(said) => {
                if let Some(of) = self.candidates.get_mut(&said.candidate) {
                    let worth = || said.utilities_micro.clone();
                    of.utilities.get_or_insert_with(worth);
                }
                self.truth.get_or_insert_with(|| *said.clone());
            }
            _ => {}
        }
    }
}

/// The run that an event names.
pub fn run_of(payload: &Payload) -> Option<&RunId> {
    Some(match payload {
        Payload::EditPairRecorded(said) => &said.run,
        Payload::UtilityRecorded(said) => &said.run,
        Payload::WfCalled(said) => &said.run,
        Payload::WfCandidateAdded(said) => &said.run,
        Payload::WfEditRejected(said) => &said.run,
        Payload::WfExecuted(said) => &said.run,
        Payload::WfFeedbackGiven(said) => &said.run,
        Payload::WfIterationClosed(said) => &said.run,
        Payload::WfPruned(said) => &said.run,
        Payload::WfRunStarted(said) => &said.run,
        Payload::WfScored(said) => &said.run,
        Payload::WfStopped(said) => &said.run,
        _ => return None,
    })
}

impl Fold for WfRuns {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        let Some(experiment) = event.header.experiment.as_ref() else {
            return;
        };
        match &event.payload {
            Payload::ExperimentRegistered(_) => {
                let known = self.experiments.entry(experiment.clone());
                known.or_insert(event.id);
            }
            Payload::WfRunStarted(said) => self.opened((experiment, seq), said),
            payload => {
                if let Payload::UtilityRecorded(said) = payload {
                    self.readers.insert(event.header.author);
                    let run = self.by_id.get(&said.run).filter(|run| run.truth.is_none());
                    let items = run.iter().flat_map(|run| &run.said.items);
                    let items: Vec<Digest> = items.map(|item| item.input).collect();
                    self.opened_items.extend(items);
                }
                match run_of(payload).and_then(|run| self.by_id.get_mut(run)) {
                    Some(run) => run.took(payload),
                    None => self.learnt((experiment, seq), payload),
                }
            }
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}
