//! The dev objective: what a candidate is worth on dev, whoever wrote it. The answer is an event, its id a receipt.

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::payload::synthesis::DevObjectiveQueried;
use clover_event::registry;
use clover_ground::sign::KeyId;
use clover_ledger::AppendedEvent;
use clover_rubric::CheckedPatch;
use clover_rubric::Patch;
use clover_workflow::iterate::rows::EvidenceMissing;
use clover_workflow::patches;
use clover_workflow::patches::Authorship;

use crate::error::SessionError;
use crate::iterate::Bench;
use crate::iterate::attack;
use crate::ports::Ports;

/// A receipt, and where it stands.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// What it says.
    pub said: DevObjectiveQueried,
    /// Its event.
    pub id: EventId,
    /// What was appended for it; nothing where it stood there before.
    pub appended: Vec<AppendedEvent>,
}

/// What came of a question.
#[derive(Debug)]
pub enum ObjectiveAnswer {
    /// A receipt.
    Receipt(Box<Receipt>),
    /// Rows cannot be scored under the candidate.
    Missing(EvidenceMissing),
    /// The judge is told something else, and nothing is known before it was asked anew.
    Retold,
}

/// Asks what a checked patch is worth on dev, for a key. One that was asked before has its old receipt. Attacks on it are
/// scored where the judge can be asked.
///
/// # Errors
/// [`SessionError`]; calls of the judge that were made are charged all the same.
pub fn ask(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    (yaml, patch, checked): (&str, &Patch, &CheckedPatch),
    (requester, can_ask): (KeyId, bool),
) -> Result<ObjectiveAnswer, SessionError> {
    let hex = checked.hash.to_hex();
    let fields = [hex.as_str(), bench.id.as_str()];
    let key =
        registry::natural_key_of(Kind::DevObjectiveQueried, &bench.record.experiment, &fields);
    if let Some(seq) = bench.ledger.giver(&key)?
        && let Some(read) = bench.ledger.entry(seq)?
        && let Payload::DevObjectiveQueried(said) = read.event.payload
    {
        return Ok(ObjectiveAnswer::Receipt(Box::new(Receipt {
            said: *said,
            id: read.event.id,
            appended: Vec::new(),
        })));
    }
    let course = bench.take_course()?;
    let by = Authorship::person();
    let proposed = patches::propose(yaml, &bench.id, (patch, checked), by);
    let of = course.hypothesis(&bench.ledger, &bench.record, &[&proposed])?;
    if of.prompt.is_some() {
        bench.put_back(course);
        return Ok(ObjectiveAnswer::Retold);
    }
    let attacked = if can_ask {
        attack::of_unproposed(bench, ports, &course, (&of, patch))?
    } else {
        None
    };
    let found = course.receipt(&bench.record, &of, (requester, attacked));
    bench.put_back(course);
    let said = match found? {
        Ok(said) => said,
        Err(missing) => return Ok(ObjectiveAnswer::Missing(missing)),
    };
    let appended = bench.say(ports, vec![said.clone().into()])?;
    Ok(ObjectiveAnswer::Receipt(Box::new(Receipt {
        said,
        id: appended[0].id,
        appended,
    })))
}
