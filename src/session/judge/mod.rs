//! Judges at work: their registration, the rows that they score, what is recorded of it, and whether one still says the
//! same.

pub mod ask;
pub mod book;
pub mod error;
pub mod registration;

pub use book::Book;
pub use error::JudgingError;
