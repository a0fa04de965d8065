//! Runs of models behind HTTP: what each was held for, what its calls came to, and how it ended. The rules `run`, `ask`,
//! `price`, `hold` and `source` read it.

pub mod masses;
pub mod money;
pub mod noise;
pub mod rules;
mod source;
mod texts;

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::calls::CallOutcome;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::RunId;
use clover_event::id::Text;
use clover_event::payload::model_runs::BudgetReserved;
use clover_event::payload::model_runs::CallRecorded;
use clover_event::payload::model_runs::JudgeRunOpened;
use clover_event::payload::model_runs::OutcomeCount;
use clover_event::payload::model_runs::RunEnd;
use clover_ledger::Fold;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use clover_num::Count;
use serde::Deserialize;
use serde::Serialize;

pub use noise::JudgeNoise;
pub use noise::RescoredCalls;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::BudgetReserved,
    Kind::BudgetSettled,
    Kind::CallRecorded,
    Kind::JudgeRunClosed,
    Kind::JudgeRunOpened,
    Kind::JudgeRunResumed,
    Kind::NoiseMeasured,
    Kind::ScoreMissed,
    Kind::ScoreRecorded,
];

/// Money that is held for asks of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunHold {
    /// How much.
    pub amount: u64,
    /// Calls that it may have yet.
    pub asks_left: u64,
    /// Bounds of its calls, one of each.
    pub bounds: u64,
    /// Its name.
    pub name: Text,
}

impl RunHold {
    /// A hold as it begins.
    pub(crate) fn of(said: &BudgetReserved) -> Self {
        Self {
            amount: said.amount.value(),
            asks_left: said.asks.value(),
            bounds: 0,
            name: said.hold.clone(),
        }
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRun {
    /// What its calls came to.
    pub by_outcome: BTreeMap<String, u64>,
    /// What its calls cost.
    pub cost: u64,
    /// How it ended.
    pub end: Option<RunEnd>,
    /// Asks that came to something.
    pub ended: u64,
    /// How often it went on.
    pub epoch: u64,
    /// What calls of this epoch cost.
    pub epoch_cost: u64,
    /// What this epoch was charged.
    pub epoch_settled: u64,
    /// The experiment.
    pub experiment: ExperimentId,
    /// What is held.
    pub hold: Option<RunHold>,
    /// Holds of this epoch.
    pub holds: u64,
    /// Whether it records asks as lost: then it goes on before anything else.
    pub is_losing: bool,
    /// What was asked again, where answers are.
    pub rescored: Option<RescoredCalls>,
    /// As it was opened.
    pub said: JudgeRunOpened,
    /// Where.
    pub seq: u64,
    /// What it was charged.
    pub settled: u64,
    /// Asks that its last hold covered and that came to nothing before that hold was settled.
    pub uncalled: u64,
    /// Calls that no score and no miss names yet.
    pub unnamed: BTreeSet<EventId>,
}

impl ModelRun {
    /// A run as it is opened, before its first call.
    pub fn opened((experiment, seq): (&ExperimentId, u64), said: &JudgeRunOpened) -> Self {
        Self {
            by_outcome: BTreeMap::new(),
            cost: 0,
            end: None,
            ended: 0,
            epoch: 0,
            epoch_cost: 0,
            epoch_settled: 0,
            experiment: experiment.clone(),
            hold: None,
            holds: 0,
            is_losing: false,
            rescored: said.rescore.map(|_| RescoredCalls::default()),
            said: said.clone(),
            seq,
            settled: 0,
            uncalled: 0,
            unnamed: BTreeSet::new(),
        }
    }

    /// The name of its next hold.
    pub fn next_hold(&self) -> String {
        format!("{}/{}/{}", self.said.run, self.epoch, self.holds)
    }

    /// What its calls came to, as its end says it.
    pub fn outcomes(&self) -> Vec<OutcomeCount> {
        let all = CallOutcome::ALL.iter().filter_map(|outcome| {
            let calls = Count::new(*self.by_outcome.get(outcome.as_str())?)?;
            Some(OutcomeCount {
                calls,
                outcome: *outcome,
            })
        });
        all.collect()
    }

    /// Asks that came to nothing yet.
    pub fn left(&self) -> u64 {
        self.said.asks.value().saturating_sub(self.ended)
    }

    /// What calls of this epoch cost beyond what it was charged.
    pub fn unpaid(&self) -> u64 {
        self.epoch_cost.saturating_sub(self.epoch_settled)
    }

    /// What this epoch was charged beyond what its calls cost: for attempts that may have been billed, of asks that are open.
    pub fn ahead(&self) -> u64 {
        self.epoch_settled.saturating_sub(self.epoch_cost)
    }

    /// Takes in a call.
    pub fn count(&mut self, outcome: CallOutcome, cost: u64) {
        // What was lost is asked again, so it is still left.
        let is_lost = outcome == CallOutcome::Lost;
        self.is_losing |= is_lost;
        self.ended += u64::from(!is_lost);
        *self.by_outcome.entry(outcome.to_string()).or_default() += 1;
        self.cost = self.cost.saturating_add(cost);
        self.epoch_cost = self.epoch_cost.saturating_add(cost);
        if let Some(hold) = &mut self.hold {
            hold.asks_left = hold.asks_left.saturating_sub(1);
        }
    }
}

/// An ask that may be asked again, by its last call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskAgain {
    /// Whether nobody knows what its last call came to: then the same run asks again.
    pub is_lost: bool,
    /// The number of its last call.
    pub nth: u64,
    /// The run of that call.
    pub run: RunId,
}

/// Whether an ask that came to this may be asked again.
pub fn is_asked_again(outcome: CallOutcome) -> bool {
    matches!(
        outcome,
        CallOutcome::Exhausted
            | CallOutcome::Lost
            | CallOutcome::Mismatched
            | CallOutcome::Rejected
    )
}

/// Every run, and asks that may be asked again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRuns {
    /// By the digits of their keys.
    pub again: BTreeMap<String, AskAgain>,
    /// By name.
    pub by_id: BTreeMap<RunId, ModelRun>,
    /// How often a row was missed, by experiment, judge and row.
    pub missed: BTreeMap<String, u64>,
    /// Answers of each judge that gave a score, and what came of asking for them again, by experiment and judge.
    pub noise: BTreeMap<String, JudgeNoise>,
}

