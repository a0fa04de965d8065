//! Refusals about waivers and splits.

use crate::cli::error::CliError;
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
