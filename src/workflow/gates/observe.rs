//! Observing the next units of a gate: their recorded values, up to the unit after which its test ends.

use std::sync::mpsc;

use clover_event::id::ItemId;
use clover_event::id::StratumId;
use clover_event::payload::gate::GateObserved;
use clover_event::payload::gate::GateSource;
use clover_event::payload::gate::Reading;
use clover_event::payload::manifest::ArmRole;
use clover_event::payload::manifest::Manifest;
use clover_ground::digest::Digest;
use clover_ledger::LedgerError;
use clover_ledger::RecordedValues;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::gates;
use clover_projection::orders;
use clover_stats::eprocess;
use clover_stats::eprocess::Looks;
use rayon::prelude::*;

use crate::gates::design;
use crate::gates::design::Untestable;
use crate::gates::evidence;
use crate::gates::evidence::GateContext;
use crate::gates::steps;

/// Units observed at a time: one batch, one checkpoint. Nobody waits for one of them alone, and between batches the cores
/// that sign stand still: so more than others record at a time, as few as take some seconds.
pub const PART: u64 = 65_536;

/// Units of the first part of many: they are signed while the next are put together.
const FIRST_PART: u64 = 8_192;

/// Units past which it is worth to read on other threads and in a row, for which the index takes in what it lacks.
const LONG: u64 = 16_384;

/// Units of which values are looked for at once, at most, where many are still to come.
const AHEAD: u64 = 1 << 19;

/// Why observing went no further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObservationEnd {
    /// As many as were asked for, or as fit in one part.
    Asked,
    /// All exposed or all planned units are observed.
    Exhausted,
    /// The test says something after this unit, or looks are registered here.
    Look,
    /// The next unit lacks recorded values.
    Missing(ItemId),
    /// The next unit is none that the test may take, for this reason.
    Unfit(ItemId, String),
}

/// What came of the next unit.
enum UnitStep {
    /// The test ends with it, or looks are registered there.
    Ends,
    /// It is none that the test may take.
    Refused(String),
    /// There may be more.
    Taken,
}

/// The next observations of a gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Next {
    /// In order.
    pub observed: Vec<GateObserved>,
    /// Why no more.
    pub stop: ObservationEnd,
    /// The values that they were read from.
    pub values: RecordedValues,
}

/// Why nothing can be observed.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The test is none, or has ended.
    #[error("expected {}, found {}", .0.expected, .0.found)]
    Untestable(Untestable),
}

impl From<Untestable> for ObserveError {
    fn from(error: Untestable) -> Self {
        Self::Untestable(error)
    }
}

/// What to observe.
#[derive(Clone, Copy, Debug)]
pub struct ObservationRequest<'a> {
    /// The entries that list the order, as [`crate::gates::replay::Order::listed`]; none where nobody read them.
    pub listed: &'a [(u64, u64)],
    /// Whether a draw without a recorded value counts as the worst for the candidate.
    pub missing: bool,
    /// The order drawn.
    pub order: &'a [ItemId],
    /// Units of one part, at least 1.
    pub part: u64,
    /// Strata of the units of the order, where the test has a control variate; else empty.
    pub strata: &'a [StratumId],
    /// Observations after which to stop.
    pub through: u64,
}

/// The observations of a gate from where it stands, part by part, up to the first unit after which its test ends or a look
/// is registered. It runs ahead of what is recorded of them, and needs no state for that.
#[derive(Debug)]
pub struct ObservationCourse<'a> {
    /// Values that were found in a row, and the units up to which they were looked for.
    ahead: (RecordedValues, u64),
    ask: ObservationRequest<'a>,
    digest: Digest,
    /// Observations after which there are no more.
    end: u64,
    /// Natural keys of the values of units from that one on, [`ObservationCourse::stride`] of each.
    keys: (u64, Vec<Digest>),
    manifest: Manifest,
    n: u64,
    /// What the order that lists the units is known by.
    order: Option<Digest>,
    running: eprocess::Gate,
    /// No value that may be read was recorded before this entry.
    since: u64,
    sources: Vec<GateSource>,
    /// Values of one unit; 0 where the manifest names none.
    stride: usize,
}

