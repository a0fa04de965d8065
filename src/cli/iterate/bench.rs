//! An iteration opened for a verb, and the answer of its steps.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::event::id::IterationId;
use crate::ground::shell;
use crate::ledger::Appended;
use crate::ledger::Ledger;
use crate::projection::iterations::record::Record;
use crate::projection::iterations::step::Step;
use crate::session::iterate::Bench;
use crate::session::iterate::bench;
use crate::view::View;
use crate::workflow::iterate::course::CourseError;
use crate::workflow::iterate::rows::RowsError;

/// An iteration's name.
pub(in crate::cli) fn named(name: &str) -> Result<IterationId, CliError> {
    name.parse().map_err(|error| {
        CliError::usage(
            format!("iteration {name:?}: {error}"),
            "clover iterate list",
        )
    })
}

/// What the log says of an iteration.
pub(in crate::cli) fn recorded(
    ledger: &Ledger,
    id: &IterationId,
    below: u64,
) -> Result<Record, CliError> {
    Ok(bench::recorded(ledger, id, below)?)
}

/// How a computation failed, with what to do.
pub(in crate::cli) fn failed(error: CourseError) -> CliError {
    let next = "clover iterate list";
    match error {
        CourseError::Rows(RowsError::Ledger(error)) => error.into(),
        CourseError::Rows(RowsError::Missing { what, next }) => CliError::refused(what, next),
        CourseError::Rows(RowsError::Unread(error)) => error.into(),
        CourseError::Rows(error @ RowsError::Evidence { .. }) => CliError::refused(
            error.to_string(),
            "clover judge run --judge ID --rows PATH --known FILE",
        ),
        CourseError::Rows(RowsError::Unfit(error)) => CliError::refused(error.to_string(), next),
        CourseError::Unfit(error) => {
            let message = format!("too little to go on: {error}");
            CliError::refused(message, "clover iterate show ID")
        }
        CourseError::Candidate(what) => CliError::refused(what, "clover patch list"),
    }
}

/// Opens the ledger to go on with an iteration.
pub(in crate::cli) fn open(ctx: &mut Ctx<'_>, name: &str) -> Result<Bench, CliError> {
    let id = named(name)?;
    let (home, ledger) = home::open_to_write(ctx)?;
    Ok(Bench::new(home, ledger, id)?)
}

/// The answer of a step: what is due next, and where the log stands.
pub(in crate::cli) fn answer(
    bench: &Bench,
    (text, data): (String, serde_json::Value),
    appended: &[Appended],
) -> View {
    let mut answer = View::untyped(text, data).with_events(appended);
    answer.verdict = if appended.iter().all(|one| one.already) {
        "already_recorded"
    } else {
        "appended"
    };
    answer.checkpoint = Some((bench.ledger.size(), bench.ledger.root().to_base64()));
    answer.facts_mut()["due"] = bench.due().map(Step::as_str).into();
    answer.with_next(next(&bench.id, bench.due()))
}

/// The command of a step.
pub(super) fn next(id: &IterationId, due: Option<Step>) -> String {
    let id = shell::word(id);
    match due {
        None => format!("clover iterate show {id}"),
        Some(Step::Propose) => format!("clover iterate propose {id} PATCH.yaml"),
        Some(step) => format!("clover iterate {} {id}", step.as_str()),
    }
}
