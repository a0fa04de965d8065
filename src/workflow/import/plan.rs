//! What of a file's rows a ledger holds already, and what is to be appended: one decision per row, before
//! anything is.

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::RaterId;
use clover_event::id::RowId;
use clover_event::payload::judge::LogprobRecorded;
use clover_event::payload::judge::ScoreConflict;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::label::LabelPurpose;
use clover_event::payload::label::LabelRecorded;
use clover_event::payload::label::row_of_draw;
use clover_event::registry;
use clover_ground::digest::Digest;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_num::Micro;
use clover_projection::designs::draw_serves;
use clover_projection::splits::in_confirm;

use crate::import::ImportRow;
use crate::import::ImportRows;

/// Under which names rows are recorded, and what becomes of their labels.
#[derive(Clone, Debug)]
pub struct ImportTerms {
    /// The experiment.
    pub experiment: ExperimentId,
    /// Who judged.
    pub judge: JudgeId,
    /// Who labelled.
    pub rater: RaterId,
    /// Design and purpose of open labels, as far as known.
    pub open: Option<(DesignId, LabelPurpose)>,
    /// Whether labels are to be opened.
    pub opens: bool,
    /// Design of sealed labels.
    pub seal: Option<DesignId>,
}

/// Whether something is in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    Already,
    /// It is not.
    New,
}

/// What stands against a label that differs from the recorded one, and what can be done.
const CORRECTED: &str = "another by the same rater: a recorded label is never corrected, since whoever knows the outcome could choose it; \
    a second person's label stands beside it, under --rater NAME or the name in a column of raters, and labels that are void are drawn anew by a design of their own";

/// What becomes of a row's label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelIntake {
    /// There is none.
    None,
    /// It is recorded in the open.
    Open(Presence),
    /// It is sealed, as this row of the design.
    Sealed(Presence, RowId),
    /// Nobody asked for it.
    Unread,
}

/// What becomes of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPlan {
    /// Its score.
    pub score: Presence,
    /// Its log-probabilities, where they are read.
    pub logprob: Option<Presence>,
    /// Its label.
    pub label: LabelIntake,
}

/// What becomes of a file.
#[derive(Clone, Debug)]
pub struct ImportPlan {
    /// The `data.ingested` of these rows, when there is one.
    pub ingested: Option<EventId>,
    /// Row by row.
    pub rows: Vec<RowPlan>,
    /// Scores that differ from the recorded ones.
    pub conflicts: Vec<Conflict>,
    /// Whether the file holds labels beside those of its rows.
    pub holds_labels: bool,
}

/// A score of a file that differs from the recorded one.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// Its line, from 1.
    pub line: u64,
    /// The recorded score's position.
    pub seq: u64,
    /// As it would be recorded.
    pub said: ScoreConflict,
}

impl ImportPlan {
    /// Whether a label of the file stays closed: then its original is for the custodian alone.
    pub fn stays_closed(&self) -> bool {
        let mut labels = self.rows.iter().map(|row| &row.label);
        self.holds_labels
            || labels.any(|label| matches!(label, LabelIntake::Sealed(..) | LabelIntake::Unread))
    }
}

/// Why a file cannot be planned.
#[derive(Debug)]
pub enum PlanRefusal {
    /// A row that a rule would refuse: its line, the rule, what would be accepted, what was found, and the
    /// entry in the way.
    Refused(u64, &'static str, &'static str, String, Option<u64>),
    /// The ledger cannot be read.
    Ledger(LedgerError),
}

impl From<LedgerError> for PlanRefusal {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error)
    }
}

