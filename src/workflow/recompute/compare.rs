//! What was recorded against what was computed again.

use clover_event::Kind;
use clover_event::Payload;
use serde_json::Value;

use crate::tolerance::Tolerance;

/// The member that names the program.
const BUILD: &str = "build";
/// Digests and blobs over numbers: of another build they may differ where the numbers agree.
const OVER_NUMBERS: [&str; 4] = ["calibrator", "full_digest", "model", "public_digest"];

/// A member that is not the same.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberDifference {
    /// Its path, such as `interval.low`; `event` where it should not be there at all.
    pub path: String,
    /// As recorded; null where it is absent.
    pub recorded: Value,
    /// As computed again.
    pub recomputed: Value,
}

/// How a recomputation ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Recomputation {
    /// The same, to the bit.
    Identical,
    /// Of another build: the same words and decisions, and numbers within 1e-9 relative.
    Within,
    /// Not the same.
    Differs(Vec<MemberDifference>),
    /// It cannot be computed again, and why.
    Gone(String),
    /// It says what a person decided: there is nothing to compute.
    Told(String),
}

/// An event that is recorded, and that its inputs do not call for.
pub(super) fn uncalled(kind: Kind, why: &str) -> Recomputation {
    Recomputation::Differs(vec![MemberDifference {
        path: "event".to_owned(),
        recorded: kind.as_str().into(),
        recomputed: format!("none: {why}").into(),
    }])
}

/// Compares two payloads of one kind.
///
/// # Panics
/// If a payload cannot be written as JSON, which every recorded one was.
pub fn compare(recorded: &Payload, again: &Payload) -> Recomputation {
    let value = |payload: &Payload| {
        serde_json::to_value(payload).expect("BUG: a payload can be written as JSON")
    };
    let (recorded, again) = (value(recorded), value(again));
    let same_build = recorded.get(BUILD) == again.get(BUILD);
    let mut walk = ComparisonWalk {
        same_build,
        exact: true,
        differences: Vec::new(),
    };
    walk.compare("", &recorded, &again);
    if !walk.differences.is_empty() {
        Recomputation::Differs(walk.differences)
    } else if walk.exact {
        Recomputation::Identical
    } else {
        Recomputation::Within
    }
}

struct ComparisonWalk {
    same_build: bool,
    exact: bool,
    differences: Vec<MemberDifference>,
}

impl ComparisonWalk {
    fn compare(&mut self, path: &str, a: &Value, b: &Value) {
        let inner = |name: &str| {
            if path.is_empty() {
                name.to_owned()
            } else {
                format!("{path}.{name}")
            }
        };
        match (a, b) {
            (Value::Object(a), Value::Object(b)) => {
                let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
                for name in names {
                    if name == BUILD && path.is_empty() {
                        continue;
                    }
                    if !self.same_build && OVER_NUMBERS.contains(&name.as_str()) {
                        self.exact = false;
                        continue;
                    }
                    let of = |object: &serde_json::Map<String, Value>| {
                        object.get(name).cloned().unwrap_or(Value::Null)
                    };
                    self.compare(&inner(name), &of(a), &of(b));
                }
            }
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                for (at, (a, b)) in a.iter().zip(b).enumerate() {
                    self.compare(&inner(&at.to_string()), a, b);
                }
            }
            _ if a == b => {}
            (Value::Number(x), Value::Number(y)) if !self.same_build && close(x, y) => {
                self.exact = false;
            }
            _ => self.differences.push(MemberDifference {
                path: path.to_owned(),
                recorded: a.clone(),
                recomputed: b.clone(),
            }),
        }
    }
}

fn close(a: &serde_json::Number, b: &serde_json::Number) -> bool {
    match (a.as_f64(), b.as_f64()) {
        // Integers are counts and positions: those are the same or not.
        (Some(a), Some(b)) if a.fract() != 0.0 || b.fract() != 0.0 => {
            Tolerance::OtherBuild.admits(a, b)
        }
        _ => false,
    }
}