/// A row of a judge as a key of `missed`.
pub fn row_key(
    experiment: &ExperimentId,
    judge: &JudgeId,
    (policy, item, draw): (&str, &str, Count),
) -> String {
    serde_json::json!([
        experiment.as_str(),
        judge.as_str(),
        policy,
        item,
        draw.value()
    ])
    .to_string()
}

impl ModelRuns {
    /// The run of a judge that is open.
    pub fn open(&self, experiment: &ExperimentId, judge: &JudgeId) -> Option<&ModelRun> {
        let mut all = self.by_id.values();
        all.find(|of| of.end.is_none() && of.experiment == *experiment && of.said.judge == *judge)
    }

    /// Whether a run is open.
    pub fn is_open(&self, run: &RunId) -> bool {
        self.by_id.get(run).is_some_and(|of| of.end.is_none())
    }

    /// The answers of a judge, and how much its scores waver.
    pub fn noise_of(&self, experiment: &ExperimentId, judge: &JudgeId) -> Option<&JudgeNoise> {
        self.noise.get(&noise::judge_key(experiment, judge))
    }

    /// Takes in a call as one of the answers that may be asked for again, or as a second answer.
    fn heard(&mut self, (seq, experiment): (u64, &ExperimentId), said: &CallRecorded) {
        let key = noise::judge_key(experiment, &said.judge);
        if said.first.is_none() {
            if said.outcome == CallOutcome::Answered {
                self.noise.entry(key).or_default().scored.push(seq);
            }
        } else if let Some(of) = self.by_id.get_mut(&said.run)
            && let Some(rescored) = &mut of.rescored
        {
            rescored.take(said);
        }
    }

