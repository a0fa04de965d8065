//! Bytes without domain words: canonical JSON, digests, trees, notes, signatures, seals, and the one
//! door to the world.
//!
//! Each module here implements one public byte format and knows nothing of experiments, judges or
//! gates; what a signed byte string *means* is `event`'s to say.

pub mod ambient;
pub mod base64;
pub mod canon;
pub mod digest;
pub mod interrupt;
mod json;
pub mod keyfile;
pub mod merkle;
pub mod name;
pub mod note;
pub mod once;
#[cfg(feature = "testing")]
pub mod page;
mod pbes2;
pub mod process;
#[cfg(feature = "schema")]
mod schema;
pub mod seal;
pub mod secret;
pub mod seed;
pub mod shell;
pub mod sign;
pub mod time;
pub mod words;
pub mod written;
pub mod yaml;
