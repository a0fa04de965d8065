//! One event of a gate that may be appended.

use std::sync::Arc;

use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_ground::sign::Signer;
use clover_ledger::AppendedEvent;
use clover_ledger::Command;
use clover_ledger::Ledger;

use crate::append;
use crate::append::Rehearsal;
use crate::error::SessionError;
use crate::ports::KeyNeed;
use crate::ports::Keys;
use crate::ports::Watcher;

/// An event with the key that signs it. It was checked, and nothing was appended yet.
#[derive(Debug)]
#[must_use = "nothing is recorded before it is appended"]
pub struct GateStep<T> {
    /// What the event says, or what follows from it.
    pub terms: T,
    command: Command,
    signer: Arc<Signer>,
}

impl<T> GateStep<T> {
    /// An event that the runner's key signs.
    pub(super) fn new(
        keys: &mut dyn Keys,
        ledger: &Ledger,
        (event, experiment): (impl Into<Payload>, Option<ExperimentId>),
        terms: T,
    ) -> Result<Self, SessionError> {
        let command = Command::new(event, experiment);
        let need = KeyNeed::runner(command.payload.kind());
        let signer = keys.signer(ledger.state(), need)?;
        Ok(Self {
            terms,
            command,
            signer,
        })
    }

    /// Appends the event.
    ///
    /// # Errors
    /// [`SessionError::Ledger`]; then nothing was appended.
    pub fn append(
        &self,
        watcher: &mut dyn Watcher,
        ledger: &mut Ledger,
    ) -> Result<Vec<AppendedEvent>, SessionError> {
        let commands = std::slice::from_ref(&self.command);
        append::append(watcher, ledger, commands, &self.signer)
    }

    /// The body that would be appended, held against the rules that need no more than the state at the head.
    ///
    /// # Errors
    /// [`SessionError::Body`], and [`SessionError::Breach`] when a rule says no.
    pub fn rehearse(&self, ledger: &Ledger) -> Result<Vec<Rehearsal>, SessionError> {
        let commands = std::slice::from_ref(&self.command);
        let first = append::next_author_seq(ledger, &self.signer);
        append::rehearse(ledger, commands, &self.signer, (first, commands.len()))
    }

    /// The command that is appended.
    pub fn command(&self) -> &Command {
        &self.command
    }
}
