//! Exit code, word and next command of a judge's work that stopped.

use crate::cli::error::CliError;
use crate::cli::error::Exit;
use crate::cli::ui;
use crate::session::judge::JudgingError;
use crate::workflow::judge::JudgeError;

impl From<JudgingError> for CliError {
    fn from(error: JudgingError) -> Self {
        let message = error.to_string();
        match error {
            JudgingError::NotRegistered { .. } => {
                Self::not_found(message, "clover judge run --judge ID --rows PATH")
            }
            JudgingError::OtherJudge { seq, .. } => {
                Self::refused(message, format!("clover show {seq}"))
            }
            JudgingError::Row { .. } => Self::refused(message, "clover judge run --help"),
            JudgingError::Stopped {
                place,
                error,
                scored,
            } => stopped(&format!("{place}{error}"), scored, &error),
            JudgingError::Unanswered { error, .. } => silent(message, &error),
        }
    }
}

/// What stopped a run, and how to go on.
pub(super) fn stopped(message: &str, scored: usize, error: &JudgeError) -> CliError {
    let recorded = ui::thousands(scored as u64);
    silent(
        format!("{message}; {recorded} rows were recorded before"),
        error,
    )
}

/// A judge that gave no score, in words.
pub(super) fn silent(message: String, error: &JudgeError) -> CliError {
    let next = "the same command goes on where it stopped";
    match error {
        JudgeError::Late(_) | JudgeError::Ended(_) => {
            CliError::new(Exit::TryLater, "try later", message, next)
        }
        JudgeError::Answer(_) | JudgeError::Declined(_) | JudgeError::Missing => {
            CliError::input(message, next)
        }
    }
}
