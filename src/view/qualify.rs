//! How a qualification is shown: which vector files pass, and every case that fails or was not run.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::qualify::Report;
use crate::view::Exit;
use crate::view::View;

/// Failures of a file that an answer lists for people unasked; `--json` has all.
const FAILURES_SHOWN: usize = 20;

/// A qualification of this program on this machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QualifyFacts {
    /// Cases of all files.
    pub cases: u64,
    /// Cases whose every comparison held.
    pub passed: u64,
    /// Cases that failed.
    pub failed: u64,
    /// Cases that were not run.
    pub not_run: u64,
    /// Files that could not be read.
    pub files_not_read: u64,
    /// Every file.
    pub files: Vec<FileFacts>,
}

/// A vector file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FileFacts {
    /// Its name.
    pub file: String,
    /// `PASS`, `FAIL` or `NOT RUN`.
    pub verdict: &'static str,
    /// What it says of itself.
    pub note: String,
    /// The peers whose answers it holds, with their versions.
    pub peers: BTreeMap<String, String>,
    /// The tolerance, as the file words it.
    pub tolerance: String,
    /// Cases in it.
    pub cases: u64,
    /// Cases whose every comparison held, refusals that were expected included.
    pub passed: u64,
    /// Expected refusals among them.
    pub refused_as_expected: u64,
    /// Cases that were not run.
    pub not_run: Vec<NotRunFacts>,
    /// Why the file could not be read; `null` where it could.
    pub not_read: Option<String>,
    /// Slips of the peer that were followed in its answers.
    pub peer_slips: Vec<SlipFacts>,
    /// All that failed.
    pub failures: Vec<FailureFacts>,
    /// The comparison closest to its tolerance, or furthest past it; `null` where every one is exact.
    pub worst: Option<WorstFacts>,
}

/// A case that was not run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NotRunFacts {
    /// The case.
    pub case: String,
    /// Why.
    pub why: String,
}

/// A slip of a peer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlipFacts {
    /// Fold whose model slips.
    pub fold: u64,
    /// Judge score at which it slips.
    pub score: f64,
    /// What the peer does there.
    pub what: String,
}

/// A comparison that failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FailureFacts {
    /// The case.
    pub case: String,
    /// Where in the case.
    pub at: String,
    /// What happened.
    pub what: String,
}

/// The comparison closest to its tolerance.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorstFacts {
    /// The case.
    pub case: String,
    /// Where in the case.
    pub at: String,
    /// The deviation, absolute or relative as the tolerance that judged it.
    pub deviation: f64,
    /// The deviation as a share of what is allowed; above 1 it fails.
    pub share_of_allowed: f64,
}

impl From<&Report> for FileFacts {
    fn from(report: &Report) -> Self {
        let not_run = report.not_run.iter().map(|(case, why)| NotRunFacts {
            case: case.clone(),
            why: why.clone(),
        });
        let slips = report.slips.iter().map(|slip| SlipFacts {
            fold: slip.fold as u64,
            score: slip.score,
            what: slip.what.clone(),
        });
        let failures = report.failures.iter().map(|of| FailureFacts {
            case: of.case.clone(),
            at: of.at.clone(),
            what: of.what.clone(),
        });
        Self {
            file: report.file.clone(),
            verdict: verdict(report),
            note: report.note.clone(),
            peers: report.peers.clone(),
            tolerance: report.tolerance.clone(),
            cases: report.cases as u64,
            passed: report.passed as u64,
            refused_as_expected: report.refused as u64,
            not_run: not_run.collect(),
            not_read: report.unread.clone(),
            peer_slips: slips.collect(),
            failures: failures.collect(),
            worst: report.worst.as_ref().map(|worst| WorstFacts {
                case: worst.case.clone(),
                at: worst.at.clone(),
                deviation: worst.deviation,
                share_of_allowed: worst.share,
            }),
        }
    }
}

