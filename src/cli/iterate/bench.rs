//! What every step works on: the ledger, what it says of the iteration, and what is due.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::submit;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Payload;
use crate::event::id::IterationId;
use crate::event::payload::predicate::GateSplit;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ground::time::Timestamp;
use crate::ledger::Appended;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::projection::decisions;
use crate::session::Home;
use crate::workflow::iterate::course::Course;
use crate::workflow::iterate::course::CourseError;
use crate::workflow::iterate::record::Record;
use crate::workflow::iterate::record::Records;
use crate::workflow::iterate::record::Step;
use crate::workflow::iterate::rows::RowsError;

/// One iteration on the table.
pub(in crate::cli) struct Bench {
    pub home: Home,
    pub ledger: Ledger,
    pub id: IterationId,
    pub record: Record,
    records: Records,
    course: Option<Course>,
}

/// An iteration's name.
pub(in crate::cli) fn named(name: &str) -> Result<IterationId, CliError> {
    name.parse().map_err(|error| {
        CliError::usage(
            format!("iteration {name:?}: {error}"),
            "clover iterate list",
        )
    })
}

/// What the log says of an iteration.
pub(in crate::cli) fn recorded(
    ledger: &Ledger,
    id: &IterationId,
    below: u64,
) -> Result<Record, CliError> {
    read_on(&mut Records::default(), ledger, id, below)
}

/// What the log says of an iteration, read on from where it was read to.
fn read_on(
    records: &mut Records,
    ledger: &Ledger,
    id: &IterationId,
    below: u64,
) -> Result<Record, CliError> {
    let found = records.of(ledger, id, below)?.cloned();
    found.ok_or_else(|| CliError::not_found(format!("no iteration {id}"), "clover iterate list"))
}

/// How a computation failed, with what to do.
pub(in crate::cli) fn failed(error: CourseError) -> CliError {
    let next = "clover iterate list";
    match error {
        CourseError::Rows(RowsError::Ledger(error)) => error.into(),
        CourseError::Rows(RowsError::Missing { what, next }) => CliError::refused(what, next),
        CourseError::Rows(RowsError::Unread(error)) => error.into(),
        CourseError::Rows(error @ RowsError::Evidence { .. }) => CliError::refused(
            error.to_string(),
            "clover judge run --judge ID --rows PATH --known FILE",
        ),
        CourseError::Rows(RowsError::Unfit(error)) => CliError::refused(error.to_string(), next),
        CourseError::Unfit(error) => {
            let message = format!("too little to go on: {error}");
            CliError::refused(message, "clover iterate show ID")
        }
        CourseError::Candidate(what) => CliError::refused(what, "clover patch list"),
    }
}

