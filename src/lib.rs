//! Clover: an event-sourced experiment ledger for governing LLM judges.

pub mod event;
pub mod ground;
pub mod ledger;
pub mod num;
pub mod projection;
pub mod store;
