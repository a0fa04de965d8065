//! What an iteration computed, computed again from the rows that it read.

use crate::event::Event;
use crate::event::Payload;
use crate::event::id::IterationId;
use crate::event::payload::predicate::Evidence;
use crate::event::payload::predicate::Gaming;
use crate::event::payload::predicate::GateEvaluated;
use crate::event::payload::predicate::GateSplit;
use crate::ledger::Breach;
use crate::ledger::Candidate;
use crate::ledger::LedgerError;
use crate::ledger::Memo;
use crate::ledger::Recount;
use crate::ledger::past::Past;
use crate::workflow::iterate::compute::cards::Attacks;
use crate::workflow::iterate::course::Course;
use crate::workflow::iterate::course::CourseError;
use crate::workflow::iterate::record;
use crate::workflow::iterate::record::Record;
use crate::workflow::iterate::rows::Loaded;
use crate::workflow::iterate::rows::RowsError;
use crate::workflow::recompute::Context;
use crate::workflow::recompute::Gone;
use crate::workflow::recompute::Outcome;
use crate::workflow::recompute::compare;

/// An iteration's rows and numbers, for events that come from the same.
#[derive(Debug)]
pub(super) struct Kept {
    iteration: IterationId,
    attacks: Attacks,
    through: u64,
    course: Course,
    confirm: Option<(u64, Loaded)>,
    gates: Vec<GateEvaluated>,
}

impl Kept {
    /// The rows with the labels that are shown through a position.
    fn unsealed(
        &mut self,
        past: &Past<'_>,
        record: &Record,
        through: u64,
    ) -> Result<(&Course, &Loaded), Gone> {
        let kept = self.confirm.take().filter(|(of, _)| *of == through);
        let kept = match kept {
            Some(kept) => kept,
            None => (
                through,
                self.course.unsealed_through(past, record, through)?,
            ),
        };
        Ok((&self.course, &self.confirm.insert(kept).1))
    }
}

impl From<CourseError> for Gone {
    fn from(error: CourseError) -> Self {
        match error {
            CourseError::Rows(RowsError::Ledger(error)) => Self::Ledger(error),
            other => Self::Missing(other.to_string()),
        }
    }
}

/// The iteration that an event is of.
fn iteration_of(payload: &Payload) -> Option<&IterationId> {
    Some(match payload {
        Payload::LabelProcessAudited(said) => &said.iteration,
        Payload::PrenticeChecked(said) => &said.iteration,
        Payload::ResidualsAudited(said) => &said.iteration,
        Payload::SlicesClassified(said) => &said.iteration,
        Payload::CardPublished(said) => &said.iteration,
        Payload::IterationPausedForLabels(said) => &said.iteration,
        Payload::GateEvaluated(said) => &said.iteration,
        Payload::ConfirmLooked(said) => &said.iteration,
        _ => return None,
    })
}

fn gone(what: &str) -> Gone {
    Gone::Missing(what.to_owned())
}

/// What the log said of an event's iteration before it.
fn recorded(past: &Past<'_>, payload: &Payload, seq: u64) -> Result<Record, Gone> {
    let iteration = iteration_of(payload).ok_or_else(|| gone("it names no iteration"))?;
    let found = record::record(past, iteration, seq)?;
    found.ok_or_else(|| gone("its iteration was not opened before it"))
}

/// The last entry that everything before confirm read.
fn through(record: &Record, payload: &Payload) -> Option<u64> {
    record.through().or_else(|| {
        let confirm =
            matches!(payload, Payload::GateEvaluated(said) if said.split == GateSplit::Confirm);
        inputs_of(payload).filter(|_| !confirm)
    })
}

/// The last entry that an event says it read.
fn inputs_of(payload: &Payload) -> Option<u64> {
    let inputs = match payload {
        Payload::LabelProcessAudited(said) => said.inputs,
        Payload::PrenticeChecked(said) => said.inputs,
        Payload::ResidualsAudited(said) => said.inputs,
        Payload::IterationPausedForLabels(said) => said.inputs,
        Payload::GateEvaluated(said) => said.inputs,
        Payload::ConfirmLooked(said) => said.inputs,
        _ => return None,
    };
    Some(inputs.through_seq.value())
}

