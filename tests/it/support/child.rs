//! Running a part of this test binary as a process of its own: something to kill.
//!
//! A child is this executable again, asked for one test by its exact name, with its job in an environment
//! variable. Without the variable that test has nothing to do and passes.

use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;

use clover::event::PAYLOAD_TYPE;
use clover::event::id::EventId;
use clover::event::payload::Role;
use clover::ground::ambient::Ambient;
use clover::ground::digest::Digest;
use clover::ground::sign::Signed;
use clover::ledger::Ledger;
use clover::ledger::LedgerError;
use clover::ledger::LedgerOptions;
use clover::store::OpenOptions;
use clover::workflow::RULEBOOK;

use crate::support::TestLedger;
use crate::support::signer;

/// Names the job of a child: `<what> <folder> <number>`.
pub const JOB: &str = "CLOVER_TEST_JOB";

/// Whether the long versions of the tests run.
pub fn slow() -> bool {
    std::env::var_os("RUN_SLOW_TESTS").is_some()
}

/// Seeds of the keys that children sign with.
pub fn child_signer(number: u8) -> clover::ground::sign::Signer {
    signer(100 + number)
}

/// A ledger with real time whose file, pin and keys children can find.
pub fn ledger_for_children(children: u8) -> TestLedger {
    let mut test = TestLedger::real();
    test.register(super::EXPERIMENT);
    for number in 0..children {
        let key = child_signer(number);
        test.add_key(&key, &format!("child {number}"), &[Role::Scorer])
            .unwrap();
    }
    test
}

/// The command that starts a child with this job.
pub fn command(job: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "crash::child",
            "--nocapture",
            "--test-threads",
            "1",
        ])
        .env(JOB, job);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

pub fn spawn(job: &str) -> Child {
    command(job).spawn().unwrap()
}

/// Opens the ledger in `folder` with the system's clock.
pub fn open(folder: &Path) -> Result<Ledger, LedgerError> {
    let options = LedgerOptions {
        store: OpenOptions::default(),
        log_key: Some(signer(2)),
        pins: Some(folder.join("pins")),
    };
    Ledger::open(
        &folder.join("ledger.db"),
        Arc::new(Ambient::system()),
        &RULEBOOK,
        options,
    )
}

/// An acknowledgement as a line: `ACK <seq> <id>`.
pub fn parse_ack(line: &str) -> Option<(u64, EventId)> {
    let (_, ack) = line.split_once("ACK ")?;
    let mut parts = ack.split_whitespace();
    let seq = parts.next()?.parse().ok()?;
    Some((seq, EventId(Digest::from_hex(parts.next()?)?)))
}

/// The stored event at `seq`, signed, to be submitted again.
pub fn signed_again(ledger: &Ledger, seq: u64) -> Signed<clover::ground::sign::Unverified> {
    let stored = ledger.entry(seq).unwrap().unwrap().stored;
    debug_assert!(PAYLOAD_TYPE.starts_with("application/"));
    Signed::new(stored.body, stored.author, stored.signature)
}