impl<'a> ObservationCourse<'a> {
    /// From where a gate stands.
    ///
    /// # Errors
    /// [`Untestable`].
    pub fn new(of: GateContext<'_>, ask: ObservationRequest<'a>) -> Result<Self, Untestable> {
        let none = |what: &str| Untestable {
            expected: what.to_owned(),
            found: "none".to_owned(),
        };
        let version = of
            .record
            .in_force()
            .ok_or_else(|| none("a version in force"))?;
        let manifest = version.manifest.clone();
        let test = manifest.test.as_ref().ok_or_else(|| none("section test"))?;
        let (n, most) = (of.gate.n, test.n_max.value());
        let ended = of.gate.is_terminal() || n >= most;
        let looks = design::looks(test);
        let next_look = match &looks {
            Looks::At(at) => at.iter().copied().find(|look| *look > n),
            Looks::Every => None,
        };
        let end = ask.through.min(most).min(of.record.units);
        let end = end.min(next_look.unwrap_or(end));
        let end = if ended { n } else { end.max(n) };
        if usize::try_from(end).map_or(true, |end| end > ask.order.len()) {
            return Err(none("the units at these places of the order"));
        }
        let running = evidence::running(of, looks, false)?;
        let mut course = Self {
            ahead: (RecordedValues::default(), n),
            ask,
            digest: version.digest,
            end,
            keys: (n, Vec::new()),
            manifest,
            n,
            order: of.record.bound().map(|version| version.digest),
            running,
            since: of.record.exposed_seq(n + 1).unwrap_or(0),
            sources: of.gate.sources.clone(),
            stride: 0,
        };
        // What names a value is the same of every unit.
        let first = course.units(course.end).first();
        let named: Option<Vec<Digest>> = first.and_then(|unit| course.keys(unit).collect());
        course.stride = named.map_or(0, |keys| keys.len());
        Ok(course)
    }

    /// Whether there is more than one part of it or a long one, as far as is known before a value is read.
    pub fn is_long(&self) -> bool {
        self.end - self.n > self.ask.part.min(LONG)
    }

    /// The next part of at most so many units, whose values `read` finds by their natural keys as
    /// [`ledger::Ledger::measured`] does.
    ///
    /// # Errors
    /// [`ObserveError`].
    pub fn next(
        &mut self,
        part: u64,
        read: impl Fn(Option<u64>, &[Digest]) -> Result<RecordedValues, LedgerError>,
    ) -> Result<Next, ObserveError> {
        if self.is_long() && self.n >= self.ahead.1 {
            let to = self.end.min(self.n + AHEAD);
            self.gather(to);
            self.ahead = (read(Some(self.since), self.gathered(to))?, to);
        }
        let to = self.end.min(self.n + part.max(1));
        self.gather(to);
        let (units, keys) = (self.units(to), self.gathered(to));
        let found = &self.ahead.0;
        let values: Vec<_> = keys.par_iter().map(|key| found.get(key)).collect();
        let left = keys.iter().zip(&values);
        let left = left.filter_map(|(key, value)| value.is_none().then_some(*key));
        let left: Vec<Digest> = left.collect();
        let mut next = Next {
            observed: Vec::with_capacity(units.len()),
            stop: ObservationEnd::Asked,
            values: found.clone(),
        };
        let late = if left.is_empty() {
            RecordedValues::default()
        } else {
            read(None, &left)?
        };
        let said = |at: usize| {
            let of_unit = at * self.stride..(at + 1) * self.stride;
            self.readings(&keys[of_unit.clone()], &values[of_unit], &late)
        };
        let said: Vec<_> = (0..units.len()).into_par_iter().map(said).collect();
        // As the rule asks of each unit: for its place, then for its values.
        let asked = self.places(to).into_iter().enumerate();
        let asked = asked.flat_map(|(at, place)| {
            let of_unit = at * self.stride..(at + 1) * self.stride;
            let values = keys[of_unit.clone()].iter().zip(&values[of_unit]);
            let values = values.filter_map(|(key, value)| Some((*key, (*value)?)));
            let place = place.map(|(digest, seq)| (digest, (seq, 0)));
            place.into_iter().chain(values)
        });
        let asked = asked.map(|(digest, (seq, value))| (digest, seq, value));
        let asked = asked.collect();
        next.values = next.values.and(late).in_order(asked);
        for (unit, readings) in units.iter().zip(said) {
            let Some(readings) = readings else {
                next.stop = ObservationEnd::Missing(unit.clone());
                return Ok(next);
            };
            match self.push(unit, readings, &mut next)? {
                UnitStep::Ends => {
                    next.stop = ObservationEnd::Look;
                    return Ok(next);
                }
                UnitStep::Refused(why) => {
                    next.stop = ObservationEnd::Unfit(unit.clone(), why);
                    return Ok(next);
                }
                UnitStep::Taken => {}
            }
        }
        if to == self.end && to != self.ask.through {
            next.stop = ObservationEnd::Exhausted;
        }
        Ok(next)
    }
}

