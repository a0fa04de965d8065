//! Fresh labels, a calibrator that is verified or fitted anew on them, and what it comes to.

use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::payload::Verdict;
use clover_event::payload::deployment::RecalibrationCompleted;
use clover_event::payload::deployment::RecalibrationTrigger;
use clover_event::payload::predicate::Evidence;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::State;
use clover_projection::deployments::Deployments;
use clover_projection::deployments::rollouts::Rollouts;
use clover_workflow::guardrails;
use clover_workflow::live::recalibration;
use clover_workflow::live::recalibration::RecalibrationQuery;
use clover_workflow::predicate;
use clover_workflow::prompts;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::deploy::DeployError;
use crate::deploy::PromptName;
use crate::deploy::registered;
use crate::error::SessionError;
use crate::ports::Ports;

/// What is held against fresh labels.
#[derive(Clone, Debug)]
pub struct RecalibrationTerms {
    /// The version.
    pub name: PromptName,
    /// The judge whose raw answers are used.
    pub judge: JudgeId,
    /// The design of the fresh labels.
    pub design: DesignId,
    /// Whether the calibrator is fitted anew on them.
    pub refit: bool,
    /// Why, where several things changed.
    pub trigger: Option<RecalibrationTrigger>,
}

/// What a recalibration found; nothing is appended yet.
#[derive(Clone, Debug)]
pub struct Recalibration {
    experiment: ExperimentId,
    /// The event's data.
    pub said: RecalibrationCompleted,
    /// Whether residuals of the labels pass.
    pub verdict: Verdict,
}

/// Holds the calibrator of a version against fresh labels.
///
/// # Errors
/// [`DeployError`] and [`SessionError::Course`].
pub fn recalibrate(
    ledger: &Ledger,
    terms: &RecalibrationTerms,
) -> Result<Recalibration, SessionError> {
    let (state, experiment) = (ledger.state(), &terms.name.experiment);
    let registered = registered(state, &terms.name)?;
    let plan = prompts::plan_told(state, experiment, registered).ok_or(DeployError::NoPlan)?;
    let thresholds = guardrails::thresholds(plan);
    let ask = RecalibrationQuery {
        design: &terms.design,
        experiment,
        judge: &terms.judge,
        refit: terms.refit,
        through: ledger.size().saturating_sub(1),
    };
    let releases = Rollouts::below(ledger, experiment, ledger.size())?;
    let of = (registered.id, ledger.size());
    let found = recalibration::recalibrate(ledger, &releases, of, &ask, &thresholds)?;
    let transport = Evidence::P6(found.computed.transport.clone());
    let said = RecalibrationCompleted {
        anchors: found.anchors,
        calibrator: found.calibrator,
        commit: registered.id,
        computed: Some(found.computed),
        design: terms.design.clone(),
        judge: terms.judge.clone(),
        labels: found.labels,
        transport: None,
        trigger: trigger(state, terms),
    };
    Ok(Recalibration {
        experiment: experiment.clone(),
        said,
        verdict: predicate::verdicts(&transport, &thresholds).recommended,
    })
}

/// Why: as asked; else the model where it differs from what runs, else a hard rule.
fn trigger(state: &State, terms: &RecalibrationTerms) -> RecalibrationTrigger {
    let of = state.fold::<Deployments>().of(&terms.name.experiment);
    let running = of.and_then(|of| of.running());
    let is_other = running.is_some_and(|of| of.versions.judge != terms.judge);
    terms.trigger.unwrap_or(if is_other {
        RecalibrationTrigger::Model
    } else {
        RecalibrationTrigger::HardRule
    })
}

impl Recalibration {
    /// Records it.
    ///
    /// # Errors
    /// [`SessionError::Port`] without an arbiter's key, and [`SessionError::Ledger`].
    pub fn record(
        &self,
        ports: &mut dyn Ports,
        ledger: &mut Ledger,
        intent: Intent,
    ) -> Result<Submission, SessionError> {
        let command = Command::new(self.said.clone(), Some(self.experiment.clone()));
        append::submit_one(ports, ledger, command, intent)
    }
}
