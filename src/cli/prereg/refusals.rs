//! Refusals about plans that bind.

use crate::cli::error::CliError;
use crate::ground::shell;
use crate::session::prereg::PreregError;

impl From<PreregError> for CliError {
    fn from(error: PreregError) -> Self {
        let message = error.to_string();
        match error {
            PreregError::Ahead { size } => {
                let message = format!("--known-at-seq: expected at most {size}");
                Self::usage(message, "clover status")
            }
            PreregError::NoManifest(_) => {
                Self::not_found(message, "clover log --kind manifest.registered")
            }
            PreregError::NoRubric(id) => {
                let id = shell::word(&id);
                Self::not_found(
                    message,
                    format!("clover rubric register FILE --experiment {id}"),
                )
            }
            PreregError::NotInForce(id) => {
                let id = shell::word(&id);
                Self::refused(message, format!("clover prereg show {id}"))
            }
            PreregError::OtherParent { .. } => {
                Self::input(message, "clover prereg new --template NAME")
            }
            PreregError::SameKey => {
                Self::refused(message, "the same command with --custodian NAME")
            }
            PreregError::SeveralJudges { first, .. } => {
                let first = shell::word(&first);
                Self::usage(message, format!("the same command with --judge {first}"))
            }
            PreregError::Unchanged(id) => {
                let id = shell::word(&id);
                Self::refused(message, format!("clover prereg diff {id}"))
            }
        }
    }
}