impl<'a> ObservationCourse<'a> {
    /// The units from the next one up to the `to`th.
    fn units(&self, to: u64) -> &'a [ItemId] {
        let place = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        &self.ask.order[place(self.n)..place(to)]
    }

    /// Makes sure that the keys of these units are there.
    fn gather(&mut self, to: u64) {
        let there = self.keys.0 + (self.keys.1.len() / self.stride.max(1)) as u64;
        if self.stride == 0 || there >= to {
            return;
        }
        let units = self.units(to);
        let mut all = vec![Digest([0; 32]); units.len() * self.stride];
        let each = all.par_chunks_mut(self.stride).zip(units);
        each.for_each(|(keys, unit)| {
            for (key, made) in keys.iter_mut().zip(self.keys(unit).flatten()) {
                *key = made;
            }
        });
        self.keys = (self.n, all);
    }

    /// What the next units are known by at their places, up to the `to`th, with the entries that list them there; nothing
    /// where nobody read those.
    fn places(&self, to: u64) -> Vec<Option<(Digest, u64)>> {
        let units = self.units(to).par_iter().enumerate();
        let placed = units.map(|(at, unit)| {
            let place = self.n + at as u64;
            let entry = self.ask.listed.partition_point(|(_, to)| *to <= place);
            let (seq, _) = self.ask.listed.get(entry)?;
            Some((orders::placed(self.order?, place, unit), *seq))
        });
        placed.collect()
    }

    /// Those of them from the next one on.
    fn gathered(&self, to: u64) -> &[Digest] {
        let place = |n: u64| {
            usize::try_from(n - self.keys.0)
                .unwrap_or(usize::MAX)
                .saturating_mul(self.stride)
        };
        self.keys.1.get(place(self.n)..place(to)).unwrap_or(&[])
    }

    /// Takes the next unit.
    fn push(
        &mut self,
        unit: &ItemId,
        readings: Vec<Reading>,
        next: &mut Next,
    ) -> Result<UnitStep, Untestable> {
        let deltas: Vec<i64> = readings.iter().map(|one| one.delta_micro.value()).collect();
        let (main, guardrails) = deltas.split_first().unwrap_or((&0, &[]));
        let unfit = |found: String| Untestable {
            expected: "a unit that the test may still take".to_owned(),
            found,
        };
        let t = Count::new(self.n + 1).ok_or_else(|| unfit("2^53 of them".to_owned()))?;
        let place = usize::try_from(self.n).unwrap_or(usize::MAX);
        let stratum = self.ask.strata.get(place);
        let test = self.manifest.test.as_ref();
        let known = stratum.and_then(|stratum| gates::stratum_place(test?, stratum));
        let absent = readings.first().map_or(0, gates::absent);
        let metric = self.manifest.metric.as_ref();
        let slack = metric.map_or(0, |metric| gates::slack(metric, absent));
        let pushed = self.running.push_within(known, (*main, slack), guardrails);
        let step = match pushed {
            Ok(step) => step,
            Err(error) => return Ok(UnitStep::Refused(error.to_string())),
        };
        self.n += 1;
        next.observed.push(GateObserved {
            digest: self.digest,
            gate: self.manifest.manifest.clone(),
            readings,
            stratum: stratum.cloned(),
            t,
            unit: unit.clone(),
        });
        let every = self.running.design().terms().looks == Looks::Every;
        let ends = step.verdict.is_terminal() || step.looked && !every;
        Ok(if ends {
            UnitStep::Ends
        } else {
            UnitStep::Taken
        })
    }

    /// Natural keys of a unit's values: by metric, of baseline and candidate, of each draw; `None` where the manifest names
    /// none.
    fn keys(&self, unit: &ItemId) -> impl Iterator<Item = Option<Digest>> {
        let of = |role: ArmRole| {
            let mut arms = self.manifest.arms.as_deref().unwrap_or_default().iter();
            arms.find(move |arm| arm.role == role)
        };
        let arms = [of(ArmRole::Baseline), of(ArmRole::Candidate)];
        let repeats = self.manifest.metric.as_ref();
        let repeats = repeats.map_or(0, |metric| metric.repeats.value());
        let sources = self.sources.iter();
        let sides = sources.flat_map(move |source| arms.map(|arm| (source, arm)));
        let draws =
            sides.flat_map(move |(source, arm)| (0..repeats).map(move |draw| (source, arm, draw)));
        draws.map(move |(source, arm, draw)| {
            gates::value_key(&self.manifest.experiment, source, arm?, (unit, draw))
        })
    }

    /// Readings from the values of each metric, those that are not there taken from `late`; `None` where a value is in neither
    /// and may not be missing.
    fn readings(
        &self,
        keys: &[Digest],
        values: &[Option<(u64, i64)>],
        late: &RecordedValues,
    ) -> Option<Vec<Reading>> {
        let metric = self.manifest.metric.as_ref().filter(|_| !keys.is_empty())?;
        let repeats = usize::try_from(metric.repeats.value()).ok()?;
        let values = keys.iter().zip(values);
        let values = values.map(|(key, value)| value.or_else(|| late.get(key)));
        let values = values.map(|found| found.and_then(|(_, value)| Micro::new(value)));
        let values: Vec<Option<Micro>> = values.collect();
        let sides = values
            .chunks((2 * repeats).max(1))
            .map(|of| of.split_at(repeats));
        let readings = sides.map(|(baseline, candidate)| {
            let whole = baseline.iter().chain(candidate).all(Option::is_some);
            let taken = self.ask.missing || whole;
            let reading = taken.then(|| steps::reading(metric, baseline, candidate));
            reading.flatten()
        });
        readings.collect()
    }
}

/// Gives the parts of a course to `take`. From the beginning on, whatever `take` does meanwhile, the next one is read on
/// another thread.
///
/// # Errors
/// What `take` returns.
pub fn ahead<E>(
    mut course: ObservationCourse<'_>,
    reading: clover_ledger::Reading,
    take: impl FnOnce(mpsc::IntoIter<Result<Next, ObserveError>>) -> Result<(), E>,
) -> Result<(), E> {
    std::thread::scope(|scope| {
        // Nothing is kept in between: a part is read while the one before is taken, and then waits.
        let (to_take, parts) = mpsc::sync_channel(0);
        scope.spawn(move || {
            let mut part = FIRST_PART.min(course.ask.part);
            loop {
                let next = course.next(part, |since, keys| reading.measured(since, keys));
                part = course.ask.part;
                let asked = next
                    .as_ref()
                    .is_ok_and(|next| next.stop == ObservationEnd::Asked);
                let more = asked && course.n < course.end;
                // Nobody takes any more only where what was taken failed; then that error counts.
                if to_take.send(next).is_err() || !more {
                    return;
                }
            }
        });
        take(parts.into_iter())
    })
}
