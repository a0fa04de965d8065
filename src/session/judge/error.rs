//! Why a judge's work stopped.

use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::event::payload::scoring::JudgeRegistered;
use crate::workflow::judge::JudgeError;

/// Why a judge's work stopped.
#[derive(Debug, thiserror::Error)]
pub enum JudgingError {
    /// The judge is not registered.
    #[error("judge: {judge} is not registered in {experiment}")]
    NotRegistered {
        /// The judge.
        judge: JudgeId,
        /// The experiment.
        experiment: ExperimentId,
    },
    /// Another judge is registered under the name.
    #[error(
        "judge: {} is registered at seq {seq} as {} {}, and this is another judge: its port, model, template, extractor or known data differ",
        .registered.judge, .registered.port.as_str(), .registered.model.as_str()
    )]
    OtherJudge {
        /// The judge that is registered.
        registered: Box<JudgeRegistered>,
        /// Where its registration stands.
        seq: u64,
    },
    /// A rule would refuse the score of a row.
    #[error("line {line}: {rule}: expected {expected}, found {found}")]
    Row {
        /// The row's line, from 1.
        line: u64,
        /// The rule.
        rule: &'static str,
        /// What it would accept.
        expected: &'static str,
        /// What it found.
        found: String,
    },
    /// The judge gave no score. Rows that it scored before are on record.
    #[error("{place}{error}; {scored} rows were recorded before")]
    Stopped {
        /// The item that it was asked about, as `item: `; empty where it failed at its end.
        place: String,
        /// What the judge, or the program behind it, says.
        error: JudgeError,
        /// Rows of this run that are on record.
        scored: usize,
    },
    /// The judge gave no score, and nothing of the step is on record.
    #[error("{what}: {error}; nothing of it was recorded")]
    Unanswered {
        /// The step.
        what: String,
        /// What the judge, or the program behind it, says.
        error: JudgeError,
    },
}

impl JudgingError {
    /// The judge stopped at an item, after so many rows of this run were recorded.
    pub fn stopped_at(item: impl std::fmt::Display, error: JudgeError, scored: usize) -> Self {
        let place = format!("{item}: ");
        Self::Stopped {
            place,
            error,
            scored,
        }
    }

    /// The judge failed at its end, after so many rows of this run were recorded.
    pub fn stopped_at_end(error: JudgeError, scored: usize) -> Self {
        let place = String::new();
        Self::Stopped {
            place,
            error,
            scored,
        }
    }
}
