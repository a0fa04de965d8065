//! Iterations: how they are opened, what each step found, what is due, and one iteration on one page.

pub mod gates;
pub mod ground;
pub mod open;
pub mod reach;
pub mod sequential;
pub mod show;
pub mod steps;

use serde::Serialize;

use crate::event::id::IterationId;
use crate::ground::shell;
use crate::ledger::AppendedEvent;
use crate::projection::iterations::step::Step;
use crate::session::iterate::Bench;
use crate::view::View;

/// What a step found, and what is due after it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AndDue<T> {
    /// What it found.
    #[serde(flatten)]
    pub found: T,
    /// The step that is due; `null` when the iteration is closed.
    pub due: Option<&'static str>,
}

/// A number with six decimals at most, for people.
pub fn number(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

fn maybe(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), number)
}

/// The answer of a step over the blocks of a view: what it found, what is due next, and where the log stands.
pub fn answer<T: Serialize>(
    bench: &Bench,
    view: View,
    found: T,
    appended: &[AppendedEvent],
) -> View {
    let due = bench.due().map(Step::as_str);
    let mut view = view.with_facts(&AndDue { found, due });
    view = view.with_events(appended);
    view.verdict = if appended.iter().all(|one| one.already) {
        "already_recorded"
    } else {
        "appended"
    };
    view.checkpoint = Some((bench.ledger.size(), bench.ledger.root().to_base64()));
    view.with_next(next(&bench.id, bench.due()))
}

/// The command of a step.
pub fn next(id: &IterationId, due: Option<Step>) -> String {
    let id = shell::word(id);
    match due {
        None => format!("clover iterate show {id}"),
        Some(Step::Propose) => format!("clover iterate propose {id} PATCH.yaml"),
        Some(step) => format!("clover iterate {} {id}", step.as_str()),
    }
}
