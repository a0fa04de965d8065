//! A gate's life read from the log again: its order, observations and looks, and the wealth after each unit.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use clover_event::Payload;
use clover_event::id::ItemId;
use clover_event::id::ManifestId;
use clover_event::id::StratumId;
use clover_event::payload::decision::GateContinued;
use clover_event::payload::decision::GateLooked;
use clover_event::payload::gate::GateObserved;
use clover_event::payload::gate::OrderListed;
use clover_event::payload::gate::UnitsListed;
use clover_event::payload::manifest::Manifest;
use clover_ground::digest::Digest;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_projection::gates;
use clover_projection::manifests::ManifestVersion;
use clover_projection::reader::LogReader;
use clover_stats::eprocess::CELLS;
use clover_stats::eprocess::Gate as Running;
use clover_stats::eprocess::LEVELS_MAX;
use clover_stats::eprocess::Looks;
use rayon::prelude::*;

use crate::gates::design;
use crate::gates::design::Untestable;
use crate::gates::evidence;
use crate::gates::evidence::GateContext;

/// Places of a path.
const POINTS: u64 = 60;
/// Values times places that the confidence sequence is drawn from.
const STEPS_MAX: u64 = 250_000;
/// Values that a stream keeps apart, cells beyond them included.
const VALUES_MAX: u64 = (LEVELS_MAX + CELLS) as u64;

/// What the log holds of one gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Life {
    /// The gate as its own entries make it.
    pub gate: Option<gates::Gate>,
    /// Whether the versions of its plan, and the terms of its family, are those of their entries.
    pub is_plan: bool,
    /// Looks with their entries.
    pub looks: Vec<(u64, GateLooked)>,
    /// Observations in order, with their entries.
    pub observed: Vec<(u64, GateObserved)>,
    /// Digest of the observations, chained again.
    pub state_digest: Digest,
}

