//! Exit code, word and next command of an intake that was refused.

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::intake::ImportArgs;
use crate::cli::record;
use crate::ground::shell;
use crate::session::intake::InputFile;
use crate::session::intake::IntakeError;
use crate::session::intake::signers;
use crate::view::Exit;
use crate::workflow::import::ImportError;
use crate::workflow::import::plan::ImportPlan;

/// A refusal with what a program reads of it.
fn with_data(message: String, next: impl Into<String>, data: Value) -> CliError {
    let mut error = CliError::refused(message, next);
    error.data = data;
    error
}

/// A label of a row that the ledger does not hold.
fn not_held(message: String, first: &ImportError) -> CliError {
    let next = format!("mend line {} of {}", first.line, shell::word(&first.file));
    let data = json!({
        "rule": "row", "expected": "a row that this ledger holds",
        "file": first.file, "line": first.line,
    });
    with_data(message, next, data)
}

/// A scale that is another than the one on record, or that comes too late.
fn of_scale(error: &IntakeError, message: String) -> CliError {
    let next = match error {
        IntakeError::OffScale { seq, .. } => {
            format!("clover show {seq}; then the same command with the scale that holds every label")
        }
        IntakeError::LateScale { .. } => {
            "the same command without that scale, where labels go from 0 to 1; else clover experiment register ID".to_owned()
        }
        IntakeError::OtherScoreScale {
            file, line, known, ..
        } => {
            let next = format!(
                "the same command with --scale {}:{}, where these scores are on it; else with --judge ID",
                known.low_micro, known.high_micro
            );
            let data = json!({"rule": "judge", "file": file, "line": line});
            return with_data(message, next, data);
        }
        _ => {
            "the same command without that scale, where the labels are on the declared one; else clover experiment register ID".to_owned()
        }
    };
    CliError::refused(message, next)
}

impl From<IntakeError> for CliError {
    fn from(error: IntakeError) -> Self {
        let message = error.to_string();
        match error {
            IntakeError::Blob(_) => {
                Self::new(Exit::Unexpected, "unexpected", message, "clover doctor")
            }
            IntakeError::Conflicts { seqs, .. } => {
                let data = json!({"rule": "score_once", "conflicts": seqs.len(), "seqs": seqs});
                with_data(message, "clover log --kind score.conflict", data)
            }
            IntakeError::LateFields { .. } => Self::refused(
                message,
                "the same command without --field; a new experiment takes it with its rows, before labels",
            ),
            IntakeError::NoTexts {
                file,
                line,
                neither,
                ..
            } => {
                let next = if neither {
                    "the same command with --map prompt=COLUMN,response=COLUMN, or with --without-texts where a program finds them by name"
                } else {
                    "the same command with --map prompt=COLUMN,response=COLUMN"
                };
                with_data(
                    message,
                    next,
                    json!({"rule": "row", "file": file, "line": line}),
                )
            }
            IntakeError::OffScale { .. }
            | IntakeError::OtherScale { .. }
            | IntakeError::LateScale { .. }
            | IntakeError::OtherScoreScale { .. } => of_scale(&error, message),
            IntakeError::OwnScore {
                file, line, seq, ..
            } => with_data(
                message,
                "the same command with --judge ID, where another judge gave these scores",
                json!({"rule": "score_once", "file": file, "line": line, "seq": seq}),
            ),
            IntakeError::Erased { seq, .. } => Self::refused(message, format!("clover show {seq}")),
            IntakeError::NoCustodian | IntakeError::NoRecipient(_) => {
                Self::refused(message, "clover key new NAME --role custodian --seal")
            }
            IntakeError::Row {
                file,
                line,
                rule,
                expected,
                found,
                in_the_way,
            } => {
                let next = in_the_way.map_or("clover label design list".to_owned(), |seq| {
                    format!("clover show {seq}")
                });
                let data = json!({
                    "rule": rule, "expected": expected, "found": found, "in_the_way": in_the_way,
                    "file": file, "line": line,
                });
                with_data(message, next, data)
            }
            IntakeError::NotHeld(first) => not_held(message, &first),
            IntakeError::SeveralCustodians => {
                Self::usage(message, "the same command with --to KEY")
            }
        }
    }
}

/// Refuses to seal labels that would have to be revealed already. What is sealed on record stays as it is.
pub(super) fn in_time(
    ctx: &Ctx<'_>,
    common: &ImportArgs,
    plans: &[ImportPlan],
) -> Result<(), CliError> {
    match &common.sealing.reveal_by {
        Some(text) if signers::seals(plans) => {
            record::deadline(ctx.ambient().now(), text).map(|_| ())
        }
        _ => Ok(()),
    }
}

/// Refuses files without a label where labels are asked for: they would be taken in as if nobody had any.
pub(super) fn some_labels(files: &[InputFile]) -> Result<(), CliError> {
    let mut rows = files.iter().flat_map(|file| &file.rows.rows);
    let Some(first) = files.first() else {
        return Ok(());
    };
    if rows.any(|row| row.label.is_some()) {
        return Ok(());
    }
    let names: Vec<_> = first.rows.names.iter().map(String::as_str).collect();
    let has = if names.is_empty() {
        String::new()
    } else {
        format!("; it has {}", names.join(", "))
    };
    Err(CliError::usage(
        format!(
            "{}: --labels is given, and no row has a label: expected oracle_label{has}",
            first.rows.file
        ),
        "the same command with --map oracle_label=NAME, or without --labels",
    ))
}
