//! Why a step of a run was not done.

use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::ManifestId;
use clover_event::id::RunId;
use clover_event::payload::sgd::SgdRow;
use clover_event::payload::sgd::SgdSplit;
use clover_ground::sign::KeyId;
use clover_ledger::Unmet;
use clover_num::Micro;
use clover_projection::sgd::due::SgdDue;
use clover_workflow::judge::JudgeError;

/// Why a step of a run was not done.
#[derive(Debug, thiserror::Error)]
pub enum SgdError {
    /// Whoever writes gradients and patches gave none.
    #[error("the agents: {0}")]
    Agents(String),
    /// What the run may cost is spent.
    #[error(
        "run {0}: its scores reached what account or cap have left; what was answered is on record"
    )]
    Capped(RunId),
    /// Labels on another scale than that of a run.
    #[error(
        "labels of {experiment} are on a scale from {low} to {high}: a run reads labels from 0 to 1, so take them in as shares of that scale, in an experiment of their own"
    )]
    LabelScale {
        /// The experiment.
        experiment: ExperimentId,
        /// The low end of the scale.
        low: Micro,
        /// The high end.
        high: Micro,
    },
    /// Somebody asked to stop while its judge was asked.
    #[error("run {0} was interrupted; what was answered is on record")]
    Cut(RunId),
    /// What the record gives is none.
    #[error("expected {}, found {}", .0.expected, .0.found)]
    Course(Box<Unmet>),
    /// The run has ended.
    #[error("run {0} has ended")]
    Ended(RunId),
    /// No loss tells rows apart whose labels are all equal.
    #[error("the labels of {0} are all equal: expected at least two values in it")]
    EqualTargets(SgdSplit),
    /// A part has no rows.
    #[error(
        "{experiment}: no labelled row falls into {split}; expected at least 3 clusters in each part, found {rows} rows in all"
    )]
    FewRows {
        /// The experiment.
        experiment: ExperimentId,
        /// The part.
        split: SgdSplit,
        /// Labelled rows in all.
        rows: usize,
    },
    /// The judge cannot be asked.
    #[error("judge {judge}: {error}")]
    Judge {
        /// The judge.
        judge: JudgeId,
        /// Why.
        error: JudgeError,
    },
    /// The agents' key scored or labelled.
    #[error("key {0} signed a score or a label: the agents of a run may not")]
    JudgedKey(KeyId),
    /// Something of a row stands in what would leave.
    #[error("run {run}: nothing was handed over, for it holds {what}")]
    Leak {
        /// The run.
        run: RunId,
        /// What of which row.
        what: String,
    },
    /// A name is so long that nothing can be named after it.
    #[error("run {0}: its name is too long for an experiment that is named after it")]
    LongName(RunId),
    /// Nothing sends to the endpoint of its judge.
    #[error("run {0}: its judge is behind HTTP, and nothing here sends to it")]
    NoDesk(RunId),
    /// No judge of a name is registered.
    #[error("no judge {judge} is registered in {experiment}")]
    NoJudge {
        /// The judge.
        judge: JudgeId,
        /// The experiment.
        experiment: ExperimentId,
    },
    /// No proposal waits for a person.
    #[error("run {0}: no proposal waits for a word")]
    NoneWaits(RunId),
    /// No run of a name.
    #[error("no run {0}")]
    NoRun(RunId),
    /// The text of a row is not at hand.
    #[error("the texts of {}/{}/{} are not at hand: the judge has nothing to read", .0.policy, .0.item, .0.draw)]
    NoText(Box<SgdRow>),
    /// The judge gave no number at all.
    #[error(
        "judge {judge}: none of {rows} rows has a score that can be read; nothing was recorded, and the same command asks again"
    )]
    NothingRead {
        /// The judge.
        judge: JudgeId,
        /// Rows that it was asked about.
        rows: usize,
    },
    /// Something else is due.
    #[error("run {run}: {due} comes first")]
    NotDue {
        /// The run.
        run: RunId,
        /// What is due.
        due: SgdDue,
    },
    /// A gate has other arms than the prompts of its run.
    #[error("gate {0}: its arms are not prompt 0 and the checkpoint of its run")]
    OtherArms(ManifestId),
    /// A prompt is none.
    #[error("the prompt: {0}")]
    Prompt(String),
    /// A program was named, and the run's judge is the simulated one.
    #[error("run {0}: its judge is the simulated one; a program is not asked")]
    SimulatedJudge(RunId),
    /// The checkpoint is prompt 0.
    #[error("run {0}: its checkpoint is prompt 0, and there is nothing to promote")]
    Unchanged(RunId),
    /// A person ended the run before its test was read.
    #[error("run {0}: a person ended it before its test was read, and nothing of it is promoted")]
    Stopped(RunId),
    /// A constant is none that a run may have.
    #[error("expected {}, found {}", .0.expected, .0.found)]
    Terms(Box<Unmet>),
    /// The endpoint of the judge gave no answer that ends its asks.
    #[error("judge {judge}: {left} asks came to nothing{}; the same command asks again", why_of(.why.as_deref()))]
    Unanswered {
        /// The judge.
        judge: JudgeId,
        /// Asks that came to nothing yet.
        left: u64,
        /// What the endpoint said last.
        why: Option<String>,
    },
    /// The run does not say who pays for scores.
    #[error("run {0}: it does not say who pays for scores of a judge behind HTTP")]
    Unpaid(RunId),
    /// The plan of a run's gate can never promote its checkpoint.
    #[error(
        "gate {gate}: its plan can never promote, and confirm was not scored. {fields}: expected {}, found {}",
        .unmet.expected, .unmet.found
    )]
    VainPlan {
        /// The fields that say so.
        fields: &'static str,
        /// The gate.
        gate: ManifestId,
        /// What is expected, and what stands there.
        unmet: Box<Unmet>,
    },
    /// A run is opened under the name of another.
    #[error("a run {0} was opened before")]
    Taken(RunId),
}

fn why_of(why: Option<&str>) -> String {
    why.map_or_else(String::new, |why| format!(", and the endpoint says: {why}"))
}

impl From<Unmet> for SgdError {
    fn from(unmet: Unmet) -> Self {
        Self::Course(Box::new(unmet))
    }
}
