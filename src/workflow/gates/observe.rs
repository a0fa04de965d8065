//! Observing the next units of a gate: their recorded values, up to the unit after which its test ends.

use rayon::prelude::*;

use crate::event::id::ItemId;
use crate::event::payload::gate::GateObserved;
use crate::event::payload::gate::Reading;
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
    let places =
        usize::try_from(n).unwrap_or(usize::MAX)..usize::try_from(last).unwrap_or(usize::MAX);
    let units = ask
        .order
        .get(places)
        .ok_or_else(|| none("the units at these places of the order"))?;
    let values = values(ledger, manifest, of, units)?;
    let mut observed = Vec::new();
    for ((t, unit), values) in (n + 1..).zip(units).zip(values) {
        let readings = values.and_then(|values| readings(manifest, values, ask.missing));
        let Some(said) = readings.and_then(|said| steps::observe(of, t, unit.clone(), said)) else {
            let stop = Stop::Missing(unit.clone());
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

/// Recorded values of one metric of one unit: of each arm, the draws in order.
type Values = [Vec<Option<Micro>>; 2];

/// The recorded values of units, by unit and metric; a unit is `None` where the gate names no place for them.
fn values(
    ledger: &Ledger,
    manifest: &Manifest,
    of: Known<'_>,
    units: &[ItemId],
) -> Result<Vec<Option<Vec<Values>>>, LedgerError> {
    let Some((arms, repeats)) = arms(manifest) else {
        return Ok(vec![None; units.len()]);
    };
    let keys_of = |unit: &ItemId| {
        let each = of
            .gate
            .sources
            .iter()
            .flat_map(|source| arms.map(|arm| (source, arm)));
        let draws =
            each.flat_map(|(source, arm)| (0..repeats).map(move |draw| (source, arm, draw)));
        let key =
            |(source, arm, draw)| gates::value_key(&manifest.experiment, source, arm, (unit, draw));
        draws.map(key).collect::<Option<Vec<Digest>>>()
    };
    let keys: Vec<_> = units.par_iter().map(keys_of).collect();
    let asked: Vec<Digest> = keys.iter().flatten().flatten().copied().collect();
    let mut found = ledger.measured(&asked)?.into_iter();
    let repeats = usize::try_from(repeats).unwrap_or(usize::MAX);
    let of_unit = |keys: Option<Vec<Digest>>| {
        let of_unit: Vec<_> = found.by_ref().take(keys?.len()).collect();
        let arm = |draws: &[Option<i64>]| draws.iter().map(|value| Micro::new((*value)?)).collect();
        let metrics = of_unit.chunks(2 * repeats);
        Some(
            metrics
                .map(|two| [arm(&two[..repeats]), arm(&two[repeats..])])
                .collect(),
        )
    };
    Ok(keys.into_iter().map(of_unit).collect())
}

/// Baseline and candidate, and the draws of each.
fn arms(manifest: &Manifest) -> Option<([&Arm; 2], u64)> {
    let of = |role: ArmRole| manifest.arms.as_ref()?.iter().find(|arm| arm.role == role);
    let arms = [of(ArmRole::Baseline)?, of(ArmRole::Candidate)?];
    Some((arms, manifest.metric.as_ref()?.repeats.value()))
}

/// Readings from the values of each metric; `None` where a value is not there and may not be missing.
fn readings(manifest: &Manifest, values: Vec<Values>, missing: bool) -> Option<Vec<Reading>> {
    let metric = manifest.metric.as_ref()?;
    let of_metric = |[baseline, candidate]: Values| {
        let whole = baseline.iter().chain(&candidate).all(Option::is_some);
        (missing || whole)
            .then(|| steps::reading(metric, &baseline, &candidate))
            .flatten()
    };
    values.into_iter().map(of_metric).collect()
}
