//! Rules that fire, and those that hardly do.

use clover_event::payload::report::ReportPart;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_ledger::State;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Section;
use clover_projection::bundle::Table;
use clover_projection::iterations::story::Story;
use clover_rubric::prompt::Firing;

use crate::bundle::measured::BundleMeasurement;
use crate::dead;
use crate::dead::Turn;
use crate::iterate::rows::IterationRowsError;

/// How often each rule of the rubric in force fired over the logs of this iteration and of the one before.
pub(super) fn complexity(
    measured: &BundleMeasurement,
    ledger: &Ledger,
    story: &Story,
    state: &State,
) -> Result<Section, LedgerError> {
    let mut part = Section::new(ReportPart::Complexity, "");
    let opened = story.opened().map_or(0, |(seq, _)| seq);
    let before = dead::turns(
        ledger,
        (state, &story.experiment),
        &measured.rubric,
        (opened, story.through_seq.saturating_add(1)),
        1,
    );
    let before = match before {
        Ok(turns) => turns.into_iter().next(),
        Err(IterationRowsError::Ledger(error)) => return Err(error),
        Err(other) => {
            part.lacks("rules in the iteration before", other.to_string());
            None
        }
    };
    if before.is_none() && part.missing.is_empty() {
        part.lacks(
            "dead rules",
            "a rule is dead when it is rare in two iterations in a row, and none before this one has read rows",
        );
    }
    let (firing, without) = measured.dev.loaded.firing(&measured.rubric);
    part.table(table(measured, &firing, before.as_ref()));
    if without > 0 {
        part.lacks(
            format!("{without} rows among the counts"),
            "they have no evidence that the rules could read",
        );
    }
    Ok(part)
}

fn share(firing: &Firing, path: &str) -> Cell {
    let fired = firing.fired.get(path).copied().unwrap_or(0);
    if firing.rows == 0 {
        return Cell::Absent;
    }
    Cell::number(fired as f64 / firing.rows as f64)
}

fn table(measured: &BundleMeasurement, firing: &Firing, before: Option<&Turn>) -> Table {
    let mut title = format!(
        "Rules of the rubric in force: how many of {} logs they fired on",
        firing.rows
    );
    if let Some(before) = before {
        title.push_str(&format!(
            ", and of {} in {}",
            before.firing.rows, before.iteration
        ));
    }
    let mut table = Table::new(
        "rules",
        title,
        &[
            ("rule", "rule"),
            ("fired", "fired on"),
            ("share", "share"),
            ("fired_before", "the iteration before"),
            ("share_before", "share"),
            ("standing", "standing"),
        ],
    );
    let mut counted: Vec<&Firing> = before.iter().map(|turn| &turn.firing).collect();
    counted.push(firing);
    let mut events = measured.dev.in_force.events.clone();
    events.extend(before.map(|turn| turn.read_seq));
    let fired = |of: &Firing, path: &str| {
        of.fired
            .get(path)
            .copied()
            .map_or(Cell::Absent, Cell::count)
    };
    for path in firing.fired.keys() {
        table.row_of(
            events.clone(),
            vec![
                Cell::text(path.as_str()),
                fired(firing, path),
                share(firing, path),
                before.map_or(Cell::Absent, |turn| fired(&turn.firing, path)),
                before.map_or(Cell::Absent, |turn| share(&turn.firing, path)),
                Cell::text(dead::standing(path, &counted).as_str()),
            ],
        );
    }
    table
}
