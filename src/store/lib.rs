//! The ledger file: the only place that names `rusqlite`.
//!
//! A [`Store`] gives bytes and rows, in one write transaction at a time, and refuses to be anything but
//! a ledger file of a known migration. It knows no rule: what may be appended is decided in `ledger`.
//! Entries, checkpoints, tiles and blobs are history; the digest index, the index of kinds, cursors and snapshots are
//! caches of it; read models are rows that a pure projection derived from it.

mod blobs;
mod database;
mod entries;
mod error;
mod index;
mod integrity;
mod kinds;
mod rows;
mod snapshots;
mod tree;
mod vault;

pub use database::CreateOptions;
pub use database::Durability;
pub use database::OpenOptions;
pub use database::Reader;
pub use database::RowsIn;
pub use database::Store;
pub use database::WriteTxn;
pub use database::sqlite_version;
pub use entries::EntryRef;
pub use entries::StoredEntry;
pub use error::StoreError;
pub use integrity::Fault;
pub use integrity::Part;
pub use kinds::KindRun;
pub use rows::LabelRow;
pub use rows::RevealRow;
pub use rows::RowChange;
pub use rows::RowCursor;
pub use rows::ScoreRow;
pub use rows::SealRow;
pub use rows::Table;
pub use snapshots::StoredSnapshot;
pub use tree::StoredCheckpoint;
pub use vault::Vault;