    fn called(&mut self, id: EventId, said: &CallRecorded) {
        let key = said.ask.to_hex();
        if is_asked_again(said.outcome) {
            let again = AskAgain {
                is_lost: said.outcome == CallOutcome::Lost,
                nth: said.nth.value(),
                run: said.run.clone(),
            };
            self.again.insert(key, again);
        } else {
            self.again.remove(&key);
        }
        if let Some(run) = self.by_id.get_mut(&said.run) {
            run.count(said.outcome, said.cost_usd_micro.value());
            if let Some(hold) = &mut run.hold {
                hold.bounds = hold.bounds.saturating_add(said.bound_usd_micro.value());
            }
            if said.outcome != CallOutcome::Lost && said.first.is_none() {
                run.unnamed.insert(id);
            }
        }
    }

    /// What came of a run that asked again counts from now on.
    fn measured(&mut self, run: &RunId) {
        let Some(of) = self.by_id.get(run) else {
            return;
        };
        if let Some(rescored) = &of.rescored {
            let key = noise::judge_key(&of.experiment, &of.said.judge);
            let known = self.noise.entry(key).or_default();
            known.take(of.said.asks.value(), rescored);
        }
    }

    /// A score or a miss names a call.
    fn named(&mut self, call: &EventId) {
        for run in self.by_id.values_mut() {
            run.unnamed.remove(call);
        }
    }
}

impl Fold for ModelRuns {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        match &event.payload {
            Payload::JudgeRunOpened(said) => {
                if let Some(experiment) = &event.header.experiment {
                    let known = self.by_id.entry(said.run.clone());
                    known.or_insert_with(|| ModelRun::opened((experiment, seq), said));
                    if said.rescore.is_some() {
                        let key = noise::judge_key(experiment, &said.judge);
                        let of = self.noise.entry(key).or_default();
                        of.runs += 1;
                        of.unmeasured.get_or_insert_with(|| said.run.clone());
                    }
                }
            }
            Payload::JudgeRunResumed(said) => {
                if let Some(run) = self.by_id.get_mut(&said.run) {
                    (run.epoch, run.holds) = (said.epoch.value(), 0);
                    (run.epoch_cost, run.epoch_settled) = (0, 0);
                    (run.is_losing, run.uncalled) = (false, 0);
                }
            }
            Payload::JudgeRunClosed(said) => {
                if let Some(run) = self.by_id.get_mut(&said.run) {
                    run.end.get_or_insert(said.end);
                }
            }
            Payload::BudgetReserved(said) => {
                if let Some(run) = self.by_id.get_mut(&said.run) {
                    run.holds += 1;
                    run.uncalled = 0;
                    run.hold = Some(RunHold::of(said));
                }
            }
            Payload::BudgetSettled(said) => {
                if let Some(run) = self.by_id.get_mut(&said.run) {
                    let amount = said.amount.value();
                    run.settled = run.settled.saturating_add(amount);
                    run.epoch_settled = run.epoch_settled.saturating_add(amount);
                    run.uncalled = run.hold.take().map_or(0, |of| of.asks_left);
                }
            }
            Payload::CallRecorded(said) => {
                if let Some(experiment) = &event.header.experiment {
                    self.heard((seq, experiment), said);
                }
                self.called(event.id, said);
            }
            Payload::NoiseMeasured(said) => self.measured(&said.run),
            Payload::ScoreRecorded(said) => {
                if let Some(of) = &said.call {
                    self.named(&of.call);
                }
            }
            Payload::ScoreMissed(said) => {
                self.named(&said.call.call);
                if let Some(experiment) = &event.header.experiment {
                    let row = (said.policy.as_str(), said.item.as_str(), said.draw);
                    let key = row_key(experiment, &said.judge, row);
                    *self.missed.entry(key).or_default() += 1;
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
