//! The only writer: keys and roles, rules, append, checkpoints and pins, reads, folds and verification.
//!
//! [`Ledger`] owns one file and appends to it; [`verify`] re-judges a whole history from bytes and needs no
//! store. Both ask the same rules. The traits [`Fold`], [`RowModel`] and [`Rule`] are filled by floors
//! above through a [`Rulebook`], so nothing here names an experiment's meaning or a statistic.
//!
//! ```
//! use std::sync::Arc;
//! use clover::event::payload::{Role, Roles, Verdict, custody::Separation, record::NoteRecorded};
//! use clover::ground::{ambient::Ambient, sign::Signer};
//! use clover::ledger::{Command, CreateLedger, Ledger, LedgerOptions, verify};
//! use clover::workflow::RULEBOOK;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let ambient = Arc::new(Ambient::system());
//! let owner = Signer::from_seed(&ambient.random()?);
//! let create = CreateLedger {
//!     origin: "example.org/lab".parse()?,
//!     holder: "Ada".parse()?,
//!     human: true,
//!     roles: Roles::new([Role::Owner]).ok_or("no roles")?,
//!     separation: Separation::Solo,
//!     rulebook: clover::ledger::rulebooks::NEWEST,
//!     owner: &owner,
//!     layout: clover::store::CreateOptions::default(),
//! };
//! let options = LedgerOptions {
//!     store: clover::store::OpenOptions::default(),
//!     log_key: Some(Signer::from_seed(&ambient.random()?)),
//!     pins: Some(folder.path().join("pins")),
//! };
//! let path = folder.path().join("ledger.db");
//! let mut ledger = Ledger::create(&path, create, ambient.clone(), &RULEBOOK, options)?;
//!
//! let text = clover::event::id::Text::new("first light").ok_or("too long")?;
//! let note = Command::new(NoteRecorded { blob: None, text }, None);
//! let appended = ledger.append(&[note], &owner)?;
//! assert_eq!(appended[0].seq, 1);
//!
//! let options = verify::VerifyOptions::default();
//! let report = verify::verify_store(ledger.store(), &options, &RULEBOOK, &ambient, &mut |_, _| {})?;
//! assert_eq!(report.verdict, Verdict::Pass);
//! # Ok(())
//! # }
//! ```

pub mod append;
pub mod checkpoint;
mod claim;
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
mod lines;
mod mark;
mod open;
mod restore;
mod tail;
mod under;

pub use append::Appended;
pub use append::Command;
pub use append::SignedEvent;
pub use catch_up::States;
pub use error::LedgerError;
pub use fold::Again;
pub use fold::AtHand;
pub use fold::Breach;
pub use fold::Breaches;
pub use fold::Candidate;
pub use fold::Checked;
pub use fold::Fact;
pub use fold::Fold;
pub use fold::FoldEntry;
pub use fold::Recompute;
pub use fold::Required;
pub use fold::RowModel;
pub use fold::Rule;
pub use fold::Rulebook;
pub use fold::Unmet;
pub use fold::VerifiedEvent;
pub(crate) use fold::ensure;
pub use fold::unmet;
pub use history::History;
pub use open::CreateLedger;
pub use open::Ledger;
pub use open::LedgerOptions;
pub use read::Reading;
pub use read::Recorded;
pub use rule_names::RuleName;
pub use state::State;
pub use trial::Trial;

pub use crate::store::LabelRow;
pub use crate::store::RevealRow;
pub use crate::store::RowChange;
pub use crate::store::ScoreRow;
pub use crate::store::SealRow;
