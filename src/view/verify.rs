//! What a verification found: the findings, what was not checked, and the line that says it all.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::payload::Verdict;
use crate::ledger::RuleName;
use crate::ledger::verify::Divergent;
use crate::ledger::verify::Finding;
use crate::ledger::verify::Report;
use crate::view::Block;
use crate::view::Exit;
use crate::view::View;
use crate::view::rulebook::NamedRulebook;
use crate::view::text::escape;
use crate::view::text::thousands;

/// Findings that people read; facts hold more.
const SHOWN_MAX: usize = 20;

/// One thing that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FindingShown {
    /// The entry, or the place in the log, that shows it.
    pub seq: u64,
    /// The rule, as `schema/FINDINGS.md` names it.
    pub rule: &'static str,
    /// What was expected.
    pub expected: String,
    /// What stands there.
    pub found: String,
}

/// The first finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FirstFinding {
    /// The smallest position with a finding.
    pub seq: u64,
    /// The rule; of several at one position, the one judged first.
    pub rule: &'static str,
}

/// Events that are in the log and not to be relied on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TaintedKey {
    /// The id of the compromised key.
    pub key: String,
    /// The first position that is tainted.
    pub since_seq: u64,
    /// The entry that declared it.
    pub declared_seq: u64,
}

/// What a verification found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerifyReport {
    /// `pass` without findings, else `fail`.
    pub verdict: Verdict,
    /// The name of the log, as its first entry states it.
    pub origin: String,
    /// Entries read.
    pub events: u64,
    /// Of these, entries that are withheld: of each only its leaf hash is at hand.
    pub withheld: u64,
    /// Keys that signed at least one of them.
    pub signers: u64,
    /// The root over all of them, in hex.
    pub root: String,
    /// Findings by position and rule, at most 10,000.
    pub findings: Vec<FindingShown>,
    /// How many there are, listed or not.
    pub findings_total: u64,
    /// The first; `null` without any.
    pub first: Option<FirstFinding>,
    /// How the log disagrees with a checkpoint from outside of it: `forged`, `forked` or `rolled_back`.
    pub divergence: Option<&'static str>,
    /// What was not checked.
    pub not_checked: Vec<String>,
    /// Events of computed numbers that were not computed again.
    pub not_recomputed: u64,
    /// Entries that were taken as verified before: the verdict is about those from here on.
    pub since: u64,
    /// How signatures were checked: `strict`, `not_checked`, or `batch` with what that leaves open.
    pub signatures: &'static str,
    /// Keys that were compromised, with their events.
    pub tainted: Vec<TaintedKey>,
    /// Remarks that are no findings.
    pub notes: Vec<String>,
    /// Rulebooks, each of which judges the entries after the one that names it.
    pub rulebooks: Vec<NamedRulebook>,
    /// Questions of newer rulebooks that some entry was not asked.
    pub not_asked: Vec<&'static str>,
    /// How strictly roles are kept apart: `solo` or `strict`.
    pub separation: String,
}

impl From<&Report> for VerifyReport {
    fn from(of: &Report) -> Self {
        let findings = of.findings.iter().map(|finding| FindingShown {
            seq: finding.seq,
            rule: finding.rule.as_str(),
            expected: finding.expected.clone(),
            found: finding.found.clone(),
        });
        let tainted = of.tainted.iter().map(|taint| TaintedKey {
            key: taint.key.to_string(),
            since_seq: taint.since_seq,
            declared_seq: taint.declared_seq,
        });
        Self {
            verdict: of.verdict,
            origin: of.origin.clone(),
            events: of.events,
            withheld: of.withheld,
            signers: of.signers,
            root: of.root.to_hex(),
            findings: findings.collect(),
            findings_total: of.findings_total,
            first: of.first.map(|first| FirstFinding {
                seq: first.seq,
                rule: first.rule.as_str(),
            }),
            divergence: of.divergence.map(Divergent::as_str),
            not_checked: of.not_checked.clone(),
            not_recomputed: of.not_recomputed,
            since: of.since,
            signatures: of.signatures,
            tainted: tainted.collect(),
            notes: of.notes.clone(),
            rulebooks: NamedRulebook::all(&of.rulebooks),
            not_asked: of.not_asked.clone(),
            separation: of.separation.clone(),
        }
    }
}

/// A log that was verified.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verification {
    /// What was found.
    pub report: VerifyReport,
    /// The line that says it all.
    pub line: String,
}

/// The line that says it all.
pub(super) fn verdict(view: &mut View, report: &Report) {
    let line = report.verdict_line();
    let passed = report.verdict == Verdict::Pass;
    let word = if passed { "VERIFIED" } else { "FAILED" };
    let rest = line.strip_prefix(word).unwrap_or(&line);
    view.blocks.push(Block::Verdict {
        word: word.into(),
        good: passed,
        rest: rest.to_owned(),
    });
}

/// Lists findings by place; those that say the same of later entries are counted behind the first that says it.
fn listed(view: &mut View, report: &Report) {
    let mut groups: Vec<(&Finding, u64, u64)> = Vec::new();
    let mut places: BTreeMap<(RuleName, &str, &str), usize> = BTreeMap::new();
    for finding in &report.findings {
        let same = (finding.rule, &*finding.expected, &*finding.found);
        let place = *places.entry(same).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, more, last)) => (*more, *last) = (*more + 1, finding.seq),
            None => groups.push((finding, 0, finding.seq)),
        }
    }
    let mut shown = 0;
    for (finding, more, last) in groups.iter().take(SHOWN_MAX) {
        // Each stays one line, whatever others wrote.
        view.line(format!(
            "seq {}  {}  expected {}, found {}",
            finding.seq,
            finding.rule,
            escape(&finding.expected),
            escape(&finding.found)
        ));
        if *more > 0 {
            let more = thousands(*more);
            view.line(format!(
                "… and the same of {more} more, the last at seq {last}"
            ));
        }
        shown += 1 + more;
    }
    if report.findings_total > shown {
        let more = thousands(report.findings_total - shown);
        view.line(format!("… and {more} more findings (--json lists them)"));
    }
    if let Some(first) = report.first.filter(|_| report.findings_total > 1) {
        let seq = first.seq;
        view.line(format!(
            "Begin with seq {seq}: what is found later may follow from it."
        ));
    }
}

/// What a verification found; `next` shows the first finding, and `recompute` is the command that computes numbers again.
pub fn verified(report: &Report, next: String, recompute: Option<String>) -> View {
    let facts = Verification {
        report: report.into(),
        line: report.verdict_line(),
    };
    let mut view = View::of(&facts);
    listed(&mut view, report);
    for taint in &report.tainted {
        view.line(format!(
            "tainted: events of key {} from seq {} on (declared at seq {})",
            taint.key, taint.since_seq, taint.declared_seq
        ));
    }
    for note in &report.notes {
        view.line(format!("note: {}", escape(note)));
    }
    verdict(&mut view, report);
    let passed = report.verdict == Verdict::Pass;
    view.checkpoint = Some((report.events, report.root.to_base64()));
    if passed {
        view.next
            .extend(recompute.filter(|_| report.not_recomputed > 0));
        return view.with_verdict("verified");
    }
    view.verdict = report.divergence.map_or("tampered", Divergent::as_str);
    view.exit = Exit::Integrity;
    view.with_next(next)
}
