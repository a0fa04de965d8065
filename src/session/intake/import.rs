//! The import of files: every file is planned before anything is appended, so a wrong line changes nothing. What is
//! recorded already answers as such: the same import again adds nothing, and finishes one that was cut.

use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::id::ExperimentId;
use clover_event::payload::scoring::JudgePort;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_workflow::import::plan;
use clover_workflow::import::plan::Conflict;
use clover_workflow::import::plan::ImportPlan;
use clover_workflow::import::plan::ImportTerms;

use crate::append;
use crate::error::SessionError;
use crate::home::Home;
use crate::intake::InputFile;
use crate::intake::IntakeRequest;
use crate::intake::batch;
use crate::intake::batch::Batch;
use crate::intake::batch::NewLabels;
use crate::intake::counts::Counts;
use crate::intake::error;
use crate::intake::error::IntakeError;
use crate::intake::labels;
use crate::intake::scale;
use crate::intake::sealing;
use crate::intake::signers::Signers;
use crate::intake::subjects;
use crate::intake::subjects::SubjectKeys;
use crate::judge::registration;
use crate::ports::FirstConflict;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Question;

/// What becomes of each row of each file; nothing is appended.
///
/// # Errors
/// [`IntakeError::Row`] where a rule would refuse one.
pub fn plans(
    ledger: &Ledger,
    files: &[InputFile],
    ask: &ImportTerms,
) -> Result<Vec<ImportPlan>, SessionError> {
    let plans = files.iter().map(|file| {
        plan::plan(ledger, &file.rows, ask).map_err(|stop| error::stopped(stop, &file.rows.file))
    });
    let plans = plans.collect::<Result<Vec<_>, SessionError>>()?;
    own_scores(ledger, ask, files, &plans)?;
    Ok(plans)
}

/// Refuses scores that differ from what a judge of this ledger was asked: a file is no second answer of it, and what it says
/// is no conflict between two answers.
fn own_scores(
    ledger: &Ledger,
    ask: &ImportTerms,
    files: &[InputFile],
    plans: &[ImportPlan],
) -> Result<(), SessionError> {
    let pairs = files.iter().zip(plans);
    let mut conflicts = pairs.flat_map(|(file, plan)| {
        let found = plan.conflicts.iter();
        found.map(|conflict| (&file.rows.file, conflict))
    });
    let Some((file, first)) = conflicts.next() else {
        return Ok(());
    };
    let standing = registration::standing(ledger, &ask.experiment, &ask.judge)?;
    if standing.is_none_or(|of| of.judge.port == JudgePort::Recorded) {
        return Ok(());
    }
    Err(IntakeError::OwnScore {
        file: file.clone(),
        line: first.line,
        seq: first.seq,
        first: Box::new(first.said.clone()),
        rows: 1 + conflicts.count(),
    }
    .into())
}

/// Appends what is new of planned files, and answers with what each file added.
///
/// # Errors
/// [`IntakeError::Conflicts`] where scores differ from what is recorded: then the conflicts are appended once somebody agreed, and
/// nothing else.
/// A missing key or recipient, and every label that a rule refuses, is found before anything is appended or charged. A process
/// that is killed leaves the batches before it in place, each label with its charge: the same import appends the rest.
pub fn import(
    ports: &mut dyn Ports,
    home: &Home,
    ledger: &mut Ledger,
    request: &IntakeRequest,
    (files, plans): (&[InputFile], &[ImportPlan]),
) -> Result<Vec<Counts>, SessionError> {
    let declaration = scale::declaration(ledger, request)?;
    let of_scores = scale::of_scores(ledger, request, (files, plans))?;
    let all = files.iter().zip(plans).flat_map(|(file, plan)| {
        let found = plan.conflicts.iter();
        found.map(|conflict| (file.rows.file.clone(), conflict.clone()))
    });
    let conflicts: Vec<_> = all.collect();
    if !conflicts.is_empty() {
        return Err(record_conflicts(ports, ledger, &request.ask.experiment, conflicts)?.into());
    }
    let declares = declaration.is_some();
    let signers = Signers::find(
        ports,
        ledger.state(),
        request.to.as_ref(),
        (plans, declares),
    )?;
    let (mut new, mut given) = (Vec::with_capacity(files.len()), BTreeSet::new());
    for (file, plan) in files.iter().zip(plans) {
        subjects::planned(home, ledger, &file.rows, plan)?;
        let batch = Batch {
            request,
            basis: None,
            rows: &file.rows,
            plan,
        };
        new.push(batch.labels(ledger, &signers, &mut given)?);
    }
    let all = new.iter().map(NewLabels::count).sum();
    let payer = labels::payer(ports, ledger, request, all)?;
    let sealed = plans.iter().flat_map(|plan| &plan.rows);
    sealing::ask(ports, ledger, request, sealed.map(|row| &row.label))?;
    let of_labels = declaration.zip(signers.labeler());
    let of_scores = of_scores.zip(signers.scorer());
    let scales: Vec<_> = of_labels.into_iter().chain(of_scores).collect();
    for (declaration, signer) in &scales {
        append::permitted(ledger, declaration, signer)?;
    }
    for (declaration, signer) in scales {
        ledger.append(&[declaration], signer)?;
    }
    let mut counts = Vec::with_capacity(files.len());
    // What rows are, every file's, stands before the first label of any: a field that was said later would not count.
    let mut ingested = Vec::with_capacity(files.len());
    for (file, plan) in files.iter().zip(plans) {
        ingested.push(match plan.ingested {
            Some(id) => id,
            None => batch::ingest(home, ledger, request, (file, plan), &signers)?,
        });
    }
    for (((file, plan), mut new), ingested) in files.iter().zip(plans).zip(new).zip(ingested) {
        let keys = SubjectKeys::new(home, ledger, &file.rows, plan)?;
        let batch = Batch {
            request,
            basis: Some(ingested),
            rows: &file.rows,
            plan,
        };
        batch.checked(ledger, &signers)?;
        batch.scores(ledger, &keys, signers.scorer())?;
        new.stand_on(ingested);
        new.append(ports, ledger, &signers, payer.as_ref())?;
        counts.push(Counts::of(plan));
    }
    ledger.settle()?;
    append::tell_of_pin(ports, ledger);
    Ok(counts)
}

/// Records the conflicts where somebody agrees, and answers with the refusal that names them.
fn record_conflicts(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    experiment: &ExperimentId,
    conflicts: Vec<(String, Conflict)>,
) -> Result<IntakeError, SessionError> {
    let signer = ports.signer(ledger.state(), KeyNeed::scorer(Kind::ScoreConflict))?;
    let (file, first) = conflicts[0].clone();
    let question = Question::Conflicts {
        experiment: experiment.clone(),
        first: Box::new(FirstConflict {
            file: file.clone(),
            line: first.line,
            said: first.said.clone(),
            seq: first.seq,
        }),
        rows: conflicts.len(),
    };
    ports.ask(&question)?;
    let commands: Vec<_> = conflicts
        .into_iter()
        .map(|(_, conflict)| Command::new(conflict.said, Some(experiment.clone())))
        .collect();
    let appended = ledger.append(&commands, &signer)?;
    ledger.settle()?;
    let seqs = appended.iter().map(|one| one.seq).collect();
    Ok(IntakeError::Conflicts {
        file,
        line: first.line,
        first: Box::new(first.said),
        seqs,
    })
}