impl Bench {
    pub(in crate::cli) fn open(ctx: &mut Ctx<'_>, name: &str) -> Result<Self, CliError> {
        let id = named(name)?;
        let (home, ledger) = home::open_to_write(ctx)?;
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
    pub(super) fn now(&self) -> Timestamp {
        let now = self.ledger.ambient().now();
        now.max(self.ledger.state().keyring.recorded_at.unwrap_or(now))
    }

    /// The first gate that stops a candidate on a split, and why.
    pub(super) fn stopped(&self, candidate: Digest, split: GateSplit) -> Option<(String, String)> {
        let (state, experiment) = (self.ledger.state(), &self.record.experiment);
        let of = (&self.id, candidate);
        let found = decisions::stopped(state, experiment, self.now(), of, split);
        found.map(|(gate, words)| (gate.to_string(), words))
    }

    /// Patches to accept, in order.
    pub(super) fn acceptable(&self) -> Vec<Digest> {
        let state = self.ledger.state();
        decisions::acceptable(state, &self.record.experiment, self.now(), &self.id)
    }

    /// The step that is due.
    pub(super) fn due(&self) -> Option<Step> {
        self.record
            .due(&|hash, split| self.stopped(hash, split).is_none(), &|| {
                self.acceptable().len()
            })
    }

    /// Refuses a step that is not due, naming the one that is. A step that is done is no error: it says nothing new.
    pub(super) fn only(&self, step: Step) -> Result<(), CliError> {
        let id = &self.id;
        match self.due() {
            Some(due) if due == step => Ok(()),
            Some(due) => {
                let (due, step) = (due.as_str(), step.as_str());
                let message = format!("iteration {id}: {due} is due, not {step}");
                Err(CliError::refused(message, next(id, self.due())))
            }
            None => {
                let seq = self.record.closed.as_ref().map_or(0, |closed| closed.seq);
                let message = format!("iteration {id} ended at seq {seq}");
                Err(CliError::refused(
                    message,
                    format!("clover iterate show {id}", id = shell::word(&id)),
                ))
            }
        }
    }

    /// Rows and everything before candidates, computed once.
    pub(super) fn course(&mut self) -> Result<&Course, CliError> {
        if self.course.is_none() {
            let size = self.ledger.size();
            let course = Course::bound(&self.ledger, &self.record, size);
            self.course = Some(course.map_err(failed)?);
        }
        Ok(self.course.as_ref().expect("BUG: it was computed"))
    }

    /// Takes the course out, so that the ledger can be written beside it; give it back with [`Bench::keep`].
    pub(in crate::cli) fn take_course(&mut self) -> Result<Course, CliError> {
        self.course()?;
        Ok(self.course.take().expect("BUG: it was computed"))
    }

    /// Gives the course back.
    pub(super) fn keep(&mut self, course: Course) {
        self.course = Some(course);
    }

    /// Appends events of one kind of signer as one batch, and reads the iteration again.
    pub(in crate::cli) fn say(
        &mut self,
        ctx: &mut Ctx<'_>,
        payloads: Vec<Payload>,
    ) -> Result<Vec<Appended>, CliError> {
        self.say_with(ctx, payloads, &[])
    }

    /// The same, with the blobs that the events name.
    pub(super) fn say_with(
        &mut self,
        ctx: &mut Ctx<'_>,
        payloads: Vec<Payload>,
        blobs: &[Vec<u8>],
    ) -> Result<Vec<Appended>, CliError> {
        let Some(first) = payloads.first() else {
            return Ok(Vec::new());
        };
        let signer = wallet::signer(ctx, self.ledger.state(), first.kind())?;
        let experiment = &self.record.experiment;
        let commands: Vec<Command> = payloads
            .into_iter()
            .map(|payload| Command::new(payload, Some(experiment.clone())))
            .collect();
        let appended = self.ledger.append_with_blobs(&commands, &signer, blobs)?;
        self.ledger.settle()?;
        submit::warn_of_pin(ctx, &self.ledger);
        self.again()?;
        Ok(appended)
    }

    /// Reads the iteration again.
    pub(super) fn again(&mut self) -> Result<(), CliError> {
        let size = self.ledger.size();
        self.record = read_on(&mut self.records, &self.ledger, &self.id, size)?;
        Ok(())
    }

    /// The answer of a step: what is due next, and where the log stands.
    pub(in crate::cli) fn answer(
        &self,
        text: String,
        data: serde_json::Value,
        appended: &[Appended],
    ) -> Answer {
        let mut answer = Answer::new(text, data).with_events(appended);
        answer.verdict = if appended.iter().all(|one| one.already) {
            "already_recorded"
        } else {
            "appended"
        };
        answer.checkpoint = Some((self.ledger.size(), self.ledger.root().to_base64()));
        answer.data["due"] = self.due().map(Step::as_str).into();
        answer.with_next(next(&self.id, self.due()))
    }
}

/// The command of a step.
pub(super) fn next(id: &IterationId, due: Option<Step>) -> String {
    match due {
        None => format!("clover iterate show {id}", id = shell::word(&id)),
        Some(Step::Propose) => format!(
            "clover iterate propose {id} PATCH.yaml",
            id = shell::word(&id)
        ),
        Some(step) => format!(
            "clover iterate {} {id}",
            step.as_str(),
            id = shell::word(&id)
        ),
    }
}
