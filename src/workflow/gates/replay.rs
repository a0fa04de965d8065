//! A gate's life read from the log again: its order, observations and looks, and the wealth after each unit.

use std::collections::BTreeMap;

use crate::event::Payload;
use crate::event::id::ItemId;
use crate::event::id::ManifestId;
use crate::event::id::StratumId;
use crate::event::payload::decision::GateLooked;
use crate::event::payload::gate::GateObserved;
use crate::event::payload::manifest::Manifest;
use crate::ground::digest::Digest;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::projection::gates;
use crate::projection::manifests::Version;
use crate::stats::eprocess::Gate as Running;
use crate::stats::eprocess::Looks;
use crate::workflow::gates::design;
use crate::workflow::gates::design::Untestable;
use crate::workflow::gates::evidence::Known;

/// Points of a wealth path.
const POINTS: u64 = 60;

/// What the log holds of one gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Life {
    /// The gate as its own entries make it.
    pub gate: Option<gates::Gate>,
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
    of: Known<'_>,
    size: u64,
) -> Result<Life, LedgerError> {
    let mut again = gates::Gates::default();
    let mut life = Life {
        gate: None,
        looks: Vec::new(),
        observed: Vec::new(),
        state_digest: gates::state_of_none(of.gate.experiment.as_ref(), id),
    };
    // Every event of a gate names it.
    let named = format!("\"{id}\"");
    ledger.events_with::<LedgerError>(of.gate.opened_seq, size, &named, |seq, event| {
        if concerns(&event.payload, id) {
            again.take(seq, &event);
        }
        match event.payload {
            Payload::GateObserved(said) if said.gate == *id => {
                life.state_digest = gates::state_after(life.state_digest, &said);
                life.observed.push((seq, *said));
            }
            Payload::GateLooked(said) if said.gate == *id => life.looks.push((seq, *said)),
            _ => {}
        }
        Ok(())
    })?;
    life.gate = again.by_id.remove(id);
    Ok(life)
}

/// Whether an event makes or moves this gate.
fn concerns(payload: &Payload, id: &ManifestId) -> bool {
    match payload {
        Payload::GateOpened(said) => said.gate == *id,
        Payload::GateObserved(said) => said.gate == *id,
        Payload::GateLooked(said) => said.gate == *id,
        Payload::GateDecided(said) => said.gate == *id,
        Payload::GateEstimated(said) => said.gate == *id,
        Payload::GateContinued(said) => said.gate == *id || said.parent == *id,
        _ => false,
    }
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
pub fn order(ledger: &Ledger, bound: &Version, to: u64) -> Result<Order, LedgerError> {
    let mut order = Order::default();
    let (digest, from) = (bound.digest, bound.seq);
    // Every part of an order names the version.
    let named = format!("\"{digest}\"");
    ledger.events_with::<LedgerError>(from, to, &named, |seq, event| {
        if let Payload::OrderListed(said) = event.payload
            && said.digest == digest
        {
            order.units.extend(said.units);
            order.listed.push((seq, order.units.len() as u64));
        }
        Ok(())
    })?;
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
    ledger.events_with::<LedgerError>(0, to, &named, |_, event| {
        if event.header.experiment.as_ref() == Some(&manifest.experiment)
            && let Payload::UnitsListed(said) = event.payload
            && said.confirm_root == data.confirm_root
        {
            let strata = said.strata.into_iter().flatten();
            found.extend(said.units.into_iter().zip(strata));
        }
        Ok(())
    })?;
    Ok(found)
}

/// Log wealth of the claim after some of the units, first to last, at most 60 of them.
///
/// # Errors
/// [`Untestable`].
pub fn path(of: Known<'_>, life: &Life) -> Result<Vec<(u64, f64)>, Untestable> {
    let none = || Untestable {
        expected: "a version in force".to_owned(),
        found: "none".to_owned(),
    };
    let manifest = &of.record.in_force().ok_or_else(none)?.manifest;
    let carried = of.gate.carried.as_ref();
    let n = life.observed.len() as u64;
    let last = Looks::At(vec![n.max(1)]);
    let design = design::of(manifest, &of.gate.test, of.family, carried, last)?;
    let mut running = Running::verdicts_only(design);
    let step = n.div_ceil(POINTS).max(1);
    let mut found = Vec::new();
    for (t, (_, said)) in (1..).zip(&life.observed) {
        let deltas: Vec<i64> = said
            .readings
            .iter()
            .map(|one| one.delta_micro.value())
            .collect();
        let (main, guardrails) = deltas.split_first().unwrap_or((&0, &[]));
        let absent = said.readings.first().map_or(0, gates::absent);
        let slack = manifest
            .metric
            .as_ref()
            .map_or(0, |metric| gates::slack(metric, absent));
        running
            .push_within(of.gate.stratum_of(said), (*main, slack), guardrails)
            .map_err(|error| Untestable {
                expected: "observations within the registered terms".to_owned(),
                found: error.to_string(),
            })?;
        if t % step == 0 || t == n {
            let claim = running.look().claim.map_or(0.0, |claim| claim.ln_wealth);
            found.push((t, claim));
        }
    }
    Ok(found)
}
