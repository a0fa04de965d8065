//! Why a step of a repair was not done.

use clover_event::id::MetaPlanId;
use clover_event::id::RunId;
use clover_event::id::UpdateId;
use clover_flow::executor::ExecutorFault;
use clover_ground::sign::KeyId;
use clover_ledger::Unmet;
use clover_projection::wf::due::WfDue;

/// Why a step of a repair was not done.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// What the record gives is none.
    #[error("expected {}, found {}", .0.expected, .0.found)]
    Course(Box<Unmet>),
    /// The run has ended.
    #[error("run {0} has ended")]
    Ended(RunId),
    /// Nothing answers for the model.
    #[error("{0}")]
    Executor(ExecutorFault),
    /// Items, terms or documents that no run can have.
    #[error("expected {expected}, found {found}")]
    Request {
        /// What is expected.
        expected: &'static str,
        /// What was found.
        found: String,
    },
    /// A file of the run is not in the ledger's folder.
    #[error("run {run}: {what} is not in the ledger's folder: it lies where the run was opened")]
    NotHere {
        /// The run.
        run: RunId,
        /// What.
        what: &'static str,
    },
    /// Nothing that the runs show is answered by an update that was not proposed before.
    #[error(
        "no update is called for: expected {0} runs or more of this context that show one class of triggers, and an update that answers it and was not proposed before"
    )]
    NoLesson(usize),
    /// No edits can be paired.
    #[error(
        "run {0}: no two edits can be paired: expected a candidate that fails, with two steps that ask a model"
    )]
    NoPair(RunId),
    /// No plan of a name.
    #[error("no plan {0}")]
    NoPlan(MetaPlanId),
    /// No update of a name.
    #[error("no update {0}")]
    NoUpdate(UpdateId),
    /// No run of a name.
    #[error("no run {0}")]
    NoRun(RunId),
    /// Nobody says what is right.
    #[error("run {0}: its set says nothing of what is right, and nothing can be measured")]
    NoTruth(RunId),
    /// Something else is due.
    #[error("run {run}: {due} comes first")]
    NotDue {
        /// The run.
        run: RunId,
        /// What is due.
        due: WfDue,
    },
    /// One key would propose, judge or score.
    #[error(
        "key {0} would propose edits or give feedback, and say what is right: expected two keys"
    )]
    OneKey(KeyId),
    /// What is right was read: nothing may follow that was chosen in its light.
    #[error("run {0}: what is right was opened: pairs come before it")]
    Opened(RunId),
    /// A run begins from an update that is not in force.
    #[error("update {0} did not pass: no run begins from it")]
    NotPassed(UpdateId),
    /// A run is opened under the name of another.
    #[error("a run {0} was opened before")]
    Taken(RunId),
}

impl From<Unmet> for RepairError {
    fn from(unmet: Unmet) -> Self {
        Self::Course(Box::new(unmet))
    }
}
