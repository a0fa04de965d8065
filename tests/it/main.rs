//! The integration tests: one binary, one module per boundary.
#![cfg(test)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::too_many_lines,
    unreachable_pub,
    reason = "tests look at the files themselves, tell long stories, and are no library"
)]

mod adversary;
mod audits;
mod bytes;
mod cli;
mod coverage;
mod crash;
mod decide;
mod demo_data;
mod descent;
mod differential;
mod documents;
mod edits;
mod fixtures;
mod fork;
mod hostile;
mod journeys;
mod library;
mod newcomer;
mod oracle_age;
mod oracle_tlog;
mod patch_rules;
mod power;
mod prompt_patches;
mod properties;
mod reference;
mod replay;
mod report;
mod smoke;
mod support;
mod tamper;
mod tidy;
mod words;
mod worked;
