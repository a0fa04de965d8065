//! A policy that is tuned under a frozen judge: what it may ask, whether fresh labels say that it got better, and the way
//! back.

use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::PolicyId;
use clover_event::id::RunId;
use clover_event::id::Text;
use clover_event::payload::generator::GeneratorObjectiveQueried;
use clover_event::payload::generator::GeneratorRolledBack;
use clover_event::payload::generator::GeneratorRunOpened;
use clover_event::payload::generator::GeneratorValidated;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::State;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::deployments::Deployments;
use clover_projection::generators::GeneratorRun;
use clover_projection::generators::Generators;
use clover_workflow::generator;
use clover_workflow::generator::Bound;
use clover_workflow::generator::FrozenJudge;
use clover_workflow::iterate::steps::BUILD;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::deploy::DeployError;
use crate::error::SessionError;
use crate::home::Home;
use crate::iterate::attack;
use crate::ports::Ports;

/// What a run is to be.
#[derive(Clone, Debug)]
pub struct RunTerms {
    /// Its name.
    pub run: RunId,
    /// The experiment whose judge is frozen.
    pub experiment: ExperimentId,
    /// The policy that it is to be better than.
    pub old: PolicyId,
    /// The policy that is tuned.
    pub new: PolicyId,
    /// Questions that it may ask.
    pub steps: Count,
    /// What is at stake.
    pub stakes_micro: Micro,
}

fn build() -> Text {
    Text::new(BUILD).expect("BUG: the name of a build is short")
}

/// Opens a run under the judge that runs.
///
/// # Errors
/// [`DeployError::NoJudge`], [`SessionError::Course`], [`SessionError::Port`] without an arbiter's key, and
/// [`SessionError::Ledger`].
pub fn open(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    terms: RunTerms,
    intent: Intent,
) -> Result<Submission, SessionError> {
    let experiment = terms.experiment;
    let of = ledger.state().fold::<Deployments>().of(&experiment);
    let running = of.and_then(|of| of.running());
    let running = running.ok_or_else(|| DeployError::NoJudge(experiment.clone()))?;
    let judge = FrozenJudge::of(ledger, &experiment, running.id, ledger.size())?;
    let said = GeneratorRunOpened {
        build: build(),
        calibrator: running.versions.calibrator,
        deployment: running.id,
        frozen: judge.frozen.digest,
        new: terms.new,
        old: terms.old,
        rubric_hash: running.rubric_hash,
        run: terms.run,
        stakes_micro: terms.stakes_micro,
        steps: terms.steps,
    };
    append::submit_one(ports, ledger, Command::new(said, Some(experiment)), intent)
}

/// A run by its name, with its experiment.
///
/// # Errors
/// [`DeployError::NoRun`].
pub fn found<'a>(
    state: &'a State,
    id: &RunId,
) -> Result<(&'a ExperimentId, &'a GeneratorRun), DeployError> {
    let all = &state.fold::<Generators>().by_experiment;
    let mut runs = all
        .iter()
        .flat_map(|(experiment, runs)| runs.iter().map(move |run| (experiment, run)));
    let found = runs.find(|(_, run)| run.run == *id);
    found.ok_or_else(|| DeployError::NoRun(id.clone()))
}

/// What a run said when it was opened.
///
/// # Errors
/// [`DeployError::NotOpened`], and [`SessionError::Ledger`] when the entry cannot be read.
pub fn opening(ledger: &Ledger, run: &GeneratorRun) -> Result<GeneratorRunOpened, SessionError> {
    let read = ledger.entry(run.seq)?;
    if let Some(Payload::GeneratorRunOpened(said)) = read.map(|read| read.event.payload) {
        return Ok(*said);
    }
    let (seq, run) = (run.seq, run.run.clone());
    Err(DeployError::NotOpened { seq, run }.into())
}

/// What a step was told.
#[derive(Clone, Debug)]
pub struct Objective {
    /// The run, as it stood before.
    pub run: GeneratorRun,
    /// The event's data.
    pub said: GeneratorObjectiveQueried,
    /// A lower bound for each output.
    pub bounds: Vec<Bound>,
    /// The event.
    pub submission: Submission,
}

