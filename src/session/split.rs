//! A split of an experiment's clusters into fit, dev and confirm.

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::SplitId;
use clover_event::payload::intake::ImportFormat;
use clover_event::payload::judge::ScoreRecorded;
use clover_ground::time::Timestamp;
use clover_ledger::AppendedEvent;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_projection::reader::LogReader;
use clover_workflow::import::ImportRows;
use clover_workflow::import::kept::KeptError;
use clover_workflow::split;
use clover_workflow::split::Apart;
use clover_workflow::split::PartMembers;
use clover_workflow::split::SplitError;

use crate::append;
use crate::error::SessionError;
use crate::home::Home;
use crate::intake::responses;
use crate::intake::responses::RowsPlan;
use crate::ports::KeyNeed;
use crate::ports::Ports;

/// Why no split is formed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SplittingError {
    /// The clusters cannot be split so.
    #[error("split: {0}")]
    Clusters(#[from] SplitError),
    /// The experiment has no rows.
    #[error("no ingested rows in {0}")]
    NoRows(ExperimentId),
}

/// Which split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitRequest {
    /// The experiment.
    pub experiment: ExperimentId,
    /// The split's name.
    pub split: SplitId,
    /// Seed of the hash that puts clusters into parts.
    pub seed: Count,
    /// How confirm is kept apart.
    pub apart: Apart,
}

/// A split of the clusters that an experiment has now. Nothing is on record before [`form`].
#[derive(Clone, Debug)]
pub struct SplitPlan {
    /// Which clusters are in which part.
    pub parts: PartMembers,
    experiment: ExperimentId,
    events: Vec<Payload>,
}

/// Splits the clusters of an experiment's rows.
///
/// # Errors
/// [`SplittingError`].
pub fn plan(ledger: &Ledger, request: &SplitRequest) -> Result<SplitPlan, SessionError> {
    let clusters = clusters(ledger, &request.experiment)?;
    Ok(planned(&clusters, request)?)
}

fn planned(
    clusters: &BTreeMap<ItemId, Option<Timestamp>>,
    request: &SplitRequest,
) -> Result<SplitPlan, SplittingError> {
    let parts = split::parts(clusters, request.seed.value(), request.apart)?;
    let events = split::events(&request.split, request.seed, request.apart, &parts);
    Ok(SplitPlan {
        parts,
        experiment: request.experiment.clone(),
        events,
    })
}

/// Rows that were scored and never taken in: a judge that was given its rows by name recorded their scores alone. Beside files
/// that were taken in, those of a split by hash only: they have no times.
///
/// # Errors
/// When the log or the vault cannot be read.
pub fn scored(
    home: &Home,
    ledger: &Ledger,
    request: &SplitRequest,
) -> Result<ImportRows, SessionError> {
    let experiment = &request.experiment;
    let known = taken_in(ledger, experiment)?;
    if !known.is_empty() && request.apart != Apart::Hashed {
        return Ok(ImportRows::default());
    }
    let entries = LogReader::below(ledger, ledger.size()).of(experiment);
    let is_new = |score: &ScoreRecorded| !known.contains_key(&score.item);
    // Texts are opened only where a row lacks.
    if entries.all::<ScoreRecorded>(is_new)?.is_empty() {
        return Ok(ImportRows::default());
    }
    let mut found = responses::scored(home, ledger, experiment)?;
    found.rows.retain(|row| !known.contains_key(&row.item));
    found.read = found.rows.len() as u64;
    Ok(found)
}

/// As [`plan`], with rows that are still to be taken in.
///
/// # Errors
/// [`SplittingError`], and when the log cannot be read.
pub fn plan_of(
    ledger: &Ledger,
    rows: &ImportRows,
    request: &SplitRequest,
) -> Result<SplitPlan, SessionError> {
    let mut clusters = taken_in(ledger, &request.experiment)?;
    for row in &rows.rows {
        clusters.entry(row.item.clone()).or_insert(None);
    }
    Ok(planned(&clusters, request)?)
}

/// Takes rows in that were scored, so that a split may list them. The keys of both steps are looked for first.
///
/// # Errors
/// No key, or what the vault or the ledger says; nothing was appended then.
pub fn take_in(
    ports: &mut dyn Ports,
    home: &Home,
    ledger: &mut Ledger,
    (experiment, rows): (&ExperimentId, ImportRows),
) -> Result<(), SessionError> {
    let needs = [Kind::DataIngested, Kind::SplitsFormed].map(KeyNeed::runner);
    ports.check(ledger.state(), &needs)?;
    let plan = RowsPlan {
        rows,
        already: 0,
        fielded: 0,
    };
    let of = (experiment, ImportFormat::Cje);
    responses::import(ports, home, ledger, of, &plan)?;
    Ok(())
}

/// Every cluster of an experiment's ingested rows.
fn clusters(
    ledger: &Ledger,
    experiment: &ExperimentId,
) -> Result<BTreeMap<ItemId, Option<Timestamp>>, SessionError> {
    let clusters = taken_in(ledger, experiment)?;
    if clusters.is_empty() {
        return Err(SplittingError::NoRows(experiment.clone()).into());
    }
    Ok(clusters)
}

/// The clusters of rows that were taken in, if any were.
fn taken_in(
    ledger: &Ledger,
    experiment: &ExperimentId,
) -> Result<BTreeMap<ItemId, Option<Timestamp>>, SessionError> {
    let clusters = split::clusters(ledger, experiment, ledger.size());
    clusters.map_err(|error| match error {
        KeptError::Ledger(error) => SessionError::from(error),
        KeptError::Unread(error) => error.into(),
    })
}

/// Records a split.
///
/// # Errors
/// No key, or what the ledger says; nothing was appended then.
pub fn form(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    plan: SplitPlan,
) -> Result<Vec<AppendedEvent>, SessionError> {
    let signer = ports.signer(ledger.state(), KeyNeed::runner(Kind::SplitsFormed))?;
    let events = plan.events.into_iter();
    let commands = events.map(|event| Command::new(event, Some(plan.experiment.clone())));
    let commands: Vec<_> = commands.collect();
    let appended = ledger.append(&commands, &signer)?;
    ledger.settle()?;
    append::tell_of_pin(ports, ledger);
    Ok(appended)
}
