//! Where answers of a registered judge go on record.

use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::id::Root;
use clover_event::payload::intake::ImportFormat;
use clover_event::payload::judge::ScoreConflict;
use clover_event::payload::scoring::EvidenceRecorded;
use clover_ground::sign::Signer;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_num::Micro;
use clover_workflow::import::ImportRow;
use clover_workflow::import::ImportRows;
use clover_workflow::import::plan;
use clover_workflow::import::plan::ImportTerms;
use clover_workflow::import::plan::PlanRefusal;
use clover_workflow::judge::Answer;
use clover_workflow::judge::fields::ReturnedEvidence;
use clover_workflow::judge::run;
use clover_workflow::judge::run::RawRecord;
use clover_workflow::judge::run::Reading;
use serde::Serialize;

use crate::charges::Meter;
use crate::error::SessionError;
use crate::home::Home;
use crate::intake::IntakeRequest;
use crate::intake::batch;
use crate::intake::remarks;
use crate::judge::assignment::Assignment;
use crate::judge::error::JudgingError;

/// Rows of one transaction, at most.
const TOGETHER: usize = 8_192;

/// Entries of one transaction, and the blobs that they name.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) commands: Vec<Command>,
    pub(super) blobs: Vec<Vec<u8>>,
}

/// The registration on which scores of a judge stand.
#[derive(Debug)]
pub enum BookBasis<'a> {
    /// It is on record.
    Registered(EventId),
    /// It is recorded with the first answer: a program that never answers takes no name.
    Due(&'a Assignment),
}

/// Where answers of a judge go on record.
#[derive(Debug)]
pub struct Book<'a> {
    /// The folder with the vault that keeps the texts' keys.
    pub home: &'a Home,
    /// The ledger.
    pub ledger: &'a mut Ledger,
    /// The experiment.
    pub experiment: &'a ExperimentId,
    /// The judge.
    pub judge: &'a JudgeId,
    /// Its registration, on which scores stand.
    pub basis: BookBasis<'a>,
    /// The key that answers for scores.
    pub scorer: &'a Signer,
    /// Calls that are charged as their answers go on record.
    pub meter: Meter,
}

/// What a judge said beside a score, or instead of one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Remark {
    declined: bool,
    draw: Count,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<ReturnedEvidence>,
    item: ItemId,
    policy: PolicyId,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Remark {
    /// Why a row has no score.
    pub fn declined(row: &ImportRow, reason: &str) -> Self {
        Self {
            declined: true,
            draw: row.draw,
            evidence: None,
            item: row.item.clone(),
            policy: row.policy.clone(),
            reason: Some(reason.to_owned()),
        }
    }

    /// What was said and found of a row beside its score; `None` where nothing was.
    pub fn of(row: &ImportRow, answer: &Answer) -> Option<Self> {
        let says = answer.reason.is_some() || answer.evidence.is_some();
        says.then(|| Self {
            declined: false,
            draw: row.draw,
            evidence: answer.evidence.clone(),
            item: row.item.clone(),
            policy: row.policy.clone(),
            reason: answer.reason.clone(),
        })
    }
}

/// What became of a judge's answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// Rows that have a record now.
    pub recorded: usize,
    /// Rows whose answer differs from the score on record; the difference is recorded.
    pub differing: usize,
}

