//! A decision computed again, with the gates behind it.

use crate::cli::error::CliError;
use crate::cli::iterate;
use crate::event::Payload;
use crate::event::id::EventId;
use crate::event::payload::predicate::GateEvaluated;
use crate::ledger::Ledger;
use crate::view::explained::Explanation;

/// The gates behind a decision: itself, if it is one, or those that it names.
fn gates(
    ledger: &Ledger,
    payload: &Payload,
) -> Result<Vec<(Option<u64>, GateEvaluated)>, CliError> {
    let named: &[EventId] = match payload {
        Payload::GateEvaluated(said) => return Ok(vec![(None, (**said).clone())]),
        Payload::PatchAccepted(said) => &said.gates,
        _ => &[],
    };
    let mut found = Vec::with_capacity(named.len());
    for id in named {
        let read = match ledger.find(*id)? {
            Some(seq) => ledger.entry(seq)?,
            None => None,
        };
        if let Some(read) = read
            && let Payload::GateEvaluated(said) = read.event.payload
        {
            found.push((Some(read.stored.seq), *said));
        }
    }
    Ok(found)
}

/// A decision with the table of its gates.
///
/// # Errors
/// When the ledger cannot be read.
pub(super) fn explained(ledger: &Ledger, payload: Payload) -> Result<Explanation, CliError> {
    let gates = gates(ledger, &payload)?;
    let gates = if gates.is_empty() {
        String::new()
    } else {
        iterate::gate_table(&gates)
    };
    Ok(Explanation { payload, gates })
}
