//! Observing the next units of a gate: their recorded values, up to the unit after which its test ends.

use crate::event::id::ExperimentId;
use crate::event::id::ItemId;
use crate::event::payload::gate::GateObserved;
use crate::event::payload::gate::GateSource;
use crate::event::payload::manifest::Arm;
use crate::event::payload::manifest::ArmRole;
use crate::event::payload::manifest::Manifest;
use crate::ground::digest::Digest;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::num::Micro;
use crate::projection::gates;
use crate::stats::eprocess::Looks;
use crate::workflow::gates::design;
use crate::workflow::gates::design::Untestable;
use crate::workflow::gates::evidence;
use crate::workflow::gates::evidence::Known;
use crate::workflow::gates::steps;

/// Units observed at a time: one batch, one checkpoint.
pub const PART: u64 = 10_000;

/// Why observing went no further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// As many as were asked for, or as fit in one batch.
    Asked,
    /// All exposed or all planned units are observed.
    Exhausted,
    /// The test says something after this unit, or looks are registered here.
    Look,
    /// The next unit lacks recorded values.
    Missing(ItemId),
}

/// The next observations of a gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Next {
    /// In order.
    pub observed: Vec<GateObserved>,
    /// Why no more.
    pub stop: Stop,
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
pub struct Ask<'a> {
    /// Whether a draw without a recorded value counts as the worst for the candidate.
    pub missing: bool,
    /// The order drawn.
    pub order: &'a [ItemId],
    /// Observations after which to stop.
    pub through: u64,
}

/// Looks that a test may have after `from` observations, at most [`PART`] of them.
fn looks_after(registered: &Looks, from: u64, most: u64) -> Looks {
    let to = most.min(from + PART);
    match registered {
        Looks::Every => Looks::At((from + 1..=to.max(from + 1)).collect()),
        Looks::At(at) => {
            let later: Vec<u64> = at.iter().copied().filter(|n| *n > from).collect();
            Looks::At(if later.is_empty() { vec![most] } else { later })
        }
    }
}

/// Reads the next units' recorded values, up to the first after which the test ends or a look is registered.
///
/// # Errors
/// [`ObserveError`].
pub fn next(ledger: &Ledger, of: Known<'_>, ask: Ask<'_>) -> Result<Next, ObserveError> {
    let none = |what: &str| Untestable {
        expected: what.to_owned(),
        found: "none".to_owned(),
    };
    let version = of
        .record
        .in_force()
        .ok_or_else(|| none("a version in force"))?;
    let manifest = &version.manifest;
    let test = manifest.test.as_ref().ok_or_else(|| none("section test"))?;
    let (n, most) = (of.gate.n, test.n_max.value());
    if of.gate.is_terminal() || n >= most {
        return Ok(Next {
            observed: Vec::new(),
            stop: Stop::Exhausted,
        });
    }
    let registered = design::looks(test);
    let every = registered == Looks::Every;
    let looks = looks_after(&registered, n, most);
    let mut running = evidence::running(of, looks, false)?;
    let last = ask
        .through
        .min(most)
        .min(of.record.units)
        .min(n.saturating_add(PART));
    let mut observed = Vec::new();
    for t in n + 1..=last {
        let place = usize::try_from(t - 1).ok().and_then(|at| ask.order.get(at));
        let unit = place
            .ok_or_else(|| none("the unit at this place of the order"))?
            .clone();
        let Some(said) = observe(ledger, manifest, of, (t, &unit), ask.missing)? else {
            let stop = Stop::Missing(unit);
            return Ok(Next { observed, stop });
        };
        let deltas: Vec<i64> = said
            .readings
            .iter()
            .map(|one| one.delta_micro.value())
            .collect();
        let (main, guardrails) = deltas.split_first().unwrap_or((&0, &[]));
        let step = running
            .push_all(*main, guardrails)
            .map_err(|error| Untestable {
                expected: "a unit that the test may still take".to_owned(),
                found: error.to_string(),
            })?;
        observed.push(said);
        if step.verdict.is_terminal() || step.looked && !every {
            let stop = Stop::Look;
            return Ok(Next { observed, stop });
        }
    }
    let asked = last == ask.through || last == n.saturating_add(PART);
    let stop = if asked { Stop::Asked } else { Stop::Exhausted };
    Ok(Next { observed, stop })
}

fn observe(
    ledger: &Ledger,
    manifest: &Manifest,
    of: Known<'_>,
    (t, unit): (u64, &ItemId),
    missing: bool,
) -> Result<Option<GateObserved>, ObserveError> {
    let (Some(metric), Some(arms)) = (&manifest.metric, &manifest.arms) else {
        return Ok(None);
    };
    let repeats = metric.repeats.value();
    let mut readings = Vec::with_capacity(of.gate.sources.len());
    for source in &of.gate.sources {
        let mut of_arm = [Vec::new(), Vec::new()];
        for (at, role) in [ArmRole::Baseline, ArmRole::Candidate]
            .into_iter()
            .enumerate()
        {
            let Some(arm) = arms.iter().find(|arm| arm.role == role) else {
                return Ok(None);
            };
            for draw in 0..repeats {
                let value = value(ledger, &manifest.experiment, source, arm, (unit, draw))?;
                if value.is_none() && !missing {
                    return Ok(None);
                }
                of_arm[at].push(value);
            }
        }
        let [baseline, candidate] = of_arm;
        let Some(reading) = steps::reading(metric, &baseline, &candidate) else {
            return Ok(None);
        };
        readings.push(reading);
    }
    Ok(steps::observe(of, t, unit.clone(), readings))
}

/// The recorded value of a draw.
fn value(
    ledger: &Ledger,
    experiment: &ExperimentId,
    source: &GateSource,
    arm: &Arm,
    draw: (&ItemId, u64),
) -> Result<Option<Micro>, LedgerError> {
    let Some(key) = gates::value_key(experiment, source, arm, draw) else {
        return Ok(None);
    };
    let key: Digest = key;
    let Some(seq) = ledger.giver(&key)? else {
        return Ok(None);
    };
    let read = ledger.entry(seq)?;
    let read = read.filter(|read| read.event.natural_key() == Some(key));
    let measured = read.and_then(|read| read.event.payload.measured());
    Ok(measured.and_then(Micro::new))
}
