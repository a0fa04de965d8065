//! What one iteration computes, over plain rows in memory: fits, uncertainty, audits, cards, the evidence of gates.
//!
//! Every function is pure: rows, registered parameters and seeds in, numbers out. Order of rows is the caller's and is
//! part of the input. Source: CLOVER v1.1, sections 2 to 6 and 8.

pub mod audit;
pub mod cards;
pub mod evidence;
pub mod fit;
pub mod labels;
pub mod rows;
pub mod sequential;
pub mod transport;
pub mod uncertainty;

pub use rows::Anchor;
pub use rows::EnvironmentFamily;
pub use rows::IterationRows;
pub use rows::ScoredRubric;
pub use rows::SliceFamily;
pub use rows::Table;
