//! What a verification found, for people and machines.

use clover_event::payload::Verdict;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use serde::Serialize;

use crate::fold::Breach;
use crate::rule_names::RuleName;
use crate::rulebooks;
use crate::rulebooks::RulebookAdoption;
use crate::verify::beside::FilesBeside;

/// Findings kept in a report; more are counted only.
const KEPT_MAX: usize = 10_000;

/// One thing that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The entry, or the place in the log, that shows it.
    pub seq: u64,
    /// The rule.
    pub rule: RuleName,
    /// What was expected.
    pub expected: String,
    /// What stands there.
    pub found: String,
}

/// The first finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct First {
    /// Smallest offending position.
    pub seq: u64,
    /// The rule; of several at one position, the one checked first.
    pub rule: RuleName,
}

/// Events that are in the log and not to be relied on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Taint {
    /// The compromised key.
    pub key: KeyId,
    /// First tainted position.
    pub since_seq: u64,
    /// The entry that said so.
    pub declared_seq: u64,
}

/// How the log disagrees with what was kept outside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Divergent {
    /// Not signed by the log key that is known.
    Forged,
    /// Two histories under one name.
    Forked,
    /// Shorter than it once was.
    RolledBack,
}

impl Divergent {
    /// The word in verdict lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forged => "forged",
            Self::Forked => "forked",
            Self::RolledBack => "rolled_back",
        }
    }
}

fn older(by: u64) -> String {
    let entries = if by == 1 { "entry" } else { "entries" };
    format!("older than the pin by {by} {entries}")
}

/// What is not checked of a copy that is older than the pin.
pub(super) fn in_words_of_older(by: u64) -> String {
    format!("{}: whether it is its beginning", older(by))
}

/// The outcome of a verification.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `pass` without findings, else `fail`.
    pub verdict: Verdict,
    /// Origin of the log, as its first entry states.
    pub origin: String,
    /// Entries walked.
    pub events: u64,
    /// Of these, entries that are withheld: of each only its leaf is at hand.
    pub withheld: u64,
    /// Whether a part of a log was verified, of which no rule is asked that takes the whole history.
    pub is_part: bool,
    /// Keys that signed at least one.
    pub signers: u64,
    /// Root over all entries.
    pub root: Digest,
    /// What files beside the entries are held to.
    #[serde(skip)]
    pub beside: FilesBeside,
    /// Findings, by position and rule.
    pub findings: Vec<Finding>,
    /// How many there are, kept or not.
    pub findings_total: u64,
    /// The first.
    pub first: Option<First>,
    /// Entries that the pin covers beyond these, where they are a copy of the log.
    #[serde(skip)]
    pub older_by: Option<u64>,
    /// Disagreement with a pin or another outside checkpoint.
    pub divergence: Option<Divergent>,
    /// What was not checked.
    pub not_checked: Vec<String>,
    /// Events of computed numbers that were not computed again.
    pub not_recomputed: u64,
    /// Entries taken as verified before: the verdict is about those from here on.
    pub since: u64,
    /// How signatures were checked.
    pub signatures: &'static str,
    /// Events of compromised keys.
    pub tainted: Vec<Taint>,
    /// Remarks that are no findings.
    pub notes: Vec<String>,
    /// Rulebooks with the entry that names each; each checks the entries after it.
    pub rulebooks: Vec<RulebookAdoption>,
    /// Questions of newer rulebooks that some entry was not asked.
    pub not_asked: Vec<&'static str>,
    /// Roles are kept apart: `solo` or `strict`.
    pub separation: String,
}

impl Report {
    /// Adds what private texts show of entries: of each its position, what follows, and what it says.
    pub fn add_recomputed(&mut self, found: Vec<(u64, String, String)>) {
        let rule = RuleName::Recompute;
        for (seq, expected, found) in found {
            let first = First { seq, rule };
            let is_before = |of: First| (of.seq, of.rule) <= (seq, rule);
            self.first = self.first.filter(|of| is_before(*of)).or(Some(first));
            self.verdict = Verdict::Fail;
            self.findings_total += 1;
            self.findings.push(Finding {
                seq,
                rule,
                expected,
                found,
            });
        }
        self.findings.sort_by_key(|of| (of.seq, of.rule));
    }

    /// Adds what was found beside the entries, at the end of the log.
    pub fn add_bundle_findings(&mut self, found: Vec<(String, String)>) {
        let seq = self.events;
        for (expected, found) in found {
            let rule = RuleName::Bundle;
            self.verdict = Verdict::Fail;
            self.findings_total += 1;
            self.first.get_or_insert(First { seq, rule });
            self.findings.push(Finding {
                seq,
                rule,
                expected,
                found,
            });
        }
    }

