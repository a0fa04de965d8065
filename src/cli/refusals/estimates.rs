//! Refusals about estimates.

use crate::cli::error::CliError;
use crate::ground::shell;
use crate::session::estimates::EstimateError;
use crate::workflow::estimate::rows::RowsError;
use crate::workflow::import::kept::KeptError;

impl From<EstimateError> for CliError {
    fn from(error: EstimateError) -> Self {
        let message = error.to_string();
        match error {
            EstimateError::NoScores { judges, .. } => {
                let next = match judges.first() {
                    Some(judge) => format!("the same command with --judge {}", shell::word(judge)),
                    None => "clover import cje DIR".to_owned(),
                };
                Self::not_found(message, next)
            }
            EstimateError::ScoredLate { .. } => Self::refused(
                message,
                "clover experiment register ID --title TITLE --purpose WHY; score its rows, and label them then",
            ),
            EstimateError::NoCalibrator { name: Some(_) } => {
                Self::not_found(message, "clover calibrate list")
            }
            EstimateError::NoLocalCalibrator(named) => {
                let next = format!("clover estimate --environment {}", shell::word(&named));
                Self::not_found(message, next)
            }
            EstimateError::NoRows(_) => Self::not_found(message, "clover regime list"),
            EstimateError::NoCurves { seq } => {
                Self::not_found(message, format!("clover replay {seq}"))
            }
            EstimateError::NoCalibrator { name: None } => {
                Self::not_found(message, "clover estimate")
            }
            EstimateError::Changed { seq } => {
                Self::integrity("differs", message, format!("clover replay {seq}"))
            }
            EstimateError::SaidLate { .. } => {
                Self::refused(message, "the same command without --covariate")
            }
            EstimateError::Rows(RowsError::PlacedLate { .. }) => {
                Self::refused(message, "the same command without --environment")
            }
            EstimateError::Computation(error) => Self::input(error.to_string(), "clover estimate"),
            EstimateError::Rows(RowsError::Covariate { seq, .. }) => {
                Self::input(message, format!("clover show {seq}"))
            }
            EstimateError::Rows(
                RowsError::Kept(KeptError::Ledger(error)) | RowsError::Ledger(error),
            ) => error.into(),
            EstimateError::Rows(RowsError::Kept(KeptError::Unread(error))) => error.into(),
            EstimateError::Rows(RowsError::Number { field, .. }) => {
                let field = shell::word(&field);
                Self::input(message, format!("clover import cje FILE --field {field}"))
            }
        }
    }
}
