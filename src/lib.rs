//! Clover: an event-sourced experiment ledger for governing LLM judges.

pub mod cli;
pub mod event;
pub mod export;
pub mod ground;
pub mod ledger;
pub mod num;
pub mod projection;
pub mod store;
