//! What an iteration computed, computed again from the rows that it read.

use clover_event::Event;
use clover_event::Payload;
use clover_event::id::IterationId;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::GateEvaluated;
use clover_event::payload::rubric::PatchProposed;
use clover_event::payload::scoring::ScoresRecomputed;
use clover_ground::digest::Digest;
use clover_ledger::History;
use clover_ledger::ProposedEvent;
use clover_projection::iterations::record::Attacks;
use clover_projection::iterations::record::IterationRecord;

use crate::import::kept::Unread;
use crate::iterate::as_recorded;
use crate::iterate::compute::cards::FullCard;
use crate::iterate::course::Course;
use crate::iterate::course::CourseError;
use crate::iterate::rows::IterationDataset;
use crate::iterate::rows::IterationRowsError;
use crate::recompute::Context;
use crate::recompute::RecomputeError;
use crate::recompute::said_in;

/// An iteration's rows and numbers, for events that come from the same.
#[derive(Debug)]
pub(super) struct CachedIteration {
    iteration: IterationId,
    through: u64,
    pub(super) course: Course,
    confirm: Option<(u64, IterationDataset)>,
    gates: Vec<GateEvaluated>,
    /// Cards under what attacks had earned.
    cards: Option<(Attacks, Vec<FullCard>)>,
}

impl CachedIteration {
    /// The rows with the labels that are shown through a position.
    fn unsealed(
        &mut self,
        history: &dyn History,
        record: &IterationRecord,
        through: u64,
    ) -> Result<(&Course, &IterationDataset), RecomputeError> {
        let kept = self.confirm.take().filter(|(of, _)| *of == through);
        let kept = match kept {
            Some(kept) => kept,
            None => (
                through,
                self.course.unsealed_through(history, record, through)?,
            ),
        };
        Ok((&self.course, &self.confirm.insert(kept).1))
    }
}

impl From<CourseError> for RecomputeError {
    fn from(error: CourseError) -> Self {
        match error {
            CourseError::Rows(IterationRowsError::Ledger(error)) => Self::Ledger(error),
            CourseError::Rows(IterationRowsError::Unread(absent @ Unread::Absent { .. })) => {
                Self::Absent(absent.to_string())
            }
            other => Self::Missing(other.to_string()),
        }
    }
}

pub(super) fn gone(what: &str) -> RecomputeError {
    RecomputeError::Missing(what.to_owned())
}

impl Context<'_> {
    /// What the log said of an iteration before an entry.
    pub(super) fn record(
        &mut self,
        iteration: &IterationId,
        seq: u64,
    ) -> Result<IterationRecord, RecomputeError> {
        let found = self.shared.records.of(self.history, iteration, seq)?;
        let found = found.cloned();
        found.ok_or_else(|| gone("its iteration was not opened before it"))
    }

    /// The rows of an iteration through a position, and what was computed of them: read and computed once, and let go
    /// with the next iteration.
    pub(super) fn kept(
        &mut self,
        record: &IterationRecord,
        through: u64,
    ) -> Result<&mut CachedIteration, RecomputeError> {
        let fits = |of: &CachedIteration| of.iteration == record.iteration && of.through == through;
        let place = &mut self.shared.iteration;
        if !place.as_ref().is_some_and(fits) {
            // One iteration's rows at a time.
            *place = None;
            let course = Course::through(self.history, record, through)?;
            *place = Some(CachedIteration {
                iteration: record.iteration.clone(),
                through,
                course,
                confirm: None,
                gates: Vec::new(),
                cards: None,
            });
        }
        Ok(place.as_mut().expect("BUG: it was computed"))
    }
}

/// The last entry that everything before confirm read.
fn through(record: &IterationRecord, payload: &Payload) -> Result<u64, RecomputeError> {
    let own = || {
        let confirm = matches!(payload, Payload::GateEvaluated(said) if said.split == CriterionSplit::Confirm);
        inputs_of(payload).filter(|_| !confirm)
    };
    let through = record.through().or_else(own);
    through.ok_or_else(|| gone("nothing says what it read"))
}

/// The last entry that an event says it read.
fn inputs_of(payload: &Payload) -> Option<u64> {
    let inputs = payload.inputs()?;
    Some(inputs.through_seq.value())
}

fn iteration_of(payload: &Payload) -> Result<&IterationId, RecomputeError> {
    let of = payload.iteration();
    of.ok_or_else(|| gone("it names no iteration"))
}

/// An event before the gates.
pub(super) fn before(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let payload = &event.payload;
    let record = context.record(iteration_of(payload)?, seq)?;
    let through = through(&record, payload)?;
    let history = context.history;
    let kept = context.kept(&record, through)?;
    if let Payload::CalibratorFitted(said) = payload {
        let candidate = said.terms.iteration.as_ref().and_then(|of| of.candidate);
        if let Some(hash) = candidate {
            let patches = patches_of(&record, hash)?;
            let of = kept.course.hypothesis(history, &record, &patches)?;
            let fitted = kept.course.fitted(&of)?;
            let fitted = fitted.map_err(|missing| RecomputeError::Missing(missing.to_string()))?;
            return Ok(fitted.event.into());
        }
    }
    let again = match payload {
        Payload::CardPublished(said) => {
            let attacks = record.attacks();
            if kept.cards.as_ref().is_none_or(|(of, _)| *of != attacks) {
                kept.cards = Some((attacks, kept.course.cards(&record)?));
            }
            let mut cards = kept.cards.iter().flat_map(|(_, cards)| cards);
            let again = cards.find(|again| again.public.card == said.card.card);
            again.cloned().map(|again| {
                // A card that names no program is of those that said nothing of their basis.
                let again = match said.build {
                    Some(_) => again,
                    None => again.without_basis(),
                };
                kept.course.published(&again)
            })
        }
        _ => kept.course.before(&[payload.kind()]).into_iter().next(),
    };
    let again = match (again, payload) {
        (Some(Payload::ResidualsAudited(again)), Payload::ResidualsAudited(said)) => {
            Some(as_recorded(*again, said).into())
        }
        (again, _) => again,
    };
    let none = "the rows that it read call for no such event";
    again.ok_or_else(|| RecomputeError::Uncalled(none.to_owned()))
}

