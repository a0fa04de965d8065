//! The legal leaves of a rubric: what each path may hold, which family of patches may touch it, and what a
//! change of it costs.

use std::collections::BTreeSet;
use std::fmt;

use clover_ground::canon;
use clover_num::INTEGER_MAX;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use super::evidence::Feature;
use super::evidence::is_host;
use super::evidence::is_tag;

/// Most elements of a list.
pub const LIST_MAX: usize = 50;
/// Most characters of `abstention.rule`.
pub const RULE_MAX: usize = 200;
/// Most characters of one part of a path.
pub const SEGMENT_MAX: usize = 64;

/// What stands at a path. Lists are sets: in ascending order, each element once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// `true` or `false`.
    Flag(bool),
    /// Host names or topic tags.
    List(BTreeSet<String>),
    /// A share from 0 to 1, in millionths.
    #[serde(rename = "share_micro")]
    Share(Micro),
    /// A text.
    Text(String),
}

impl fmt::Display for Value {
    /// As YAML on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(value) => write!(f, "{value}"),
            Self::Flag(value) => write!(f, "{value}"),
            Self::Share(value) => write!(f, "{value}"),
            Self::Text(text) => f.write_str(&quote(text)),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(|item| quote(item)).collect();
                write!(f, "[{}]", items.join(", "))
            }
        }
    }
}

/// A text between double quotes, as both JSON and YAML read it.
fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("BUG: a string is JSON")
}

/// What a path may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number from 1.
    Count,
    /// `true` or `false`.
    Flag,
    /// Host names.
    Hosts,
    /// A name: 1 to 64 printable characters.
    Name,
    /// A text of at most 200 characters.
    Prose,
    /// A share from 0 to 1.
    Share,
    /// Topic tags.
    Tags,
    /// `Y` or `Y_star`.
    Target,
    /// `MAJOR.MINOR`.
    Version,
}

/// Why a value cannot stand at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is of another type.
    Type(String),
    /// It is out of range.
    Range(String),
}

impl Unfit {
    /// What was expected and found.
    pub fn message(self) -> String {
        match self {
            Self::Type(message) | Self::Range(message) => message,
        }
    }
}

/// A family of patches: which paths one patch may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// When to abstain.
    Abstention,
    /// Contradictions, counter-positions, who is affected.
    ContradictionCheck,
    /// Sources and tool results.
    EvidenceVerification,
    /// Length.
    LengthBiasCap,
}

impl Family {
    /// All of them, by name.
    pub const ALL: [Self; 4] = [
        Self::Abstention,
        Self::ContradictionCheck,
        Self::EvidenceVerification,
        Self::LengthBiasCap,
    ];

    /// The word in patches.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Abstention => "abstention",
            Self::ContradictionCheck => "contradiction_check",
            Self::EvidenceVerification => "evidence_verification",
            Self::LengthBiasCap => "length_bias_cap",
        }
    }

    /// The family of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.as_str() == name)
    }
}

/// What a change of a leaf needs before the new score stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The engine over the stored raw answers.
    Recompute,
    /// New raw answers if a stored citation on a newly allowed host was never verified.
    Conditional,
    /// New raw answers: the judge is told something else.
    Rescore,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Recompute => "recompute",
            Self::Conditional => "conditional",
            Self::Rescore => "rescore",
        })
    }
}

/// Whether `text` is a part of a path: `[a-z][a-z0-9_]*`, at most [`SEGMENT_MAX`] characters.
pub fn is_segment(text: &str) -> bool {
    text.len() <= SEGMENT_MAX
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .bytes()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_')
}

/// What a path may hold; `None` for a path that no rubric has.
pub fn kind_of(path: &str) -> Option<Kind> {
    match path {
        "version" => return Some(Kind::Version),
        "target" => return Some(Kind::Target),
        "sdp_version" => return Some(Kind::Name),
        "guards.length_bias_cap.if_tokens_gt" => return Some(Kind::Count),
        "guards.length_bias_cap.max_raw_score" | "guards.confident_but_wrong_max" => {
            return Some(Kind::Share);
        }
        "guards.tool_trace_consistency" => return Some(Kind::Flag),
        "abstention.triggers" => return Some(Kind::Tags),
        "abstention.rule" => return Some(Kind::Prose),
        _ => {}
    }
    let (name, leaf) = path.strip_prefix("obligations.")?.split_once('.')?;
    match (name, leaf) {
        _ if !is_segment(name) => None,
        (_, "required") | ("usefulness", "be_concise_by_default") => Some(Kind::Flag),
        (_, "penalty") | ("factual_adequacy", "verification.mismatch_penalty") => Some(Kind::Share),
        ("factual_adequacy", "verification.allowed_domains") => Some(Kind::Hosts),
        _ => Feature::named(leaf.strip_prefix("requires_")?).map(|_| Kind::Flag),
    }
}

