//! One-off estimates from files of judge-scored responses: exploratory, and on no record.
//!
//! [`read`] turns files into a [`Dataset`](dataset::Dataset), [`run`] estimates every policy, their differences, and
//! what supports the numbers. Nothing here reads a file or writes an event.

pub mod dataset;
mod detail;
mod parts;
pub mod read;
mod result;
mod run;

pub use parts::adjusted;
pub use result::Analysis;
pub use result::BootstrapResult;
pub use result::Calibration;
pub use result::Detail;
pub use result::Difference;
pub use result::LabelsOnly;
pub use result::Method;
pub use result::PolicyResult;
pub use result::RareLabels;
pub use result::SpreadResult;
pub use result::Status;
pub use result::TransportResult;
pub use run::AnalyzeError;
pub use run::Labels;
pub use run::Probe;
pub use run::Replicates;
pub use run::Request;
pub use run::analyze;