/// Decides what becomes of each row.
///
/// # Errors
/// [`PlanRefusal`].
pub fn plan(
    ledger: &Ledger,
    rows: &ImportRows,
    ask: &ImportTerms,
) -> Result<ImportPlan, PlanRefusal> {
    let (_, root) = rows.root(&ask.judge);
    let holds_labels = rows.holds_labels;
    let mut conflicts = Vec::new();
    let rows: Result<Vec<_>, PlanRefusal> = rows
        .rows
        .iter()
        .map(|row| {
            Ok(RowPlan {
                score: score(ledger, row, ask, &mut conflicts)?,
                logprob: logprob(ledger, row, ask)?,
                label: label(ledger, row, ask)?,
            })
        })
        .collect();
    Ok(ImportPlan {
        ingested: ingested(ledger, &ask.experiment, root)?,
        rows: rows?,
        conflicts,
        holds_labels,
    })
}

/// The `data.ingested` of rows under this root.
fn ingested(
    ledger: &Ledger,
    experiment: &ExperimentId,
    root: Digest,
) -> Result<Option<EventId>, LedgerError> {
    let root = root.to_base64();
    let key = registry::natural_key_of(Kind::DataIngested, experiment, &[&root]);
    Ok(recorded(ledger, &key)?.map(|(id, ..)| id))
}

/// The event that first gave a natural key, its payload and its seq.
fn recorded(ledger: &Ledger, key: &Digest) -> Result<Option<(EventId, Payload, u64)>, LedgerError> {
    let Some(seq) = ledger.giver(key)? else {
        return Ok(None);
    };
    let read = ledger.entry(seq)?;
    Ok(read.map(|read| (read.event.id, read.event.payload, seq)))
}

fn key(payload: &Payload, ask: &ImportTerms) -> Digest {
    let key = payload.natural_key(Some(&ask.experiment));
    key.expect("BUG: kinds of rows have natural keys")
}

/// The score of a row, without texts.
pub fn score_of(row: &ImportRow, judge: &JudgeId) -> ScoreRecorded {
    ScoreRecorded {
        call: None,
        draw: row.draw,
        item: row.item.clone(),
        judge: judge.clone(),
        policy: row.policy.clone(),
        prompt: None,
        response: None,
        score_micro: row.score,
    }
}

fn score(
    ledger: &Ledger,
    row: &ImportRow,
    ask: &ImportTerms,
    conflicts: &mut Vec<Conflict>,
) -> Result<Presence, LedgerError> {
    let key = key(&score_of(row, &ask.judge).into(), ask);
    let Some((id, Payload::ScoreRecorded(old), seq)) = recorded(ledger, &key)? else {
        return Ok(Presence::New);
    };
    if old.score_micro != row.score {
        let said = ScoreConflict {
            draw: row.draw,
            item: row.item.clone(),
            judge: ask.judge.clone(),
            policy: row.policy.clone(),
            recorded: id,
            recorded_micro: old.score_micro,
            score_micro: row.score,
        };
        let line = row.line;
        conflicts.push(Conflict { line, seq, said });
    }
    Ok(Presence::Already)
}

/// The log-probabilities of a row, where they were read.
pub fn logprob_of(row: &ImportRow) -> Option<LogprobRecorded> {
    row.logprobs.as_ref().map(|logprobs| LogprobRecorded {
        base: logprobs.base,
        draw: row.draw,
        item: row.item.clone(),
        policy: row.policy.clone(),
        targets: logprobs.targets.clone(),
    })
}

fn logprob(
    ledger: &Ledger,
    row: &ImportRow,
    ask: &ImportTerms,
) -> Result<Option<Presence>, PlanRefusal> {
    let Some(new) = logprob_of(row).map(Payload::from) else {
        return Ok(None);
    };
    match recorded(ledger, &key(&new, ask))? {
        None => Ok(Some(Presence::New)),
        Some((_, old, _)) if old == new => Ok(Some(Presence::Already)),
        Some((.., seq)) => {
            let expected = "the log-probabilities that are recorded";
            let found = "others".to_owned();
            Err(PlanRefusal::Refused(
                row.line,
                "natural_key",
                expected,
                found,
                Some(seq),
            ))
        }
    }
}