/// Whether leaves stand below a path: whether a rubric may have a mapping there.
pub fn is_branch(path: &str) -> bool {
    match path {
        ""
        | "obligations"
        | "guards"
        | "abstention"
        | "guards.length_bias_cap"
        | "obligations.factual_adequacy.verification" => true,
        _ => path.strip_prefix("obligations.").is_some_and(is_segment),
    }
}

/// Families whose patches may touch a path: none for what no patch may touch, two for an obligation of a
/// patch's own making.
pub fn families_of(path: &str) -> &'static [Family] {
    let under = |branch: &str| {
        path.strip_prefix(branch)
            .is_some_and(|rest| rest.starts_with('.'))
    };
    if kind_of(path).is_none() {
        &[]
    } else if under("obligations.factual_adequacy") || path == "guards.tool_trace_consistency" {
        &[Family::EvidenceVerification]
    } else if under("obligations.reasoning_quality")
        || under("obligations.risk_accounting")
        || path == "guards.confident_but_wrong_max"
    {
        &[Family::ContradictionCheck]
    } else if under("obligations.usefulness") || under("guards.length_bias_cap") {
        &[Family::LengthBiasCap]
    } else if under("obligations") {
        &[Family::ContradictionCheck, Family::EvidenceVerification]
    } else if under("abstention") {
        &[Family::Abstention]
    } else {
        &[]
    }
}

/// The value at `path` that a YAML node says.
///
/// # Errors
/// [`Unfit`]; a path that no rubric has is of the wrong type for anything.
pub fn value_of(path: &str, node: &canon::Value) -> Result<Value, Unfit> {
    let kind = kind_of(path).ok_or_else(|| Unfit::Type("expected a path of rubrics".to_owned()))?;
    kind.read(node)
}

impl Kind {
    /// Whether it holds a list.
    pub fn is_list(self) -> bool {
        matches!(self, Self::Hosts | Self::Tags)
    }

    fn read(self, node: &canon::Value) -> Result<Value, Unfit> {
        let wrong = |expected: &str| Unfit::Type(format!("expected {expected}"));
        match (self, node) {
            (Self::Count, canon::Value::Natural(value)) => match value {
                1..=INTEGER_MAX => Ok(Value::Count(*value)),
                _ => Err(Unfit::Range(format!("expected 1 or more, found {value}"))),
            },
            (Self::Count, _) => Err(wrong("a whole number")),
            (Self::Flag, canon::Value::Bool(value)) => Ok(Value::Flag(*value)),
            (Self::Flag, _) => Err(wrong("true or false")),
            (Self::Share, node) => share(node),
            (Self::Hosts | Self::Tags, canon::Value::Array(items)) => self.list(items),
            (Self::Hosts | Self::Tags, _) => Err(wrong("a list")),
            (_, canon::Value::String(text)) => self.text(text),
            (_, _) => Err(wrong("a text, between quotes if it looks like a number")),
        }
    }

    fn list(self, items: &[canon::Value]) -> Result<Value, Unfit> {
        let mut list = BTreeSet::new();
        for item in items {
            let canon::Value::String(text) = item else {
                return Err(Unfit::Type("expected a list of texts".to_owned()));
            };
            let (fits, expected) = match self {
                Self::Hosts => (is_host(text), "host names in lower case"),
                _ => (is_tag(text), "topics of 1 to 64 characters"),
            };
            if !fits {
                return Err(Unfit::Range(format!("expected {expected}, found {text:?}")));
            }
            if !list.insert(text.clone()) {
                return Err(Unfit::Range(format!(
                    "expected each element once, found {text:?} again"
                )));
            }
        }
        if list.len() > LIST_MAX {
            let found = list.len();
            return Err(Unfit::Range(format!(
                "expected at most {LIST_MAX} elements, found {found}"
            )));
        }
        Ok(Value::List(list))
    }

    fn text(self, text: &str) -> Result<Value, Unfit> {
        let (fits, expected) = match self {
            Self::Target => (matches!(text, "Y" | "Y_star"), "Y or Y_star"),
            Self::Version => (version(text).is_some(), "a version such as \"1.0\""),
            Self::Prose => (is_prose(text, RULE_MAX), "1 to 200 printable characters"),
            _ => (is_tag(text), "1 to 64 printable characters"),
        };
        if fits {
            Ok(Value::Text(text.to_owned()))
        } else {
            Err(Unfit::Range(format!("expected {expected}, found {text:?}")))
        }
    }
}

/// Whether `text` is printable, on one line, not blank, and has at most `most` characters.
pub(super) fn is_prose(text: &str, most: usize) -> bool {
    let broken = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    !text.trim().is_empty() && text.chars().count() <= most && !text.chars().any(broken)
}

