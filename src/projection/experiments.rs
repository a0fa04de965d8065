//! Experiments: which are registered, which have ended.

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::registry::Scope;
use clover_ledger::Breach;
use clover_ledger::Fold;
use clover_ledger::ProposedEvent;
use clover_ledger::Rule;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use clover_ledger::rules::FORMAT;
use serde::Deserialize;
use serde::Serialize;

/// Kinds that move it.
pub const READS: &[Kind] = &[Kind::ExperimentRegistered, Kind::ExperimentClosed];

/// One experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The entry that closed it.
    pub closed_seq: Option<u64>,
    /// The entry that registered it.
    pub registered_seq: u64,
    /// Its name for people.
    pub title: String,
}

/// Every experiment by id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Experiments {
    /// By id.
    pub by_id: BTreeMap<ExperimentId, Experiment>,
}

impl Fold for Experiments {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let Some(id) = &event.event().header.experiment else {
            return;
        };
        match &event.event().payload {
            Payload::ExperimentRegistered(registered) => {
                let title = registered.title.as_str().to_owned();
                let experiment = Experiment {
                    closed_seq: None,
                    registered_seq: event.seq(),
                    title,
                };
                self.by_id.entry(id.clone()).or_insert(experiment);
            }
            Payload::ExperimentClosed(_) => {
                if let Some(experiment) = self.by_id.get_mut(id) {
                    experiment.closed_seq.get_or_insert(event.seq());
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

/// What names an experiment names one that is registered and open.
#[derive(Clone, Copy, Debug)]
pub struct OpenExperiment;

impl Rule for OpenExperiment {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        if state.keyring.format < FORMAT {
            return;
        }
        let (kind, scope) = (event.event.kind(), event.event.kind().scope());
        let Some(id) = &event.event.header.experiment else {
            if scope != Scope::Anywhere {
                breaches.push(Breach::new(
                    RuleName::Experiment,
                    format!("an experiment for {kind}"),
                    "null",
                ));
            }
            return;
        };
        if scope == Scope::NewExperiment {
            return;
        }
        match state.fold::<Experiments>().by_id.get(id) {
            None => breaches.push(Breach::new(
                RuleName::Experiment,
                "a registered experiment",
                format!("{id}, not registered"),
            )),
            Some(Experiment {
                closed_seq: Some(seq),
                ..
            }) => {
                breaches.push(Breach::new(
                    RuleName::Experiment,
                    "an open experiment",
                    format!("{id}, closed at seq {seq}"),
                ));
            }
            Some(_) => {}
        }
    }
}
