//! The import of files: every file is planned before anything is appended, so a wrong line changes nothing. What is
//! recorded already answers as such: the same import again adds nothing, and finishes one that was cut.

use clover_event::Kind;
use clover_event::id::ExperimentId;
use clover_event::payload::judge::ScoreConflict;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_workflow::import::plan;
use clover_workflow::import::plan::Ask;
use clover_workflow::import::plan::Plan;

use crate::append;
use crate::error::SessionError;
use crate::home::Home;
use crate::intake::InputFile;
use crate::intake::Request;
use crate::intake::batch;
use crate::intake::batch::Batch;
use crate::intake::counts::Counts;
use crate::intake::error;
use crate::intake::error::IntakeError;
use crate::intake::signers::Signers;
use crate::intake::subjects::SubjectKeys;
use crate::ports::KeyNeed;
use crate::ports::Keys;
use crate::ports::Ports;

/// What becomes of each row of each file; nothing is appended.
///
/// # Errors
/// [`IntakeError::Row`] where a rule would refuse one.
pub fn plans(ledger: &Ledger, files: &[InputFile], ask: &Ask) -> Result<Vec<Plan>, SessionError> {
    let plans = files.iter().map(|file| {
        plan::plan(ledger, &file.rows, ask).map_err(|stop| error::stopped(stop, &file.rows.file))
    });
    plans.collect()
}

/// Appends what is new of planned files, and answers with what each file added.
///
/// # Errors
/// [`IntakeError::Conflicts`] where scores differ from what is recorded: then the conflicts are appended, and nothing else.
/// A missing key or recipient is found before anything is appended; what else fails leaves the batches before it in place.
pub fn import(
    ports: &mut dyn Ports,
    home: &Home,
    ledger: &mut Ledger,
    request: &Request,
    (files, plans): (&[InputFile], &[Plan]),
) -> Result<Vec<Counts>, SessionError> {
    let conflicts: Vec<_> = plans
        .iter()
        .flat_map(|plan| plan.conflicts.clone())
        .collect();
    if !conflicts.is_empty() {
        return Err(record_conflicts(ports, ledger, &request.ask.experiment, conflicts)?.into());
    }
    let signers = Signers::find(ports, ledger.state(), request.to.as_ref(), plans)?;
    let mut counts = Vec::with_capacity(files.len());
    for (file, plan) in files.iter().zip(plans) {
        let keys = SubjectKeys::new(home, ledger, &file.rows, plan)?;
        let ingested = match plan.ingested {
            Some(id) => id,
            None => batch::ingest(home, ledger, request, (file, plan), &signers)?,
        };
        let batch = Batch {
            request,
            basis: ingested,
            rows: &file.rows,
            plan,
        };
        batch.checked(ledger, &signers)?;
        batch.scores(ledger, &keys, signers.scorer())?;
        batch.labels(ledger, &signers)?;
        batch.seals(ledger, &signers)?;
        counts.push(Counts::of(plan));
    }
    ledger.settle()?;
    append::tell_of_pin(ports, ledger);
    Ok(counts)
}

/// Records the conflicts, and answers with the refusal that names them.
fn record_conflicts(
    keys: &mut dyn Keys,
    ledger: &mut Ledger,
    experiment: &ExperimentId,
    conflicts: Vec<ScoreConflict>,
) -> Result<IntakeError, SessionError> {
    let signer = keys.signer(ledger.state(), KeyNeed::runner(Kind::ScoreConflict))?;
    let first = Box::new(conflicts[0].clone());
    let commands: Vec<_> = conflicts
        .into_iter()
        .map(|conflict| Command::new(conflict, Some(experiment.clone())))
        .collect();
    let appended = ledger.append(&commands, &signer)?;
    ledger.settle()?;
    let seqs = appended.iter().map(|one| one.seq).collect();
    Ok(IntakeError::Conflicts { first, seqs })
}
