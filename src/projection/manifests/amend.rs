//! What an amendment changes, and the class that follows from it.

use clover_ledger::Code;
use std::collections::BTreeMap;

use clover_event::payload::manifest::Manifest;
use clover_event::payload::manifest::Test;
use clover_ground::canon;
use serde_json::Value;

/// A field that differs: canonical JSON of both values, `None` where it is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Path of the field, such as `test.n_max`; a list is one field.
    pub path: String,
    /// What stood there.
    pub from: Option<String>,
    /// What stands there now.
    pub to: Option<String>,
}

impl Change {
    /// The class of a change of this field alone.
    pub fn class(&self) -> u64 {
        let within = |paths: &[&str]| {
            paths.iter().any(|path| {
                let rest = self.path.strip_prefix(path);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        };
        if within(WORDS) {
            0
        } else if within(TESTED) {
            3
        } else if within(PREDICTABLE) {
            2
        } else {
            1
        }
    }

    /// The code of what using the other value would be, where there is one.
    pub fn code(&self) -> Code {
        let code = CODES.iter().find(|(path, _)| self.path.starts_with(path));
        code.map_or(Code::UnregisteredRule, |(_, code)| *code)
    }
}

/// Texts for people: class 0.
const WORDS: &[&str] = &["title", "hypothesis.claim"];
/// May change in flight, since the next step alone sees it: class 2.
const PREDICTABLE: &[&str] = &["preflight", "test.bettor", "test.look_at", "test.n_max"];
/// What is tested, on what, and with whom: class 3.
const TESTED: &[&str] = &[
    "arms",
    "data",
    "estimand",
    "experiment",
    "hypothesis.kind",
    "manifest",
    "metric",
    "multiplicity",
    "supersedes",
    "template",
    "test.beacon",
    "test.continuation_of",
    "test.control_variate",
    "test.null_margin_micro",
    "test.side",
    "test.without_replacement",
    "transport.environments",
    "transport.margin_micro",
];
/// First match wins.
const CODES: &[(&str, Code)] = &[
    ("arms", Code::ArmDigest),
    ("data.confirm_root", Code::DataRoot),
    ("data.exposure_cap", Code::Exposure),
    ("data.n_units", Code::Number),
    ("estimand", Code::Unit),
    ("metric.direction", Code::Direction),
    ("metric.judge_digest", Code::JudgeDigest),
    ("metric.scale", Code::Scale),
    ("metric.difference", Code::Scale),
    ("metric.guardrails", Code::Margin),
    ("multiplicity", Code::FamilyBudget),
    ("roles", Code::SignerRole),
    ("test.alpha", Code::Alpha),
    ("test.beacon", Code::Order),
    ("test.bettor", Code::Bettor),
    ("test.n_", Code::Number),
    ("test.null_margin_micro", Code::Margin),
    ("transport.alpha", Code::Alpha),
    ("transport.margin_micro", Code::Margin),
    ("iteration.alpha", Code::Alpha),
];

/// Leaves of a manifest by path; a list is one leaf.
fn leaves(manifest: &Manifest) -> BTreeMap<String, String> {
    let bytes = canon::to_bytes(manifest).expect("BUG: a manifest holds integers and texts");
    let value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let mut found = BTreeMap::new();
    flatten(String::new(), &value, &mut found);
    // These two say which version it is, not what it says.
    found.remove("parent_digest");
    found.remove("version");
    found
}

fn flatten(path: String, value: &Value, out: &mut BTreeMap<String, String>) {
    if let Value::Object(fields) = value {
        for (name, field) in fields {
            let path = match path.as_str() {
                "" => name.clone(),
                path => format!("{path}.{name}"),
            };
            flatten(path, field, out);
        }
        return;
    }
    let text = canon::to_bytes(value).expect("BUG: what was canonical stays so");
    out.insert(path, String::from_utf8_lossy(&text).into_owned());
}

/// Fields in which two versions differ, by path.
pub fn changes(old: &Manifest, new: &Manifest) -> Vec<Change> {
    let (old, mut new) = (leaves(old), leaves(new));
    let mut found = Vec::new();
    for (path, from) in old {
        let to = new.remove(&path);
        if to.as_ref() != Some(&from) {
            found.push(Change {
                path,
                from: Some(from),
                to,
            });
        }
    }
    found.extend(new.into_iter().map(|(path, to)| Change {
        path,
        from: None,
        to: Some(to),
    }));
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Class of an amendment: 3 when it touches what is tested; 1 when it touches anything else but words and what may
/// change in flight, which it may only towards more units and more looks; 2 for those; 0 for words alone.
pub fn class(old: &Manifest, new: &Manifest) -> u64 {
    let classes = changes(old, new)
        .iter()
        .map(Change::class)
        .collect::<Vec<_>>();
    let has = |class| classes.contains(&class);
    let narrower = match (&old.test, &new.test) {
        (Some(old), Some(new)) => new.n_max < old.n_max || fewer_looks(old, new),
        _ => false,
    };
    if has(3) {
        3
    } else if has(1) || narrower {
        1
    } else if has(2) {
        2
    } else {
        0
    }
}

fn fewer_looks(old: &Test, new: &Test) -> bool {
    match (&old.look_at, &new.look_at) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(old), Some(new)) => !old.iter().all(|look| new.contains(look)),
    }
}
