//! Observing: the next units of a gate from their recorded scores, part by part, with a look where one is due.

use clover_event::Kind;
use clover_event::id::ManifestId;
use clover_ground::ambient::Stopwatch;
use clover_ground::sign::Signer;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_projection::manifests::Manifests;
use clover_workflow::gates::observe;
use clover_workflow::gates::observe::Next;
use clover_workflow::gates::observe::ObservationCourse;
use clover_workflow::gates::observe::ObservationEnd;
use clover_workflow::gates::observe::ObservationRequest;
use clover_workflow::gates::observe::ObserveError;
use clover_workflow::gates::replay;
use clover_workflow::gates::replay::Order;
use clover_workflow::gates::steps;

use crate::append;
use crate::append::Rehearsal;
use crate::error::SessionError;
use crate::gate::check;
use crate::gate::error::GateError;
use crate::gate::error::unobserved;
use crate::gate::outcomes::OutcomeFile;
use crate::gate::outcomes::ScoreFile;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Watcher;
use crate::ports::Work;

/// A gate that may be observed: it is neither stale nor waiting, and its order was read.
#[derive(Debug)]
pub struct Observer {
    id: ManifestId,
    order: Order,
}

/// Which units are observed.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Draws without a score have failed: the end of the scale against the candidate stands for each.
    pub missing: bool,
    /// Observations after which to stop; all that there are where absent.
    pub through: Option<u64>,
}

/// What was observed.
#[derive(Clone, Debug)]
pub struct Observations {
    /// Units that were observed now.
    pub observed: u64,
    /// Scores that were recorded before, from a file.
    pub recorded: u64,
    /// How long observing took.
    pub seconds: f64,
    /// Why there are no more.
    pub stop: ObservationEnd,
}

impl Observations {
    /// Units that were observed in a second.
    pub fn per_second(&self) -> f64 {
        (self.observed as f64 / self.seconds.max(1e-9)).round()
    }
}

impl Observer {
    /// Reads the order of an opened gate.
    ///
    /// # Errors
    /// [`GateError::NotOpen`], [`GateError::Stale`] and [`GateError::NotContinued`].
    pub fn of(ledger: &Ledger, id: &ManifestId) -> Result<Self, SessionError> {
        let gate = check::known(ledger.state(), id)?;
        let order = match gate.record.bound() {
            Some(bound) => replay::order(ledger, bound, gate.gate.opened_seq)?,
            None => Order::default(),
        };
        check::not_stale(ledger.state(), id)?;
        check::not_waiting(ledger.state(), id)?;
        let id = id.clone();
        Ok(Self { id, order })
    }

    /// Records the outcomes of a file as scores, where one is given, and observes the next units.
    ///
    /// # Errors
    /// [`GateError::Outcome`] and [`GateError::Score`] on a file; [`GateError::Snapshot`], [`GateError::Untestable`], and
    /// [`GateError::Unfit`] where the test may not take the first unit.
    pub fn observe(
        &self,
        ports: &mut dyn Ports,
        ledger: &mut Ledger,
        (extent, from): (Extent, Option<&OutcomeFile>),
    ) -> Result<Observations, SessionError> {
        let scores = self.scores(ports, ledger, from)?;
        if scores.is_some() {
            check::replayed(ledger, &self.id)?;
        }
        let signer = ports.signer(ledger.state(), KeyNeed::runner(Kind::GateObserved))?;
        let is_replayed = scores.is_some();
        let recorded = scores.map_or(Ok(0), |scores| scores.record(ledger))?;
        let since = Stopwatch::start();
        let signed = (&*signer, is_replayed);
        let (stop, observed) = self.advance(ports, ledger, signed, self.ask(extent))?;
        ledger.settle()?;
        append::tell_of_pin(ports, ledger);
        let seconds = since.seconds();
        if let (ObservationEnd::Unfit(unit, why), 0) = (&stop, observed) {
            let (gate, unit, why) = (self.id.clone(), unit.clone(), why.clone());
            return Err(GateError::Unfit { gate, unit, why }.into());
        }
        Ok(Observations {
            observed,
            recorded,
            seconds,
            stop,
        })
    }

    /// The scores that a file would record, all of them judged; without a file the observations up to the first look, of
    /// which the first is judged.
    ///
    /// # Errors
    /// As [`Observer::observe`].
    pub fn rehearse(
        &self,
        ports: &mut dyn Ports,
        ledger: &Ledger,
        (extent, from): (Extent, Option<&OutcomeFile>),
    ) -> Result<Vec<Rehearsal>, SessionError> {
        let scores = self.scores(ports, ledger, from)?;
        check::replayed(ledger, &self.id)?;
        let signer = ports.signer(ledger.state(), KeyNeed::runner(Kind::GateObserved))?;
        if let Some(scores) = scores {
            return scores.rehearse(ledger);
        }
        let (gate, ask) = (check::known(ledger.state(), &self.id)?, self.ask(extent));
        let course = ObservationCourse::new(gate, ask);
        let mut course = course.map_err(|error| GateError::untestable(&self.id, error))?;
        let next = course.next(ask.part, |since, keys| ledger.measured(since, keys));
        let next = next.map_err(|error| unobserved(&self.id, error))?;
        let experiment = gate.gate.experiment.clone();
        let command = |said| Command::new(said, experiment.clone());
        let commands: Vec<_> = next.observed.into_iter().map(command).collect();
        let first = append::next_author_seq(ledger, &signer);
        append::rehearse(ledger, &commands, &signer, (first, 1))
    }

