//! What was decided as a `JUnit` report: a suite per candidate of an iteration, one of gates and one of transport audits.
//!
//! A criterion that fails is a failure; one that is not decided, or that nobody looked at, is skipped with the reason.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use clover_event::payload::Verdict;
use clover_event::payload::audit::TransportTested;
use clover_event::payload::decision::GateDecided;
use clover_event::payload::decision::Outcome;
use clover_event::payload::environment::EnvironmentOutcome;
use clover_event::payload::environment::EnvironmentsTested;
use clover_event::payload::estimated::TransportState;
use clover_event::payload::predicate::GateEvaluated;

use super::Extract;
use super::GateAnswer;
use super::RecordedEvent;
use super::data;
use super::intoto::DecidedCandidate;
use super::word;
use crate::ExportError;
use crate::Progress;

/// How a case ended.
enum CaseEnd {
    Passed,
    Failed(String),
    Skipped(String),
}

/// One case of a suite.
struct JunitCase {
    class: String,
    name: String,
    end: CaseEnd,
    details: String,
}

/// Cases under one name.
struct JunitSuite {
    name: String,
    cases: Vec<JunitCase>,
}

/// Writes the report; answers with the number of cases.
pub(super) fn write(
    extract: &Extract<'_>,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<u64, ExportError> {
    let events = extract.decisions(progress)?;
    let mut suites = Vec::new();
    for candidate in DecidedCandidate::all(&events) {
        let mut cases = Vec::new();
        for (said, found) in &candidate.criteria {
            cases.push(criterion(&candidate, said, found)?);
        }
        let name = format!("{}: {}", candidate.iteration, candidate.name);
        suites.push(JunitSuite { name, cases });
    }
    let mut gates = JunitSuite {
        name: "gates".to_owned(),
        cases: Vec::new(),
    };
    let mut audits = JunitSuite {
        name: "transport audits".to_owned(),
        cases: Vec::new(),
    };
    for said in &events {
        if let Some(decided) = said.event.said::<GateDecided>() {
            let answer = extract.answers.gates.get(&decided.gate);
            gates.cases.push(gate(said, decided, answer)?);
        } else if let Some(tested) = said.event.said::<TransportTested>() {
            audits.cases.push(audit(said, tested)?);
        } else if let Some(tested) = said.event.said::<EnvironmentsTested>() {
            for outcome in &tested.environments {
                audits.cases.push(environment(said, tested, outcome)?);
            }
        }
    }
    number_twins(&mut audits.cases);
    suites.extend(
        [gates, audits]
            .into_iter()
            .filter(|suite| !suite.cases.is_empty()),
    );
    let count = suites.iter().map(|suite| suite.cases.len() as u64).sum();
    out.write_all(text(extract, &suites).as_bytes())?;
    Ok(count)
}

fn criterion(
    of: &DecidedCandidate<'_>,
    said: &RecordedEvent,
    found: &GateEvaluated,
) -> Result<JunitCase, ExportError> {
    let profile = found.thresholds.profile;
    let end = match found.verdicts.under(profile) {
        Verdict::Pass => CaseEnd::Passed,
        Verdict::Fail => {
            CaseEnd::Failed(format!("{} fails on {}", found.gate, found.split.as_str()))
        }
        Verdict::Inconclusive => CaseEnd::Skipped("the evidence does not decide".to_owned()),
        Verdict::NotChecked => CaseEnd::Skipped("not checked".to_owned()),
    };
    Ok(JunitCase {
        class: format!("{}.{}", of.iteration, of.name),
        name: format!("{} ({})", found.gate, found.split.as_str()),
        end,
        details: details(said)?,
    })
}

/// Cases of one name are numbered from the second on: an audit that was made again does not hide the one before.
fn number_twins(cases: &mut [JunitCase]) {
    let mut met: BTreeMap<(String, String), u64> = BTreeMap::new();
    for case in cases {
        let count = met
            .entry((case.class.clone(), case.name.clone()))
            .or_default();
        *count += 1;
        if *count > 1 {
            case.name.push_str(&format!(" #{count}"));
        }
    }
}

fn gate(
    said: &RecordedEvent,
    decided: &GateDecided,
    answer: Option<&GateAnswer>,
) -> Result<JunitCase, ExportError> {
    let outcome = word(&decided.outcome);
    let end = match decided.outcome {
        Outcome::Promote | Outcome::Noninferior | Outcome::Equivalent
            if answer.is_none_or(|answer| !answer.may_be_claimed) =>
        {
            let why = answer.map_or("it has no grade", |answer| &answer.text);
            CaseEnd::Skipped(format!("the gate ended as {outcome}. {why}"))
        }
        Outcome::Promote | Outcome::Noninferior | Outcome::Equivalent => CaseEnd::Passed,
        Outcome::Kill | Outcome::Different | Outcome::Futile => {
            CaseEnd::Failed(format!("the gate ended as {outcome}"))
        }
        _ => CaseEnd::Skipped(format!("the gate ended as {outcome}")),
    };
    Ok(JunitCase {
        class: "gate".to_owned(),
        name: decided.gate.to_string(),
        end,
        details: details(said)?,
    })
}