    /// Holds a copy that is older than the pin against the log that the pin covers, whose root at the size of the copy is known.
    pub fn hold_older(&mut self, root: Digest) {
        let Some(older_by) = self.older_by.filter(|_| self.events > 0) else {
            return;
        };
        let unchecked = in_words_of_older(older_by);
        self.not_checked.retain(|what| *what != unchecked);
        if root == self.root {
            let note = format!("{}: the ledger at hand begins with it", older(older_by));
            self.notes.push(note);
            return;
        }
        let first = First {
            seq: self.events - 1,
            rule: RuleName::Root,
        };
        let is_before = |of: First| (of.seq, of.rule) <= (first.seq, first.rule);
        self.first = self.first.filter(|of| is_before(*of)).or(Some(first));
        self.verdict = Verdict::Fail;
        self.divergence.get_or_insert(Divergent::Forked);
        self.findings_total += 1;
        self.findings.push(Finding {
            seq: first.seq,
            rule: first.rule,
            expected: format!("root {} of the ledger at hand", root.to_base64()),
            found: self.root.to_base64(),
        });
        self.findings.sort_by_key(|of| (of.seq, of.rule));
    }

    /// The one line that says it all.
    pub fn verdict_line(&self) -> String {
        let mut parts = Vec::new();
        match (self.verdict, self.first) {
            (Verdict::Pass, _) => {
                parts.push(match self.since.min(self.events) {
                    0 if self.withheld > 0 => format!(
                        "VERIFIED  {} of {} events, {} withheld",
                        self.events - self.withheld,
                        self.events,
                        self.withheld
                    ),
                    0 => format!("VERIFIED  {} events", self.events),
                    since => format!(
                        "VERIFIED  {} events from seq {since} on",
                        self.events - since
                    ),
                });
                parts.extend(self.uncomputed());
                parts.push(format!("{} signers", self.signers));
                parts.push(format!("root {}", self.root.to_base64()));
                parts.push(format!("roles {}", self.separation));
            }
            (_, first) => {
                let first = first.map_or(String::new(), |first| {
                    format!(", first at seq {} ({})", first.seq, first.rule)
                });
                let plural = if self.findings_total == 1 { "" } else { "s" };
                let divergence = self
                    .divergence
                    .map_or(String::new(), |word| format!("{}: ", word.as_str()));
                parts.push(format!(
                    "FAILED  {divergence}{} finding{plural}{first}",
                    self.findings_total
                ));
                parts.push(format!("{} events", self.events));
                parts.extend(self.uncomputed());
            }
        }
        // Hashes alone ask no rule.
        let is_asked = self.signatures != "not_checked" && !self.is_part;
        if is_asked {
            parts.push(rulebooks::in_words(&self.rulebooks));
        } else {
            parts.push("rules NOT CHECKED".to_owned());
        }
        if is_asked && !self.not_asked.is_empty() {
            parts.push(format!("{} NOT ASKED", self.not_asked.join(", ")));
        }
        parts.push(match self.signatures {
            "not_checked" => "signatures NOT CHECKED".to_owned(),
            how => format!("signatures: {how}"),
        });
        if !self.tainted.is_empty() {
            parts.push(format!("{} tainted keys", self.tainted.len()));
        }
        for what in &self.not_checked {
            // Said in front already.
            if what != "recompute" || self.not_recomputed == 0 {
                parts.push(format!("{what} NOT CHECKED"));
            }
        }
        parts.join(" · ")
    }

    /// Numbers on the record that nobody computed again: a verdict over them says that they were signed, not that they are
    /// right.
    fn uncomputed(&self) -> Option<String> {
        let numbers = match self.not_recomputed {
            0 => return None,
            1 => "number",
            _ => "numbers",
        };
        let count = self.not_recomputed;
        Some(format!("{count} computed {numbers} NOT RECOMPUTED"))
    }
}

/// Collects findings.
#[derive(Debug, Default)]
pub(super) struct Findings {
    kept: Vec<Finding>,
    total: u64,
    first: Option<(u64, RuleName)>,
}

impl Findings {
    pub(super) fn add(
        &mut self,
        seq: u64,
        rule: RuleName,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        self.total += 1;
        if self.first.is_none_or(|first| (seq, rule) < first) {
            self.first = Some((seq, rule));
        }
        if self.kept.len() < KEPT_MAX {
            self.kept.push(Finding {
                seq,
                rule,
                expected: expected.into(),
                found: found.into(),
            });
        }
    }

    pub(super) fn breach(&mut self, seq: u64, breach: Breach) {
        self.add(seq, breach.rule, breach.expected, breach.found);
    }

    pub(super) fn finish(mut self) -> (Vec<Finding>, u64, Option<First>) {
        self.kept.sort_by_key(|a| (a.seq, a.rule));
        (
            self.kept,
            self.total,
            self.first.map(|(seq, rule)| First { seq, rule }),
        )
    }
}
