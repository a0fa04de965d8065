//! The one way to read entries of the log again: those below a position, of one experiment or of all, into a read model
//! or as statements of one kind.

use std::fmt;
use std::ops::ControlFlow;

use clover_event::Event;
use clover_event::Statement;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_ledger::History;
use clover_ledger::LedgerError;

/// What an event says, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct LogStatement<T> {
    /// Its position.
    pub seq: u64,
    /// Its id.
    pub id: EventId,
    /// What it says.
    pub said: T,
}

impl<T: Statement + Clone> LogStatement<T> {
    /// What an event says, where it is of this kind.
    pub fn of(seq: u64, event: &Event) -> Option<Self> {
        let said = event.said::<T>()?.clone();
        let id = event.id;
        Some(Self { seq, id, said })
    }
}

/// What entries add up to, for one question.
pub trait Model {
    /// Takes an entry in.
    fn take(&mut self, seq: u64, event: &Event);
}

/// Entries of a log.
#[derive(Clone, Copy)]
pub struct LogReader<'a> {
    history: &'a dyn History,
    from: u64,
    below: u64,
    experiment: Option<&'a ExperimentId>,
    naming: Option<&'a str>,
}

impl fmt::Debug for LogReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogReader({}..{})", self.from, self.below)
    }
}

impl<'a> LogReader<'a> {
    /// Every entry below a position.
    pub fn below(history: &'a dyn History, below: u64) -> Self {
        Self {
            history,
            from: 0,
            below,
            experiment: None,
            naming: None,
        }
    }

    /// Every entry through a position, that one included.
    pub fn through(history: &'a dyn History, last: u64) -> Self {
        Self::below(history, last.saturating_add(1))
    }

    /// Those of one experiment.
    #[must_use]
    pub fn of(mut self, experiment: &'a ExperimentId) -> Self {
        self.experiment = Some(experiment);
        self
    }

    /// Those from a position on.
    #[must_use]
    pub fn since(mut self, from: u64) -> Self {
        self.from = from;
        self
    }

    /// Those whose bodies hold a text, and others where it costs more to leave them out.
    #[must_use]
    pub fn naming(mut self, text: &'a str) -> Self {
        self.naming = Some(text);
        self
    }

    /// Gives entries in order until one is not wanted any more.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn each(
        self,
        mut take: impl FnMut(u64, &Event) -> ControlFlow<()>,
    ) -> Result<(), LedgerError> {
        let mut own = |seq: u64, event: &Event| {
            let is_of = self.experiment.is_none() || event.experiment() == self.experiment;
            if is_of {
                take(seq, event)
            } else {
                ControlFlow::Continue(())
            }
        };
        let (from, below) = (self.from, self.below);
        match self.naming {
            Some(text) => self.history.events_naming(from, below, text, &mut own),
            None => self.history.events(from, below, &mut own),
        }
    }

    /// What entries add up to.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn into_model<M: Model>(self, mut model: M) -> Result<M, LedgerError> {
        self.each(|seq, event| {
            model.take(seq, event);
            ControlFlow::Continue(())
        })?;
        Ok(model)
    }

    /// Every statement of one kind that is wanted, in order.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn all<T: Statement + Clone>(
        self,
        is_wanted: impl Fn(&T) -> bool,
    ) -> Result<Vec<LogStatement<T>>, LedgerError> {
        let mut found = Vec::new();
        self.each(|seq, event| {
            if event.said().is_some_and(&is_wanted) {
                found.extend(LogStatement::of(seq, event));
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// The first statement of one kind that is wanted.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn first<T: Statement + Clone>(
        self,
        is_wanted: impl Fn(&T) -> bool,
    ) -> Result<Option<LogStatement<T>>, LedgerError> {
        let mut found = None;
        self.each(|seq, event| {
            if event.said().is_some_and(&is_wanted) {
                found = LogStatement::of(seq, event);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }
}
