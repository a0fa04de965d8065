//! The integration tests: one binary, one module per boundary.
#![cfg(test)]

mod audits;
mod cli;
mod crash;
mod decide;
mod differential;
mod fixtures;
mod newcomer;
mod oracle_age;
mod oracle_tlog;
mod power;
mod reference;
mod smoke;
mod support;
mod tamper;
