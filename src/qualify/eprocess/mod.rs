//! Vectors of e-processes, which have a shape of their own: `{peer, tolerance, …}` with lists of cases.
//!
//! Each case carries its file's tolerances, named by the peer, since one file has several.

pub mod agent_eval;
pub mod confseq;
pub mod evalues;

use std::collections::BTreeMap;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use crate::File;
use crate::RawCase;
use crate::check::Case;
use crate::check::Check;
use crate::check::Node;
use crate::check::Stop;

/// Lists of a file whose elements are cases, by kind of file.
const LISTS: &[(&str, &[&str])] = &[
    ("agent_eval_core", &["cases", "invalid"]),
    ("agent_eval_decide", &["cases"]),
    ("agent_eval_gate", &["cases"]),
    ("agent_eval_headline", &["H0", "effect"]),
    ("agent_eval_manifest", &["cases"]),
    ("agent_eval_paired_evalue", &["cases"]),
    ("agent_eval_resume", &["round_trips", "snapshots"]),
    (
        "confseq_betting",
        &["martingales", "confidence_sequences", "without_replacement"],
    ),
    (
        "evalues",
        &["multiplicity", "calibrators", "ville_tests", "grid_kelly"],
    ),
    ("prng_mulberry32", &["outputs", "fisher_yates"]),
];

/// What these files write for the digits: wording only.
const WORDS: [&str; 6] = [
    "what",
    "peer",
    "note",
    "notes",
    "multiplicity_note",
    "columns",
];

/// A file of this shape as a vector file; `None` for another shape or an unknown name.
pub(super) fn shape(name: &str, text: &str) -> Option<File> {
    let whole: Map<String, Value> = serde_json::from_str(text).ok()?;
    let peer = whole.get("peer")?.as_object()?;
    let stem = name.rsplit('/').next()?.trim_end_matches(".json");
    let (kind, lists) = LISTS.iter().find(|(kind, _)| *kind == stem)?;
    let tolerance = whole.get("tolerance").and_then(Value::as_object);
    let rest = whole
        .iter()
        .filter(|(name, _)| !lists.contains(&name.as_str()) && !WORDS.contains(&name.as_str()));
    let context: Map<String, Value> = rest.map(|(k, v)| (k.clone(), v.clone())).collect();
    let mut cases = Vec::new();
    for list in *lists {
        let content = whole.get(*list)?;
        match content.as_array() {
            // The 400 streams of a headline are one case for each of its two effects.
            Some(elements) if *kind != "agent_eval_headline" => {
                for (at, element) in elements.iter().enumerate() {
                    let id = ["id", "label", "stream", "population"]
                        .iter()
                        .find_map(|name| element.get(*name)?.as_str());
                    let name = format!("{list}[{at}] {}", id.unwrap_or(""));
                    cases.push(case(name.trim_end().to_owned(), list, &context, element));
                }
            }
            _ => cases.push(case((*list).to_owned(), list, &context, content)),
        }
    }
    let version = |(name, value): (&String, &Value)| {
        let value = value.as_str()?;
        (name != "name" && name != "commit").then(|| (name.clone(), value.to_owned()))
    };
    let mut produced_by: BTreeMap<String, String> = peer.iter().filter_map(version).collect();
    if let (Some(name), Some(version)) = (peer.get("name")?.as_str(), produced_by.remove("version"))
    {
        produced_by.insert(name.to_owned(), version);
    }
    Some(File {
        kind: (*kind).to_owned(),
        note: whole.get("what").cloned().unwrap_or(Value::Null),
        produced_by,
        tolerance: tolerance.cloned().unwrap_or_default().into_iter().collect(),
        n_cases: cases.len(),
        cases,
    })
}

/// A case: the element is both what goes in and what comes out, as the peers wrote them together.
fn case(name: String, list: &str, context: &Map<String, Value>, element: &Value) -> RawCase {
    let mut expected = element.clone();
    // An error of null expects none.
    if let Some(members) = expected.as_object_mut() {
        let none = members.get("error").is_some_and(Value::is_null);
        if none {
            members.remove("error");
        }
    }
    RawCase {
        name,
        input: json!({"list": list, "file": context, "case": element}),
        expected,
    }
}

/// `agent_eval_paired_evalue`: not run.
///
/// # Errors
/// [`Stop::NotRun`], always.
pub fn paired_evalue(_: &Case<'_>, _: &mut Check<'_>) -> Result<(), Stop> {
    let why = "the peer's second path clips deltas and takes decisions back: for comparison only";
    Err(Stop::NotRun(why.to_owned()))
}

/// A tolerance of the file.
fn allowed(case: &Case<'_>, name: &str) -> Result<f64, Stop> {
    let tolerance = case.input.at("file")?.at("tolerance")?;
    tolerance.at(name)?.number()
}

/// Compares numbers, each within a relative tolerance.
fn relative(check: &mut Check<'_>, expected: &Node<'_>, got: &[f64], rel: f64) -> Result<(), Stop> {
    let elements = expected.elements()?;
    check.count_of(expected, got.len());
    for (element, value) in elements.iter().zip(got) {
        check.within(element, *value, None, Some(rel))?;
    }
    Ok(())
}

/// Compares numbers, each within an absolute tolerance.
fn absolute(check: &mut Check<'_>, expected: &Node<'_>, got: &[f64], abs: f64) -> Result<(), Stop> {
    let elements = expected.elements()?;
    check.count_of(expected, got.len());
    for (element, value) in elements.iter().zip(got) {
        check.within(element, *value, Some(abs), None)?;
    }
    Ok(())
}

/// The elements of `all` at counts from 1.
fn at_counts(all: &[f64], counts: &[usize]) -> Vec<f64> {
    let at = counts.iter().map(|n| all.get(n.wrapping_sub(1)));
    at.map(|value| value.copied().unwrap_or(f64::NAN)).collect()
}

#[cfg(test)]
mod tests {
    use crate::bundled;

    #[test]
    fn all_vectors_of_the_peers_pass() {
        for (name, cases) in [
            ("agent_eval_core.json", 24),
            ("agent_eval_decide.json", 5),
            ("agent_eval_gate.json", 14),
            ("agent_eval_headline.json", 2),
            ("agent_eval_manifest.json", 3),
            ("agent_eval_resume.json", 16),
            ("confseq_betting.json", 14),
            ("evalues.json", 25),
            ("prng_mulberry32.json", 12),
        ] {
            let report = bundled(name);
            assert!(report.is_clean(), "{name}: {:#?}", report.failures);
            assert_eq!((report.passed, report.cases), (cases, cases), "{name}");
        }
    }
}