/// The open label of a row.
pub fn label_of(
    row: &ImportRow,
    value: Micro,
    rater: &RaterId,
    (design, purpose): &(DesignId, LabelPurpose),
) -> LabelRecorded {
    LabelRecorded {
        design: design.clone(),
        draw: row.draw,
        item: row.item.clone(),
        policy: row.policy.clone(),
        purpose: *purpose,
        rater: rater.clone(),
        value_micro: value,
    }
}

/// What becomes of a row's label.
///
/// # Errors
/// [`PlanRefusal`].
pub fn label(
    ledger: &Ledger,
    row: &ImportRow,
    ask: &ImportTerms,
) -> Result<LabelIntake, PlanRefusal> {
    let Some(value) = row.label else {
        return Ok(LabelIntake::None);
    };
    let stop = |rule, expected, found: &str, seq| {
        PlanRefusal::Refused(row.line, rule, expected, found.to_owned(), seq)
    };
    if let Some(open) = &ask.open {
        let new = Payload::from(label_of(row, value, &ask.rater, open));
        match recorded(ledger, &key(&new, ask))? {
            Some((_, old, _)) if old == new => return Ok(LabelIntake::Open(Presence::Already)),
            Some((.., seq)) => {
                let expected = "the label that is recorded";
                return Err(stop("natural_key", expected, CORRECTED, Some(seq)));
            }
            None => {}
        }
    }
    let experiment = Some(&ask.experiment);
    let draw = row_of_draw(&row.policy, &row.item, row.draw);
    let sealed = ledger.giver(&draw_serves(experiment, &draw, "sealed"))?;
    let confirm = ledger.giver(&in_confirm(experiment, &row.item))?;
    match &ask.seal {
        Some(design) if !ask.opens || confirm.is_some() || sealed.is_some() => {
            let id = RowId::new(draw.as_str()).map_err(|error| {
                let found = format!("{draw}: {error}");
                PlanRefusal::Refused(row.line, "design", "a row id policy/item/draw", found, None)
            })?;
            if let Some(seq) = sealed {
                return sealed_before(ledger, ask, design, &id, seq)
                    .map(|standing| LabelIntake::Sealed(standing, id))
                    .map_err(|found| stop("purpose", "a draw sealed once: one label of it is sealed, and a second person's is recorded once that is revealed", &found, Some(seq)));
            }
            for purpose in ["calibrate", "audit"] {
                let opened = ledger.giver(&draw_serves(experiment, &draw, purpose))?;
                if let Some(seq) = opened {
                    let expected = "a label that was never open";
                    return Err(stop("purpose", expected, "an open one", Some(seq)));
                }
            }
            Ok(LabelIntake::Sealed(Presence::New, id))
        }
        _ if !ask.opens => Ok(LabelIntake::Unread),
        _ => {
            if let Some(seq) = sealed {
                let expected = "a label that is not sealed; --seal DESIGN leaves it so";
                return Err(stop("purpose", expected, "a sealed one", Some(seq)));
            }
            if let Some(seq) = confirm {
                let expected =
                    "no open label of a confirm cluster; --seal DESIGN --reveal-by TIME seals it";
                return Err(stop("split", expected, "one", Some(seq)));
            }
            Ok(LabelIntake::Open(Presence::New))
        }
    }
}

/// A draw that is sealed stays so in its design.
fn sealed_before(
    ledger: &Ledger,
    ask: &ImportTerms,
    design: &DesignId,
    row: &RowId,
    seq: u64,
) -> Result<Presence, String> {
    let fields = [design.as_str(), row.as_str()];
    let key = registry::natural_key_of(Kind::LabelSealed, &ask.experiment, &fields);
    let here = ledger.giver(&key).map_err(|error| error.to_string())?;
    if here == Some(seq) {
        Ok(Presence::Already)
    } else {
        Err(format!("{row}, sealed in another design"))
    }
}
