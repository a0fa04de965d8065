//! Judges as ports: who gives a response its base score.
//!
//! A [`Judge`] answers one [`JudgeQuery`] with one score; what else a score needs (the evidence record, keys, signatures)
//! is the workflow's. [`builtin`] is a documented text judge with the biases of real ones, [`recorded`] gives the scores that were
//! imported, [`command`] asks a child process. Scores are kept once, under the keys of [`key`].

pub mod agreement;
pub mod builtin;
pub mod command;
pub mod fields;
pub mod key;
pub mod kinship;
pub mod recorded;
pub mod run;
pub mod simulated;

use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::payload::estimated::ScaleEnds;
use clover_num::Count;
use clover_num::Micro;
use clover_rubric::evidence::Evidence;

use crate::judge::fields::EvidenceFields;
use crate::judge::fields::ReturnedEvidence;

/// What a judge is asked.
#[derive(Clone, Copy, Debug)]
pub struct JudgeQuery<'a> {
    /// What was answered.
    pub item: &'a ItemId,
    /// Who answered.
    pub policy: &'a PolicyId,
    /// Which draw, from 0.
    pub draw: Count,
    /// The prompt's text.
    pub prompt: &'a str,
    /// The response's text.
    pub response: &'a str,
    /// What the extractor found in it.
    pub evidence: &'a Evidence,
}

/// Why a judge gave no score.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JudgeError {
    /// The answer is no score.
    #[error("expected a score from 0 to 1, found {0}")]
    Answer(String),
    /// What it found is not what it was registered to return.
    #[error("the answer to ask {ask}: {field}: expected {expected}, found {found}")]
    Evidence {
        /// The ask, from 1: the line of its answers, where it was never started anew.
        ask: u64,
        /// The field.
        field: String,
        /// What it would hold.
        expected: String,
        /// What it holds.
        found: String,
    },
    /// The answer is no score on the scale that it was registered with.
    #[error("expected a score from {} to {}, found {found}", .scale.low_micro, .scale.high_micro)]
    OffScale {
        /// The scale.
        scale: ScaleEnds,
        /// What it said.
        found: String,
    },
    /// It ended, or could not be started, and was tried as often as it may be.
    #[error("the judge ended: {0}")]
    Ended(String),
    /// It says itself that it cannot score this.
    #[error("the judge declines: {0}")]
    Declined(String),
    /// It took too long, as often as it may.
    #[error("no answer within {0} seconds")]
    Late(u64),
    /// No score of that draw was recorded.
    #[error("no score of this draw is recorded")]
    Missing,
}

/// What a judge answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The base score, from 0 to 1 in millionths.
    pub score: Micro,
    /// Why, where it says so.
    pub reason: Option<String>,
    /// What it found, where it was registered to return that.
    pub evidence: Option<ReturnedEvidence>,
}

impl Answer {
    /// A score, and nothing beside it.
    pub fn of(score: Micro) -> Self {
        Self {
            score,
            reason: None,
            evidence: None,
        }
    }
}

/// Gives base scores.
pub trait Judge {
    /// The base score of a response, from 0 to 1 in millionths, with what the judge says beside it. The same ask gives the same
    /// score, or the judge is not deterministic and a re-score finds it out.
    ///
    /// # Errors
    /// [`JudgeError`].
    fn answer(&mut self, ask: &JudgeQuery<'_>) -> Result<Answer, JudgeError>;

    /// The score alone.
    ///
    /// # Errors
    /// [`JudgeError`].
    fn score(&mut self, ask: &JudgeQuery<'_>) -> Result<Micro, JudgeError> {
        self.answer(ask).map(|answer| answer.score)
    }

    /// Tells it what it is to judge by: every ask after this one says so. A judge that reads no prompt takes no notice.
    fn tell(&mut self, _prompt: &str) {}

    /// Expects these fields of evidence with every answer. A judge that returns none takes no notice.
    fn expect(&mut self, _fields: &EvidenceFields) {}

    /// Ends it after the last ask.
    ///
    /// # Errors
    /// [`JudgeError::Ended`] when it ends badly; what it said before stands.
    fn finish(&mut self) -> Result<(), JudgeError> {
        Ok(())
    }
}
