//! Confirm labels in parts: some are shown, every test looks, until all stopped or the block ends.

use std::collections::BTreeMap;

use clover_event::id::ItemId;
use clover_event::id::RowId;
use clover_event::payload::label::draw_of_row;
use clover_event::payload::predicate::ConfirmLooked;
use clover_event::payload::predicate::SequentialStop;
use clover_ledger::AppendedEvent;
use clover_num::Count;
use clover_projection::reader::LogStatement;
use clover_workflow::iterate::course::Course;
use clover_workflow::iterate::rows::Unit;

use crate::confirm::PaidDesign;
use crate::error::SessionError;
use crate::iterate::Bench;
use crate::iterate::IterationError;
use crate::ports::Ports;

/// Shows labels and looks, until every test stopped or the block ends; where one crossed, the rest is shown.
pub(super) fn look(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    course: &Course,
    opening: Option<&PaidDesign>,
) -> Result<Vec<AppendedEvent>, SessionError> {
    let plan = bench.record.opened.said.params.sequential.as_ref();
    let every = plan.map_or(1, |plan| whole(plan.look_every)).max(1);
    let mut appended = Vec::new();
    loop {
        let size = bench.ledger.size();
        let rows = course.unsealed(&bench.ledger, &bench.record, size)?;
        let sequence = rows.sequence.as_ref().ok_or(IterationError::NoOrder)?;
        let (shown, units) = (sequence.shown(), sequence.units.len());
        let last = bench.record.looks.last();
        let looked = last.map_or(0, |look| whole(look.said.units));
        let settled =
            last.is_some_and(|look| stops(look).all(|stop| stop != SequentialStop::Continue));
        let crossed =
            last.is_some_and(|look| stops(look).any(|stop| stop == SequentialStop::Crossed));
        let is_whole = shown == units && (looked == units || settled);
        if bench.record.saves_labels() || is_whole {
            return Ok(appended);
        }
        let target = if settled && crossed {
            units
        } else {
            looked.saturating_add(every).min(units)
        };
        if shown >= target {
            let sealed = course.sealed(&bench.ledger, &bench.record)?;
            let look = course.looked(&rows, &sealed)?;
            appended.extend(bench.say(ports, vec![look.into()])?);
            continue;
        }
        let next = &sequence.units[shown..target];
        reveal(bench, ports, opening, next)?;
    }
}

/// More than any machine has places for is all of them.
fn whole(count: Count) -> usize {
    usize::try_from(count.value()).unwrap_or(usize::MAX)
}

fn stops(look: &LogStatement<ConfirmLooked>) -> impl Iterator<Item = SequentialStop> {
    look.said.hypotheses.iter().map(|of| of.test.stop)
}

/// Shows the labels of some clusters.
fn reveal(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    opening: Option<&PaidDesign>,
    units: &[Unit],
) -> Result<(), SessionError> {
    let opening = opening.ok_or(IterationError::NoDesignOpen)?;
    let places: BTreeMap<&ItemId, usize> = units
        .iter()
        .enumerate()
        .map(|(at, unit)| (&unit.item, at))
        .collect();
    let place = |row: &RowId| {
        let (_, item, _) = draw_of_row(row)?;
        places.get(&item).copied()
    };
    if opening
        .reveal_in(ports, &mut bench.ledger, &place)?
        .is_empty()
    {
        return Err(IterationError::ClusterElsewhere.into());
    }
    bench.again()
}
