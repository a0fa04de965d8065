//! Recomputing what was decided: the statistics behind an event run again from its recorded inputs, terms and seed,
//! and compared with what it says.
//!
//! [`way`] has one line per kind. Every number must be the same to the bit where the
//! same program computed it; where another did, within 1e-9 relative, with every word and decision the same.

mod agreements;
mod batteries;
mod compare;
mod decided;
mod drift;
mod estimates;
mod gates;
mod generators;
mod guardrails;
mod iterations;
mod offpolicy;
mod recalibrations;
mod recipes;
mod repairs;
mod reports;
mod rule;
mod sgd;
mod splits;
mod synths;
pub mod withheld;

use std::ops::ControlFlow;

use clover_event::Event;
use clover_event::Payload;
use clover_event::Statement;
use clover_event::id::ExperimentId;
use clover_ledger::History;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_ledger::State;
use clover_ledger::States;
use clover_ledger::rulebooks::Question;
use clover_projection::audits::Audits;
use clover_projection::iterations::record::Records;
use clover_projection::reader::LogReader;

use crate::analyze::AnalyzeError;
use crate::drift::DriftError;
use crate::estimate::planning::PlanError;
use crate::estimate::rows::Covariates;
use crate::estimate::rows::RowsError;
use crate::import::kept::KeptError;
use crate::import::kept::Unread;
use crate::ope::OpeError;
use crate::ope::logs::LogsError;
use crate::recompute::offpolicy::OffPolicy;

pub use compare::MemberDifference;
pub use compare::Recomputation;
pub use compare::compare;
pub use estimates::CachedEstimate;
pub use recipes::Elsewhere;
pub use recipes::Recipe;
pub use recipes::Way;
pub use recipes::When;
pub use recipes::elsewhere;
pub use recipes::recipe;
pub use recipes::way;
pub use rule::AGAIN;
pub use rule::ITERATIONS;
pub use rule::LIVE;