impl Book<'_> {
    /// Appends scores, conflicts and records of rows that the judge answered, and what it said of rows: all of it, or where
    /// this process ends none. So a score never stands without its record, and nobody pays for an answer twice.
    ///
    /// # Errors
    /// [`JudgingError::Row`], and what the vault or the ledger says.
    pub fn record(
        &mut self,
        mut good: Vec<(ImportRow, Reading, Micro)>,
        remarks: &[Remark],
    ) -> Result<RecordCounts, SessionError> {
        let mut counts = RecordCounts::default();
        if good.is_empty() && remarks.is_empty() {
            return Ok(counts);
        }
        let registered = self.registered()?;
        loop {
            let rest = good.split_off(good.len().min(TOGETHER));
            let remarks = if rest.is_empty() { remarks } else { &[] };
            let mut entries = Entries::default();
            let found = self.answers(good, registered, &mut entries)?;
            counts.recorded += found.recorded;
            counts.differing += found.differing;
            self.remarks(remarks, registered, &mut entries)?;
            if !entries.commands.is_empty() {
                self.ledger
                    .append_with_blobs(&entries.commands, self.scorer, &entries.blobs)?;
            }
            if rest.is_empty() {
                return Ok(counts);
            }
            good = rest;
        }
    }

    /// The registration of the judge, which is recorded here where it was due.
    fn registered(&mut self) -> Result<EventId, SessionError> {
        let id = match self.basis {
            BookBasis::Registered(id) => return Ok(id),
            BookBasis::Due(assignment) => assignment.register(self.ledger, self.scorer)?,
        };
        self.basis = BookBasis::Registered(id);
        Ok(id)
    }

    /// Scores of answered rows, their records, and their conflicts.
    pub(super) fn answers(
        &self,
        good: Vec<(ImportRow, Reading, Micro)>,
        registered: EventId,
        entries: &mut Entries,
    ) -> Result<RecordCounts, SessionError> {
        if good.is_empty() {
            return Ok(RecordCounts::default());
        }
        let pairs = good
            .iter()
            .map(|(row, _, base)| (row.clone(), *base))
            .collect();
        let (request, rows) = planned((self.experiment, self.judge), pairs);
        let planned = plan::plan(self.ledger, &rows, &request.ask).map_err(stopped)?;
        let of = (&rows, &planned);
        let scores = batch::scores(self.home, self.ledger, &request, of, registered)?;
        (entries.commands, entries.blobs) = scores;
        let differ = |row: &ImportRow| {
            let mut conflicts = planned.conflicts.iter().map(|of| &of.said);
            conflicts.any(|said| {
                (&said.policy, &said.item, said.draw) == (&row.policy, &row.item, row.draw)
            })
        };
        let records: Vec<RawRecord> = good
            .into_iter()
            .filter(|(row, ..)| !differ(row))
            .map(|(row, reading, base)| reading.record(&row, base))
            .collect();
        if !records.is_empty() {
            let (lines, root) = run::lines(&records);
            let found = EvidenceRecorded {
                judge: self.judge.clone(),
                records: batch::reference(&lines, "application/x-ndjson"),
                records_count: count(records.len()),
                records_root: Root(root),
            };
            entries.commands.push(self.command(found, registered));
            entries.blobs.push(lines);
        }
        let differing = planned.conflicts.len();
        let conflicts = planned.conflicts.into_iter();
        let conflicts = conflicts.map(|of| self.command(of.said, registered));
        entries.commands.extend(conflicts);
        Ok(RecordCounts {
            recorded: records.len(),
            differing,
        })
    }

    /// What the judge said of rows, as a private blob under a subject of its own: whoever erases that subject erases it.
    /// Nothing where it said nothing.
    fn remarks(
        &self,
        remarks: &[Remark],
        registered: EventId,
        entries: &mut Entries,
    ) -> Result<(), SessionError> {
        if remarks.is_empty() {
            return Ok(());
        }
        let ambient = self.ledger.ambient().clone();
        let (note, stored) = remarks::noted(self.home, &ambient, self.judge, remarks)?;
        entries.commands.push(self.command(note, registered));
        entries.blobs.push(stored);
        Ok(())
    }

    /// What stands on the judge's registration.
    fn command(&self, payload: impl Into<Payload>, registered: EventId) -> Command {
        let mut command = Command::new(payload, Some(self.experiment.clone()));
        command.refs = vec![registered];
        command
    }
}

fn count(value: usize) -> Count {
    Count::new(value as u64).expect("BUG: no file has 2^53 rows")
}

/// Conflicts of base scores with what is recorded.
///
/// # Errors
/// [`JudgingError::Row`], and what the ledger says.
pub fn conflicts(
    ledger: &Ledger,
    whose: (&ExperimentId, &JudgeId),
    rows: Vec<(ImportRow, Micro)>,
) -> Result<Vec<ScoreConflict>, SessionError> {
    let (request, rows) = planned(whose, rows);
    let planned = plan::plan(ledger, &rows, &request.ask).map_err(stopped)?;
    Ok(planned.conflicts.into_iter().map(|of| of.said).collect())
}

/// Request and rows as an import would have them.
fn planned(
    (experiment, judge): (&ExperimentId, &JudgeId),
    rows: Vec<(ImportRow, Micro)>,
) -> (IntakeRequest, ImportRows) {
    let ask = ImportTerms {
        experiment: experiment.clone(),
        judge: judge.clone(),
        rater: "oracle".parse().expect("BUG: a name"),
        open: None,
        opens: false,
        seal: None,
    };
    let request = IntakeRequest {
        ask,
        format: ImportFormat::Cje,
        label_scale: None,
        score_scale: None,
        reveal_by: None,
        to: None,
    };
    let rows = rows
        .into_iter()
        .map(|(row, score)| ImportRow { score, ..row })
        .collect();
    let rows = ImportRows {
        file: judge.to_string(),
        rows,
        ..ImportRows::default()
    };
    (request, rows)
}

fn stopped(stop: PlanRefusal) -> SessionError {
    match stop {
        PlanRefusal::Ledger(error) => error.into(),
        PlanRefusal::Refused(line, rule, expected, found, _) => {
            let row = JudgingError::Row {
                line,
                rule,
                expected,
                found,
            };
            row.into()
        }
    }
}
