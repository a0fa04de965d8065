//! Whatever is changed in a ledger's files is found, or changes nothing that anyone can see.
//!
//! By default a sample runs; `RUN_SLOW_TESTS=1` changes every byte and draws 10,000 random mutations.

mod baited;
mod bytes;
mod ends;
mod stage;
pub mod tables;
