//! The integration tests: one binary, one module per boundary.
#![cfg(test)]
#![expect(
    clippy::disallowed_methods,
    clippy::explicit_auto_deref,
    clippy::same_functions_in_if_condition,
    clippy::needless_pass_by_value,
    clippy::too_many_lines,
    clippy::unused_self,
    unreachable_pub,
    reason = "tests look at the files themselves, tell long stories, and are no library"
)]

mod audits;
mod bytes;
mod crash;
mod decide;
mod differential;
mod fixtures;
mod fork;
mod oracle_age;
mod oracle_tlog;
mod power;
mod reference;
mod replay;
mod smoke;
mod support;
mod tamper;
mod tidy;