fn audit(said: &RecordedEvent, tested: &TransportTested) -> Result<JunitCase, ExportError> {
    let end = match tested.state {
        TransportState::Pass => CaseEnd::Passed,
        TransportState::Fail => {
            CaseEnd::Failed("calibration does not transfer to this policy".to_owned())
        }
        other => CaseEnd::Skipped(format!("the audit is {}", other.as_str().replace('_', " "))),
    };
    let within = tested.terms.environment.as_ref();
    let within = within.map_or(String::new(), |scope| format!(" in {scope}"));
    let name = format!("{} ({}){within}", tested.policy, tested.terms.judge);
    Ok(JunitCase {
        class: "transport".to_owned(),
        name,
        end,
        details: details(said)?,
    })
}

fn environment(
    said: &RecordedEvent,
    tested: &EnvironmentsTested,
    outcome: &EnvironmentOutcome,
) -> Result<JunitCase, ExportError> {
    let end = match outcome.verdict {
        Verdict::Pass => CaseEnd::Passed,
        Verdict::Fail if outcome.required => CaseEnd::Failed(format!(
            "the judge is biased in {}, which claims need",
            outcome.scope
        )),
        Verdict::Fail => CaseEnd::Failed(format!("the judge is biased in {}", outcome.scope)),
        Verdict::Inconclusive => CaseEnd::Skipped("too few probes to tell".to_owned()),
        Verdict::NotChecked => CaseEnd::Skipped("not checked".to_owned()),
    };
    Ok(JunitCase {
        class: format!("environments.{}", tested.family),
        name: format!("{} ({})", outcome.scope, tested.terms.judge),
        end,
        details: details(said)?,
    })
}

/// Where it stands in the log, and what it says.
fn details(said: &RecordedEvent) -> Result<String, ExportError> {
    Ok(format!(
        "seq {} event {}\n{:#}",
        said.seq,
        said.event.id,
        data(said)?
    ))
}

fn text(extract: &Extract<'_>, suites: &[JunitSuite]) -> String {
    let head = extract.checkpoint.checkpoint();
    let count =
        |of: &[JunitCase], is: fn(&CaseEnd) -> bool| of.iter().filter(|case| is(&case.end)).count();
    let failed = |cases: &[JunitCase]| count(cases, |end| matches!(end, CaseEnd::Failed(_)));
    let skipped = |cases: &[JunitCase]| count(cases, |end| matches!(end, CaseEnd::Skipped(_)));
    let total = |of: &dyn Fn(&[JunitCase]) -> usize| {
        suites.iter().map(|suite| of(&suite.cases)).sum::<usize>()
    };
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let (all, failures, skips) = (total(&|cases| cases.len()), total(&failed), total(&skipped));
    let name = escape(&format!(
        "{} at {} entries, root {}",
        head.origin, head.size, head.root
    ));
    let _ = writeln!(
        out,
        "<testsuites name=\"{name}\" tests=\"{all}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skips}\">"
    );
    for suite in suites {
        let cases = &suite.cases;
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\">",
            escape(&suite.name),
            cases.len(),
            failed(cases),
            skipped(cases)
        );
        for case in cases {
            let _ = writeln!(
                out,
                "    <testcase classname=\"{}\" name=\"{}\">",
                escape(&case.class),
                escape(&case.name)
            );
            match &case.end {
                CaseEnd::Passed => {}
                CaseEnd::Failed(why) => {
                    let _ = writeln!(out, "      <failure message=\"{}\"/>", escape(why));
                }
                CaseEnd::Skipped(why) => {
                    let _ = writeln!(out, "      <skipped message=\"{}\"/>", escape(why));
                }
            }
            let _ = writeln!(
                out,
                "      <system-out>{}</system-out>\n    </testcase>",
                escape(&case.details)
            );
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// Text for an element or an attribute; what XML 1.0 cannot hold becomes U+FFFD.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' | '\r' => out.push(c),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_element() {
        let hostile = "</system-out><script a=\"b\">\u{1b}[2J&";
        assert_eq!(
            escape(hostile),
            "&lt;/system-out&gt;&lt;script a=&quot;b&quot;&gt;\u{fffd}[2J&amp;"
        );
    }
}
