//! Qualification: reference vectors with known answers, run against the statistics of this build.
//!
//! A vector file is `{file, note, produced_by {package: version}, tolerance, n_cases, cases: [{name, input,
//! expected}]}`. Each kind of file has one runner, one line in [`RUNNERS`]. A runner must compare every number
//! that the file expects, or name it as informative: what nobody looked at fails the case. A file whose kind is
//! not known is reported as not run, never as passed. Vectors of e-processes have a shape of their own ([`eprocess`]).

pub mod boundary;
pub mod bundle;
pub mod calibration;
pub mod check;
pub mod clover_gates;
pub mod direct;
pub mod distance;
pub mod eprocess;
pub mod hypotheses;
pub mod offpolicy;
pub mod overlap;
pub mod planner;
pub mod rank;
pub mod reliability;
pub mod shrinkage;
pub mod slips;
pub mod transport;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use crate::check::Arena;
use crate::check::Case;
use crate::check::Check;
use crate::check::Failure;
use crate::check::Node;
use crate::check::Stop;
use crate::check::Tolerance;
use crate::check::Worst;
use crate::slips::Slip;

/// Computes one case and compares it.
pub type Runner = fn(&Case<'_>, &mut Check<'_>) -> Result<(), Stop>;

/// One line per kind of vector file.
pub const RUNNERS: &[(&str, Runner)] = &[
    ("agent_eval_core", eprocess::agent_eval::core),
    ("agent_eval_decide", eprocess::agent_eval::decide),
    ("agent_eval_gate", eprocess::agent_eval::gate),
    ("agent_eval_headline", eprocess::agent_eval::headline),
    ("agent_eval_manifest", eprocess::agent_eval::manifest),
    ("agent_eval_paired_evalue", eprocess::paired_evalue),
    ("agent_eval_resume", eprocess::agent_eval::resume),
    ("bootstrap", direct::bootstrap),
    ("boundary", boundary::boundary),
    ("calibrator", calibration::calibrator),
    ("cle", overlap::cle),
    ("clover_gates", clover_gates::clover_gates),
    ("confseq_betting", eprocess::confseq::confseq),
    ("direct_arena", direct::direct_arena),
    ("direct_synth", direct::direct_synth),
    ("distribution", distance::distribution),
    ("ece", reliability::ece),
    ("evalues", eprocess::evalues::evalues),
    ("folds", calibration::folds),
    ("isotonic", calibration::isotonic),
    ("multipletests", hypotheses::multipletests),
    ("ope", offpolicy::ope),
    ("planner", planner::planner),
    ("prng_mulberry32", eprocess::agent_eval::mulberry32),
    ("rank", rank::rank),
    ("se_pieces", direct::se_pieces),
    ("shrinkage", shrinkage::shrinkage),
    ("transport", transport::transport),
    ("ttest", hypotheses::ttest),
    ("weights", overlap::weights),
];

/// Members of an input that say in words where numbers come from: no runner reads them.
const WORDS: [&str; 6] = [
    "calls",
    "data",
    "length_normaliser_per_char",
    "note",
    "peer_call",
    "weights",
];

/// Why a text is not a vector file.
#[derive(Debug, thiserror::Error)]
pub enum QualifyError {
    /// Not JSON of the shape.
    #[error("not a vector file: {0}")]
    Shape(#[from] serde_json::Error),
    /// The count at its head is not the count of its cases.
    #[error("n_cases says {said}, the file holds {held}")]
    Count {
        /// What it says.
        said: usize,
        /// What it holds.
        held: usize,
    },
    /// A tolerance that is not understood: passing under it would mean nothing.
    #[error("tolerance {0}: expected abs, rel, statistic_abs, pvalue_rel, exact, integers or note")]
    Tolerance(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "file")]
    kind: String,
    note: Value,
    produced_by: BTreeMap<String, String>,
    tolerance: BTreeMap<String, Value>,
    n_cases: usize,
    cases: Vec<RawCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCase {
    name: String,
    input: Value,
    expected: Value,
}

/// What running one vector file came to.
#[derive(Debug, Default)]
pub struct Report {
    /// The file's name.
    pub file: String,
    /// What it says of itself.
    pub note: String,
    /// The peers whose answers it holds, with their versions.
    pub peers: BTreeMap<String, String>,
    /// The tolerance, as the file words it.
    pub tolerance: String,
    /// Cases in the file.
    pub cases: usize,
    /// Cases whose every comparison held, refusals that were expected included.
    pub passed: usize,
    /// Expected refusals among them.
    pub refused: usize,
    /// Cases that were not run, with the reason.
    pub not_run: Vec<(String, String)>,
    /// Why the file was not run at all, where it is no vector file.
    pub unread: Option<String>,
    /// Slips of the peer that were followed in its answers.
    pub slips: Vec<Slip>,
    /// All that failed.
    pub failures: Vec<Failure>,
    /// The comparison closest to its tolerance.
    pub worst: Option<Worst>,
}

impl Report {
    /// A file that was not run at all.
    pub fn unread(name: &str, why: String) -> Self {
        Self {
            file: name.to_owned(),
            unread: Some(why),
            ..Self::default()
        }
    }

    /// Whether nothing failed; cases that were not run do not count as passed.
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty()
    }
}

/// Runs a vector file. `name` is its file name, whose stem is the kind. Slips are those that are compiled in.
///
/// # Errors
/// [`QualifyError`] if the text is not a vector file.
pub fn run(name: &str, text: &str, arena: Option<&dyn Arena>) -> Result<Report, QualifyError> {
    run_beside(name, text, arena, &[])
}

