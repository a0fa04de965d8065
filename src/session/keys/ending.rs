//! The end of a key: retired, or compromised from an entry on.

use clover_event::Payload;
use clover_event::id::Text;
use clover_event::payload::custody::KeyCompromised;
use clover_event::payload::custody::KeyRetired;
use clover_ground::sign::KeyId;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_num::Count;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::error::SessionError;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Question;

/// Ends a key of the ledger, once its owner consents; with `since`, its events from there on are tainted.
///
/// # Errors
/// [`SessionError::Port`] without an owner's key or consent, and [`SessionError::Ledger`].
pub fn end(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    (key_id, since): (KeyId, Option<Count>),
    reason: Text,
    intent: Intent,
) -> Result<Submission, SessionError> {
    let payload: Payload = match since {
        None => KeyRetired { key_id, reason }.into(),
        Some(since_seq) => KeyCompromised {
            key_id,
            reason,
            since_seq,
        }
        .into(),
    };
    let state = ledger.state();
    let owner = ports.signer(state, KeyNeed::runner(payload.kind()))?;
    if intent == Intent::Append
        && let Some(record) = state.keyring.keys.get(&key_id)
    {
        ports.ask(&Question::EndKey {
            key: key_id,
            holder: record.holder.to_string(),
            roles: record.roles.to_string(),
            is_compromised: since.is_some(),
        })?;
    }
    append::submit(
        ports,
        ledger,
        &[Command::new(payload, None)],
        &owner,
        intent,
    )
}
