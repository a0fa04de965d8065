//! Estimates on the record: rows of a ledger through the computation that files go through, and the events that say
//! what was found.
//!
//! [`rows`] reads what an experiment holds of one judge, [`compute`] estimates and words the events, [`audit`] grades
//! probes once, [`planning`] sizes what comes next, [`advice`] says what to label where a level is refused, [`slices`] where the
//! calibrated judge errs, [`drawn`] with what probability rows were labelled. Nothing here signs or appends.

pub mod advice;
pub mod audit;
pub mod compute;
pub mod covariates;
pub mod drawn;
pub mod environments;
pub mod form;
mod labels;
mod missing;
pub mod model;
mod parted;
pub mod planning;
pub mod probes;
pub mod rows;
pub(crate) mod scope;
pub mod shape;
pub mod shares;
pub mod slices;
mod standing;
pub mod terms;

pub use model::CALIBRATOR_LABEL;
