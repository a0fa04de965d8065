//! How refusals of runs that lower the loss of a prompt are shown.

use crate::cli::error::CliError;
use crate::ground::shell;
use crate::session::sgd::SgdError;
use crate::view::Exit;

impl From<SgdError> for CliError {
    fn from(error: SgdError) -> Self {
        let message = error.to_string();
        match error {
            SgdError::Agents(_) => Self::refused(message, "clover sgd run --help"),
            SgdError::Course(_) => Self::integrity("damaged", message, "clover verify"),
            SgdError::EqualTargets(_) | SgdError::FewRows { .. } | SgdError::LabelScale { .. } => {
                Self::refused(message, "clover import labels --help")
            }
            SgdError::Judge { .. } => Self::refused(message, "clover judge list"),
            SgdError::NoJudge { judge, .. } => Self::refused(
                message,
                format!(
                    "clover judge run --judge {} --rows PATH -- COMMAND",
                    shell::word(&judge)
                ),
            ),
            SgdError::JudgedKey(_) => {
                Self::refused(message, "clover key new NAME --role optimizer")
            }
            SgdError::Capped(_) => {
                Self::new(Exit::Refused, "budget", message, "clover budget list")
            }
            SgdError::Cut(_) => Self::new(
                Exit::Interrupted,
                "interrupted",
                message,
                "the same command goes on where it stopped",
            ),
            SgdError::Unanswered { .. } => Self::new(
                Exit::TryLater,
                "judge_silent",
                message,
                "clover endpoint list",
            ),
            SgdError::Unpaid(run)
            | SgdError::Ended(run)
            | SgdError::Leak { run, .. }
            | SgdError::NoneWaits(run)
            | SgdError::Stopped(run)
            | SgdError::Unchanged(run) => {
                Self::refused(message, format!("clover sgd show {}", shell::word(&run)))
            }
            SgdError::OtherArms(gate) => {
                Self::refused(message, format!("clover gate show {}", shell::word(&gate)))
            }
            SgdError::LongName(_) => Self::refused(message, "clover gate plan --help"),
            SgdError::NoRun(_) => Self::not_found(message, "clover sgd status"),
            SgdError::NoText(_) => Self::refused(message, "clover import rows --help"),
            SgdError::NoDesk(run) | SgdError::NotDue { run, .. } => {
                Self::refused(message, format!("clover sgd run {}", shell::word(&run)))
            }
            SgdError::NothingRead { .. } => Self::new(
                Exit::TryLater,
                "judge_silent",
                message,
                "clover judge ask --help",
            ),
            SgdError::SimulatedJudge(_) => Self::usage(message, "the same command without --"),
            SgdError::Prompt(_) | SgdError::Terms(_) => {
                Self::usage(message, "clover sgd open --help")
            }
            SgdError::VainPlan { gate, .. } => Self::refused(
                message,
                format!("clover prereg show {}", shell::word(&gate)),
            ),
            SgdError::Taken(_) => Self::refused(message, "clover sgd status"),
        }
    }
}
