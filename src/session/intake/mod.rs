//! Rows that come in: one signed event for each score and label, each kind under the key that may say it.

use clover_event::payload::estimated::ScaleEnds;
use clover_event::payload::intake::ImportFormat;
use clover_ground::sign::KeyId;
use clover_ground::time::Timestamp;
use clover_workflow::import::ImportRows;
use clover_workflow::import::plan::ImportTerms;

pub mod batch;
pub mod bulk;
pub mod counts;
pub mod error;
pub mod held;
pub mod import;
pub mod labels;
pub(crate) mod remarks;
pub mod responses;
pub mod scale;
pub mod sealing;
pub mod signers;
pub mod subjects;

pub use error::IntakeError;

/// A file of rows, read.
#[derive(Clone, Debug)]
pub struct InputFile {
    /// Its bytes as they were.
    pub bytes: Vec<u8>,
    /// What is in them.
    pub rows: ImportRows,
}

/// Under which names rows are recorded, and who opens what stays closed.
#[derive(Clone, Debug)]
pub struct IntakeRequest {
    /// The names, and what becomes of labels.
    pub ask: ImportTerms,
    /// The form of the files.
    pub format: ImportFormat,
    /// The scale of labels that the import says, where it says one.
    pub label_scale: Option<ScaleEnds>,
    /// The scale of scores that the import says; `None` is 0 to 1.
    pub score_scale: Option<ScaleEnds>,
    /// By when sealed labels are to be revealed.
    pub reveal_by: Option<Timestamp>,
    /// The custodian's key; default the only live one with a recipient.
    pub to: Option<KeyId>,
}
