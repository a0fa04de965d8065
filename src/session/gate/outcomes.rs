//! Outcomes of a file, which become scores in the order drawn, before anything is observed.

use std::sync::Arc;

use clover_event::Kind;
use clover_event::id::ItemId;
use clover_ground::sign::Signer;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_workflow::gates::evidence::GateContext;
use clover_workflow::gates::outcomes;
use clover_workflow::gates::outcomes::Outcome;

use crate::append;
use crate::append::Rehearsal;
use crate::error::SessionError;
use crate::gate::error::GateError;
use crate::ports::KeyNeed;
use crate::ports::Keys;
use crate::ports::Seat;

/// Scores of one transaction.
const BATCH: usize = 16_384;

/// Outcomes, and the file that they stand in.
#[derive(Clone, Debug)]
pub struct OutcomeFile {
    /// How refusals call the file.
    pub file: String,
    /// Its outcomes.
    pub outcomes: Vec<Outcome>,
}

impl OutcomeFile {
    /// Reads a file's bytes.
    ///
    /// # Errors
    /// [`GateError::Outcome`] names the line.
    pub fn read(file: String, bytes: &[u8]) -> Result<Self, GateError> {
        match outcomes::read(bytes) {
            Ok(outcomes) => Ok(Self { file, outcomes }),
            Err(error) => Err(GateError::Outcome { file, error }),
        }
    }
}

/// The scores of a file, with their lines and the key that signs them.
pub(super) struct ScoreFile<'f> {
    commands: Vec<Command>,
    file: &'f str,
    lines: Vec<u64>,
    signer: Arc<Signer>,
}

impl<'f> ScoreFile<'f> {
    /// Holds every line against the gate, and looks for the keys of scorer and runner.
    pub(super) fn of(
        keys: &mut dyn Keys,
        ledger: &Ledger,
        (of, order): (GateContext<'_>, &[ItemId]),
        from: &'f OutcomeFile,
    ) -> Result<Self, SessionError> {
        let file = from.file.as_str();
        let found = outcomes::scores(of, order, &from.outcomes);
        let found = found.map_err(|error| GateError::Outcome {
            file: file.to_owned(),
            error,
        })?;
        let need = KeyNeed::of(Seat::Scorer, Kind::ScoreRecorded);
        keys.check(ledger.state(), &[need, KeyNeed::runner(Kind::GateObserved)])?;
        let signer = keys.signer(ledger.state(), need)?;
        let experiment = of.gate.experiment.clone();
        let (lines, commands) = found
            .into_iter()
            .map(|(line, score)| (line, Command::new(score, experiment.clone())))
            .unzip();
        Ok(Self {
            commands,
            file,
            lines,
            signer,
        })
    }

    /// The bodies of what would be recorded.
    pub(super) fn rehearse(&self, ledger: &Ledger) -> Result<Vec<Rehearsal>, SessionError> {
        let first = append::next_author_seq(ledger, &self.signer);
        let numbers = (first, self.commands.len());
        append::rehearse(ledger, &self.commands, &self.signer, numbers)
    }

    /// Records what is not recorded yet; answers with how many are new.
    pub(super) fn record(&self, ledger: &mut Ledger) -> Result<u64, GateError> {
        let mut new = 0;
        for (commands, lines) in self.commands.chunks(BATCH).zip(self.lines.chunks(BATCH)) {
            let appended = ledger.append(commands, &self.signer);
            let appended = appended.map_err(|error| GateError::Score {
                file: self.file.to_owned(),
                lines: lines.to_vec(),
                error: Box::new(error),
            })?;
            new += appended.iter().filter(|one| !one.already).count() as u64;
        }
        Ok(new)
    }
}