/// The patches that a candidate is made of.
pub(super) fn patches_of(
    record: &IterationRecord,
    candidate: Digest,
) -> Result<Vec<&PatchProposed>, RecomputeError> {
    let patches = record.patches_of(candidate);
    patches.ok_or_else(|| gone("its patches were not proposed before it"))
}

/// A gate of a candidate; P7 from the battery on record, which is computed again by itself.
pub(super) fn gate(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &GateEvaluated = said_in(event)?;
    let record = context.record(&said.iteration, seq)?;
    let attacked = matches!(&said.evidence, Evidence::P7(gaming) if gaming.is_checked());
    if attacked && record.battery_of(said.candidate).is_none() {
        let what = "its battery is not on record: the ledger had no adversary to sign it";
        return Err(RecomputeError::Unrecorded(what.to_owned()));
    }
    let through = through(&record, &event.payload)?;
    let history = context.history;
    let patches = patches_of(&record, said.candidate)?;
    let size = said.inputs.through_seq.value();
    let kept = context.kept(&record, through)?;
    let known = |of: &&GateEvaluated| {
        of.candidate == said.candidate && of.gate == said.gate && of.split == said.split
    };
    // A battery may come after the first gate, as long as it comes before P7.
    let battery = record.battery_of(said.candidate).map(|of| of.id);
    let is_stale = |of: &GateEvaluated| of.gate == Criterion::P7 && of.battery != battery;
    kept.gates.retain(|of| !(known(&of) && is_stale(of)));
    // What a re-score or a pause changes since is of the first gate alone.
    if !kept.gates.iter().any(|of| known(&of)) {
        let of = kept.course.hypothesis(history, &record, &patches)?;
        let gates = match said.split {
            CriterionSplit::Dev => kept.course.on_dev(&record, &of, None)?.0,
            CriterionSplit::Confirm => {
                let (course, rows) = kept.unsealed(history, &record, size)?;
                course.on_confirm(rows, &of)?
            }
        };
        kept.gates.extend(gates);
    }
    let again = kept.gates.iter().find(known).cloned();
    let none = "its rows cannot be scored under it";
    let again = again.ok_or_else(|| RecomputeError::Uncalled(none.to_owned()))?;
    Ok(again.into())
}

/// Scores under a candidate.
pub(super) fn scores(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &ScoresRecomputed = said_in(event)?;
    let record = context.record(&said.iteration, seq)?;
    let through = through(&record, &event.payload)?;
    let patches = patches_of(&record, said.candidate)?;
    let history = context.history;
    let course = &context.kept(&record, through)?.course;
    let mut of = course.hypothesis(history, &record, &patches)?;
    if let Some(named) = &said.judge {
        let judge = of.judge(&course.loaded).filter(|of| of.judge == *named);
        let judge =
            judge.ok_or_else(|| gone("its judge was not told what the candidate changes"))?;
        let last = seq.saturating_sub(1);
        of = course.on_answers(history, &record, of, (&judge, last))?;
    }
    let kept = context.kept(&record, through)?;
    let again = kept.course.recomputed(&of)?;
    let again = again.map_err(|missing| RecomputeError::Missing(missing.to_string()))?;
    Ok(again.into())
}

/// A look at the confirm block.
pub(super) fn look(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let payload = &event.payload;
    let record = context.record(iteration_of(payload)?, seq)?;
    let size = inputs_of(payload).ok_or_else(|| gone("another kind"))?;
    let through = through(&record, payload)?;
    let history = context.history;
    let kept = context.kept(&record, through)?;
    let hypotheses = kept.course.sealed(history, &record)?;
    let (course, rows) = kept.unsealed(history, &record, size)?;
    Ok(course.looked(rows, &hypotheses)?.into())
}

/// Which entries an event may read: those that the first computed event read, and of confirm those that the first gate
/// there read. The first, and each look at confirm, reads everything that its author had seen. What was expected and found where it is otherwise.
pub(super) fn unbound(
    context: &mut Context<'_>,
    event: &ProposedEvent<'_>,
) -> Result<Option<(String, String)>, RecomputeError> {
    let payload = &event.event.payload;
    let record = context.record(iteration_of(payload)?, event.seq)?;
    let confirm =
        matches!(payload, Payload::GateEvaluated(said) if said.split == CriterionSplit::Confirm);
    let Some(own) = inputs_of(payload) else {
        return Ok(None);
    };
    let binds = match payload {
        Payload::ConfirmLooked(_) => None,
        _ if confirm => record.confirm_through(),
        _ => record.through(),
    };
    let seen = event.event.header.seen.as_ref();
    let seen = seen.map_or(0, |seen| seen.size.value()).saturating_sub(1);
    let due = binds.unwrap_or(seen);
    Ok((own != due).then(|| {
        (
            format!("rows through seq {due}"),
            format!("through seq {own}"),
        )
    }))
}
