//! Judges at work: their registration, the rows that they score, what is recorded of it, and whether one still says the
//! same.

pub mod agreement;
mod ask;
pub mod assignment;
pub mod book;
pub mod drift;
pub mod error;
pub mod history;
pub mod judging;
pub mod live;
mod live_course;
pub mod live_outlook;
mod live_record;
mod live_rows;
pub mod live_stop;
pub mod noise;
pub mod registration;
pub mod reread;
mod reread_models;
pub mod run_replay;
pub mod scores;
pub mod scoring;
pub mod tape;

pub use assignment::Assignment;
pub use book::Book;
pub use book::BookBasis;
pub use error::JudgingError;
