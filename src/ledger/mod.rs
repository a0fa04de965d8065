//! The only writer: keys and roles, rules, append, checkpoints and pins, reads, folds and verification.
//!
//! [`Ledger`] owns one file and appends to it; [`verify`] re-judges a whole history from bytes and needs no
//! store. Both ask the same rules. The traits [`Fold`], [`RowModel`] and [`Rule`] are filled by floors
//! above through a [`Rulebook`], so nothing here names an experiment's meaning or a statistic.

pub mod append;
pub mod checkpoint;
pub mod error;
pub mod fold;
pub mod keyring;
pub mod pin;
pub mod read;
pub mod rules;
pub mod state;
pub mod verify;

mod open;

pub use append::Appended;
pub use append::Command;
pub use append::SignedEvent;
pub use error::LedgerError;
pub use fold::Breach;
pub use fold::Candidate;
pub use fold::Fact;
pub use fold::Fold;
pub use fold::FoldEntry;
pub use fold::RowModel;
pub use fold::Rule;
pub use fold::Rulebook;
pub use fold::VerifiedEvent;
pub use open::CreateLedger;
pub use open::Ledger;
pub use open::LedgerOptions;
pub use state::State;

pub use crate::store::RowChange;
