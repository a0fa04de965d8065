//! Refusals about waivers and regimes.

use crate::cli::error::CliError;
use crate::ground::shell;
use crate::session::regimes::RegimeError;
use crate::session::waivers::WaiverError;

impl From<WaiverError> for CliError {
    fn from(error: WaiverError) -> Self {
        let message = error.to_string();
        match error {
            WaiverError::NoneWaits(code) => {
                Self::not_found(message, format!("clover assume show {code}"))
            }
            WaiverError::SameKey => Self::usage(message, "clover key list"),
        }
    }
}

impl From<RegimeError> for CliError {
    fn from(error: RegimeError) -> Self {
        let message = error.to_string();
        match error {
            RegimeError::Words(_) => Self::usage(message, "clover regime list"),
            RegimeError::Untested { .. } => Self::not_found(message, "clover audit transport"),
            RegimeError::NoLocal(scope) => Self::refused(
                message,
                format!("clover estimate --environment {}", shell::word(&scope)),
            ),
        }
    }
}
