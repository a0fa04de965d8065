//! Waivers of assumptions: one approver proposes, and a second key agrees.

use clover_event::Kind;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::Text;
use clover_event::payload::assumption::Assumption;
use clover_event::payload::assumption::AssumptionCountersigned;
use clover_event::payload::assumption::AssumptionWaived;
use clover_ground::sign::Signer;
use clover_ground::time::Timestamp;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_projection::assumptions;
use clover_projection::assumptions::Assumptions;
use clover_projection::assumptions::Status;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::error::SessionError;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Seat;

/// Why nothing was waived.
#[derive(Debug, thiserror::Error)]
pub enum WaiverError {
    /// No waiver waits for a second key.
    #[error("no waiver of {0} waits for a second key")]
    NoneWaits(Assumption),
    /// Both keys are one.
    #[error("expected another key than the first, found the same")]
    SameKey,
}

/// What is waived.
#[derive(Clone, Debug)]
pub struct WaiverTerms {
    /// The assumption.
    pub code: Assumption,
    /// The experiment, of an assumption that is not about the whole ledger.
    pub experiment: Option<ExperimentId>,
    /// Why.
    pub reason: Text,
    /// When the waiver ends.
    pub expires_at: Timestamp,
}

/// An agreement, and how the assumption stands after it.
#[derive(Clone, Debug)]
pub struct Agreement {
    /// The event.
    pub submission: Submission,
    /// How the assumption stands.
    pub status: Status,
}

/// Proposes a waiver; with `second`, the second key agrees at once. Nothing is recorded for a waiver that could not be
/// agreed to. A rehearsal shows the proposal.
///
/// # Errors
/// [`WaiverError::SameKey`], [`SessionError::Port`] without a key, and [`SessionError::Ledger`].
pub fn propose(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    terms: WaiverTerms,
    second: bool,
    intent: Intent,
) -> Result<(Submission, Option<Agreement>), SessionError> {
    let proposes = KeyNeed::runner(Kind::AssumptionWaived);
    let agrees = KeyNeed::of(Seat::Second, Kind::AssumptionCountersigned);
    let state = ledger.state();
    if second {
        ports.check(state, &[proposes, agrees])?;
    }
    let signer = ports.signer(state, proposes)?;
    // Read now: a passphrase that is wrong is told before the waiver stands.
    let other = if second {
        Some(ports.signer(state, agrees)?)
    } else {
        None
    };
    if other
        .as_ref()
        .is_some_and(|other| other.id() == signer.id())
    {
        return Err(WaiverError::SameKey.into());
    }
    let (code, experiment) = (terms.code, terms.experiment);
    let payload = AssumptionWaived {
        code,
        expires_at: terms.expires_at,
        reason: terms.reason,
    };
    let commands = [Command::new(payload, experiment.clone())];
    let submission = append::submit(ports, ledger, &commands, &signer, intent)?;
    let agreement = match other {
        Some(other) if intent == Intent::Append => {
            let of = (code, experiment.as_ref());
            Some(agreed(ports, ledger, of, &other, intent)?)
        }
        _ => None,
    };
    Ok((submission, agreement))
}

/// Agrees to the waiver that waits, as the second key.
///
/// # Errors
/// [`WaiverError::NoneWaits`], [`SessionError::Port`] without a key, and [`SessionError::Ledger`].
pub fn agree(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    (code, experiment): (Assumption, Option<&ExperimentId>),
    intent: Intent,
) -> Result<Agreement, SessionError> {
    waiting(ledger, code, experiment)?;
    let need = KeyNeed::runner(Kind::AssumptionCountersigned);
    let signer = ports.signer(ledger.state(), need)?;
    agreed(ports, ledger, (code, experiment), &signer, intent)
}

fn agreed(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    (code, experiment): (Assumption, Option<&ExperimentId>),
    signer: &Signer,
    intent: Intent,
) -> Result<Agreement, SessionError> {
    let waiver = waiting(ledger, code, experiment)?;
    let payload = AssumptionCountersigned { waiver };
    let commands = [Command::new(payload, experiment.cloned())];
    let submission = append::submit(ports, ledger, &commands, signer, intent)?;
    let state = ledger.state();
    let now = state.keyring.recorded_at.unwrap_or(Timestamp::EPOCH);
    let status = assumptions::standing(state, now, code, experiment).status;
    Ok(Agreement { submission, status })
}

/// The waiver of an assumption that waits for its second key.
fn waiting(
    ledger: &Ledger,
    code: Assumption,
    experiment: Option<&ExperimentId>,
) -> Result<EventId, WaiverError> {
    let row = ledger.state().fold::<Assumptions>().row(code, experiment);
    let proposed = row.and_then(|row| row.proposed.as_ref());
    proposed
        .map(|proposed| proposed.id)
        .ok_or(WaiverError::NoneWaits(code))
}
