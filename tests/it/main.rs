//! The integration tests: one binary, one module per boundary.
#![cfg(test)]

mod audits;
mod differential;
mod newcomer;
mod oracle_age;
mod oracle_tlog;
mod reference;
mod smoke;
mod support;
