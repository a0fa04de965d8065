//! How refusals of repairs are shown.

use crate::cli::error::CliError;
use crate::ground::shell;
use crate::session::wf::RepairError;

impl From<RepairError> for CliError {
    fn from(error: RepairError) -> Self {
        let message = error.to_string();
        match error {
            RepairError::Course(_) => Self::integrity("damaged", message, "clover verify"),
            RepairError::Ended(run)
            | RepairError::NoPair(run)
            | RepairError::NoTruth(run)
            | RepairError::Opened(run) => {
                Self::refused(message, format!("clover repair show {}", shell::word(&run)))
            }
            RepairError::Executor(_) => Self::input(message, "clover repair open --help"),
            RepairError::Request { .. } => Self::usage(message, "clover repair open --help"),
            RepairError::NoLesson(_) => Self::refused(message, "clover repair measure"),
            RepairError::NoPlan(_) | RepairError::NotPassed(_) | RepairError::NoUpdate(_) => {
                Self::not_found(message, "clover meta show")
            }
            RepairError::NoRun(_) => Self::not_found(message, "clover repair status"),
            RepairError::NotDue { run, .. } => {
                Self::refused(message, format!("clover repair run {}", shell::word(&run)))
            }
            RepairError::NotHere { .. } | RepairError::Taken(_) => {
                Self::refused(message, "clover repair status")
            }
            RepairError::OneKey(_) => {
                Self::refused(message, "clover key new NAME --role custodian")
            }
        }
    }
}