    fn scores<'f>(
        &self,
        ports: &mut dyn Ports,
        ledger: &Ledger,
        from: Option<&'f OutcomeFile>,
    ) -> Result<Option<ScoreFile<'f>>, SessionError> {
        let Some(from) = from else {
            return Ok(None);
        };
        let gate = check::known(ledger.state(), &self.id)?;
        ScoreFile::of(ports, ledger, (gate, &self.order.units), from).map(Some)
    }

    fn ask(&self, extent: Extent) -> ObservationRequest<'_> {
        ObservationRequest {
            listed: &self.order.listed,
            missing: extent.missing,
            order: &self.order.units,
            part: observe::PART,
            strata: &self.order.strata,
            through: extent.through.unwrap_or(u64::MAX),
        }
    }

    /// Observes part by part, with a look where one is due; answers with why it ended and how many were observed. Before
    /// anything is recorded, the gate is replayed unless it was: while the first values are read, where they are many.
    fn advance(
        &self,
        ports: &mut dyn Ports,
        ledger: &mut Ledger,
        (signer, mut is_replayed): (&Signer, bool),
        ask: ObservationRequest<'_>,
    ) -> Result<(ObservationEnd, u64), SessionError> {
        let id = &self.id;
        let mut observed = 0_u64;
        loop {
            let gate = check::known(ledger.state(), id)?;
            let course = ObservationCourse::new(gate, ask);
            let overlaps = course.as_ref().is_ok_and(ObservationCourse::is_long);
            if !is_replayed && !overlaps {
                check::replayed(ledger, id)?;
            }
            let mut course = course.map_err(|error| GateError::untestable(id, error))?;
            let mut run = ObservationRun {
                end: gate.record.units.min(ask.through),
                id,
                n: 0,
                signer,
                stop: ObservationEnd::Asked,
                watcher: &mut *ports,
            };
            run.watcher.progress(Work::Observing, gate.gate.n, run.end);
            if overlaps {
                let reading = ledger.reading()?;
                observe::ahead(course, reading, |mut parts| {
                    if !is_replayed {
                        check::replayed(ledger, id)?;
                    }
                    parts.try_for_each(|next| run.take(ledger, next))
                })?;
            } else {
                let next = course.next(ask.part, |since, keys| ledger.measured(since, keys));
                run.take(ledger, next)?;
            }
            is_replayed = true;
            let (n, stop) = (run.n, run.stop);
            observed += n;
            if stop == ObservationEnd::Look {
                record_look(ledger, signer, id)?;
            }
            let gate = check::known(ledger.state(), id)?.gate;
            let more = stop == ObservationEnd::Look && n > 0 && !gate.is_terminal();
            if !more || gate.n >= ask.through {
                return Ok((stop, observed));
            }
        }
    }
}

/// Observations up to a look, as they are recorded.
struct ObservationRun<'a> {
    end: u64,
    id: &'a ManifestId,
    n: u64,
    signer: &'a Signer,
    stop: ObservationEnd,
    watcher: &'a mut dyn Watcher,
}

impl ObservationRun<'_> {
    fn take(
        &mut self,
        ledger: &mut Ledger,
        next: Result<Next, ObserveError>,
    ) -> Result<(), SessionError> {
        let next = next.map_err(|error| unobserved(self.id, error))?;
        self.n += next.observed.len() as u64;
        self.stop = next.stop;
        if next.observed.is_empty() {
            return Ok(());
        }
        let record = ledger.state().fold::<Manifests>().by_id.get(self.id);
        let experiment = record.and_then(|record| record.experiment.clone());
        let command = |said| Command::new(said, experiment.clone());
        let commands: Vec<_> = next.observed.into_iter().map(command).collect();
        ledger.append_read(commands, self.signer, next.values)?;
        let done = check::known(ledger.state(), self.id)?.gate.n;
        self.watcher.progress(Work::Observing, done, self.end);
        Ok(())
    }
}

fn record_look(ledger: &mut Ledger, signer: &Signer, id: &ManifestId) -> Result<(), SessionError> {
    let gate = check::known(ledger.state(), id)?;
    let experiment = gate.gate.experiment.clone();
    let look = steps::look(gate).map_err(|error| GateError::untestable(id, error))?;
    ledger.append(&[Command::new(look, experiment)], signer)?;
    Ok(())
}
