//! What stops a new ledger.

use crate::cli::error::CliError;
use crate::session::founding::FoundingError;

impl From<FoundingError> for CliError {
    fn from(error: FoundingError) -> Self {
        let message = error.to_string();
        match error {
            FoundingError::Exists(_) => Self::refused(message, "clover status"),
            FoundingError::Pin(_) => Self::integrity("pin", message, "clover doctor"),
        }
    }
}
