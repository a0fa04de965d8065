//! Runs that ask a model behind HTTP for something else than scores: what each may cost, what is held, and what its last call
//! came to. One ask is open at a time, and a hold covers one.

pub mod rules;

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::calls::CallOutcome;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::RunId;
use clover_event::id::Text;
use clover_event::payload::BlobRef;
use clover_event::payload::model_calls;
use clover_event::payload::model_calls::AskedModel;
use clover_event::payload::model_calls::CallPurpose;
use clover_event::payload::model_calls::ModelCallRecorded;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ledger::Fold;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use serde::Deserialize;
use serde::Serialize;

use crate::runs::RunHold;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::BudgetReserved,
    Kind::BudgetSettled,
    Kind::ModelCallRecorded,
    Kind::SgdOpened,
    Kind::SgdStopped,
    Kind::SynthOpened,
    Kind::SynthStopped,
];

/// The last call of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastCall {
    /// The ask's key.
    pub ask: Digest,
    /// The call.
    pub call: EventId,
    /// What is wrong with it.
    pub detail: Option<Text>,
    /// Which call of its ask.
    pub nth: u64,
    /// What it came to.
    pub outcome: CallOutcome,
    /// Which ask of the run.
    pub place: u64,
    /// The text of its answer.
    pub text: Option<BlobRef>,
}

impl LastCall {
    /// Whether nobody asks its ask again.
    pub fn is_final(&self) -> bool {
        model_calls::is_final(self.outcome)
    }
}

/// A run that asks a model for something else than scores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedRun {
    /// Which model, in which form, and who pays.
    pub asked: AskedModel,
    /// What its calls came to.
    pub by_outcome: BTreeMap<String, u64>,
    /// What its calls cost, in millionths of a dollar.
    pub cost: u64,
    /// What calls cost since the last one that was lost, that one included.
    pub cost_since: u64,
    /// The experiment.
    pub experiment: ExperimentId,
    /// What is held.
    pub hold: Option<RunHold>,
    /// How many holds it had.
    pub holds: u64,
    /// Whether it ended.
    pub is_over: bool,
    /// Whose calls they are.
    pub key: KeyId,
    /// Its last call.
    pub last: Option<LastCall>,
    /// What it asks for.
    pub purpose: CallPurpose,
    /// What it was charged, in millionths of a dollar.
    pub settled: u64,
    /// What it was charged since the last call that was lost.
    pub settled_since: u64,
}

impl AskedRun {
    /// The name of its next hold.
    pub fn next_hold(&self, run: &RunId) -> String {
        format!("{run}/{}", self.holds)
    }

    /// What calls cost beyond what was charged.
    pub fn unpaid(&self) -> u64 {
        self.cost_since.saturating_sub(self.settled_since)
    }

    /// What was charged beyond what calls cost: for attempts of the open ask that may have been billed.
    pub fn ahead(&self) -> u64 {
        self.settled_since.saturating_sub(self.cost_since)
    }

    /// The last call, where it is of this ask.
    pub fn last_of(&self, place: u64) -> Option<&LastCall> {
        self.last.as_ref().filter(|last| last.place == place)
    }

    /// How many calls it had.
    pub fn calls(&self) -> u64 {
        self.by_outcome.values().sum()
    }

    fn opened(
        experiment: &ExperimentId,
        (purpose, key): (CallPurpose, KeyId),
        asked: &AskedModel,
    ) -> Self {
        Self {
            asked: asked.clone(),
            by_outcome: BTreeMap::new(),
            cost: 0,
            cost_since: 0,
            experiment: experiment.clone(),
            hold: None,
            holds: 0,
            is_over: false,
            key,
            last: None,
            purpose,
            settled: 0,
            settled_since: 0,
        }
    }

    fn called(&mut self, call: EventId, said: &ModelCallRecorded) {
        let cost = said.cost_usd_micro.value();
        if said.outcome == CallOutcome::Lost {
            // Whatever was charged for its attempts before is charged: nobody knows what came after.
            (self.cost_since, self.settled_since) = (0, 0);
        }
        self.cost = self.cost.saturating_add(cost);
        self.cost_since = self.cost_since.saturating_add(cost);
        *self.by_outcome.entry(said.outcome.to_string()).or_default() += 1;
        if let Some(hold) = &mut self.hold {
            hold.asks_left = hold.asks_left.saturating_sub(1);
            hold.bounds = hold.bounds.saturating_add(said.bound_usd_micro.value());
        }
        self.last = Some(LastCall {
            ask: said.ask,
            call,
            detail: said.detail.clone(),
            nth: said.nth.value(),
            outcome: said.outcome,
            place: said.place.value(),
            text: said.text.clone(),
        });
    }
}

/// Every run by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedRuns {
    /// By name.
    pub by_id: BTreeMap<RunId, AskedRun>,
}

impl AskedRuns {
    /// The run of a name that asks for this.
    pub fn of(&self, run: &RunId, purpose: CallPurpose) -> Option<&AskedRun> {
        self.by_id.get(run).filter(|of| of.purpose == purpose)
    }

    fn over(&mut self, run: &RunId, purpose: CallPurpose) {
        let run = self.by_id.get_mut(run);
        if let Some(run) = run.filter(|of| of.purpose == purpose) {
            run.is_over = true;
        }
    }
}

impl Fold for AskedRuns {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let event = event.event();
        match &event.payload {
            Payload::SynthOpened(said) => {
                if let (Some(experiment), Some(asked)) = (&event.header.experiment, &said.asked) {
                    let known = self.by_id.entry(said.run.clone());
                    let by = (CallPurpose::Propose, said.key);
                    known.or_insert_with(|| AskedRun::opened(experiment, by, asked));
                }
            }
            Payload::SgdOpened(said) => {
                if let (Some(experiment), Some(asked)) = (&event.header.experiment, &said.asked) {
                    let known = self.by_id.entry(said.run.clone());
                    let by = (CallPurpose::Descend, said.key);
                    known.or_insert_with(|| AskedRun::opened(experiment, by, asked));
                }
            }
            Payload::SynthStopped(said) => self.over(&said.run, CallPurpose::Propose),
            Payload::SgdStopped(said) => self.over(&said.run, CallPurpose::Descend),
            Payload::BudgetReserved(said) => {
                if let Some(run) = self.by_id.get_mut(&said.run) {
                    run.holds += 1;
                    run.hold = Some(RunHold::of(said));
                }
            }
            Payload::BudgetSettled(said) => {
                if let Some(run) = self.by_id.get_mut(&said.run) {
                    let amount = said.amount.value();
                    run.settled = run.settled.saturating_add(amount);
                    run.settled_since = run.settled_since.saturating_add(amount);
                    run.hold = None;
                }
            }
            Payload::ModelCallRecorded(said) => {
                if let Some(run) = self.by_id.get_mut(&said.run) {
                    run.called(event.id, said);
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
