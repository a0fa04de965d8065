//! Runs that lower the loss of a judge's prompt: opened on rows that are committed first, gone through step by step, read on
//! test once, and promoted through a gate. Everything is on record before the next step, so a run that was cut goes on.

pub mod ahead;
pub mod asked;
pub mod error;
pub mod history;
pub mod leaks;
pub mod open;
pub mod promote;
pub mod running;
pub mod scoring;
pub mod test;

use std::collections::BTreeMap;

use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::RunId;
use clover_event::payload::Role;
use clover_event::payload::sgd::SgdRow;
use clover_event::registry::Signers;
use clover_ledger::AppendedEvent;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_projection::sgd::SgdRun;
use clover_projection::sgd::SgdRuns;
use clover_workflow::import::ImportRow;
use clover_workflow::import::labels::Draw;

use crate::append;
use crate::error::SessionError;
use crate::home::Home;
use crate::intake::responses;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Seat;

pub use error::SgdError;
pub use scoring::JudgeDesk;

/// One run on the table.
pub struct SgdBench {
    /// The ledger's folder, with the vault of its texts.
    pub home: Home,
    /// The ledger.
    pub ledger: Ledger,
    /// The run.
    pub id: RunId,
    /// What sends to the endpoint of its judge; none for every other judge.
    pub judge: Option<JudgeDesk>,
    texts: Option<BTreeMap<Draw, ImportRow>>,
}

impl std::fmt::Debug for SgdBench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SgdBench({})", self.id)
    }
}

/// A run by its name.
///
/// # Errors
/// [`SgdError::NoRun`].
pub fn found<'a>(state: &'a clover_ledger::State, id: &RunId) -> Result<&'a SgdRun, SgdError> {
    let run = state.fold::<SgdRuns>().by_id.get(id);
    run.ok_or_else(|| SgdError::NoRun(id.clone()))
}

fn count(value: usize) -> Count {
    Count::new(value as u64).unwrap_or_default()
}

/// Whose key signs an event of a run.
fn need(payload: &Payload) -> KeyNeed<'static> {
    let kind = payload.kind();
    match kind.signers() {
        Signers::Role(Role::Optimizer) => KeyNeed::of(Seat::Optimizer, kind),
        Signers::Role(Role::Custodian) => KeyNeed::of(Seat::Custodian, kind),
        _ => KeyNeed::by_kind(kind),
    }
}

impl SgdBench {
    /// A run of an open ledger.
    ///
    /// # Errors
    /// [`SgdError::NoRun`].
    pub fn new(home: Home, ledger: Ledger, id: RunId) -> Result<Self, SessionError> {
        found(ledger.state(), &id)?;
        Ok(Self {
            home,
            ledger,
            id,
            judge: None,
            texts: None,
        })
    }

    /// The run as it stands.
    ///
    /// # Errors
    /// [`SgdError::NoRun`].
    pub fn run(&self) -> Result<&SgdRun, SgdError> {
        found(self.ledger.state(), &self.id)
    }

    /// Says one thing of the run, by whoever may.
    ///
    /// # Errors
    /// No key, or what the ledger says; nothing was appended then.
    pub fn say(
        &mut self,
        ports: &mut dyn Ports,
        payload: impl Into<Payload>,
    ) -> Result<AppendedEvent, SessionError> {
        self.say_of(ports, payload, None)
    }

    /// Says one thing of the run that an event gave, by whoever may.
    ///
    /// # Errors
    /// As [`say`](Self::say).
    pub(crate) fn say_of(
        &mut self,
        ports: &mut dyn Ports,
        payload: impl Into<Payload>,
        given_by: Option<EventId>,
    ) -> Result<AppendedEvent, SessionError> {
        let payload = payload.into();
        let experiment = self.run()?.experiment.clone();
        let signer = ports.signer(self.ledger.state(), need(&payload))?;
        let mut command = Command::new(payload, Some(experiment));
        command.refs = given_by.into_iter().collect();
        let appended = append::append(ports, &mut self.ledger, &[command], &signer)?;
        let first = appended.into_iter().next();
        first.ok_or_else(|| SgdError::NoRun(self.id.clone()).into())
    }

    /// The texts of every row that the vault opens.
    ///
    /// # Errors
    /// When the log or the vault cannot be read.
    fn texts(&mut self) -> Result<&BTreeMap<Draw, ImportRow>, SessionError> {
        if self.texts.is_none() {
            let experiment = self.run()?.experiment.clone();
            let found = responses::scored(&self.home, &self.ledger, &experiment)?;
            let rows = found.rows.into_iter();
            let rows = rows.map(|row| ((row.policy.clone(), row.item.clone(), row.draw), row));
            self.texts = Some(rows.collect());
        }
        Ok(self.texts.get_or_insert_with(BTreeMap::new))
    }

    /// Rows with their texts, in order.
    ///
    /// # Errors
    /// [`SgdError::NoText`] of the first row without.
    fn with_texts(&mut self, rows: &[SgdRow]) -> Result<Vec<ImportRow>, SessionError> {
        let texts = self.texts()?;
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            let draw = (row.policy.clone(), row.item.clone(), row.draw);
            let text = texts.get(&draw).cloned();
            found.push(text.ok_or_else(|| SgdError::NoText(Box::new(row.clone())))?);
        }
        Ok(found)
    }
}