/// Reads a gate's entries again, of a log of `size` entries.
///
/// # Errors
/// [`LedgerError`].
pub fn read(
    ledger: &Ledger,
    id: &ManifestId,
    of: GateContext<'_>,
    size: u64,
) -> Result<Life, LedgerError> {
    let mut again = gates::Gates::default();
    let mut life = Life {
        gate: None,
        is_plan: is_plan(ledger, of)?,
        looks: Vec::new(),
        observed: Vec::new(),
        state_digest: gates::state_of_none(of.gate.experiment.as_ref(), id),
    };
    // Every event of a gate names it.
    let named = format!("\"{id}\"");
    let entries = LogReader::below(ledger, size).since(of.gate.opened_seq);
    entries.naming(&named).each(|seq, event| {
        if concerns(&event.payload, id) {
            again.take(seq, event);
        }
        match &event.payload {
            Payload::GateObserved(said) if said.gate == *id => {
                life.state_digest = gates::state_after(life.state_digest, said);
                life.observed.push((seq, (**said).clone()));
            }
            Payload::GateLooked(said) if said.gate == *id => {
                life.looks.push((seq, (**said).clone()));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    life.gate = again.by_id.remove(id);
    Ok(life)
}

/// Whether the versions of a gate's plan, and the terms of its family, stand so in the entries that they are said to be.
fn is_plan(ledger: &Ledger, of: GateContext<'_>) -> Result<bool, LedgerError> {
    let entry = |seq| -> Result<Option<Payload>, LedgerError> {
        Ok(ledger.entry(seq)?.map(|read| read.event.payload))
    };
    for version in &of.record.versions {
        let (logged, digest) = match entry(version.seq)? {
            Some(Payload::ManifestRegistered(said)) => (said.manifest, said.digest),
            Some(Payload::ManifestAmended(said)) => (said.manifest, said.digest),
            _ => return Ok(false),
        };
        if *logged != version.manifest || digest != version.digest {
            return Ok(false);
        }
    }
    let Some(family) = of.family else {
        return Ok(true);
    };
    let Some(Payload::FamilyOpened(said)) = entry(family.opened_seq)? else {
        return Ok(false);
    };
    let gamma = said.gamma_micro.iter().flatten();
    Ok(said.alpha_micro.value() == family.alpha
        && said.method == family.method
        && said.members_max.value() == family.members_max
        && gamma
            .map(|share| share.value())
            .eq(family.gamma.iter().copied()))
}

/// Whether an event makes or moves this gate, or goes on from it.
fn concerns(payload: &Payload, id: &ManifestId) -> bool {
    let continued = payload.said::<GateContinued>();
    payload.gate() == Some(id) || continued.is_some_and(|said| said.parent == *id)
}

/// Units in the order drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// The stratum of each, where the test has a control variate; else empty.
    pub strata: Vec<StratumId>,
    /// In order.
    pub units: Vec<ItemId>,
    /// Of each entry that lists some of them: its position, and how many are listed with it and before.
    pub listed: Vec<(u64, u64)>,
}

/// The order of a version as far as entries below `to` list it, with the strata of its units where these count.
///
/// # Errors
/// [`LedgerError`].
pub fn order(ledger: &Ledger, bound: &ManifestVersion, to: u64) -> Result<Order, LedgerError> {
    let mut order = Order::default();
    let (digest, from) = (bound.digest, bound.seq);
    // Every part of an order names the version.
    let named = format!("\"{digest}\"");
    let entries = LogReader::below(ledger, to).since(from).naming(&named);
    for listed in entries.all::<OrderListed>(|said| said.digest == digest)? {
        order.units.extend(listed.said.units);
        order.listed.push((listed.seq, order.units.len() as u64));
    }
    let test = bound.manifest.test.as_ref();
    if test.is_some_and(|test| test.control_variate.is_some()) {
        let strata = strata(ledger, &bound.manifest, to)?;
        let of = order.units.iter().map(|unit| strata.get(unit).cloned());
        // A unit without its stratum stands in no order that was drawn.
        order.strata = of.collect::<Option<_>>().unwrap_or_default();
    }
    Ok(order)
}

/// Strata by unit, as the confirm set that a manifest binds was listed: before it or after.
fn strata(
    ledger: &Ledger,
    manifest: &Manifest,
    to: u64,
) -> Result<BTreeMap<ItemId, StratumId>, LedgerError> {
    let mut found = BTreeMap::new();
    let Some(data) = &manifest.data else {
        return Ok(found);
    };
    let named = data.confirm_root.0.to_base64();
    let entries = LogReader::below(ledger, to).of(&manifest.experiment);
    let entries = entries.naming(&named);
    for listed in entries.all::<UnitsListed>(|said| said.confirm_root == data.confirm_root)? {
        let strata = listed.said.strata.into_iter().flatten();
        found.extend(listed.said.units.into_iter().zip(strata));
    }
    Ok(found)
}

/// Where a gate stood after some of its units.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// The confidence sequence: units, and both ends in millionths, as looks recorded it or would have recorded it there. At
    /// registered looks alone, where the plan has some.
    pub interval: Vec<(u64, i64, i64)>,
    /// Units, and log wealth of the claim.
    pub wealth: Vec<(u64, f64)>,
}

/// The path of a gate, first to last, at most 60 places beside its recorded looks.
///
/// # Errors
/// [`Untestable`].
pub fn path(of: GateContext<'_>, life: &Life) -> Result<Path, Untestable> {
    let none = || Untestable {
        expected: "a version in force".to_owned(),
        found: "none".to_owned(),
    };
    let manifest = &of.record.in_force().ok_or_else(none)?.manifest;
    let carried = of.gate.carried.as_ref();
    let n = life.observed.len() as u64;
    let last = Looks::At(vec![n.max(1)]);
    let design = design::of(manifest, &of.gate.test, of.family, carried, last)?;
    let mut running = Running::open(design);
    let step = n.div_ceil(POINTS).max(1);
    let every = of.gate.test.look_at.is_none();
    // Each place is a pass over all units before it without replacement, else over all values.
    let pass = if of.gate.test.without_replacement {
        n
    } else {
        n.min(VALUES_MAX)
    };
    let apart = step * (n.saturating_mul(pass) / STEPS_MAX).div_ceil(step).max(1);
    let mut looks = life.looks.iter().map(|(_, look)| look).peekable();
    let mut recorded: Option<&GateLooked> = None;
    let ends = |look: &GateLooked| (look.cs_lo_micro.value(), look.cs_hi_micro.value());
    let mut wealth = Vec::new();
    let mut places = Vec::new();
    for (t, (_, said)) in (1..).zip(&life.observed) {
        take(&mut running, manifest, of, said)?;
        if t % step == 0 || t == n {
            let claim = running.look().claim.map_or(0.0, |claim| claim.ln_wealth);
            wealth.push((t, evidence::recorded(claim).value()));
        }
        let before = recorded;
        while let Some(look) = looks.next_if(|look| look.n.value() <= t) {
            recorded = Some(look);
        }
        let within = recorded.map_or((i64::MIN, i64::MAX), ends);
        if recorded != before {
            places.push((t, within, None));
        } else if every && (t % apart == 0 || t == n) {
            places.push((t, within, Some(running.clone())));
        }
    }
    let interval = |(t, (least, most), there): (u64, (i64, i64), Option<Running>)| {
        let Some(mut there) = there else {
            return Some((t, least, most));
        };
        there.settle();
        let now = there.look().interval?;
        Some((t, now.low.max(least), now.high.min(most)))
    };
    let interval = places.into_par_iter().filter_map(interval).collect();
    Ok(Path { interval, wealth })
}

/// Takes an observation again.
fn take(
    running: &mut Running,
    manifest: &Manifest,
    of: GateContext<'_>,
    said: &GateObserved,
) -> Result<(), Untestable> {
    let readings = said.readings.iter();
    let deltas: Vec<i64> = readings.map(|one| one.delta_micro.value()).collect();
    let (main, guardrails) = deltas.split_first().unwrap_or((&0, &[]));
    let absent = said.readings.first().map_or(0, gates::absent);
    let metric = manifest.metric.as_ref();
    let slack = metric.map_or(0, |metric| gates::slack(metric, absent));
    let pushed = running.push_within(of.gate.stratum_of(said), (*main, slack), guardrails);
    pushed.map(|_| ()).map_err(|error| Untestable {
        expected: "observations within the registered terms".to_owned(),
        found: error.to_string(),
    })
}
