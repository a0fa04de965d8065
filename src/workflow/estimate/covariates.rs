//! Where the covariates of rows come from.

use clover_event::id::FieldId;
use clover_event::payload::PrivateRef;
use clover_event::payload::judge::ScoreRecorded;

/// Where covariates come from: texts are private, so only whoever holds their keys can say.
pub trait Covariates {
    /// The value of a covariate for one score.
    ///
    /// # Errors
    /// What is missing, in words.
    fn value(&mut self, field: &FieldId, score: &ScoreRecorded) -> Result<f64, String>;

    /// A private text.
    ///
    /// # Errors
    /// What is missing, in words.
    fn text(&mut self, _: &PrivateRef) -> Result<String, String> {
        Err(NOT_AT_HAND.to_owned())
    }

    /// Whether there is anybody to ask at all.
    fn are_at_hand(&self) -> bool {
        true
    }
}

/// What is said where there is nobody to ask.
pub const NOT_AT_HAND: &str = "it is computed from private texts, which are not at hand";

/// Nobody to ask.
#[derive(Clone, Copy, Debug)]
pub struct NoCovariates;

impl Covariates for NoCovariates {
    fn value(&mut self, _: &FieldId, _: &ScoreRecorded) -> Result<f64, String> {
        Err(NOT_AT_HAND.to_owned())
    }

    fn are_at_hand(&self) -> bool {
        false
    }
}
