//! What is known of a row besides its score and label, by the names that plans use.
//!
//! `policy` is who answered. The findings of the evidence record have their own names; a flag is 0 or 1 and reads
//! `true` or `false`, `citations` is how many there are, `topics` are words of which any counts. Every other name is a
//! field that an import kept.

use std::collections::BTreeMap;

use clover_event::id::FieldId;
use clover_event::payload::manifest::SliceCondition;
use clover_num::math;
use clover_projection::iterations::rows::Key;
use clover_rubric::Rubric;
use clover_rubric::Value as Leaf;
use clover_rubric::evidence::Evidence;
use clover_rubric::evidence::is_under;

/// Logarithm of one more than the tokens: the covariate of length.
pub const LOG_TOKENS: &str = "log_tokens";
/// Who answered.
pub(super) const POLICY: &str = "policy";
/// Features of an evidence record, in order of their names.
pub(super) const FEATURES: [&str; 15] = [
    "citations",
    "citations_bad",
    "concise",
    "confident",
    "contradiction",
    "counter_position",
    "critical_info_missing",
    "factual_error",
    "needs_evidence",
    "risk_terms",
    "risk_unframed",
    "stakeholders",
    "style_markers",
    "tokens",
    "tool_trace_gap",
];

/// One row.
#[derive(Clone, Copy)]
pub(super) struct FieldRow<'a> {
    pub key: &'a Key,
    pub evidence: Option<&'a Evidence>,
    pub fields: Option<&'a BTreeMap<FieldId, String>>,
}

/// Whether a name is of the row itself or its evidence, and no imported field.
pub(super) fn is_own(name: &str) -> bool {
    let counts = ["tool_trace_claims", "tool_trace_matches", "topics"];
    name == POLICY || name == LOG_TOKENS || FEATURES.contains(&name) || counts.contains(&name)
}

/// A feature of a record as a number; flags are 0 and 1, what was never checked is 0.
pub(super) fn feature(name: &str, evidence: &Evidence, allowed: Option<&Leaf>) -> Option<f64> {
    let flag = |holds: bool| Some(f64::from(u8::from(holds)));
    let count = |count: clover_num::Count| Some(count.value() as f64);
    match name {
        "citations" => Some(evidence.citations.len() as f64),
        "citations_bad" => flag(evidence.citations.iter().any(|cited| {
            let listed = match allowed {
                Some(Leaf::List(domains)) => {
                    domains.iter().any(|domain| is_under(&cited.domain, domain))
                }
                _ => true,
            };
            !listed || cited.resolved == Some(false) || cited.supports == Some(false)
        })),
        "concise" => flag(evidence.concise),
        "confident" => flag(evidence.confident),
        "contradiction" => flag(evidence.contradiction),
        "counter_position" => flag(evidence.counter_position),
        "critical_info_missing" => flag(evidence.critical_info_missing),
        "factual_error" => flag(evidence.factual_error == Some(true)),
        "needs_evidence" => flag(evidence.needs_evidence),
        "risk_terms" => count(evidence.risk_terms),
        "risk_unframed" => flag(evidence.risk_terms.value() > 0 && !evidence.stakeholders),
        "stakeholders" => flag(evidence.stakeholders),
        "style_markers" => count(evidence.style_markers),
        "tokens" => count(evidence.tokens),
        "tool_trace_claims" => count(evidence.tool_trace_claims),
        "tool_trace_gap" => flag(evidence.tool_trace_claims > evidence.tool_trace_matches),
        "tool_trace_matches" => count(evidence.tool_trace_matches),
        _ => None,
    }
}

/// A finding of a record, or the logarithm of its length, as a number.
pub(super) fn of_evidence(name: &str, evidence: &Evidence, allowed: Option<&Leaf>) -> Option<f64> {
    if name == LOG_TOKENS {
        return Some(math::ln_1p(evidence.tokens.value() as f64));
    }
    feature(name, evidence, allowed)
}

/// The hosts that a rubric lists.
pub(super) fn allowed(rubric: &Rubric) -> Option<&Leaf> {
    rubric.at("obligations.factual_adequacy.verification.allowed_domains")
}

impl FieldRow<'_> {
    /// A field as a number.
    pub(super) fn number(&self, name: &str, allowed: Option<&Leaf>) -> Option<f64> {
        if is_own(name) {
            return of_evidence(name, self.evidence?, allowed);
        }
        let word = self.word(name)?;
        clover_num::Micro::parse(word)
            .ok()
            .map(|(number, _)| number.value() as f64 / 1e6)
    }

    /// A field as a word, where it is one.
    pub(super) fn word(&self, name: &str) -> Option<&str> {
        if name == POLICY {
            return Some(self.key.0.as_str());
        }
        let mut fields = self.fields?.iter();
        let found = fields.find(|(field, _)| field.as_str() == name)?;
        Some(found.1)
    }

    /// Whether the field of a condition is known of the row.
    pub(super) fn knows(&self, name: &str) -> bool {
        match name {
            POLICY => true,
            _ if is_own(name) => self.evidence.is_some(),
            _ => self.word(name).is_some(),
        }
    }

    /// Whether a condition holds; what is not known holds nowhere.
    pub(super) fn meets(&self, condition: &SliceCondition, allowed: Option<&Leaf>) -> bool {
        let name = condition.field.as_str();
        if let Some(words) = &condition.any_of {
            let is = |word: &str| words.iter().any(|of| of.as_str() == word);
            let held = match (name, self.evidence) {
                ("topics", Some(evidence)) => evidence.topics.iter().any(|topic| is(topic)),
                _ if is_own(name) && name != POLICY => match self.number(name, allowed) {
                    Some(number) if number > 0.0 => is("true") || is(&number.to_string()),
                    Some(number) => is("false") || is(&number.to_string()),
                    None => false,
                },
                _ => self.word(name).is_some_and(is),
            };
            if !held {
                return false;
            }
        }
        if condition.at_least_micro.is_none() && condition.below_micro.is_none() {
            return true;
        }
        let Some(number) = self.number(name, allowed) else {
            return false;
        };
        let bound = |micro: clover_num::Micro| micro.value() as f64 / 1e6;
        let from = condition.at_least_micro.map(bound);
        let to = condition.below_micro.map(bound);
        from.is_none_or(|from| number >= from) && to.is_none_or(|to| number < to)
    }
}
