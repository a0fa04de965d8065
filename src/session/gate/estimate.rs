//! Estimates beside a decision: units drawn for labels once it stands, and what their labels say.

use clover_event::id::DesignId;
use clover_event::id::ItemId;
use clover_event::id::ManifestId;
use clover_event::payload::decision::GateEstimated;
use clover_event::payload::gate::DrawnFrom;
use clover_ground::digest::Digest;
use clover_ledger::Ledger;
use clover_ledger::State;
use clover_projection::gates::estimated;
use clover_workflow::gates::estimate;
use clover_workflow::gates::estimate::EstimateError;
use clover_workflow::gates::replay;
use clover_workflow::gates::steps;

use crate::append;
use crate::error::SessionError;
use crate::gate::check;
use crate::gate::error::GateError;
use crate::gate::gate_step::GateStep;
use crate::ports::Ports;

/// Units of a decided gate that are drawn for labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelSample {
    /// The checkpoint that the draw rests on.
    pub beacon: DrawnFrom,
    /// The seed that follows from it.
    pub seed: Digest,
    /// The units, in the order observed.
    pub units: Vec<ItemId>,
}

/// What labels of a design say beside a decided gate: of its first units up to `through`, else of all that were observed.
///
/// # Errors
/// [`GateError::Undrawn`] and [`GateError::Estimate`].
pub fn estimate(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    id: &ManifestId,
    (design, through): (DesignId, Option<u64>),
) -> Result<GateStep<GateEstimated>, SessionError> {
    let undrawn = || GateError::Undrawn(id.clone());
    let of = check::known(ledger.state(), id)?;
    let n = through.unwrap_or(of.gate.n);
    let when = (ledger.seen(), append::now(ledger));
    let like = steps::estimated(ledger.state(), of, (design, n), when);
    let like = like.ok_or_else(undrawn)?;
    let experiment = of.gate.experiment.clone();
    let within = experiment.clone().ok_or_else(undrawn)?;
    let found = estimate::estimate(ledger, ledger.size(), &within, &like);
    let found = found.map_err(|error| refused(id, error))?;
    GateStep::new(ports, ledger, (found.clone(), experiment), found)
}

fn refused(id: &ManifestId, error: EstimateError) -> SessionError {
    let gate = id.clone();
    match error {
        EstimateError::Ledger(error) => error.into(),
        error => GateError::Estimate { gate, error }.into(),
    }
}

/// The units that are drawn for labels, of those up to `through`, else of all that were observed by this state.
///
/// # Errors
/// [`GateError::NotOpen`] and [`GateError::Undrawn`].
pub fn sample(
    ledger: &Ledger,
    state: &State,
    id: &ManifestId,
    through: Option<u64>,
) -> Result<LabelSample, SessionError> {
    let of = check::known(state, id)?;
    let found = estimated::drawn(state, of.gate, of.record, Some(ledger.seen()));
    let version = of.record.in_force();
    let data = version.and_then(|version| version.manifest.data.as_ref());
    let policy = data.and_then(|data| data.label_policy.as_ref());
    let (Some((beacon, seed)), Some(policy)) = (found, policy) else {
        return Err(GateError::Undrawn(id.clone()).into());
    };
    let life = replay::read(ledger, id, of, state.size)?;
    let n = through.unwrap_or(of.gate.n);
    let units = life.observed.into_iter().map(|(_, said)| said.unit);
    let units = units.take(usize::try_from(n).unwrap_or(usize::MAX));
    let units = units.filter(|unit| estimated::is_drawn(seed, policy.pi_min_micro, unit));
    Ok(LabelSample {
        beacon,
        seed,
        units: units.collect(),
    })
}
