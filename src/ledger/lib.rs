//! The only writer: keys and roles, rules, append, checkpoints and pins, reads, folds and verification.
//!
//! [`Ledger`] owns one file and appends to it; [`verify`] re-judges a whole history from bytes and needs no
//! store. Both ask the same rules. The traits [`Fold`], [`RowModel`] and [`Rule`] are filled by floors
//! above through a [`Rulebook`], so nothing here names an experiment's meaning or a statistic.

pub mod append;
pub mod checkpoint;
mod claim;
pub mod codes;
pub mod error;
pub mod fold;
mod history;
pub mod keyring;
pub mod load;
pub mod names;
pub mod past;
pub mod pin;
pub mod read;
pub mod rule_names;
pub mod rulebooks;
pub mod rules;
pub mod signers;
pub mod state;
pub mod trial;
pub mod verify;

mod catch_up;
mod kinds;
mod lines;
mod mark;
mod open;
mod restore;
mod slate;
mod states_kept;
mod tail;
mod under;

pub use append::AppendedEvent;
pub use append::Command;
pub use append::SignedEvent;
pub use append::UnmetDemand;
pub use catch_up::States;
pub use claim::blobs as named_blobs;
pub use codes::Code;
pub use error::LedgerError;
pub use fold::Again;
pub use fold::AtHand;
pub use fold::Breach;
pub use fold::Breaches;
pub use fold::Fact;
pub use fold::Fold;
pub use fold::FoldEntry;
pub use fold::ProposedEvent;
pub use fold::Recompute;
pub use fold::RequiredFact;
pub use fold::RowModel;
pub use fold::Rule;
pub use fold::RuleAnswer;
pub use fold::Rulebook;
pub use fold::Unmet;
pub use fold::VerifiedEvent;
pub use fold::unmet;
pub use history::History;
pub use kinds::KindQuery;
pub use lines::write_stored;
pub use open::CreateLedger;
pub use open::Ledger;
pub use open::LedgerOptions;
pub use read::Reading;
pub use read::RecordedValues;
pub use rule_names::RuleName;
pub use state::State;
pub use trial::Trial;

pub use clover_store::LabelRow;
pub use clover_store::RevealRow;
pub use clover_store::RowChange;
pub use clover_store::ScoreRow;
pub use clover_store::SealRow;
