//! Opening an iteration from the manifest that plans it, and the anchors of which a plan speaks.

use clover_event::Kind;
use clover_event::id::AnchorSetId;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::JudgeId;
use clover_event::id::ManifestId;
use clover_event::id::PolicyId;
use clover_event::id::Text;
use clover_event::id::UnitId;
use clover_event::payload::Role;
use clover_event::payload::Roles;
use clover_event::payload::budget::BudgetOpened;
use clover_event::payload::budget::Period;
use clover_event::payload::iteration::AnchorSetRegistered;
use clover_event::payload::iteration::IterationOpened;
use clover_ground::digest::Digest;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_projection::budgets::Budgets;
use clover_projection::iterations::Iterations;
use clover_projection::iterations::campaign;
use clover_projection::manifests::Manifests;
use clover_workflow::iterate::course::CourseError;
use clover_workflow::iterate::reach;
use clover_workflow::iterate::reach::Reach;
use clover_workflow::iterate::rows;
use clover_workflow::iterate::rows::IterationRowsError;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::error::SessionError;
use crate::iterate::IterationError;
use crate::ports::KeyNeed;
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

/// Opens an iteration under a manifest in force; with `peeks`, the account that the plan names too, where there is none: it
/// holds so many looks a quarter. One that is open already is said again as it was. A plan that its data can never reach
/// asks for consent, before anything is appended.
///
/// # Errors
/// [`IterationError::UnknownManifest`], [`IterationError::NotInForce`], [`IterationError::NoPlan`],
/// [`IterationError::NoAccount`] and [`IterationError::OtherAccount`]; [`SessionError::Port`] without consent; else as
/// [`append::submit_one`]. Nothing was appended then.
pub fn open(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    iteration: &IterationId,
    (manifest, peeks): (&ManifestId, Option<Count>),
    intent: Intent,
) -> Result<OpenedIteration, SessionError> {
    let state = ledger.state();
    let known = state.fold::<Iterations>().by_id.get(iteration);
    let (is_new, now) = (known.is_none(), append::now(ledger));
    let quarter = known.map_or_else(|| now.quarter().to_string(), |it| it.quarter.clone());
    let (experiment, opened) = planned(ledger, iteration.clone(), manifest, quarter)?;
    let account = account(ledger, &opened, (manifest, peeks))?;
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
    let submission = match account {
        None => append::submit_one(ports, ledger, command, intent)?,
        Some(account) => both(ports, ledger, (account, command), intent)?,
    };
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
        Err(IterationRowsError::Ledger(error)) => return Err(error.into()),
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

/// The account that pays for looks, where it is to be opened.
fn account(
    ledger: &Ledger,
    opened: &IterationOpened,
    (manifest, peeks): (&ManifestId, Option<Count>),
) -> Result<Option<BudgetOpened>, IterationError> {
    let Some(design) = &opened.params.design else {
        return Err(IterationError::NoPlan(manifest.clone()));
    };
    let account = design.peek_account.clone();
    let known = ledger.state().fold::<Budgets>().accounts.get(&account);
    match (known, peeks) {
        (None, None) => Err(IterationError::NoAccount {
            account,
            iteration: opened.iteration.clone(),
            manifest: manifest.clone(),
        }),
        (Some(known), Some(asked)) if known.amount != asked.value() => {
            Err(IterationError::OtherAccount {
                account,
                amount: known.amount,
                asked: asked.value(),
            })
        }
        (Some(_), _) => Ok(None),
        (None, Some(amount)) => Ok(Some(BudgetOpened {
            account,
            amount,
            period: Period::Quarter,
            purpose: Text::new("confirm peeks").expect("BUG: a literal"),
            spenders: Roles::new([Role::Custodian]).expect("BUG: there is one"),
            unit: UnitId::new("peek").expect("BUG: a literal"),
        })),
    }
}

/// Opens an account and an iteration that pays from it: both stand, or none. Of a rehearsal the account alone is judged,
/// since the iteration builds on it.
fn both(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    (account, opening): (BudgetOpened, Command),
    intent: Intent,
) -> Result<Submission, SessionError> {
    let registrar = ports.signer(ledger.state(), KeyNeed::runner(Kind::BudgetOpened))?;
    let arbiter = ports.signer(ledger.state(), KeyNeed::runner(Kind::IterationOpened))?;
    let commands = [
        (Command::new(account, None), registrar.as_ref()),
        (opening, arbiter.as_ref()),
    ];
    if intent == Intent::Rehearse {
        let mut rehearsed = Vec::new();
        for (at, (command, signer)) in commands.iter().enumerate() {
            let is_same = at > 0 && registrar.id() == arbiter.id();
            let number = append::next_author_seq(ledger, signer) + u64::from(is_same);
            let judged = (number, usize::from(at == 0));
            let command = std::slice::from_ref(command);
            rehearsed.extend(append::rehearse(ledger, command, signer, judged)?);
        }
        return Ok(Submission::Rehearsed(rehearsed));
    }
    let appended = append::append_each(ports, ledger, &commands)?;
    let commands = commands.map(|(command, _)| command);
    Ok(Submission::of(&commands, appended))
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
