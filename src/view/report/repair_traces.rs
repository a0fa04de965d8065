//! What the first program and the winner of a repair did on items, step by step, with flags and with what is blamed.

use crate::flow::RunOutcome;
use crate::flow::trace::TraceStep;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Table;
use crate::projection::wf::WfCandidate;
use crate::report::document::Chapter;
use crate::session::SessionError;
use crate::session::wf::outcomes_of;
use crate::view::report::made;
use crate::view::report::made::ReportSource;
use crate::view::report::repair::RunDrawn;
use crate::view::report::repair::ends;
use crate::view::report::repair::set;
use crate::view::workflow_run;

/// Most items that are shown step by step.
const ITEMS_MAX: usize = 3;
/// Most characters of an output.
const OUTPUT_MAX: usize = 300;

/// What a step did, in a few words.
fn did(step: &TraceStep) -> String {
    if let Some(flag) = &step.flag {
        let found = if flag.ok { "true" } else { "false" };
        return format!("flag is {found}");
    }
    match (&step.guard, &step.call, &step.writes) {
        (Some(guard), _, _) => {
            let tries = made::counted(guard.tries, "try", "tries");
            let still = if guard.still { ", in vain" } else { "" };
            format!("{tries}{still}")
        }
        (None, Some(_), Some(_)) => "asked, and wrote".to_owned(),
        (None, Some(_), None) => "asked, and got nothing".to_owned(),
        (None, None, Some(_)) => "wrote".to_owned(),
        (None, None, None) => "ended".to_owned(),
    }
}

/// The two tables of the part: what was returned, and the steps.
fn tables() -> (Table, Table) {
    let columns = [
        ("of", "candidate"),
        ("item", "item"),
        ("ended", "ended"),
        ("output", "output"),
        ("worth", "worth"),
    ];
    let outputs = Table::new("outputs", "What was returned", &columns);
    let columns = [
        ("item", "item"),
        ("of", "candidate"),
        ("step", "step"),
        ("attempt", "attempt"),
        ("found", "what it did"),
        ("blamed", "blamed for"),
        ("request", "asked"),
        ("wrote", "wrote"),
    ];
    (
        outputs,
        Table::new("steps", "Steps on the first items", &columns),
    )
}

/// A row for each step of an execution.
fn steps_of(
    table: &mut Table,
    (item, name): (&str, &'static str),
    (outcome, candidate): (&RunOutcome, Option<&WfCandidate>),
    events: &[u64],
) {
    let said = candidate.and_then(|of| of.feedback.as_ref());
    for step in &outcome.trace.steps {
        let blamed = said.iter().flat_map(|of| &of.blame);
        let blamed = blamed.filter(|of| of.step.as_str() == step.step);
        let blamed: Vec<&str> = blamed.map(|of| of.rule.as_str()).collect();
        table.row_of(
            events.to_vec(),
            vec![
                Cell::text(item),
                Cell::text(name),
                Cell::text(step.step.as_str()),
                Cell::count(step.attempt as u64),
                Cell::text(did(step)),
                Cell::text(blamed.join(", ")),
                Cell::maybe(step.call.as_ref().map(|of| of.request), Cell::from),
                Cell::maybe(step.writes.as_ref().map(|of| of.digest), Cell::from),
            ],
        );
    }
}

/// Steps on the first items.
///
/// # Errors
/// [`SessionError`]: the log cannot be read.
pub(super) fn chapter(
    source: &ReportSource<'_>,
    drawn: &RunDrawn<'_>,
) -> Result<Chapter, SessionError> {
    let mut part = Chapter::new(
        "steps",
        "Step by step",
        "What the first program and the winner did on the first items. The answers on record give the same steps again. Outputs are \
         data.",
    );
    let ends = ends(drawn);
    let size = source.through_seq + 1;
    let wanted = |id: &_| ends.iter().any(|(of, _)| of == id);
    let outcomes = match outcomes_of((source.ledger, size), drawn.run, &drawn.plan, &wanted) {
        // Answers and items may be erased.
        Err(SessionError::Repair(_)) => {
            part.lacks(
                "steps and outputs",
                "an item or an answer is not stored here",
            );
            return Ok(part);
        }
        found => found?,
    };
    let (mut outputs, mut steps) = tables();
    let set = set(&drawn.plan);
    for (at, item) in drawn.plan.set.items.iter().enumerate() {
        for (id, name) in &ends {
            let of = outcomes.get(id).and_then(|of| of.get(at)?.first());
            let Some(outcome) = of else {
                continue;
            };
            let candidate = drawn.run.candidate(id);
            let worth = candidate.and_then(|of| of.utilities.as_ref()?.get(at).copied());
            let ran = workflow_run::item_run(&item.id, outcome, &set);
            let output = ran.output.to_string();
            let executed = drawn.places.executed.get(id).copied();
            let events: Vec<u64> = executed.into_iter().collect();
            let worthed = drawn.places.worth.get(id).copied();
            outputs.row_of(
                executed.into_iter().chain(worthed).collect(),
                vec![
                    Cell::text(*name),
                    Cell::text(item.id.as_str()),
                    Cell::text(workflow_run::ended(&ran)),
                    Cell::text(made::cut(&output, OUTPUT_MAX)),
                    Cell::maybe(worth, Cell::micro),
                ],
            );
            if at < ITEMS_MAX {
                steps_of(&mut steps, (&item.id, name), (outcome, candidate), &events);
            }
        }
    }
    part.table_or(outputs, "nothing was executed");
    part.table_or(steps, "nothing was executed");
    let left = drawn.plan.set.items.len().saturating_sub(ITEMS_MAX);
    if left > 0 {
        part.lacks(
            format!("the steps on {left} more items"),
            "`clover repair show RUN --candidate ID --item ITEM` shows them",
        );
    }
    Ok(part)
}
