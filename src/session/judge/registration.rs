//! The registration of a judge: which judge a name stands for.

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::payload::scoring::JudgeRegistered;
use clover_event::registry;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;

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
