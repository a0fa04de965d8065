//! Refusals about what runs.

use crate::cli::error;
use crate::cli::error::CliError;
use crate::ground::shell;
use crate::session::deploy::DeployError;

impl From<DeployError> for CliError {
    fn from(error: DeployError) -> Self {
        let message = error.to_string();
        match error {
            DeployError::AllAsked { run, .. } => {
                let run = shell::word(&run);
                let next = format!("clover generator validate {run} --design ID");
                Self::refused(message, next)
            }
            DeployError::NoCalibrator { judge, name, other } => {
                let next = match other {
                    Some(other) => format!(
                        "clover deploy activate {} --judge {}",
                        shell::word(&name),
                        shell::word(&other)
                    ),
                    None => format!("clover estimate --judge {}", shell::word(&judge)),
                };
                Self::not_found(message, next)
            }
            DeployError::NoJudge(_) => Self::not_found(message, "clover deploy activate --help"),
            DeployError::NoPlan | DeployError::NoPlanRuns => {
                Self::not_found(message, "clover iterate list")
            }
            DeployError::NoRubric { name, has_others } => {
                // An experiment that has versions, and not this one: its log shows which there are.
                let next = if has_others {
                    let experiment = shell::word(&name.experiment);
                    format!("clover prompt log {experiment}")
                } else {
                    "clover rubric list".to_owned()
                };
                Self::not_found(message, next)
            }
            DeployError::NoRun(_) => Self::not_found(message, "clover generator list"),
            DeployError::NotOpened { .. } => Self::integrity("damaged", message, "clover verify"),
            DeployError::NothingRuns(_) => Self::not_found(message, "clover deploy status"),
            DeployError::NothingSince { .. } => Self::refused(message, "clover judge run --help"),
            DeployError::Uncommitted(breach) => error::refusal(&breach, None),
            DeployError::Unreadable(_) => Self::not_found(message, "clover verify"),
            DeployError::Validated { seq, .. } => {
                Self::refused(message, format!("clover show {seq}"))
            }
        }
    }
}