/// Tells a run what outputs of a policy are worth, the run's new policy where none is named; one step of the run.
///
/// # Errors
/// [`DeployError`], [`SessionError::Course`], [`SessionError::Port`] without an arbiter's key, and
/// [`SessionError::Ledger`].
pub fn objective(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    id: &RunId,
    policy: Option<&PolicyId>,
) -> Result<Objective, SessionError> {
    let (experiment, run) = found(ledger.state(), id)?;
    let (experiment, run) = (experiment.clone(), run.clone());
    if run.used >= run.steps {
        let (run, steps) = (run.run, run.steps);
        return Err(DeployError::AllAsked { run, steps }.into());
    }
    let opened = opening(ledger, &run)?;
    let judge = FrozenJudge::of(ledger, &experiment, run.deployment, run.seq)?;
    let through = ledger.size().saturating_sub(1);
    let step = Count::new(run.used + 1).unwrap_or_default();
    let asked = (policy.unwrap_or(&run.new), step);
    let (said, bounds) = generator::objective(ledger, &judge, (&opened, run.seq), asked, through)?;
    let command = Command::new(said.clone(), Some(experiment));
    let submission = append::submit_one(ports, ledger, command, Intent::Append)?;
    Ok(Objective {
        run,
        said,
        bounds,
        submission,
    })
}

/// What a validation said.
#[derive(Clone, Debug)]
pub struct Validation {
    /// The event's data.
    pub said: GeneratorValidated,
    /// The event.
    pub submission: Submission,
}

/// Compares both policies of a run on fresh labels, attacks the new one's outputs, and records what that comes to.
///
/// # Errors
/// [`DeployError`], [`SessionError::Course`], [`SessionError::Port`] without an arbiter's key, and
/// [`SessionError::Ledger`].
pub fn validate(
    ports: &mut dyn Ports,
    (home, ledger): (&Home, &mut Ledger),
    id: &RunId,
    design: DesignId,
    intent: Intent,
) -> Result<Validation, SessionError> {
    let (experiment, run) = found(ledger.state(), id)?;
    let (experiment, run) = (experiment.clone(), run.clone());
    if let Some(before) = run.validated {
        let (run, seq) = (run.run, before.seq);
        return Err(DeployError::Validated { run, seq }.into());
    }
    let said = validation(ports, (home, ledger), (&experiment, &run), design)?;
    let command = Command::new(said.clone(), Some(experiment));
    let submission = append::submit_one(ports, ledger, command, intent)?;
    Ok(Validation { said, submission })
}

fn validation(
    ports: &mut dyn Ports,
    (home, ledger): (&Home, &Ledger),
    (experiment, run): (&ExperimentId, &GeneratorRun),
    design: DesignId,
) -> Result<GeneratorValidated, SessionError> {
    let opened = opening(ledger, run)?;
    let judge = FrozenJudge::of(ledger, experiment, run.deployment, run.seq)?;
    let through = ledger.size().saturating_sub(1);
    let of = (&opened, run.seq);
    let found = generator::validate(ledger, &judge, of, &design, through)?;
    let of = (&judge.frozen, &found.outputs[..]);
    let battery = attack::of_outputs(ports, (home, ledger), experiment, of)?;
    let state = ledger.state();
    let thresholds = generator::thresholds(state, experiment, run.deployment);
    let thresholds = thresholds.ok_or(DeployError::NoPlanRuns)?;
    let (compared, transport) = (found.compared, found.transport);
    let verdicts = generator::verdicts(&compared, &transport, battery.as_ref(), &thresholds);
    let now = ledger.ambient().now();
    let now = now.max(state.keyring.recorded_at.unwrap_or(now));
    Ok(GeneratorValidated {
        battery,
        build: build(),
        compared,
        design,
        frozen: judge.frozen.digest,
        inputs: found.inputs,
        lcb_gain: found.lcb_gain,
        run: run.run.clone(),
        steps: Count::new(run.used).unwrap_or_default(),
        thresholds,
        transport,
        verdict: generator::overall(state, experiment, now, run, verdicts),
        verdicts,
    })
}

/// A run that was rolled back.
#[derive(Clone, Debug)]
pub struct RunRollback {
    /// The experiment.
    pub experiment: ExperimentId,
    /// The policy whose outputs stay on record.
    pub new: PolicyId,
    /// The event.
    pub submission: Submission,
}

/// Lets the old policy answer again.
///
/// # Errors
/// [`DeployError::NoRun`], [`SessionError::Port`] without a releaser's key, and [`SessionError::Ledger`].
pub fn roll_back(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    id: &RunId,
    reason: Text,
    intent: Intent,
) -> Result<RunRollback, SessionError> {
    let (experiment, run) = found(ledger.state(), id)?;
    let (experiment, new) = (experiment.clone(), run.new.clone());
    let said = GeneratorRolledBack {
        reason,
        restored: run.old.clone(),
        run: run.run.clone(),
        validation: run.validated.map(|of| of.id),
    };
    let command = Command::new(said, Some(experiment.clone()));
    let submission = append::submit_one(ports, ledger, command, intent)?;
    Ok(RunRollback {
        experiment,
        new,
        submission,
    })
}
