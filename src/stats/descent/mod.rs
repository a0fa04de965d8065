//! Descent of a judge's prompt: the loss of its scores against people's, what is told of the errors, and when to stop.
//!
//! Scores and targets are normalised to [0, 1]. A row has a target and up to R scores; `rows` reads them, [`Loss`] is what
//! they are worth, [`ErrorClasses`] and [`Aggregates`] are what an agent may be told, [`Course`] says what the losses of a
//! run ask for, [`split`] and [`batch`] draw rows. Nothing is differentiated: all of these are numbers of finished scores.

mod classes;
mod course;
mod draw;
mod loss;
mod pairs;
mod rows;

pub use classes::AggregateClass;
pub use classes::Aggregates;
pub use classes::CELL_MIN;
pub use classes::CLASS_ROWS_MAX;
pub use classes::ErrorClasses;
pub use course::Course;
pub use course::Evaluation;
pub use course::Trigger;
pub use course::course;
pub use course::paired_error;
pub use course::theil_sen;
pub use draw::Batch;
pub use draw::SplitPart;
pub use draw::TargetStrata as Strata;
pub use draw::batch;
pub use draw::split;
pub use loss::Constants;
pub use loss::Deviation;
pub use loss::Loss;
pub use loss::LossTerms;
pub use loss::Ranking;
pub use loss::entropy;
pub use loss::loss;
pub use pairs::PairSums;
pub use rows::RowScores;
pub use rows::ScoredRows;
