//! Labels without scores, for rows that the ledger holds: each an event of its own, open or sealed, under the same rules as
//! a label that came with a score.

use std::collections::BTreeSet;

use clover_event::id::ExperimentId;
use clover_ground::sign::Signer;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_workflow::import::labels;
use clover_workflow::import::labels::FileLabels;
use clover_workflow::import::plan::LabelIntake;
use clover_workflow::import::plan::Presence;
use clover_workflow::import::plan::label_of;

use crate::append;
use crate::charges;
use crate::charges::Payer;
use crate::error::SessionError;
use crate::intake::IntakeRequest;
use crate::intake::batch;
use crate::intake::batch::NewLabels;
use crate::intake::counts::Counts;
use crate::intake::error;
use crate::intake::error::IntakeError;
use crate::intake::held;
use crate::intake::scale;
use crate::intake::sealing;
use crate::intake::signers::Signers;
use crate::ports::Ports;

/// What becomes of each label of a file.
#[derive(Clone, Debug)]
pub struct LabelPlan {
    /// The labels.
    pub labels: FileLabels,
    /// What becomes of each.
    pub plans: Vec<LabelIntake>,
}

impl LabelPlan {
    /// Labels that are new and that were there.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for plan in &self.plans {
            counts.see_label(plan);
        }
        counts
    }
}

/// What becomes of each label of a file; nothing is appended.
///
/// # Errors
/// [`IntakeError::NotHeld`] where the ledger does not hold the rows of labels, and [`IntakeError::Row`] where a rule would
/// refuse one.
pub fn plan(
    ledger: &Ledger,
    labels: FileLabels,
    file: &str,
    request: &IntakeRequest,
) -> Result<LabelPlan, SessionError> {
    scale::declaration(ledger, request)?;
    let held = held::draws(ledger, &request.ask.experiment)?;
    labels::all_held(&labels, file, &held).map_err(IntakeError::NotHeld)?;
    let plans =
        labels::plan(ledger, &labels, &request.ask).map_err(|stop| error::stopped(stop, file))?;
    Ok(LabelPlan { labels, plans })
}

/// Appends the labels of a plan that are new, and answers with what was added.
///
/// # Errors
/// A missing key or recipient, and what a rule says: then nothing was appended.
pub fn import(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    request: &IntakeRequest,
    (plan, file): (&LabelPlan, &str),
) -> Result<Counts, SessionError> {
    let counts = plan.counts();
    let state = ledger.state();
    let declaration = scale::declaration(ledger, request)?;
    let (to, declares) = (request.to.as_ref(), declaration.is_some());
    let signers = Signers::of_labels(ports, state, to, (&counts, declares))?;
    let new = commands(ledger, request, plan, &signers)?;
    let mut scale: Vec<_> = declaration.into_iter().collect();
    permitted(ledger, &scale, signers.labeler())?;
    new.permit(ledger, &signers, (file, &mut BTreeSet::new()))?;
    let payer = payer(ports, ledger, request, new.count())?;
    sealing::ask(ports, ledger, request, plan.plans.iter())?;
    // The scale stands before the labels that are read on it, open or sealed.
    batch::append_all(ledger, &mut scale, signers.labeler(), &mut Vec::new())?;
    new.append(ports, ledger, &signers, payer.as_ref())?;
    ledger.settle()?;
    append::tell_of_pin(ports, ledger);
    Ok(counts)
}

/// Who pays for new labels, where an account of labels is open: more than it holds is refused before any is recorded.
pub(super) fn payer(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    request: &IntakeRequest,
    new: u64,
) -> Result<Option<Payer>, SessionError> {
    let purpose = format!("labels of {}", request.ask.experiment);
    Payer::find(ports, ledger, charges::LABEL, (new, &purpose))
}

/// Holds commands against the rules before the first of any is appended.
pub(super) fn permitted(
    ledger: &Ledger,
    commands: &[Command],
    signer: Option<&Signer>,
) -> Result<(), SessionError> {
    let Some(signer) = signer else {
        return Ok(());
    };
    commands
        .iter()
        .try_for_each(|command| append::permitted(ledger, command, signer))
}

/// The new labels of a plan.
fn commands(
    ledger: &Ledger,
    request: &IntakeRequest,
    plan: &LabelPlan,
    signers: &Signers,
) -> Result<NewLabels, SessionError> {
    let experiment: &ExperimentId = &request.ask.experiment;
    let mut new = NewLabels::default();
    for (label, plan) in plan.labels.labels.iter().zip(&plan.plans) {
        match (plan, &request.ask.open) {
            (LabelIntake::Open(Presence::New), Some(of)) => {
                let said = label_of(&label.row, label.value, &label.rater, of);
                let command = Command::new(said, Some(experiment.clone()));
                new.open.push((label.row.line, command));
            }
            (LabelIntake::Sealed(Presence::New, row), _) => {
                let said = batch::sealed(ledger, request, (row, label.value), signers)?;
                let command = Command::new(said, Some(experiment.clone()));
                new.sealed.push((label.row.line, command));
            }
            _ => {}
        }
    }
    Ok(new)
}
