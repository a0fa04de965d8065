//! Opening an iteration from the manifest that plans it, and the anchors of which a plan speaks.

use clover_event::id::AnchorSetId;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::JudgeId;
use clover_event::id::ManifestId;
use clover_event::id::PolicyId;
use clover_event::payload::iteration::AnchorSetRegistered;
use clover_event::payload::iteration::IterationOpened;
use clover_ground::digest::Digest;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_projection::budgets::Budgets;
use clover_projection::iterations::Iterations;
use clover_projection::iterations::campaign;
use clover_projection::manifests::Manifests;
use clover_workflow::iterate::course::CourseError;
use clover_workflow::iterate::reach;
use clover_workflow::iterate::reach::Reach;
use clover_workflow::iterate::rows;
use clover_workflow::iterate::rows::RowsError;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::error::SessionError;
use crate::iterate::IterationError;
use crate::ports::Ports;
use crate::ports::Question;

/// An iteration that was opened, or would be.
#[derive(Clone, Debug)]
pub struct OpenedIteration {
    /// Its experiment.
    pub experiment: ExperimentId,
    /// Hash of its parameters.
    pub params_hash: Digest,
    /// Whether the campaign of the experiment had stopped before it, and it is new.
    pub is_after_stop: bool,
    /// What its data hold of its plan, or why nobody can say yet; `None` for one that was opened before.
    pub reach: Option<Result<Reach, String>>,
    /// Where its event stands.
    pub submission: Submission,
}

/// Opens an iteration under a manifest in force. One that is open already is said again as it was. A plan that its data
/// can never reach asks for consent, before anything is appended.
///
/// # Errors
/// [`IterationError::UnknownManifest`], [`IterationError::NotInForce`], [`IterationError::NoPlan`] and
/// [`IterationError::NoAccount`]; [`SessionError::Port`] without consent; else as [`append::submit_one`]. Nothing was
/// appended then.
pub fn open(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    iteration: &IterationId,
    manifest: &ManifestId,
    intent: Intent,
) -> Result<OpenedIteration, SessionError> {
    let state = ledger.state();
    let known = state.fold::<Iterations>().by_id.get(iteration);
    let (is_new, now) = (known.is_none(), append::now(ledger));
    let quarter = known.map_or_else(|| now.quarter().to_string(), |it| it.quarter.clone());
    let (experiment, opened) = planned(ledger, iteration.clone(), manifest, quarter)?;
    let through = ledger.size().saturating_sub(1);
    let is_after_stop = is_new && campaign::read(ledger, &experiment, through)?.has_stopped();
    let params_hash = opened.params_hash;
    let reach = if is_new {
        Some(held(ledger, iteration, manifest, &experiment)?)
    } else {
        None
    };
    if let Some(Ok(reach)) = &reach
        && intent == Intent::Append
        && reach.is_out_of_reach()
    {
        ports.ask(&Question::OutOfReach {
            iteration: iteration.clone(),
            manifest: manifest.clone(),
            reach: Box::new(reach.clone()),
        })?;
    }
    let command = Command::new(opened, Some(experiment.clone()));
    let submission = append::submit_one(ports, ledger, command, intent)?;
    Ok(OpenedIteration {
        experiment,
        params_hash,
        is_after_stop,
        reach,
        submission,
    })
}

/// The plan against its data; the inner error says what is not there yet to hold it against.
fn held(
    ledger: &Ledger,
    iteration: &IterationId,
    manifest: &ManifestId,
    experiment: &ExperimentId,
) -> Result<Result<Reach, String>, SessionError> {
    let record = ledger.state().fold::<Manifests>().by_id.get(manifest);
    let version = record.and_then(|record| record.in_force());
    let version = version.ok_or_else(|| IterationError::NotInForce(manifest.clone()))?;
    let plan = version.manifest.iteration.as_ref();
    let both = plan.and_then(|plan| Some((plan, plan.design.as_ref()?)));
    let (plan, design) = both.ok_or_else(|| IterationError::NoPlan(manifest.clone()))?;
    let through = ledger.size().saturating_sub(1);
    let window = match rows::fit_window(ledger, experiment, design, through) {
        Ok(window) => window,
        Err(RowsError::Ledger(error)) => return Err(error.into()),
        // The steps that read these rows refuse them by the same words.
        Err(error) => return Ok(Err(error.to_string())),
    };
    let held = reach::hold(&version.manifest, plan, iteration, &window);
    Ok(held.map_err(|error| error.to_string()))
}

/// What the manifest plans.
fn planned(
    ledger: &Ledger,
    iteration: IterationId,
    manifest: &ManifestId,
    quarter: String,
) -> Result<(ExperimentId, IterationOpened), IterationError> {
    let state = ledger.state();
    let record = state.fold::<Manifests>().by_id.get(manifest);
    let record = record.ok_or_else(|| IterationError::UnknownManifest(manifest.clone()))?;
    let version = record.in_force();
    let version = version.ok_or_else(|| IterationError::NotInForce(manifest.clone()))?;
    let plan = version.manifest.iteration.as_ref();
    let both = plan.and_then(|plan| Some((plan, plan.design.as_ref()?)));
    let (plan, design) = both.ok_or_else(|| IterationError::NoPlan(manifest.clone()))?;
    let account = &design.peek_account;
    if !state.fold::<Budgets>().accounts.contains_key(account) {
        return Err(IterationError::NoAccount {
            account: account.clone(),
            manifest: manifest.clone(),
        });
    }
    let opened = IterationOpened {
        digest: version.digest,
        iteration,
        params: Box::new(plan.clone()),
        params_hash: plan.params_hash(),
        quarter,
        rubric_hash: design.rubric_hash,
    };
    Ok((version.manifest.experiment.clone(), opened))
}

/// Two policies whose recorded rows are anchors.
#[derive(Clone, Debug)]
pub struct AnchorTerms {
    /// The name of the set.
    pub anchors: AnchorSetId,
    /// The experiment.
    pub experiment: ExperimentId,
    /// The policy of poor responses.
    pub low: PolicyId,
    /// The policy of good responses.
    pub high: PolicyId,
    /// Whose scores; `None` for the only judge.
    pub judge: Option<JudgeId>,
}

/// Registers anchors; answers with what was said of their rows.
///
/// # Errors
/// [`SessionError::Course`] where a policy has no rows that serve; else as [`append::submit_one`].
pub fn anchors(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    terms: AnchorTerms,
    intent: Intent,
) -> Result<(AnchorSetRegistered, Submission), SessionError> {
    let rows = |policy: &PolicyId| {
        let (experiment, judge) = (&terms.experiment, terms.judge.as_ref());
        let found = rows::anchor_rows(ledger, experiment, ledger.size(), judge, policy);
        found.map_err(CourseError::Rows)
    };
    let registered = AnchorSetRegistered {
        anchors: terms.anchors.clone(),
        high: rows(&terms.high)?,
        low: rows(&terms.low)?,
    };
    let command = Command::new(registered.clone(), Some(terms.experiment));
    let submission = append::submit_one(ports, ledger, command, intent)?;
    Ok((registered, submission))
}
