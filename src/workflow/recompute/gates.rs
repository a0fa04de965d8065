//! Gates, computed again: the order that a checkpoint drew, the opening, looks, ends and continuations from the recorded
//! observations, the closing of families, and estimates beside a gate from the labels before them.

use clover_event::Event;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::Root;
use clover_event::payload::decision::FamilyClosed;
use clover_event::payload::decision::GateEstimated;
use clover_event::payload::decision::Outcome;
use clover_event::payload::gate::GateOpened;
use clover_event::payload::gate::OrderListed;
use clover_event::payload::gate::UnitsListed;
use clover_ground::digest::Digest;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_ledger::State;
use clover_projection::manifests::Manifests;
use clover_projection::orders;
use clover_projection::reader::LogReader;

use crate::gates::design::Untestable;
use crate::gates::estimate;
use crate::gates::estimate::EstimateError;
use crate::gates::evidence;
use crate::gates::evidence::GateContext;
use crate::gates::family;
use crate::gates::steps;
use crate::recompute::Context;
use crate::recompute::RecomputeError;
use crate::recompute::estimates;
use crate::recompute::iterations::gone;
use crate::recompute::said_in;

impl From<Untestable> for RecomputeError {
    fn from(wrong: Untestable) -> Self {
        let Untestable { expected, found } = wrong;
        Self::Missing(format!("expected {expected}, found {found}"))
    }
}

pub(super) fn estimated(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &GateEstimated = said_in(event)?;
    let experiment = estimates::experiment(event)?;
    let found = estimate::estimate(context.history, seq, experiment, said);
    Ok(found
        .map_err(|error| match error {
            EstimateError::Ledger(error) => RecomputeError::Ledger(error),
            other => RecomputeError::Missing(other.to_string()),
        })?
        .into())
}

/// An order: the version whose units it orders, and all its events.
#[derive(Debug)]
pub(super) struct CachedOrder {
    digest: Digest,
    events: Vec<Payload>,
}

/// Units that were listed by name under a root before an entry, ascending.
fn units(
    history: &dyn History,
    seq: u64,
    (experiment, root): (&ExperimentId, Root),
) -> Result<Vec<ItemId>, LedgerError> {
    let entries = LogReader::below(history, seq).of(experiment);
    let listed = entries.all::<UnitsListed>(|said| said.confirm_root == root)?;
    Ok(listed.into_iter().flat_map(|of| of.said.units).collect())
}

/// The order of a version's units as the checkpoint gives it that comes first after the version came into force.
fn drawn(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
    digest: Digest,
) -> Result<Vec<Payload>, RecomputeError> {
    let state = context.state_at(seq)?;
    let of = state.fold::<Manifests>().of_digest(digest);
    let bound = of.and_then(|(_, record)| record.version(digest));
    let bound = bound.ok_or_else(|| gone("no such version of a manifest before it"))?;
    let beacon = orders::beacon(state, bound, event.header.seen);
    let beacon = beacon.ok_or_else(|| gone("no checkpoint after its manifest came into force"))?;
    let data = bound.manifest.data.as_ref();
    let root = data.ok_or_else(|| gone("its manifest binds no units"))?;
    let (root, bound) = (root.confirm_root, bound.clone());
    let units = units(context.history, seq, (estimates::experiment(event)?, root))?;
    steps::draw(&bound, beacon, &units).ok_or_else(|| gone("its manifest binds no units"))
}

/// Part of an order, or its end.
pub(super) fn order(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let digest = match &event.payload {
        Payload::OrderListed(said) => said.digest,
        Payload::OrderDrawn(said) => said.digest,
        _ => return Err(gone("it is of another kind")),
    };
    if context.shared.order.as_ref().map(|of| of.digest) != Some(digest) {
        let events = drawn(context, seq, event, digest)?;
        context.shared.order = Some(CachedOrder { digest, events });
    }
    let events = context.shared.order.iter().flat_map(|of| &of.events);
    let again = match &event.payload {
        Payload::OrderListed(said) => listed(events, said).map(Payload::from),
        _ => events.last().cloned(),
    };
    again.ok_or_else(|| gone("an order of its units has no such part"))
}

/// As many units as an event lists, from where it begins.
fn listed<'p>(
    events: impl Iterator<Item = &'p Payload>,
    said: &OrderListed,
) -> Option<OrderListed> {
    let parts = events.filter_map(|payload| match payload {
        Payload::OrderListed(part) => Some(&part.units),
        _ => None,
    });
    let units: Vec<&ItemId> = parts.flatten().collect();
    let first = usize::try_from(said.first.value()).ok()?;
    let part = units.get(first..first.checked_add(said.units.len())?)?;
    Some(OrderListed {
        digest: said.digest,
        first: said.first,
        units: part.iter().map(|unit| (*unit).clone()).collect(),
    })
}

/// The gate that an event moves, as it stood before.
fn known<'s>(state: &'s State, payload: &Payload) -> Result<GateContext<'s>, RecomputeError> {
    let id = payload.gate();
    let id = id.ok_or_else(|| gone("it is of another kind"))?;
    evidence::known(state, id).ok_or_else(|| gone("its gate was not opened before it"))
}

/// The registered test; which scores and labels it reads is taken as it was said.
pub(super) fn opened(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &GateOpened = said_in(event)?;
    let manifests = context.state_at(seq)?.fold::<Manifests>();
    let version = manifests.by_id.get(&said.gate);
    let version = version.and_then(|record| record.in_force());
    let again = version.and_then(|version| steps::open(version, said.sources.clone()));
    Ok(again
        .ok_or_else(|| gone("no manifest of a gate in force before it"))?
        .into())
}

/// A look at the observations before it.
pub(super) fn looked(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let gate = known(context.state_at(seq)?, &event.payload)?;
    Ok(steps::look(gate)?.into())
}

/// The end that the last look calls for, or a newer manifest.
pub(super) fn decided(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    if let Payload::GateDecided(said) = &event.payload
        && said.outcome == Outcome::Void
    {
        return Err(gone(
            "a sealed plan past its day ended it, which the rule decision judges",
        ));
    }
    let gate = known(context.state_at(seq)?, &event.payload)?;
    let again = steps::decide(gate, false);
    Ok(again
        .ok_or_else(|| gone("no look of its gate calls for an end"))?
        .into())
}

/// The wealth that the parent's last look gives.
pub(super) fn continued(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let state = context.state_at(seq)?;
    let again = steps::proceed(state, known(state, &event.payload)?);
    Ok(again
        .ok_or_else(|| gone("no gate with a look that it could go on from"))?
        .into())
}

/// What a family's procedure makes of its members' last looks.
pub(super) fn closed(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &FamilyClosed = said_in(event)?;
    let again = family::closing(context.state_at(seq)?, &said.family);
    Ok(again
        .ok_or_else(|| gone("its family was not opened before it"))?
        .into())
}
