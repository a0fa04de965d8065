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
use crate::event::payload::iteration::IterationOutcome;
use crate::ground::shell;
use crate::ledger::AppendedEvent;
use crate::projection::iterations::record::IterationRecord;
use crate::projection::iterations::step::Step;
use crate::session::iterate::Bench;
use crate::view::Exit;
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
    let mut view = ended(paused(view, &bench.record), &bench.record);
    view.next = vec![next(&bench.id, bench.due())];
    if bench.record.closed.is_some() {
        // What was accepted runs nowhere yet.
        let accepted = bench.record.accepted.iter();
        let commits =
            accepted.map(|of| format!("clover prompt commit {}", shell::word(&of.said.patch)));
        view.next.extend(commits);
    }
    if bench.due() == Some(Step::Propose) && !bench.record.cards.is_empty() {
        // Patches come of people or of an optimizer that sees the cards alone.
        view.next
            .push(format!("clover synth run {}", shell::word(&bench.id)));
    }
    view
}

/// The verdict of an iteration whose gates let no patch through: it ended against what it judged.
fn ended(mut view: View, record: &IterationRecord) -> View {
    let outcome = record.closed.as_ref().map(|of| of.said.outcome);
    let is_against = outcome.is_some_and(|outcome| {
        matches!(
            outcome,
            IterationOutcome::NoCandidate
                | IterationOutcome::NoneAccepted
                | IterationOutcome::TransportFailed
        )
    });
    if is_against {
        view.exit = Exit::Fail;
    }
    view
}

/// The verdict of an iteration that paused for labels: undecided, whatever was recorded. One that ended in another way is no
/// pause any more.
pub(super) fn paused(mut view: View, record: &IterationRecord) -> View {
    let closed = record.closed.as_ref().map(|of| of.said.outcome);
    let stands = closed.is_none_or(|outcome| outcome == IterationOutcome::PausedForLabels);
    if record.paused.is_some() && stands {
        (view.verdict, view.exit) = ("paused", Exit::Inconclusive);
    }
    view
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
