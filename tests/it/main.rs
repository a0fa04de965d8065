//! The integration tests: one binary, one module per boundary.
#![cfg(test)]

mod cli;
mod fixtures;
mod oracle_age;
mod oracle_tlog;
mod reference;
mod smoke;
mod support;
