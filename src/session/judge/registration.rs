//! The registration of a judge: which judge a name stands for.

use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::event::payload::scoring::JudgeRegistered;
use crate::event::registry;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;

/// The event that registers a judge.
#[derive(Clone, Debug)]
pub struct Registration {
    /// Its id.
    pub id: EventId,
    /// Where it stands.
    pub seq: u64,
    /// The judge.
    pub judge: JudgeRegistered,
}

/// The registration of a judge, when there is one.
///
/// # Errors
/// When the ledger cannot be read.
pub fn standing(
    ledger: &Ledger,
    experiment: &ExperimentId,
    judge: &JudgeId,
) -> Result<Option<Registration>, LedgerError> {
    let key = registry::natural_key_of(Kind::JudgeRegistered, experiment, &[judge.as_str()]);
    let Some(seq) = ledger.giver(&key)? else {
        return Ok(None);
    };
    let read = ledger.entry(seq)?;
    Ok(read.and_then(|read| match read.event.payload {
        Payload::JudgeRegistered(judge) => Some(Registration {
            id: read.event.id,
            seq,
            judge: *judge,
        }),
        _ => None,
    }))
}
