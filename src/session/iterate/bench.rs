//! What every step works on: the ledger, what it says of the iteration, and what is due.

use clover_event::Payload;
use clover_event::id::IterationId;
use clover_event::payload::predicate::CriterionSplit;
use clover_ground::digest::Digest;
use clover_ground::time::Timestamp;
use clover_ledger::AppendedEvent;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_projection::decisions;
use clover_projection::iterations::record::IterationRecord;
use clover_projection::iterations::record::Records;
use clover_projection::iterations::step::Step;
use clover_workflow::iterate::course::Course;

use crate::append;
use crate::error::SessionError;
use crate::home::Home;
use crate::iterate::IterationError;
use crate::ports::KeyNeed;
use crate::ports::Ports;

/// One iteration on the table.
pub struct Bench {
    /// The ledger's folder, with the vault of its texts.
    pub home: Home,
    /// The ledger.
    pub ledger: Ledger,
    /// The iteration.
    pub id: IterationId,
    /// What the log says of it.
    pub record: IterationRecord,
    records: Records,
    course: Option<Course>,
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bench({})", self.id)
    }
}

/// What the log says of an iteration below a position.
///
/// # Errors
/// [`IterationError::Unknown`], and what reading the log gives.
pub fn recorded(
    ledger: &Ledger,
    id: &IterationId,
    below: u64,
) -> Result<IterationRecord, SessionError> {
    read_on(&mut Records::default(), ledger, id, below)
}

/// What the log says of an iteration, read on from where it was read to.
fn read_on(
    records: &mut Records,
    ledger: &Ledger,
    id: &IterationId,
    below: u64,
) -> Result<IterationRecord, SessionError> {
    let found = records.of(ledger, id, below)?.cloned();
    let mut record = found.ok_or_else(|| IterationError::Unknown(id.clone()))?;
    record.dev_calls_elsewhere = decisions::dev_calls_elsewhere(ledger.state(), id);
    Ok(record)
}

impl Bench {
    /// Reads an iteration of an open ledger.
    ///
    /// # Errors
    /// [`IterationError::Unknown`], and what reading the log gives.
    pub fn new(home: Home, ledger: Ledger, id: IterationId) -> Result<Self, SessionError> {
        let mut records = Records::default();
        let record = read_on(&mut records, &ledger, &id, ledger.size())?;
        Ok(Self {
            home,
            ledger,
            id,
            record,
            records,
            course: None,
        })
    }

    /// The ledger's time.
    pub fn now(&self) -> Timestamp {
        append::now(&self.ledger)
    }

    /// The first gate that stops a candidate on a split, and why.
    pub fn stopped(&self, candidate: Digest, split: CriterionSplit) -> Option<(String, String)> {
        let (state, experiment) = (self.ledger.state(), &self.record.experiment);
        let of = (&self.id, candidate);
        let found = decisions::stopped(state, experiment, self.now(), of, split);
        found.map(|(gate, words)| (gate.to_string(), words))
    }

    /// Patches to accept, in order.
    pub fn acceptable(&self) -> Vec<Digest> {
        let state = self.ledger.state();
        decisions::acceptable(state, &self.record.experiment, self.now(), &self.id)
    }

    /// The step that is due; `None` after the end.
    pub fn due(&self) -> Option<Step> {
        self.record
            .due(&|hash, split| self.stopped(hash, split).is_none(), &|| {
                self.acceptable().len()
            })
    }

    /// Refuses a step that is not due, naming the one that is. A step that is done is no error: it says nothing new.
    ///
    /// # Errors
    /// [`IterationError::StepNotDue`] and [`IterationError::Ended`].
    pub fn only(&self, step: Step) -> Result<(), SessionError> {
        let iteration = self.id.clone();
        match self.due() {
            Some(due) if due == step => Ok(()),
            Some(due) => Err(IterationError::StepNotDue {
                iteration,
                due,
                step,
            }
            .into()),
            None => {
                let seq = self.record.closed.as_ref().map_or(0, |closed| closed.seq);
                Err(IterationError::Ended { iteration, seq }.into())
            }
        }
    }

    /// Rows and everything before candidates, computed once.
    ///
    /// # Errors
    /// [`SessionError::Course`].
    pub fn course(&mut self) -> Result<&Course, SessionError> {
        let course = match self.course.take() {
            Some(course) => course,
            None => self.compute()?,
        };
        Ok(self.course.insert(course))
    }

    fn compute(&self) -> Result<Course, SessionError> {
        Ok(Course::bound(
            &self.ledger,
            &self.record,
            self.ledger.size(),
        )?)
    }

    /// Takes the course out, so that the ledger can be written beside it; give it back with [`Bench::put_back`].
    ///
    /// # Errors
    /// [`SessionError::Course`].
    pub fn take_course(&mut self) -> Result<Course, SessionError> {
        match self.course.take() {
            Some(course) => Ok(course),
            None => self.compute(),
        }
    }

    /// Gives the course back.
    pub fn put_back(&mut self, course: Course) {
        self.course = Some(course);
    }

    /// Appends events of one kind of signer as one batch, and reads the iteration again.
    ///
    /// # Errors
    /// [`SessionError`]; then nothing of the batch was appended.
    pub fn say(
        &mut self,
        ports: &mut dyn Ports,
        payloads: Vec<Payload>,
    ) -> Result<Vec<AppendedEvent>, SessionError> {
        self.say_with(ports, payloads, &[])
    }

    /// As [`Bench::say`], with the blobs that the events name.
    ///
    /// # Errors
    /// [`SessionError`]; then nothing of the batch was appended.
    pub fn say_with(
        &mut self,
        ports: &mut dyn Ports,
        payloads: Vec<Payload>,
        blobs: &[Vec<u8>],
    ) -> Result<Vec<AppendedEvent>, SessionError> {
        let Some(first) = payloads.first() else {
            return Ok(Vec::new());
        };
        let signer = ports.signer(self.ledger.state(), KeyNeed::by_kind(first.kind()))?;
        let experiment = &self.record.experiment;
        let commands: Vec<Command> = payloads
            .into_iter()
            .map(|payload| Command::new(payload, Some(experiment.clone())))
            .collect();
        let appended = self.ledger.append_with_blobs(&commands, &signer, blobs)?;
        self.ledger.settle()?;
        append::tell_of_pin(ports, &self.ledger);
        self.again()?;
        Ok(appended)
    }

    /// Reads the iteration again.
    ///
    /// # Errors
    /// What reading the log gives.
    pub fn again(&mut self) -> Result<(), SessionError> {
        let size = self.ledger.size();
        self.record = read_on(&mut self.records, &self.ledger, &self.id, size)?;
        Ok(())
    }
}
