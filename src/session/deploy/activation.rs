//! The newest committed prompt runs, or what ran before runs again.

use clover_event::id::AnchorSetId;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::Text;
use clover_event::payload::deployment::DeploymentActivated;
use clover_event::payload::deployment::DeploymentRolledBack;
use clover_event::payload::deployment::Versions;
use clover_ground::digest::Digest;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::State;
use clover_projection::deployments::Deployment;
use clover_projection::deployments::Deployments;
use clover_projection::deployments::ExperimentDeployments;
use clover_projection::rubrics::RubricRegistration;
use clover_workflow::patches;
use clover_workflow::prompts;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::deploy::DeployError;
use crate::deploy::PromptName;
use crate::deploy::registered;
use crate::deploy::running;
use crate::error::SessionError;
use crate::ports::Ports;

/// What is to run, and on what it stands.
#[derive(Clone, Debug)]
pub struct ActivationTerms {
    /// The version.
    pub name: PromptName,
    /// The judge whose raw answers are used.
    pub judge: JudgeId,
    /// Its calibrator; else that of the recalibration, else the one that its criteria were evaluated with, else the newest
    /// fitted for the judge.
    pub calibrator: Option<Digest>,
    /// The model, where the judge is not registered.
    pub model: Option<Text>,
    /// The anchor set.
    pub anchors: Option<AnchorSetId>,
    /// The recalibration that it stands on; else the newest of this version, judge and calibrator.
    pub recalibration: Option<EventId>,
}

/// Activates a committed prompt.
///
/// # Errors
/// [`DeployError`], [`SessionError::Port`] without a releaser's key, and [`SessionError::Ledger`].
pub fn activate(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    terms: &ActivationTerms,
    intent: Intent,
) -> Result<Submission, SessionError> {
    let said = activation(ledger.state(), terms)?;
    let command = Command::new(said, Some(terms.name.experiment.clone()));
    append::submit_one(ports, ledger, command, intent)
}

fn activation(state: &State, terms: &ActivationTerms) -> Result<DeploymentActivated, DeployError> {
    let (experiment, judge) = (&terms.name.experiment, &terms.judge);
    let registered = registered(state, &terms.name)?;
    let none = ExperimentDeployments::default();
    let of = state.fold::<Deployments>().of(experiment).unwrap_or(&none);
    let stands_on = terms
        .recalibration
        .or_else(|| recalibrated(of, registered, terms));
    let calibrator = terms
        .calibrator
        .or_else(|| Some(of.recalibrations.get(&stands_on?)?.calibrator))
        .or_else(|| calibrator(state, (experiment, registered), of, judge));
    let calibrator = calibrator.ok_or_else(|| DeployError::NoCalibrator {
        judge: judge.clone(),
        name: terms.name.clone(),
        other: tried_with(state, (experiment, registered), of),
    })?;
    let known = of.models.get(judge).and_then(Text::new);
    let model = known.or_else(|| terms.model.clone());
    let unreadable = || DeployError::Unreadable(terms.name.clone());
    let (Some(rubric), Some(told)) = (
        patches::rubric_of(registered),
        prompts::told(state, experiment, registered),
    ) else {
        return Err(unreadable());
    };
    Ok(DeploymentActivated {
        commit: registered.id,
        previous: of.active,
        recalibration: stands_on,
        rubric_hash: registered.hash,
        versions: Versions {
            anchors: terms.anchors.clone(),
            calibrator,
            judge: judge.clone(),
            model: model
                .unwrap_or_else(|| Text::new(judge.as_str()).expect("BUG: an id is a text")),
            prompt_hash: told.hash,
            rubric_version: registered.version.clone(),
            sdp_version: rubric.sdp_version().parse().map_err(|_| unreadable())?,
        },
    })
}

/// The newest recalibration of a commit and a judge, and of the calibrator where one is asked for.
fn recalibrated(
    of: &ExperimentDeployments,
    registered: &RubricRegistration,
    terms: &ActivationTerms,
) -> Option<EventId> {
    let all = of.recalibrations.iter();
    let own = all.filter(|(_, one)| {
        let is_asked = terms.calibrator.is_none_or(|asked| asked == one.calibrator);
        one.commit == registered.id && one.judge == terms.judge && is_asked
    });
    own.max_by_key(|(_, one)| one.seq).map(|(id, _)| *id)
}

/// The calibrator that the version's criteria were evaluated with, else the newest fitted for the judge.
fn calibrator(
    state: &State,
    (experiment, registered): (&ExperimentId, &RubricRegistration),
    of: &ExperimentDeployments,
    judge: &JudgeId,
) -> Option<Digest> {
    let hashes = prompts::judged_as(state, experiment, registered);
    of.evaluated(judge, &hashes)
        .or_else(|| of.unevaluated(judge))
}

/// The judge under which a version was tried, and so runs; `None` where no criterion of it was evaluated.
pub fn judge_of(state: &State, name: &PromptName) -> Option<JudgeId> {
    let registered = registered(state, name).ok()?;
    let of = state.fold::<Deployments>().of(&name.experiment)?;
    tried_with(state, (&name.experiment, registered), of)
}

/// The judge of the newest calibrator that the version's criteria were evaluated with.
fn tried_with(
    state: &State,
    (experiment, registered): (&ExperimentId, &RubricRegistration),
    of: &ExperimentDeployments,
) -> Option<JudgeId> {
    let hashes = prompts::judged_as(state, experiment, registered);
    let fits = of.fits.iter().flat_map(|(judge, fits)| {
        let own = fits.values().map(move |of| (judge, of));
        own.filter(|(_, of)| hashes.iter().any(|hash| of.rubrics.contains(hash)))
    });
    let newest = fits.max_by_key(|(_, of)| of.seq);
    newest.map(|(judge, _)| judge.clone())
}

/// The rollback to what ran before.
pub(super) fn back(
    of: &ExperimentDeployments,
    running: &Deployment,
    breach: Option<EventId>,
    reason: Text,
) -> DeploymentRolledBack {
    let before = of.before();
    DeploymentRolledBack {
        breach,
        deployment: running.id,
        reason,
        restored: before.map(|of| of.id),
        rubric_hash: before.map(|of| of.rubric_hash),
    }
}

/// Lets what ran before run again.
///
/// # Errors
/// [`DeployError::NothingRuns`], [`SessionError::Port`] without a releaser's key, and [`SessionError::Ledger`].
pub fn roll_back(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    experiment: &ExperimentId,
    reason: Text,
    intent: Intent,
) -> Result<Submission, SessionError> {
    let (of, running) = running(ledger.state(), experiment)?;
    let said = back(of, running, of.breach().map(|of| of.id), reason);
    let command = Command::new(said, Some(experiment.clone()));
    append::submit_one(ports, ledger, command, intent)
}
