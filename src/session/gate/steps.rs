//! The steps of an opened gate that are one event each: a look, the decision, and going on from another gate.

use clover_event::id::ManifestId;
use clover_event::payload::decision::GateContinued;
use clover_event::payload::decision::GateDecided;
use clover_event::payload::decision::GateLooked;
use clover_event::payload::decision::Outcome;
use clover_ledger::Ledger;
use clover_projection::gates;
use clover_workflow::gates::steps;

use crate::error::SessionError;
use crate::gate::check;
use crate::gate::error::GateError;
use crate::gate::gate_step::GateStep;
use crate::ports::Ports;

/// What the observations show by now.
///
/// # Errors
/// [`GateError::Ended`], [`GateError::Stale`], [`GateError::Snapshot`] and [`GateError::Untestable`].
pub fn look(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    id: &ManifestId,
) -> Result<GateStep<GateLooked>, SessionError> {
    check::replayed(ledger, id)?;
    check::not_stale(ledger.state(), id)?;
    let gate = check::known(ledger.state(), id)?;
    if gate.gate.is_terminal() {
        return Err(GateError::Ended(id.clone()).into());
    }
    let experiment = gate.gate.experiment.clone();
    let look = steps::look(gate).map_err(|error| GateError::untestable(id, error))?;
    GateStep::new(ports, ledger, (look.clone(), experiment), look)
}

/// The end of the gate: by its last look, or because its manifest was superseded or has lapsed.
///
/// # Errors
/// [`GateError::Undecided`] and [`GateError::NoLook`] while it goes on; [`GateError::Snapshot`] and [`GateError::Unheld`]
/// where the log has something else; [`GateError::Stale`].
pub fn decide(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    id: &ManifestId,
) -> Result<GateStep<GateDecided>, SessionError> {
    let life = check::replayed(ledger, id)?;
    let gate = check::known(ledger.state(), id)?;
    let experiment = gate.gate.experiment.clone();
    let has_lapsed = gates::is_late(gate.record, ledger.ambient().now());
    let Some(decided) = steps::decide(gate, has_lapsed) else {
        let (look, n, gate) = (gate.gate.look.as_ref(), gate.gate.n, id.clone());
        return Err(match look.filter(|look| look.n == n) {
            Some(look) => GateError::Undecided {
                gate,
                standing: look.standing,
            },
            None => GateError::NoLook { gate, n },
        }
        .into());
    };
    check::held(ports, ledger, id, &life)?;
    if !matches!(decided.outcome, Outcome::Superseded | Outcome::Void) {
        check::not_stale(ledger.state(), id)?;
    }
    GateStep::new(ports, ledger, (decided.clone(), experiment), decided)
}

/// Going on with the evidence of the undecided gate that the manifest names.
///
/// # Errors
/// [`GateError::NoParent`].
pub fn proceed(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    id: &ManifestId,
) -> Result<GateStep<GateContinued>, SessionError> {
    let gate = check::known(ledger.state(), id)?;
    let experiment = gate.gate.experiment.clone();
    let continued = steps::proceed(ledger.state(), gate);
    let continued = continued.ok_or_else(|| GateError::NoParent(id.clone()))?;
    GateStep::new(ports, ledger, (continued.clone(), experiment), continued)
}
