//! What is asked of a gate before a step: that it is open, not stale, and as the log has it.

use clover_event::id::ManifestId;
use clover_event::payload::decision::Standing;
use clover_ledger::Ledger;
use clover_ledger::State;
use clover_projection::drifts;
use clover_workflow::gates::evidence;
use clover_workflow::gates::evidence::GateContext;
use clover_workflow::gates::hold;
use clover_workflow::gates::hold::Unheld;
use clover_workflow::gates::replay;
use clover_workflow::gates::replay::Life;

use crate::error::SessionError;
use crate::gate::error::GateError;
use crate::ports::Watcher;
use crate::ports::Work;

/// An opened gate by its name.
///
/// # Errors
/// [`GateError::NotOpen`].
pub fn known<'a>(state: &'a State, id: &ManifestId) -> Result<GateContext<'a>, GateError> {
    evidence::known(state, id).ok_or_else(|| GateError::NotOpen(id.clone()))
}

/// Refuses to go on with a stale gate, before anything is asked or recorded for it.
///
/// # Errors
/// [`GateError::Stale`].
pub fn not_stale(state: &State, id: &ManifestId) -> Result<(), GateError> {
    let Some(stale) = drifts::stale_gate(state, id) else {
        return Ok(());
    };
    Err(GateError::Stale {
        gate: id.clone(),
        judge: stale.judge,
        seq: stale.check_seq,
    })
}

/// Whether a gate that goes on with another's wealth has not got it yet.
pub fn waits(of: GateContext<'_>) -> bool {
    let version = of.record.in_force();
    let test = version.and_then(|version| version.manifest.test.as_ref());
    test.is_some_and(|test| test.continuation_of.is_some()) && of.gate.parent.is_none()
}

/// Refuses to record anything for a gate that waits for the wealth of another.
///
/// # Errors
/// [`GateError::NotContinued`], and [`GateError::NotOpen`].
pub fn not_waiting(state: &State, id: &ManifestId) -> Result<(), GateError> {
    if waits(known(state, id)?) {
        return Err(GateError::NotContinued(id.clone()));
    }
    Ok(())
}

/// The state that a snapshot gave must be that of the log; otherwise the ledger is opened without it.
///
/// # Errors
/// [`GateError::Snapshot`], [`GateError::NotOpen`], and [`SessionError::Ledger`] when the log cannot be read.
pub fn replayed(ledger: &Ledger, id: &ManifestId) -> Result<Life, SessionError> {
    let gate = known(ledger.state(), id)?;
    let life = replay::read(ledger, id, gate, ledger.size())?;
    same(id, gate, &life)?;
    Ok(life)
}

/// The state of a gate must be what its entries make of it.
///
/// # Errors
/// [`GateError::Snapshot`].
pub fn same(id: &ManifestId, of: GateContext<'_>, life: &Life) -> Result<(), GateError> {
    match differs(of, life) {
        None => Ok(()),
        Some(found) => Err(GateError::Snapshot {
            gate: id.clone(),
            found,
        }),
    }
}

/// What a snapshot says of a gate otherwise than the log.
pub fn differs(of: GateContext<'_>, life: &Life) -> Option<String> {
    let (n, state) = (of.gate.n, of.gate.state_digest);
    if !life.is_plan {
        return Some("a plan or a family that the log does not register so".to_owned());
    }
    if life.gate.as_ref() == Some(of.gate) {
        return None;
    }
    let (logged, digest) = (life.observed.len(), life.state_digest);
    Some(if digest == state {
        format!("{n} units with state {state} as the log has, and else another gate")
    } else {
        format!("{n} units with state {state}, and the log {logged} with {digest}")
    })
}

/// What a gate ends by must be in the log: every fold, the order, the strata and the values, each read from its entries.
///
/// # Errors
/// [`GateError::Unheld`], and [`SessionError::Ledger`] when a fold is not what the log makes of it.
pub fn held(
    watcher: &mut dyn Watcher,
    ledger: &Ledger,
    id: &ManifestId,
    life: &Life,
) -> Result<(), SessionError> {
    let size = ledger.size();
    let mut told = |done| watcher.progress(Work::Reading, done, 2 * size);
    told(0);
    ledger.check_state(&mut told)?;
    let gate = known(ledger.state(), id)?;
    let Some(unheld) = hold::hold(ledger, gate, life, |seq| told(size + seq))? else {
        return Ok(());
    };
    let Unheld {
        expected,
        found,
        seq,
    } = unheld;
    Err(GateError::Unheld {
        gate: id.clone(),
        expected,
        found,
        seq,
    }
    .into())
}

/// Every fold must be what the log makes of it.
///
/// # Errors
/// [`SessionError::Ledger`].
pub fn folded(watcher: &mut dyn Watcher, ledger: &Ledger) -> Result<(), SessionError> {
    let size = ledger.size();
    watcher.progress(Work::Reading, 0, size);
    ledger.check_state(|done| watcher.progress(Work::Reading, done, size))?;
    Ok(())
}

/// What a standing means.
pub fn meaning(standing: Standing) -> &'static str {
    match standing {
        Standing::Continue => "CONTINUE: nothing is decided, more units may be observed",
        Standing::Different => {
            "DIFFERENT: the effect is not the margin, on whichever side the interval lies"
        }
        Standing::Equivalent => "EQUIVALENT: the effect lies within the margin",
        Standing::Futile => "FUTILE: the planned effect is not there",
        Standing::Kill => "KILL: the candidate is worse",
        Standing::Leading => "LEADING: past its own level, not past what its family needs",
        Standing::Noninferior => "NONINFERIOR: not worse by more than the margin",
        Standing::Promote => "PROMOTE: better by the margin",
        Standing::UndecidedAtNMax => {
            "UNDECIDED: all planned units are observed; no evidence of no effect"
        }
    }
}