/// The parts of `MAJOR.MINOR`: up to nine digits each, without leading zeros.
pub fn version(text: &str) -> Option<(u32, u32)> {
    let part = |text: &str| {
        let plain = (1..=9).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit());
        let leading = text.len() > 1 && text.starts_with('0');
        (plain && !leading).then(|| text.parse().ok()).flatten()
    };
    let (major, minor) = text.split_once('.')?;
    Some((part(major)?, part(minor)?))
}

/// An exact number of millionths; a double is read as the shortest decimal that gives it.
pub(super) fn micro(node: &canon::Value) -> Result<Micro, Unfit> {
    let text = match node {
        canon::Value::Natural(value) => value.to_string(),
        canon::Value::Negative(value) => value.to_string(),
        canon::Value::Float(value) => {
            serde_json::to_string(value).map_err(|_| Unfit::Type("expected a number".to_owned()))?
        }
        _ => return Err(Unfit::Type("expected a number".to_owned())),
    };
    match Micro::parse(&text) {
        Ok((value, false)) => Ok(value),
        Ok((_, true)) => Err(Unfit::Range(format!(
            "expected at most six decimals, found {text}"
        ))),
        Err(error) => Err(Unfit::Range(error.to_string())),
    }
}

fn share(node: &canon::Value) -> Result<Value, Unfit> {
    let value = micro(node)?;
    if (0..=1_000_000).contains(&value.value()) {
        Ok(Value::Share(value))
    } else {
        Err(Unfit::Range(format!("expected 0 to 1, found {value}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths with what they hold and who may touch them.
    fn paths() -> Vec<(&'static str, Kind, &'static [Family])> {
        use Family::{Abstention, ContradictionCheck, EvidenceVerification, LengthBiasCap};
        vec![
            ("version", Kind::Version, &[]),
            ("target", Kind::Target, &[]),
            ("sdp_version", Kind::Name, &[]),
            (
                "obligations.factual_adequacy.required",
                Kind::Flag,
                &[EvidenceVerification],
            ),
            (
                "obligations.factual_adequacy.verification.allowed_domains",
                Kind::Hosts,
                &[EvidenceVerification],
            ),
            (
                "obligations.factual_adequacy.verification.mismatch_penalty",
                Kind::Share,
                &[EvidenceVerification],
            ),
            (
                "obligations.reasoning_quality.requires_counter_position",
                Kind::Flag,
                &[ContradictionCheck],
            ),
            (
                "obligations.risk_accounting.requires_stakeholders",
                Kind::Flag,
                &[ContradictionCheck],
            ),
            (
                "obligations.usefulness.be_concise_by_default",
                Kind::Flag,
                &[LengthBiasCap],
            ),
            (
                "obligations.usefulness.penalty",
                Kind::Share,
                &[LengthBiasCap],
            ),
            (
                "obligations.dosing.requires_critical_info_missing",
                Kind::Flag,
                &[ContradictionCheck, EvidenceVerification],
            ),
            (
                "guards.length_bias_cap.if_tokens_gt",
                Kind::Count,
                &[LengthBiasCap],
            ),
            (
                "guards.length_bias_cap.max_raw_score",
                Kind::Share,
                &[LengthBiasCap],
            ),
            (
                "guards.tool_trace_consistency",
                Kind::Flag,
                &[EvidenceVerification],
            ),
            (
                "guards.confident_but_wrong_max",
                Kind::Share,
                &[ContradictionCheck],
            ),
            ("abstention.triggers", Kind::Tags, &[Abstention]),
            ("abstention.rule", Kind::Prose, &[Abstention]),
        ]
    }

    #[test]
    fn every_path_belongs_where_the_paper_puts_it() {
        for (path, kind, families) in paths() {
            assert_eq!(kind_of(path), Some(kind), "{path}");
            assert_eq!(families_of(path), families, "{path}");
            for (at, _) in path.match_indices('.') {
                assert!(is_branch(&path[..at]), "{path}");
            }
        }
        for path in [
            "",
            "guards",
            "guards.length_bias_cap",
            "obligations.usefulness",
            "obligations.x.be_concise_by_default",
            "obligations.x.verification.mismatch_penalty",
            "obligations.x.requires_tokens",
            "obligations.X.required",
            "obligations..required",
            "abstention.triggers.x",
        ] {
            assert_eq!(kind_of(path), None, "{path}");
            assert!(families_of(path).is_empty(), "{path}");
        }
    }

    #[test]
    fn versions_are_two_plain_numbers() {
        assert_eq!(version("1.0"), Some((1, 0)));
        assert_eq!(version("10.23"), Some((10, 23)));
        for text in [
            "1",
            "1.",
            ".1",
            "01.0",
            "1.00",
            "1.0.0",
            "v1.0",
            "1.0000000000",
        ] {
            assert_eq!(version(text), None, "{text}");
        }
    }
}
