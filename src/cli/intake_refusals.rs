//! Exit code, word and next command of an intake that was refused.

use serde_json::json;

use crate::cli::error::CliError;
use crate::session::intake::IntakeError;
use crate::view::Exit;

impl From<IntakeError> for CliError {
    fn from(error: IntakeError) -> Self {
        let message = error.to_string();
        match error {
            IntakeError::Blob(_) => {
                Self::new(Exit::Unexpected, "unexpected", message, "clover doctor")
            }
            IntakeError::Conflicts { seqs, .. } => {
                let mut error = Self::refused(message, "clover log --kind score.conflict");
                error.data = json!({"rule": "score_once", "conflicts": seqs.len(), "seqs": seqs});
                error
            }
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
                let mut error = Self::refused(message, next);
                error.data = json!({"rule": "row", "file": file, "line": line});
                error
            }
            IntakeError::OffScale { seq, .. } => Self::refused(
                message,
                format!(
                    "clover show {seq}; then the same command with the scale that holds every label"
                ),
            ),
            IntakeError::OtherScale { .. } => Self::refused(
                message,
                "the same command without that scale, where the labels are on the declared one; else clover experiment register ID",
            ),
            IntakeError::OwnScore {
                file, line, seq, ..
            } => {
                let mut error = Self::refused(
                    message,
                    "the same command with --judge ID, where another judge gave these scores",
                );
                error.data = json!({"rule": "score_once", "file": file, "line": line, "seq": seq});
                error
            }
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
                let mut error = Self::refused(message, next);
                error.data = json!({
                    "rule": rule, "expected": expected, "found": found, "in_the_way": in_the_way,
                    "file": file, "line": line,
                });
                error
            }
            IntakeError::SeveralCustodians => {
                Self::usage(message, "the same command with --to KEY")
            }
        }
    }
}
