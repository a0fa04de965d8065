//! The outcome of reference vectors on this machine, on record.

use clover_event::id::Text;
use clover_event::payload::Verdict;
use clover_event::payload::record::QualificationRecorded;
use clover_event::payload::record::QualifiedFile;
use clover_ground::digest::Digest;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_qualify::Report;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::error::SessionError;
use crate::ports::Ports;

/// A file of vectors that was run.
#[derive(Clone, Debug)]
pub struct VectorFile<'a> {
    /// What it is called on record.
    pub name: Text,
    /// Its text; of a file that could not be read there are no bytes to record.
    pub text: Option<&'a str>,
    /// What came of it.
    pub report: &'a Report,
}

/// Cases of a file that were run and did not pass.
fn failed(report: &Report) -> usize {
    report.cases - report.passed - report.not_run.len()
}

/// Whether every case of a file was run.
fn is_whole(report: &Report) -> bool {
    report.unread.is_none() && report.not_run.is_empty()
}

/// Records a run of vectors, a failure as well as a pass; with a file that could not be read it is inconclusive.
///
/// # Errors
/// [`SessionError::Port`] without a key, and [`SessionError::Ledger`].
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn record(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    files: &[VectorFile<'_>],
) -> Result<Submission, SessionError> {
    let count = |count: usize| Count::new(count as u64).unwrap_or_default();
    let qualified = files.iter().filter_map(|file| {
        Some(QualifiedFile {
            cases: count(file.report.cases),
            digest: Digest::sha256(file.text?.as_bytes()),
            failed: count(failed(file.report)),
            name: file.name.clone(),
            not_run: count(file.report.not_run.len()),
        })
    });
    let verdict = if files.iter().any(|file| failed(file.report) > 0) {
        Verdict::Fail
    } else if files.iter().all(|file| is_whole(file.report)) {
        Verdict::Pass
    } else {
        Verdict::Inconclusive
    };
    let platform = format!("{} {}", std::env::consts::ARCH, std::env::consts::OS);
    let text = |text: &str| Text::new(text).expect("BUG: names of builds are short");
    let said = QualificationRecorded {
        build: text(concat!("clover ", env!("CARGO_PKG_VERSION"))),
        files: qualified.collect(),
        platform: text(&platform),
        verdict,
    };
    append::submit_one(ports, ledger, Command::new(said, None), Intent::Append)
}