fn kept<'k>(
    past: &Past<'_>,
    place: &'k mut Option<Kept>,
    record: &Record,
    payload: &Payload,
) -> Result<&'k mut Kept, Gone> {
    let through = through(record, payload).ok_or_else(|| gone("nothing says what it read"))?;
    let attacks = record.attacks();
    let fits = |of: &Kept| {
        of.iteration == record.iteration && of.through == through && of.attacks == attacks
    };
    if !place.as_ref().is_some_and(fits) {
        let course = Course::through(past, record, through)?;
        *place = Some(Kept {
            iteration: record.iteration.clone(),
            attacks,
            through,
            course,
            confirm: None,
            gates: Vec::new(),
        });
    }
    Ok(place.as_mut().expect("BUG: it was computed"))
}

/// An event before candidates.
pub(super) fn before(context: &mut Context<'_>, seq: u64, event: &Event) -> Result<Payload, Gone> {
    let past = context.ledger()?.past();
    let payload = &event.payload;
    let record = recorded(&past, payload, seq)?;
    early(&past, &mut context.shared.iteration, &record, payload)
}

/// A gate of a candidate.
pub(super) fn gate(context: &mut Context<'_>, seq: u64, event: &Event) -> Result<Payload, Gone> {
    let past = context.ledger()?.past();
    let payload = &event.payload;
    let record = recorded(&past, payload, seq)?;
    judged(&past, &mut context.shared.iteration, &record, payload)
}

fn early(
    past: &Past<'_>,
    place: &mut Option<Kept>,
    record: &Record,
    payload: &Payload,
) -> Result<Payload, Gone> {
    let kept = kept(past, place, record, payload)?;
    let same = |again: &&Payload| match (payload, again) {
        (Payload::CardPublished(said), Payload::CardPublished(again)) => {
            said.card.card == again.card.card
        }
        _ => true,
    };
    let again = kept.course.before(&[payload.kind()]);
    let again = again.iter().find(same).cloned();
    again.ok_or_else(|| gone("the rows that it read call for no such event"))
}

/// A look at the confirm block.
pub(super) fn look(context: &mut Context<'_>, seq: u64, event: &Event) -> Result<Payload, Gone> {
    let past = context.ledger()?.past();
    let payload = &event.payload;
    let record = recorded(&past, payload, seq)?;
    looked(&past, &mut context.shared.iteration, &record, payload)
}

fn looked(
    past: &Past<'_>,
    place: &mut Option<Kept>,
    record: &Record,
    payload: &Payload,
) -> Result<Payload, Gone> {
    let size = inputs_of(payload).ok_or_else(|| gone("another kind"))?;
    let kept = kept(past, place, record, payload)?;
    let hypotheses = kept.course.sealed(record)?;
    let (course, rows) = kept.unsealed(past, record, size)?;
    Ok(course.looked(rows, &hypotheses)?.into())
}

/// Whether a gate is about attacked texts.
fn is_attacked(said: &GateEvaluated) -> bool {
    matches!(&said.evidence, Evidence::P7(gaming) if !gaming.attacks.is_empty() || gaming.searched.is_some())
}

