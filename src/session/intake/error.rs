//! Why rows are not taken in.

use clover_event::id::ExperimentId;
use clover_event::id::FieldId;
use clover_event::id::ItemId;
use clover_event::id::JudgeId;
use clover_event::payload::estimated::ScaleEnds;
use clover_event::payload::judge::ScoreConflict;
use clover_ground::seal::BlobError;
use clover_ground::sign::KeyId;
use clover_num::Micro;
use clover_workflow::import::ImportError;
use clover_workflow::import::plan::PlanRefusal;

use crate::error::SessionError;

/// Why rows are not taken in.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// A private text cannot be sealed.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// Scores differ from what is recorded. Each difference is on record, and nothing else was appended.
    #[error(
        "{file}:{line}: score_once: {} scores differ from what is recorded ({} by {}: {} recorded, {} in the file); each is on record as score.conflict, and nothing else was appended",
        .seqs.len(), .first.item, .first.policy, .first.recorded_micro, .first.score_micro
    )]
    Conflicts {
        /// The file of the first.
        file: String,
        /// Its line, from 1.
        line: u64,
        /// The first of them.
        first: Box<ScoreConflict>,
        /// Where each stands.
        seqs: Vec<u64>,
    },
    /// A field of rows that the ledger holds is said once labels can be read.
    #[error(
        "field {field} of rows that are on record is said after seq {seq}, where a label could be read: whoever knows labels could choose it"
    )]
    LateFields {
        /// The field.
        field: FieldId,
        /// The first label that could be read.
        seq: u64,
    },
    /// The texts of a prompt were erased.
    #[error(
        "{file}:{line}: the texts of {item} were erased at seq {seq} and are not taken in again"
    )]
    Erased {
        /// The file that brings them again.
        file: String,
        /// Its line, from 1.
        line: u64,
        /// The prompt.
        item: ItemId,
        /// Where the erasure stands.
        seq: u64,
    },
    /// An import says a scale of labels after some were sealed.
    #[error(
        "scale: expected a scale that is said before a label is sealed, found {}:{} after labels of a design with sealed ones, since seq {seq}",
        .said.low_micro, .said.high_micro
    )]
    LateScale {
        /// What the import says.
        said: ScaleEnds,
        /// The first label of that design.
        seq: u64,
    },
    /// Labels stay closed, and no live custodian can open what is sealed.
    #[error(
        "labels that stay closed are kept for a custodian alone, and no live custodian key has a recipient"
    )]
    NoCustodian,
    /// Labels are of rows that the ledger does not hold.
    #[error(transparent)]
    NotHeld(ImportError),
    /// The named custodian cannot open what is sealed.
    #[error("key {0} has no recipient to seal to")]
    NoRecipient(KeyId),
    /// A row has no prompt, or no response.
    #[error("{file}:{line}: row: expected a prompt and a response, found no {lacks}")]
    NoTexts {
        /// The file.
        file: String,
        /// Its line, from 1.
        line: u64,
        /// What it lacks.
        lacks: &'static str,
        /// Whether it has neither.
        neither: bool,
    },
    /// A recorded label lies off the scale that an import says.
    #[error("scale: expected every label from {} to {}, found {value} recorded at seq {seq}", .said.low_micro, .said.high_micro)]
    OffScale {
        /// What the import says.
        said: ScaleEnds,
        /// Where the label stands.
        seq: u64,
        /// The label.
        value: Micro,
    },
    /// An import says another scale of labels than the declared one.
    #[error(
        "scale: expected {}:{}, the scale of the labels of {experiment} since the first were recorded, found {}:{}",
        .declared.low_micro, .declared.high_micro, .said.low_micro, .said.high_micro
    )]
    OtherScale {
        /// What the ledger holds.
        declared: ScaleEnds,
        /// The experiment.
        experiment: ExperimentId,
        /// What the import says.
        said: ScaleEnds,
    },
    /// An import says another scale of scores than those of its judge have.
    #[error(
        "{file}:{line}: judge_score: expected {}:{}, the scale of the scores of {judge} on record, found {}:{}; a judge has one scale",
        .known.low_micro, .known.high_micro, .said.low_micro, .said.high_micro
    )]
    OtherScoreScale {
        /// The file.
        file: String,
        /// The line of its first new score, from 1.
        line: u64,
        /// The judge.
        judge: JudgeId,
        /// The scale of its scores.
        known: ScaleEnds,
        /// What the import says.
        said: ScaleEnds,
    },
    /// Scores differ from what a judge of this ledger answered. Nothing was appended.
    #[error(
        "{file}:{line}: judge_score: {} was asked by this ledger and scored {} by {} {}, the file says {}; {rows} of its rows differ, and nothing was recorded",
        .first.judge, .first.item, .first.policy, .first.recorded_micro, .first.score_micro
    )]
    OwnScore {
        /// The file of the first.
        file: String,
        /// Its line, from 1.
        line: u64,
        /// Where the recorded score stands.
        seq: u64,
        /// The first of them, as it would be recorded.
        first: Box<ScoreConflict>,
        /// How many there are.
        rows: usize,
    },
    /// A rule would refuse a row.
    #[error("{file}:{line}: {rule}: expected {expected}, found {found}")]
    Row {
        /// The file.
        file: String,
        /// Its line, from 1.
        line: u64,
        /// The rule.
        rule: &'static str,
        /// What it would accept.
        expected: String,
        /// What it found.
        found: String,
        /// The entry in the way.
        in_the_way: Option<u64>,
    },
    /// Several custodians could open what is sealed, and none was named.
    #[error("several custodians could open what is sealed")]
    SeveralCustodians,
}

/// Why the rows of a file cannot be planned.
pub(super) fn stopped(stop: PlanRefusal, file: &str) -> SessionError {
    match stop {
        PlanRefusal::Ledger(error) => error.into(),
        PlanRefusal::Refused(line, rule, expected, found, in_the_way) => {
            let file = file.to_owned();
            let row = IntakeError::Row {
                file,
                line,
                rule,
                expected: expected.to_owned(),
                found,
                in_the_way,
            };
            row.into()
        }
    }
}
