//! Refusals about keys and their files.

use crate::cli::error::CliError;
use crate::ground::shell;
use crate::session::keys::KeyError;
use crate::session::keys::request::RequestError;

impl From<KeyError> for CliError {
    fn from(error: KeyError) -> Self {
        let message = error.to_string();
        match error {
            KeyError::LookAlike { .. } => Self::usage(message, "clover key list"),
            KeyError::LogKeyMissing(_) => Self::not_found(message, "clover status"),
            KeyError::LogKeyUnreadable { .. } | KeyError::LogKeyUnwritable(_) => {
                Self::input(message, "clover doctor")
            }
            KeyError::NotTheWriter => Self::refused(message, "clover key list"),
            KeyError::Request(error) => request(&error, message),
            KeyError::Unwritable(_) => Self::input(message, "clover key new --help"),
        }
    }
}

/// A request for a key: what was changed or forged is told from what the owner does not grant.
fn request(error: &RequestError, message: String) -> CliError {
    match error {
        RequestError::Exists { key_id, .. } => {
            CliError::refused(message, format!("clover key show {key_id}"))
        }
        RequestError::Ledger { here, .. } => {
            let next = format!(
                "clover key request --for {} --roles ROLES --holder NAME -o FILE",
                shell::word(here)
            );
            CliError::refused(message, next)
        }
        RequestError::NotAsked { .. } => CliError::refused(message, "clover key admit --help"),
        RequestError::KeyId { .. } | RequestError::Possession | RequestError::Signature => {
            CliError::integrity("forged", message, "ask the holder for the file again")
        }
        RequestError::PublicKey(_) | RequestError::Recipient | RequestError::Version(_) => {
            CliError::input(message, "ask the holder for the file again")
        }
    }
}
