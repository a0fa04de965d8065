//! What can be said: ids, headers, the closed registry of kinds and their typed payloads.
//!
//! An event's body is one JSON object in canonical form ([`header`]); its entry line is the leaf of the
//! log ([`entry`]). Kinds are one line each in [`registry`]; payload structs stand by family in
//! [`payload`]. Who may sign and in which order is judged in `ledger` and `projection`; nothing here
//! reads a file or a database.

pub mod calls;
pub mod entry;
pub mod field;
pub mod header;
pub mod id;
pub mod ids;
pub mod payload;
pub mod registry;
#[cfg(test)]
#[cfg(feature = "schema")]
mod schema;
mod template;

pub use entry::Entry;
pub use field::Statement;
pub use header::Draft;
pub use header::Event;
pub use header::Header;
pub use header::PAYLOAD_TYPE;
pub use header::SeenCheckpoint;
pub use registry::Kind;
pub use registry::Payload;
