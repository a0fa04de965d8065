//! The evidence record of one scored item: what was found in the text, and nothing of the text itself.
//!
//! The record is closed: [`SCHEMA`] names its version, an unknown key is refused, and a missing key is
//! refused too, because `null` already says "never checked". A judge's raw answer is (base score, record),
//! written once; the rubric's engine may be run over it any number of times.

use std::collections::BTreeSet;

use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_num::Count;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;

/// Version of the record: the registry of its keys and what they mean.
pub const SCHEMA: &str = "evidence/1";
/// Most citations of a record.
pub const CITATIONS_MAX: usize = 10_000;
/// Most topics of a record.
pub const TOPICS_MAX: usize = 200;
/// Most characters of a topic tag.
pub const TAG_MAX: usize = 64;
/// Most characters of a host name (RFC 1035, 2.3.4).
pub const HOST_MAX: usize = 253;

/// What was found in one item: a prompt with its response.
///
/// Canonical order: [`citations`](Self::citations) ascend (repeats stay), [`topics`](Self::topics) ascend and
/// are unique; keys stand in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a finding of its own, named by rubric paths"
)]
pub struct Evidence {
    /// Sources that the response cites, one for each time that it does.
    pub citations: Vec<Citation>,
    /// The response is short for what was asked.
    pub concise: bool,
    /// The response claims certainty.
    pub confident: bool,
    /// The response contradicts itself.
    pub contradiction: bool,
    /// The response gives a position against its own.
    pub counter_position: bool,
    /// What the prompt leaves out decides the answer.
    pub critical_info_missing: bool,
    /// The response states something false; `None` when nobody checked.
    #[serde(deserialize_with = "present")]
    pub factual_error: Option<bool>,
    /// The response makes claims that need a source.
    pub needs_evidence: bool,
    /// Words that name a risk.
    pub risk_terms: Count,
    /// The response names who is affected.
    pub stakeholders: bool,
    /// Headings, list marks, emphasis and the like.
    pub style_markers: Count,
    /// Tokens of the response.
    pub tokens: Count,
    /// Tool results that the response claims.
    pub tool_trace_claims: Count,
    /// Of those, the ones that stored tool output bears out.
    pub tool_trace_matches: Count,
    /// Topics from the registered vocabulary.
    pub topics: BTreeSet<String>,
}

/// One source that a response cites.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Citation {
    /// Host name, lower case.
    pub domain: String,
    /// Whether the source was found; `None` when nobody looked.
    #[serde(deserialize_with = "present")]
    pub resolved: Option<bool>,
    /// Whether the source supports the claim; `None` when nobody read it.
    #[serde(deserialize_with = "present")]
    pub supports: Option<bool>,
}

/// Why a record is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceError {
    /// The text is not a record of this version.
    #[error("{0}")]
    Decode(String),
    /// A list is not in canonical order.
    #[error("{0}: expected ascending order")]
    Order(&'static str),
    /// More than fit.
    #[error("{0}: expected at most {1}")]
    TooMany(&'static str, usize),
    /// A host name that is none.
    #[error("citations: expected a host name in lower case, found {0:?}")]
    Host(String),
    /// A topic tag that is none.
    #[error("topics: expected 1 to 64 printable characters without space at the ends, found {0:?}")]
    Tag(String),
    /// More matches than claims.
    #[error("tool_trace_matches: expected at most tool_trace_claims")]
    Matches,
}

impl Evidence {
    /// Reads a record from JSON and checks it.
    ///
    /// # Errors
    /// [`EvidenceError`].
    pub fn from_json(bytes: &[u8]) -> Result<Self, EvidenceError> {
        let record: Self = serde_json::from_slice(bytes)
            .map_err(|error| EvidenceError::Decode(error.to_string()))?;
        record.check()?;
        Ok(record)
    }

    /// The record with its citations in canonical order.
    #[must_use]
    pub fn in_order(mut self) -> Self {
        self.citations.sort();
        self
    }

    /// Whether the record is canonical and within bounds.
    ///
    /// # Errors
    /// [`EvidenceError`] at the first key, in the order of keys, that is not.
    pub fn check(&self) -> Result<(), EvidenceError> {
        if self.citations.len() > CITATIONS_MAX {
            return Err(EvidenceError::TooMany("citations", CITATIONS_MAX));
        }
        if let Some(bad) = self.citations.iter().find(|cited| !is_host(&cited.domain)) {
            return Err(EvidenceError::Host(bad.domain.clone()));
        }
        if !self.citations.is_sorted() {
            return Err(EvidenceError::Order("citations"));
        }
        if self.tool_trace_matches > self.tool_trace_claims {
            return Err(EvidenceError::Matches);
        }
        if self.topics.len() > TOPICS_MAX {
            return Err(EvidenceError::TooMany("topics", TOPICS_MAX));
        }
        if let Some(bad) = self.topics.iter().find(|tag| !is_tag(tag)) {
            return Err(EvidenceError::Tag(bad.clone()));
        }
        Ok(())
    }

    /// Canonical bytes.
    #[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
    pub fn to_bytes(&self) -> Vec<u8> {
        canon::to_bytes(self).expect("BUG: texts, counts and flags have a canonical form")
    }

    /// SHA-256 of `clover/evidence/v1`, a zero byte and the canonical bytes: identifies the record.
    pub fn digest(&self) -> Digest {
        canon::digest("clover/evidence/v1", self)
    }

    /// What a feature says; `None` when it was never checked.
    pub fn feature(&self, feature: Feature) -> Option<bool> {
        match feature {
            Feature::Concise => Some(self.concise),
            Feature::Confident => Some(self.confident),
            Feature::Contradiction => Some(self.contradiction),
            Feature::CounterPosition => Some(self.counter_position),
            Feature::CriticalInfoMissing => Some(self.critical_info_missing),
            Feature::FactualError => self.factual_error,
            Feature::NeedsEvidence => Some(self.needs_evidence),
            Feature::RiskTerms => Some(self.risk_terms.value() > 0),
            Feature::Stakeholders => Some(self.stakeholders),
        }
    }
}

/// What an obligation can require of a record: its findings that are true or false, and whether any risk is
/// named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// `concise`
    Concise,
    /// `confident`
    Confident,
    /// `contradiction`
    Contradiction,
    /// `counter_position`
    CounterPosition,
    /// `critical_info_missing`
    CriticalInfoMissing,
    /// `factual_error`
    FactualError,
    /// `needs_evidence`
    NeedsEvidence,
    /// `risk_terms`, above 0
    RiskTerms,
    /// `stakeholders`
    Stakeholders,
}

