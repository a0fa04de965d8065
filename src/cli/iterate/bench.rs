//! An iteration opened for a verb.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::event::id::IterationId;
use crate::ledger::Ledger;
use crate::projection::iterations::record::IterationRecord;
use crate::session::iterate::Bench;
use crate::session::iterate::bench;
use crate::workflow::iterate::course::CourseError;
use crate::workflow::iterate::rows::IterationRowsError;

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
) -> Result<IterationRecord, CliError> {
    Ok(bench::recorded(ledger, id, below)?)
}

/// How a computation failed, with what to do.
pub(in crate::cli) fn failed(error: CourseError) -> CliError {
    let next = "clover iterate list";
    match error {
        CourseError::Rows(IterationRowsError::Ledger(error)) => error.into(),
        CourseError::Rows(IterationRowsError::Missing { what, next }) => {
            CliError::refused(what, next)
        }
        CourseError::Rows(IterationRowsError::Unread(error)) => error.into(),
        CourseError::Rows(error @ IterationRowsError::Evidence { .. }) => CliError::refused(
            error.to_string(),
            "clover judge run --judge ID --rows PATH --known FILE",
        ),
        CourseError::Rows(IterationRowsError::Unfit(error)) => {
            CliError::refused(error.to_string(), next)
        }
        CourseError::Unfit(error) => {
            let message = format!("too little to go on: {error}");
            CliError::refused(message, next)
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
