//! Refusals about keys and their files.

use crate::cli::error::CliError;
use crate::session::keys::KeyError;

impl From<KeyError> for CliError {
    fn from(error: KeyError) -> Self {
        let message = error.to_string();
        match error {
            KeyError::LookAlike { .. } => Self::usage(message, "clover key list"),
            KeyError::LogKeyMissing(_) => Self::not_found(message, "clover status"),
            KeyError::LogKeyUnreadable { .. } | KeyError::LogKeyUnwritable(_) => {
                Self::input(message, "clover doctor")
            }
            KeyError::Unwritable(_) => Self::input(message, "clover key new --help"),
        }
    }
}
