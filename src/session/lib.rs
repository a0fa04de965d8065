//! Use cases: what a team does with a ledger, whoever asks for it.
//!
//! Each takes a [`Ledger`](clover_ledger::Ledger) and [`Ports`], appends what the step says, and answers with a typed
//! outcome. Keys, consent and judges come through the ports; progress and notices leave by them. Nothing here is worded
//! for people: a [`SessionError`] says what is wrong, and the caller decides the hint and the exit code.
//!
//! ```text
//! command line, server, program  ->  use case  ->  workflow computes  ->  ledger appends
//! ```

pub mod accounts;
pub mod append;
pub mod asking;
pub mod backup;
pub mod calibrators;
pub mod charges;
pub mod chronicle;
pub mod confirm;
pub mod custody;
pub mod deploy;
pub mod endpoints;
pub mod error;
pub mod estimates;
pub mod expiry;
pub mod follow;
pub mod founding;
pub mod gate;
pub mod home;
pub mod intake;
pub mod iterate;
pub mod judge;
pub mod kept;
pub mod keys;
pub mod label;
pub mod listing;
pub mod outbox;
pub mod ports;
pub mod prereg;
pub mod qualification;
pub mod regimes;
pub mod reports;
pub mod restore;
pub mod sgd;
pub mod shared;
pub mod slate;
pub mod split;
pub mod stage;
mod tariff;
pub mod texts;
pub mod unread;
pub mod waivers;
pub mod wf;

pub use error::SessionError;
pub use home::Home;
pub use ports::Ports;