impl Feature {
    /// All of them, by name.
    pub const ALL: [Self; 9] = [
        Self::Concise,
        Self::Confident,
        Self::Contradiction,
        Self::CounterPosition,
        Self::CriticalInfoMissing,
        Self::FactualError,
        Self::NeedsEvidence,
        Self::RiskTerms,
        Self::Stakeholders,
    ];

    /// Its key in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Concise => "concise",
            Self::Confident => "confident",
            Self::Contradiction => "contradiction",
            Self::CounterPosition => "counter_position",
            Self::CriticalInfoMissing => "critical_info_missing",
            Self::FactualError => "factual_error",
            Self::NeedsEvidence => "needs_evidence",
            Self::RiskTerms => "risk_terms",
            Self::Stakeholders => "stakeholders",
        }
    }

    /// The feature of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|feature| feature.name() == name)
    }
}

/// Whether `text` is a host name: labels of letters, digits and inner hyphens in lower case, two or more.
pub fn is_host(text: &str) -> bool {
    let label = |label: &str| {
        let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= HOST_MAX && text.contains('.') && text.split('.').all(label)
}

/// Whether `host` is `domain` or lies under it.
pub fn is_under(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether `text` is a topic tag: 1 to [`TAG_MAX`] printable characters, no space at the ends.
pub fn is_tag(text: &str) -> bool {
    let length = text.chars().count();
    (1..=TAG_MAX).contains(&length)
        && text.trim() == text
        && !text
            .chars()
            .any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
}

/// An optional value whose key has to be there.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = r#"{"citations":[{"domain":"nih.gov","resolved":true,"supports":null}],"concise":true,"confident":false,"contradiction":false,"counter_position":true,"critical_info_missing":false,"factual_error":null,"needs_evidence":true,"risk_terms":2,"stakeholders":true,"style_markers":3,"tokens":120,"tool_trace_claims":1,"tool_trace_matches":1,"topics":["legal advice","medical dosing"]}"#;

    #[test]
    fn the_record_is_its_own_canonical_form() {
        let record = Evidence::from_json(FULL.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(record.to_bytes()).unwrap(), FULL);
        assert_eq!(
            record.digest(),
            Digest::labelled("clover/evidence/v1", FULL.as_bytes())
        );
        // source: schema/RUBRIC.md, computed by audits/verify.
        let digest = "473534df281ede7f98b1f4e1e13ce6644197986640f05236641af4eff371573c";
        assert_eq!(record.digest().to_hex(), digest);
        for feature in Feature::ALL {
            assert!(FULL.contains(&format!("{:?}", feature.name())));
            assert_eq!(Feature::named(feature.name()), Some(feature));
        }
        assert!(Feature::ALL.is_sorted_by_key(|feature| feature.name()));
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for (old, new, expected) in [
            ("\"concise\":true,", "", "missing field `concise`"),
            (
                "\"factual_error\":null,",
                "",
                "missing field `factual_error`",
            ),
            ("\"resolved\":true,", "", "missing field `resolved`"),
            ("\"tokens\":120", "\"tokens\":120,\"x\":1", "unknown field"),
            ("\"tokens\":120", "\"tokens\":-1", "invalid value"),
            ("nih.gov", "NIH.gov", "lower case"),
            ("nih.gov", "nih..gov", "host name"),
            ("matches\":1", "matches\":2", "tool_trace_matches"),
            ("legal advice", " legal", "topics"),
        ] {
            let text = FULL.replacen(old, new, 1);
            let error = Evidence::from_json(text.as_bytes())
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let two =
            "{\"domain\":\"who.int\",\"resolved\":null,\"supports\":null},{\"domain\":\"nih.gov\"";
        let text = FULL.replacen("{\"domain\":\"nih.gov\"", two, 1);
        assert!(matches!(
            Evidence::from_json(text.as_bytes()),
            Err(EvidenceError::Order("citations"))
        ));
    }

    #[test]
    fn hosts_lie_under_domains() {
        for host in ["nih.gov", "a.b-c.d1", "xn--bcher-kva.example"] {
            assert!(is_host(host), "{host}");
        }
        for text in [
            "", "nih", "nih.gov.", ".nih.gov", "a b.c", "-a.b", "a-.b", "a_b.c",
        ] {
            assert!(!is_host(text), "{text}");
        }
        assert!(is_under("pubmed.nih.gov", "nih.gov") && is_under("nih.gov", "nih.gov"));
        assert!(!is_under("fakenih.gov", "nih.gov") && !is_under("gov", "nih.gov"));
    }
}
