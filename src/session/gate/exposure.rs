//! Exposures: units of a confirm set become readable to those who score them.

use clover_event::id::ItemId;
use clover_event::id::ManifestId;
use clover_event::payload::manifest::Template;
use clover_event::payload::prereg::ExposureOpened;
use clover_ledger::Ledger;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;
use clover_num::Count;
use clover_projection::gates::Gates;
use clover_projection::manifests::ManifestRecord;
use clover_projection::manifests::Manifests;
use clover_workflow::gates::replay;

use crate::error::SessionError;
use crate::gate::check;
use crate::gate::error::GateError;
use crate::gate::gate_step::GateStep;
use crate::ports::Ports;

/// What an exposure leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExposureTerms {
    /// Exposures that the manifest allows.
    pub cap: u64,
    /// Which of them this is, from 1.
    pub exposure: u64,
    /// Units that are exposed by then.
    pub through: u64,
    /// Units that are not exposed by then.
    pub closed: u64,
    /// Whether there are such units, and no exposure is left for them.
    pub is_last: bool,
}

/// The exposure of the next units of an order, up to the Nth; of all where `through` is absent.
///
/// # Errors
/// [`GateError`]: no manifest or confirm set, a gate that is not open, as many units exposed already.
pub fn open(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    (id, through): (&ManifestId, Option<u64>),
) -> Result<GateStep<ExposureTerms>, SessionError> {
    let record = ledger.state().fold::<Manifests>().by_id.get(id);
    let record = record.ok_or_else(|| GateError::NoManifest(id.clone()))?;
    let version = record.in_force();
    let version = version.and_then(|one| Some((one, one.manifest.data.as_ref()?)));
    let (version, data) = version.ok_or_else(|| GateError::NoConfirmSetInForce(id.clone()))?;
    let through = through.unwrap_or(data.n_units.value());
    let is_open = ledger.state().fold::<Gates>().by_id.contains_key(id);
    if version.manifest.template == Template::Gate && !is_open {
        return Err(GateError::NotOpened(id.clone()).into());
    }
    if through <= record.units {
        let (gate, units) = (id.clone(), record.units);
        return Err(GateError::AlreadyExposed { gate, units }.into());
    }
    let through_unit = last_of(ledger, record, id, through)?;
    let count = |value: u64| Count::new(value).ok_or(GateError::TooManyUnits);
    let opened = ExposureOpened {
        confirm_root: data.confirm_root,
        digest: version.digest,
        exposure: count(record.exposures + 1)?,
        first_unit: count(record.units)?,
        last_unit: count(through - 1)?,
        through: through_unit,
    };
    let cap = data.exposure_cap.value();
    let closed = data.n_units.value().saturating_sub(through);
    let terms = ExposureTerms {
        cap,
        exposure: record.exposures + 1,
        through,
        closed,
        is_last: closed > 0 && record.exposures + 1 >= cap,
    };
    let experiment = version.manifest.experiment.clone();
    GateStep::new(ports, ledger, (opened, Some(experiment)), terms)
}

/// The name of the last of so many units of a gate's order, where exposures name it.
fn last_of(
    ledger: &Ledger,
    record: &ManifestRecord,
    id: &ManifestId,
    through: u64,
) -> Result<Option<ItemId>, SessionError> {
    let gate = ledger.state().fold::<Gates>().by_id.get(id);
    let Some((gate, bound)) = gate.zip(record.bound()) else {
        return Ok(None);
    };
    if !ledger.state().asks(Question::ScoredInOrder) {
        return Ok(None);
    }
    let order = replay::order(ledger, bound, gate.opened_seq)?;
    let at = usize::try_from(through - 1).unwrap_or(usize::MAX);
    Ok(order.units.get(at).cloned())
}

/// The units of a gate that are exposed, in the order drawn.
///
/// # Errors
/// [`GateError::NotOpen`] and [`GateError::NothingExposed`].
pub fn list(ledger: &Ledger, state: &State, id: &ManifestId) -> Result<Vec<ItemId>, SessionError> {
    let of = check::known(state, id)?;
    let bound = of.record.bound().filter(|_| of.record.units > 0);
    let bound = bound.ok_or_else(|| GateError::NothingExposed(id.clone()))?;
    let mut units = replay::order(ledger, bound, of.gate.opened_seq)?.units;
    units.truncate(usize::try_from(of.record.units).unwrap_or(usize::MAX));
    Ok(units)
}