fn judged(
    past: &Past<'_>,
    place: &mut Option<Kept>,
    record: &Record,
    payload: &Payload,
) -> Result<Payload, Gone> {
    let Payload::GateEvaluated(said) = payload else {
        return Err(gone("another kind"));
    };
    if is_attacked(said) {
        return Err(gone(
            "attacked texts are private, and their judge is asked again by the battery alone",
        ));
    }
    let patches = record.patches_of(said.candidate);
    let patches = patches.ok_or_else(|| gone("its patches were not proposed before it"))?;
    let size = said.inputs.through_seq.value();
    let kept = kept(past, place, record, payload)?;
    let known = |of: &&GateEvaluated| {
        of.candidate == said.candidate && of.gate == said.gate && of.split == said.split
    };
    // What a re-score or a pause changes since is of the first gate alone.
    if !kept.gates.iter().any(|of| known(&of)) {
        let of = kept.course.hypothesis(record, &patches)?;
        let gates = match said.split {
            GateSplit::Dev => {
                let gaming = Gaming {
                    attacks: Vec::new(),
                    regressions: crate::num::Count::default(),
                    searched: None,
                };
                kept.course.on_dev(record, &of, gaming)?.0
            }
            GateSplit::Confirm => {
                let (course, rows) = kept.unsealed(past, record, size)?;
                course.on_confirm(rows, &of)?
            }
        };
        kept.gates.extend(gates);
    }
    let again = kept.gates.iter().find(known).cloned();
    let again = again.ok_or_else(|| gone("its rows cannot be scored under it"))?;
    Ok(again.into())
}

/// What an iteration computed is what its rows give, through the position that binds.
#[derive(Clone, Copy, Debug)]
pub struct Iterations;

/// Which entries an event may read: those that the first computed event read, and of confirm those that the first gate
/// there read. The first, and each look at confirm, reads everything that its author had seen.
fn bound(record: &Record, event: &Candidate<'_>) -> Option<(String, String)> {
    let payload = &event.event.payload;
    let confirm =
        matches!(payload, Payload::GateEvaluated(said) if said.split == GateSplit::Confirm);
    let own = inputs_of(payload)?;
    let binds = match payload {
        Payload::ConfirmLooked(_) => None,
        _ if confirm => record.confirm_through(),
        _ => record.through(),
    };
    let seen = event.event.header.seen.as_ref();
    let seen = seen.map_or(0, |seen| seen.size.value()).saturating_sub(1);
    let due = binds.unwrap_or(seen);
    (own != due).then(|| {
        (
            format!("rows through seq {due}"),
            format!("through seq {own}"),
        )
    })
}

impl Recount for Iterations {
    fn judge(
        &self,
        past: &Past<'_>,
        event: &Candidate<'_>,
        memo: &mut Memo,
    ) -> Result<Option<Breach>, LedgerError> {
        let payload = &event.event.payload;
        if iteration_of(payload).is_none() {
            return Ok(None);
        }
        let mut place = memo
            .take()
            .and_then(|kept| kept.downcast::<Kept>().ok())
            .map(|kept| *kept);
        let found = recount(past, event, &mut place);
        *memo = place.map(|kept| Box::new(kept) as Box<dyn std::any::Any>);
        match found {
            Ok(found) => Ok(found.map(|(expected, found)| Breach::new("verdict", expected, found))),
            Err(Gone::Ledger(error)) => Err(error),
            Err(gone) => {
                let expected = "rows from which it can be computed again";
                Ok(Some(Breach::new("verdict", expected, gone.to_string())))
            }
        }
    }
}

fn recount(
    past: &Past<'_>,
    event: &Candidate<'_>,
    place: &mut Option<Kept>,
) -> Result<Option<(String, String)>, Gone> {
    let payload = &event.event.payload;
    let record = recorded(past, payload, event.seq)?;
    if let Some(found) = bound(&record, event) {
        return Ok(Some(found));
    }
    let again = match payload {
        Payload::GateEvaluated(said) if is_attacked(said) => return Ok(None),
        Payload::GateEvaluated(_) => judged(past, place, &record, payload)?,
        Payload::ConfirmLooked(_) => looked(past, place, &record, payload)?,
        _ => early(past, place, &record, payload)?,
    };
    Ok(match compare(payload, &again) {
        Outcome::Differs(differences) => differences.first().map(|of| {
            let expected = format!(
                "{} {}, computed again from its rows",
                of.path, of.recomputed
            );
            (expected, of.recorded.to_string())
        }),
        Outcome::Identical | Outcome::Within | Outcome::Gone(_) => None,
    })
}
