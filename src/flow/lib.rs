//! Workflows of model calls: their language `wf/1`, an interpreter that always ends, executors that need no network.
//!
//! Pure: no file, no clock, no network, no event. A workflow is closed JSON ([`Workflow`]); [`run()`] runs it over its
//! inputs through a port ([`executor::Executor`]) and gives a [`RunOutcome`] whose trace has a digest. Numbers are exact
//! decimals ([`number`]), so that equal answers give equal traces on every machine. `schema/WORKFLOW.md` is the page
//! for users.

mod decode;
pub mod difference;
pub mod executor;
pub mod expr;
mod fault;
pub mod item;
pub mod language;
mod map;
pub mod memory;
pub mod number;
pub mod patch;
pub mod path;
pub mod pattern;
mod read;
pub mod repair;
mod request;
mod run;
mod scope;
pub mod shape;
pub mod syntax;
pub mod task;
pub mod template;
pub mod trace;
pub mod value;
pub mod workflow;

pub use fault::Fault;
pub use fault::FaultKind;
pub use fault::TextPosition;
pub use run::Bounds;
pub use run::run;
pub use trace::RunOutcome;
pub use value::Data;
pub use workflow::Workflow;