/// Why an event cannot be computed again.
#[derive(Debug, thiserror::Error)]
pub enum RecomputeError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Something that it read is not at hand any more.
    #[error(transparent)]
    Rows(RowsError),
    /// The statistics refuse what it read.
    #[error(transparent)]
    Refused(#[from] AnalyzeError),
    /// Logged rows cannot be read.
    #[error(transparent)]
    Logs(LogsError),
    /// Logged rows give no such estimate.
    #[error(transparent)]
    OffPolicy(#[from] OpeError),
    /// It plans from numbers that are not there.
    #[error(transparent)]
    Unplanned(#[from] PlanError),
    /// A blob that it read was erased, or did not come along.
    #[error("{0}")]
    Absent(String),
    /// It comes from what nobody recorded.
    #[error("{0}")]
    Unrecorded(String),
    /// It says what a person decided.
    #[error("{0}")]
    Told(String),
    /// A judge's anchors give no such check.
    #[error(transparent)]
    Drift(#[from] DriftError),
    /// It names something that its inputs do not have.
    #[error("{0}")]
    Missing(String),
    /// Its inputs are all there, and no such event follows from them.
    #[error("{0}")]
    Uncalled(String),
}

impl From<RowsError> for RecomputeError {
    fn from(error: RowsError) -> Self {
        match error {
            RowsError::Ledger(error) | RowsError::Kept(KeptError::Ledger(error)) => {
                Self::Ledger(error)
            }
            covariate @ RowsError::Covariate { .. } => Self::Rows(covariate),
            RowsError::Kept(KeptError::Unread(absent @ Unread::Absent { .. })) => {
                Self::Absent(absent.to_string())
            }
            other => Self::Missing(other.to_string()),
        }
    }
}

impl From<LogsError> for RecomputeError {
    fn from(error: LogsError) -> Self {
        match error {
            LogsError::Ledger(error) => Self::Ledger(error),
            rows @ LogsError::Rows { .. } => Self::Logs(rows),
        }
    }
}

/// What an event says, for the computation of one kind.
fn said_in<T: Statement>(event: &Event) -> Result<&T, RecomputeError> {
    let other = || RecomputeError::Missing("it is of another kind".to_owned());
    event.said().ok_or_else(other)
}

/// Computes an event's payload again.
pub type Run = fn(&mut Context<'_>, u64, &Event) -> Result<Payload, RecomputeError>;

/// What recomputations over one log share, so that each reads and computes as little as it can.
#[derive(Debug, Default)]
pub struct RecomputeCache {
    /// Fits and audits below `governed_below`, which estimates are marked by.
    governed: Vec<(u64, ExperimentId, Payload)>,
    governed_below: u64,
    /// Since when failed audits are answered by as many new labels.
    rulebooks: Audits,
    /// The last computations, for events that come from the same.
    last: Vec<CachedEstimate>,
    /// The last off-policy computation.
    off_policy: Option<OffPolicy>,
    /// The last iteration, likewise.
    iteration: Option<iterations::CachedIteration>,
    /// The last judge that a generator's run froze.
    generator: Option<generators::CachedJudge>,
    /// The last order of a gate's units.
    order: Option<gates::CachedOrder>,
    /// The last split.
    split: Option<splits::CachedSplit>,
    /// States before decisions.
    states: States,
    /// What was said of iterations.
    records: Records,
    /// The same at the end of the log.
    whole: Records,
}

/// Computations that are kept for the events after.
const KEPT: usize = 2;

/// A log to compute from, and whoever knows the covariates.
pub struct Context<'a> {
    history: &'a dyn History,
    covariates: &'a mut dyn Covariates,
    shared: &'a mut RecomputeCache,
    /// The ledger itself, which iterations and reports are read from.
    ledger: Option<&'a Ledger>,
    /// State before the event, where it is at hand.
    state: Option<&'a State>,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Context({} fits and audits)", self.shared.governed.len())
    }
}

impl<'a> Context<'a> {
    /// Over a log.
    pub fn new(
        history: &'a dyn History,
        covariates: &'a mut dyn Covariates,
        shared: &'a mut RecomputeCache,
    ) -> Self {
        Self {
            history,
            covariates,
            shared,
            ledger: None,
            state: None,
        }
    }

    /// With the state before the event.
    #[must_use]
    pub fn before(mut self, state: &'a State) -> Self {
        self.state = Some(state);
        self
    }

    /// With the ledger itself.
    #[must_use]
    pub fn over(mut self, ledger: &'a Ledger) -> Self {
        self.ledger = Some(ledger);
        self
    }

    fn ledger(&self) -> Result<&'a Ledger, RecomputeError> {
        let none = || RecomputeError::Missing("the ledger is not at hand".to_owned());
        self.ledger.ok_or_else(none)
    }

    /// State before an entry.
    fn state_at(&mut self, seq: u64) -> Result<&State, RecomputeError> {
        let ledger = self.ledger()?;
        Ok(self.shared.states.at(ledger, seq)?)
    }

    /// Whether the rulebook in force before an entry asks a question.
    fn asks(&mut self, seq: u64, question: Question) -> Result<bool, RecomputeError> {
        match self.state {
            Some(state) => Ok(state.asks(question)),
            None => Ok(self.state_at(seq)?.asks(question)),
        }
    }

    /// Reads fits and audits up to an entry.
    fn govern(&mut self, below: u64) -> Result<(), LedgerError> {
        let from = self.shared.governed_below;
        if from >= below {
            return Ok(());
        }
        let governed = &mut self.shared.governed;
        let rulebooks = &mut self.shared.rulebooks;
        let entries = LogReader::below(self.history, below).since(from);
        entries.each(|seq, event| {
            rulebooks.adopt(seq, &event.payload);
            let is_one = matches!(
                event.payload,
                Payload::CalibratorFitted(_)
                    | Payload::EnvironmentsTested(_)
                    | Payload::RegimeSelected(_)
                    | Payload::TransportTested(_)
            );
            if let Some(experiment) = event.experiment().filter(|_| is_one) {
                governed.push((seq, experiment.clone(), event.payload.clone()));
            }
            ControlFlow::Continue(())
        })?;
        self.shared.governed_below = below;
        Ok(())
    }

    /// Audits of an experiment as they stood before an entry.
    fn audits(&self, experiment: &ExperimentId, below: u64) -> Audits {
        let mut audits = Audits {
            answers: self.shared.rulebooks.answers,
            ..Audits::default()
        };
        let before = self
            .shared
            .governed
            .iter()
            .take_while(|(seq, ..)| *seq < below);
        for (seq, of, payload) in before.filter(|(_, of, _)| of == experiment) {
            audits.take(of, *seq, payload);
        }
        audits
    }

    /// Computes an event again and compares; `None` for a kind without a recipe.
    ///
    /// # Errors
    /// [`LedgerError`] when the log cannot be read.
    pub fn replay(
        &mut self,
        seq: u64,
        event: &Event,
    ) -> Result<Option<(Recomputation, Option<Payload>)>, LedgerError> {
        let Some(recipe) = recipe(event.kind()) else {
            return Ok(None);
        };
        self.govern(seq)?;
        Ok(Some(match (recipe.run)(self, seq, event) {
            Ok(again) => (compare(&event.payload, &again), Some(again)),
            Err(RecomputeError::Ledger(error)) => return Err(error),
            Err(RecomputeError::Told(what)) => (Recomputation::Told(what), None),
            Err(RecomputeError::Uncalled(what)) => (compare::uncalled(event.kind(), &what), None),
            Err(gone) => (Recomputation::Gone(gone.to_string()), None),
        }))
    }
}
