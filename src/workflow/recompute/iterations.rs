//! What an iteration computed, computed again from the rows that it read.

use crate::event::Payload;
use crate::event::id::IterationId;
use crate::event::payload::predicate::Evidence;
use crate::event::payload::predicate::Gaming;
use crate::event::payload::predicate::GateEvaluated;
use crate::event::payload::predicate::GateSplit;
use crate::event::payload::rubric::PatchProposed;
use crate::ground::digest::Digest;
use crate::ledger::read::Read;
use crate::projection::decisions::composite_of;
use crate::workflow::iterate::course::Course;
use crate::workflow::iterate::course::CourseError;
use crate::workflow::iterate::record;
use crate::workflow::iterate::record::Record;
use crate::workflow::iterate::rows::Loaded;
use crate::workflow::iterate::rows::RowsError;
use crate::workflow::recompute::Context;
use crate::workflow::recompute::Gone;

/// An iteration's rows and numbers, for events that come from the same.
#[derive(Debug)]
pub struct Kept {
    iteration: IterationId,
    through: u64,
    course: Course,
    confirm: Option<(u64, Loaded)>,
    gates: Vec<GateEvaluated>,
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
        _ => return None,
    })
}

fn gone(what: &str) -> Gone {
    Gone::Missing(what.to_owned())
}

/// What the log said of an event's iteration before it.
fn recorded(context: &Context<'_>, read: &Read) -> Result<Record, Gone> {
    let iteration = iteration_of(&read.event.payload);
    let iteration = iteration.ok_or_else(|| gone("it names no iteration"))?;
    let found = record::record(&context.ledger.past(), iteration, read.stored.seq)?;
    found.ok_or_else(|| gone("its iteration was not opened before it"))
}

/// The last entry that everything before confirm read.
fn through(record: &Record, payload: &Payload) -> Option<u64> {
    let inputs = match payload {
        Payload::LabelProcessAudited(said) => Some(said.inputs),
        Payload::GateEvaluated(said) if said.split == GateSplit::Dev => Some(said.inputs),
        _ => None,
    };
    let own = inputs.map(|inputs| inputs.through_seq.value());
    own.or_else(|| record.through())
}

fn kept<'k>(
    context: &'k mut Context<'_>,
    record: &Record,
    payload: &Payload,
) -> Result<&'k mut Kept, Gone> {
    let through = through(record, payload).ok_or_else(|| gone("nothing says what it read"))?;
    let fits = |of: &Kept| of.iteration == record.iteration && of.through == through;
    if !context.iteration.as_ref().is_some_and(fits) {
        let course = Course::through(&context.ledger.past(), record, through)?;
        context.iteration = Some(Kept {
            iteration: record.iteration.clone(),
            through,
            course,
            confirm: None,
            gates: Vec::new(),
        });
    }
    Ok(context.iteration.as_mut().expect("BUG: it was computed"))
}

/// An event before candidates.
pub(super) fn before(context: &mut Context<'_>, read: &Read) -> Result<Payload, Gone> {
    let payload = &read.event.payload;
    let record = recorded(context, read)?;
    let kept = kept(context, &record, payload)?;
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

/// The patches that a candidate is made of.
fn patches_of(record: &Record, candidate: Digest) -> Option<Vec<&PatchProposed>> {
    let all: Vec<&PatchProposed> = record.proposed.iter().map(|of| &of.said).collect();
    if let Some(one) = all.iter().find(|patch| patch.patch_hash == candidate) {
        return Some(vec![one]);
    }
    let pairs = all.iter().enumerate().flat_map(|(at, a)| {
        let rest = all[at + 1..].iter();
        rest.map(move |b| [*a, *b])
    });
    let mut found =
        pairs.filter(|pair| composite_of(&[pair[0].patch_hash, pair[1].patch_hash]) == candidate);
    found.next().map(Vec::from)
}

/// A gate of a candidate.
pub(super) fn gate(context: &mut Context<'_>, read: &Read) -> Result<Payload, Gone> {
    let Payload::GateEvaluated(said) = &read.event.payload else {
        return Err(gone("another kind"));
    };
    if let Evidence::P7(gaming) = &said.evidence
        && !gaming.attacks.is_empty()
    {
        return Err(gone(
            "attacked texts are private, and their judge is asked again by the battery alone",
        ));
    }
    let record = recorded(context, read)?;
    let patches = patches_of(&record, said.candidate);
    let patches = patches.ok_or_else(|| gone("its patches were not proposed before it"))?;
    let past = context.ledger.past();
    let size = said.inputs.through_seq.value();
    let kept = kept(context, &record, &read.event.payload)?;
    let known = |of: &&GateEvaluated| {
        of.candidate == said.candidate && of.gate == said.gate && of.split == said.split
    };
    // What a re-score or a pause changes since is of the first gate alone.
    if !kept.gates.iter().any(|of| known(&of)) {
        let of = kept.course.hypothesis(&record, &patches)?;
        let gates = match said.split {
            GateSplit::Dev => {
                let gaming = Gaming {
                    attacks: Vec::new(),
                    regressions: crate::num::Count::default(),
                    searched: None,
                };
                kept.course.on_dev(&record, &of, gaming)?.0
            }
            GateSplit::Confirm => {
                if kept
                    .confirm
                    .as_ref()
                    .is_none_or(|(through, _)| *through != size)
                {
                    let rows = kept.course.unsealed_through(&past, &record, size)?;
                    kept.confirm = Some((size, rows));
                }
                let rows = kept.confirm.as_ref().map(|(_, rows)| rows);
                let rows = rows.ok_or_else(|| gone("no rows of the confirm block"))?;
                kept.course.on_confirm(rows, &of)?
            }
        };
        kept.gates.extend(gates);
    }
    let again = kept.gates.iter().find(known).cloned();
    let again = again.ok_or_else(|| gone("its rows cannot be scored under it"))?;
    Ok(again.into())
}