fn facts(reports: &[Report]) -> QualifyFacts {
    let total = |count: fn(&Report) -> usize| -> usize { reports.iter().map(count).sum() };
    let (cases, passed) = (total(|of| of.cases), total(|of| of.passed));
    let not_run = total(|of| of.not_run.len());
    QualifyFacts {
        cases: cases as u64,
        passed: passed as u64,
        failed: (cases - passed - not_run) as u64,
        not_run: not_run as u64,
        files_not_read: total(|of| usize::from(of.unread.is_some())) as u64,
        files: reports.iter().map(FileFacts::from).collect(),
    }
}

/// What every vector file came to.
pub fn view(reports: &[Report], all_failures: bool) -> View {
    let facts = facts(reports);
    let mut view = View::of(&facts);
    table(&mut view, reports);
    for report in reports {
        remarks(&mut view, report, all_failures);
    }
    let (failed, unread) = (facts.failed, facts.files_not_read);
    let word = match (failed, unread) {
        (0, 0) => "QUALIFIED",
        (0, _) => "INCOMPLETE",
        _ => "FAILED",
    };
    let files = match unread {
        0 => String::new(),
        1 => " · 1 file not read".to_owned(),
        unread => format!(" · {unread} files not read"),
    };
    view.line(format!(
        "{word}  {} of {} cases passed · {failed} failed · {} not run{files}",
        facts.passed, facts.cases, facts.not_run
    ));
    (view.verdict, view.exit) = match (failed, unread) {
        (0, 0) => ("qualified", Exit::Done),
        (0, _) => ("incomplete", Exit::Input),
        _ => ("failed", Exit::Integrity),
    };
    view
}

/// Adds where the outcome stands on record.
pub fn recorded(mut view: View, recorded: View) -> View {
    view.events = recorded.events;
    view.checkpoint = recorded.checkpoint;
    view.blocks.extend(recorded.blocks);
    view
}

fn table(view: &mut View, reports: &[Report]) {
    let rows = reports.iter().map(|report| {
        let worst = report.worst.as_ref();
        vec![
            short(&report.file),
            verdict(report).to_owned(),
            format!("{}/{}", report.passed, report.cases),
            report.not_run.len().to_string(),
            match worst {
                Some(worst) => format!("{:.1e}", worst.deviation),
                None if report.passed == 0 => "-".to_owned(),
                None => "exact".to_owned(),
            },
            worst.map_or(String::new(), |worst| share(worst.share)),
            report.tolerance.clone(),
        ]
    });
    let head = [
        "file",
        "verdict",
        "passed",
        "not run",
        "largest",
        "of allowed",
        "tolerance",
    ];
    view.table(&head, rows);
}

/// What a file's row of the table leaves out: failures, and what was not run.
fn remarks(view: &mut View, report: &Report, all_failures: bool) {
    let name = short(&report.file);
    let most = if all_failures {
        usize::MAX
    } else {
        FAILURES_SHOWN
    };
    for failure in report.failures.iter().take(most) {
        view.line(format!(
            "FAIL {name} {} {}: {}",
            failure.case, failure.at, failure.what
        ));
    }
    let more = report.failures.len().saturating_sub(most);
    if more > 0 {
        let failures = if more == 1 { "failure" } else { "failures" };
        view.line(format!(
            "FAIL {name} and {more} more {failures}: --all-failures lists them, --json holds them"
        ));
    }
    if let Some(why) = &report.unread {
        view.line(format!("NOT RUN {name}: {why}"));
    }
    for (case, why) in &report.not_run {
        view.line(format!("NOT RUN {name} {case}: {why}"));
    }
}

fn verdict(report: &Report) -> &'static str {
    if !report.is_clean() {
        "FAIL"
    } else if report.passed == 0 {
        "NOT RUN"
    } else {
        "PASS"
    }
}

/// A share of what is allowed.
fn share(share: f64) -> String {
    if share < 1e-4 {
        "0.0 %".to_owned()
    } else {
        format!("{:.1} %", 100.0 * share)
    }
}

/// The last two parts of a name.
pub fn short(name: &str) -> String {
    let parts: Vec<&str> = name.rsplitn(3, '/').take(2).collect();
    let parts: Vec<&str> = parts.into_iter().rev().collect();
    parts.join("/")
}
