//! How the command line words that sealed labels were not opened: exit code and way on.

use crate::cli::budget;
use crate::cli::error::CliError;
use crate::ground::shell;
use crate::session::confirm::ConfirmError;

impl From<ConfirmError> for CliError {
    fn from(error: ConfirmError) -> Self {
        let message = error.to_string();
        match error {
            ConfirmError::Blocked { .. } => Self::refused(message, "clover assume show CLOVER.J2"),
            ConfirmError::Envelope { seq, .. } => {
                Self::integrity("seal_broken", message, format!("clover show {seq}"))
            }
            ConfirmError::InOrder { iteration, .. } => Self::refused(
                message,
                format!("clover iterate confirm {}", shell::word(&iteration)),
            ),
            ConfirmError::NoAccount(account) => {
                Self::refused(message, budget::peeks_opened(&account))
            }
            ConfirmError::NoLabels { .. } => Self::not_found(message, "clover label design list"),
            ConfirmError::NotAccepted { design, .. } => Self::refused(
                message,
                format!("clover confirm seal {}", shell::word(&design)),
            ),
            ConfirmError::NotPeeks { .. } => Self::refused(message, "clover budget list"),
            ConfirmError::Overdraft { .. } => Self::refused(message, "clover confirm status"),
            ConfirmError::PurposeTooLong => Self::usage(message, "clover confirm unseal --help"),
        }
    }
}
