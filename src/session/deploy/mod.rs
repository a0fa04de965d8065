//! What runs: the committed prompt, its guardrails, recalibrations, and policies that are tuned under it.

pub mod activation;
pub mod generator;
pub mod guardrails;
pub mod prompt;
pub mod recalibration;

use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::RunId;
use clover_ledger::Breach;
use clover_ledger::State;
use clover_num::Count;
use clover_projection::deployments::Deployment;
use clover_projection::deployments::Deployments;
use clover_projection::deployments::ExperimentDeployments;
use clover_projection::rubrics::RubricRegistration;
use clover_projection::rubrics::Rubrics;

/// A version of an experiment's rubric; the one in force without a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptName {
    /// The experiment.
    pub experiment: ExperimentId,
    /// The version.
    pub version: Option<String>,
}

impl std::fmt::Display for PromptName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{}@{version}", self.experiment),
            None => self.experiment.fmt(f),
        }
    }
}

/// Why nothing of a deployment was recorded.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// A run may ask nothing more.
    #[error("run {run}: all {steps} steps were asked")]
    AllAsked {
        /// The run.
        run: RunId,
        /// How many it had.
        steps: u64,
    },
    /// No calibrator was fitted for a judge.
    #[error("no calibrator was fitted for {judge}{}", of_other(.other.as_ref()))]
    NoCalibrator {
        /// The judge.
        judge: JudgeId,
        /// The version that was to run.
        name: PromptName,
        /// The judge with whose calibrator the version's criteria were evaluated.
        other: Option<JudgeId>,
    },
    /// A run of a generator is opened while nothing runs.
    #[error("nothing of {0} runs: there is no judge to freeze")]
    NoJudge(ExperimentId),
    /// A rubric is of no iteration.
    #[error("the rubric was never part of an iteration: no plan has its thresholds")]
    NoPlan,
    /// The rubric that runs is of no iteration.
    #[error("the rubric that runs was never part of an iteration: no plan has its thresholds")]
    NoPlanRuns,
    /// No rubric of a name.
    #[error("no registered rubric {name}")]
    NoRubric {
        /// The name.
        name: PromptName,
        /// Whether the experiment has other versions.
        has_others: bool,
    },
    /// No run of a name.
    #[error("no run {0} of a generator")]
    NoRun(RunId),
    /// Nothing runs.
    #[error("nothing of {0} runs")]
    NothingRuns(ExperimentId),
    /// Nothing was recorded that a check could read.
    #[error("nothing was recorded since seq {through_seq}")]
    NothingSince {
        /// The newest entry.
        through_seq: Count,
    },
    /// The entry that should open a run does not.
    #[error("seq {seq} does not open {run}")]
    NotOpened {
        /// The entry.
        seq: u64,
        /// The run.
        run: RunId,
    },
    /// A registered rubric cannot be read.
    #[error("the rubric of {0} cannot be read")]
    Unreadable(PromptName),
    /// A patch may not be committed.
    #[error("{0}")]
    Uncommitted(Box<Breach>),
    /// A run was validated before.
    #[error("run {run} was validated at seq {seq}, once and for all")]
    Validated {
        /// The run.
        run: RunId,
        /// Where.
        seq: u64,
    },
}

/// Which judge the version was tried with.
fn of_other(other: Option<&JudgeId>) -> String {
    other.map_or_else(String::new, |other| {
        format!(": this version was tried with the scores of {other}")
    })
}

/// A registered version by its name.
///
/// # Errors
/// [`DeployError::NoRubric`].
pub fn registered<'a>(
    state: &'a State,
    name: &PromptName,
) -> Result<&'a RubricRegistration, DeployError> {
    let rubrics = state.fold::<Rubrics>();
    let found = rubrics.named(&name.experiment, name.version.as_deref());
    found.ok_or_else(|| DeployError::NoRubric {
        name: name.clone(),
        has_others: name.version.is_some() && rubrics.named(&name.experiment, None).is_some(),
    })
}

/// The running deployment of an experiment.
fn running<'a>(
    state: &'a State,
    experiment: &ExperimentId,
) -> Result<(&'a ExperimentDeployments, &'a Deployment), DeployError> {
    let of = state.fold::<Deployments>().of(experiment);
    let found = of.and_then(|of| Some((of, of.running()?)));
    found.ok_or_else(|| DeployError::NothingRuns(experiment.clone()))
}