/// The same, with the slips of its folder's list.
///
/// # Errors
/// [`QualifyError`] if the text is not a vector file.
pub fn run_beside(
    name: &str,
    text: &str,
    arena: Option<&dyn Arena>,
    beside: &[Slip],
) -> Result<Report, QualifyError> {
    let mut known = slips::read(bundle::SLIPS).unwrap_or_default();
    known.extend_from_slice(beside);
    let mut its = slips::of(&known, text);
    its.dedup();
    let other = eprocess::shape(name, text);
    let stated = other.is_none();
    let file: File = match other {
        Some(file) => file,
        None => serde_json::from_str(text)?,
    };
    if file.n_cases != file.cases.len() {
        return Err(QualifyError::Count {
            said: file.n_cases,
            held: file.cases.len(),
        });
    }
    let tolerance = if stated {
        tolerance(&file.tolerance)?
    } else {
        // Its runners name the tolerance of each comparison; what they do not name is exact.
        Tolerance::default()
    };
    let mut report = Report {
        file: name.to_owned(),
        note: file.note.as_str().unwrap_or("").to_owned(),
        peers: file.produced_by,
        tolerance: worded(&file.tolerance),
        cases: file.cases.len(),
        slips: its.clone(),
        ..Report::default()
    };
    let kind = file.kind.trim_end_matches(".json");
    let Some((_, runner)) = RUNNERS.iter().find(|(known, _)| *known == kind) else {
        let reason = format!("no runner for vectors of kind {kind}");
        for case in file.cases {
            report.not_run.push((case.name, reason.clone()));
        }
        return Ok(report);
    };
    for raw in &file.cases {
        let asked = RefCell::default();
        let case = Case {
            name: &raw.name,
            input: if stated {
                Node::watched("input", &raw.input, &asked)
            } else {
                // The element is what goes in and what comes out: a member that nobody reads is seen as expected.
                Node::root("input", &raw.input)
            },
            expected: Node::root("expected", &raw.expected),
            arena,
            slips: &its,
        };
        let before = (report.passed, report.failures.len(), report.worst.clone());
        let ended = run_case(&case, *runner, tolerance, &mut report);
        let mut unread = Vec::new();
        if stated && ended {
            unasked("input", &raw.input, &asked.borrow(), &mut unread);
        }
        if let Some(first) = unread.first() {
            // It was run as something else than it says, so its outcome says nothing.
            report.passed = before.0;
            report.failures.truncate(before.1);
            report.worst = before.2;
            let why = format!("{first}: its runner does not know this option");
            report.not_run.push((raw.name.clone(), why));
        }
    }
    Ok(report)
}

/// Members of an input that the runner never asked for, words and nulls aside. An object whose members nobody asked for
/// one by one was taken as a whole.
fn unasked(path: &str, value: &Value, asked: &BTreeSet<String>, found: &mut Vec<String>) {
    let Some(members) = value.as_object() else {
        return;
    };
    let at = |name: &str| format!("{path}.{name}");
    if path != "input" && !members.keys().any(|name| asked.contains(&at(name))) {
        return;
    }
    for (name, member) in members {
        if member.is_null() || member.is_string() && WORDS.contains(&name.as_str()) {
            continue;
        }
        if asked.contains(&at(name)) {
            unasked(&at(name), member, asked, found);
        } else {
            found.push(at(name));
        }
    }
}

/// Runs one of the vector files that are compiled in.
#[cfg(test)]
fn bundled(name: &str) -> Report {
    let (_, text) = bundle::VECTORS
        .iter()
        .find(|(known, _)| *known == name)
        .unwrap();
    run(name, text, Some(&bundle::BundledSample)).unwrap()
}

/// Runs a case; whether the runner came to its end.
fn run_case(case: &Case<'_>, runner: Runner, tolerance: Tolerance, report: &mut Report) -> bool {
    let mut check = Check::new(case.name, tolerance);
    let outcome = runner(case, &mut check);
    let expects_refusal = case.expected.maybe("error").is_some();
    let ended = outcome.is_ok();
    let mut fail = |what: String| {
        report.failures.push(Failure {
            case: case.name.to_owned(),
            at: "expected".to_owned(),
            what,
        });
    };
    match outcome {
        Err(Stop::NotRun(why)) => report.not_run.push((case.name.to_owned(), why)),
        Err(Stop::Refused(_)) if expects_refusal => {
            report.passed += 1;
            report.refused += 1;
        }
        Err(stop) => fail(stop.to_string()),
        Ok(()) if expects_refusal => fail("a refusal was expected, a number came".to_owned()),
        Ok(()) => {
            let finished = check.finish(&case.expected);
            if finished.failures.is_empty() {
                report.passed += 1;
            }
            report.failures.extend(finished.failures);
            let share = report.worst.as_ref().map_or(-1.0, |worst| worst.share);
            if let Some(worst) = finished.worst.filter(|worst| worst.share > share) {
                report.worst = Some(worst);
            }
        }
    }
    ended
}

fn tolerance(fields: &BTreeMap<String, Value>) -> Result<Tolerance, QualifyError> {
    let mut tolerance = Tolerance::default();
    for (name, value) in fields {
        let number = value.as_f64().filter(|number| *number > 0.0);
        match (name.as_str(), number) {
            ("abs" | "statistic_abs", Some(_)) => tolerance.abs = number,
            ("rel", Some(_)) => tolerance.rel = number,
            ("pvalue_rel", Some(_)) => tolerance.p_rel = number,
            ("exact" | "integers" | "note", _) => {}
            _ => return Err(QualifyError::Tolerance(name.clone())),
        }
    }
    Ok(tolerance)
}

fn worded(fields: &BTreeMap<String, Value>) -> String {
    let words = fields
        .iter()
        .filter(|(name, _)| *name != "note")
        .map(|(name, value)| format!("{name} {value}"));
    words.collect::<Vec<_>>().join(", ")
}
