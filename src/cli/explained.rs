//! A decision in the order of its making: what it read, its numbers, the gates behind it, and what follows.

use serde_json::Value;

use crate::cli::error::CliError;
use crate::cli::iterate;
use crate::cli::ui;
use crate::event::Payload;
use crate::event::id::EventId;
use crate::event::payload::predicate::GateEvaluated;
use crate::ledger::Ledger;

/// Members that name what was read, and on what terms.
const INPUTS: [&str; 28] = [
    "anchors",
    "audit",
    "battery",
    "beacon",
    "build",
    "calibrator",
    "calibrators",
    "candidate",
    "charge",
    "commit",
    "confirm_root",
    "deployment",
    "fold_seeds",
    "gate",
    "inputs",
    "iteration",
    "judge",
    "params_hash",
    "patch",
    "policy",
    "rows_root",
    "sealed",
    "seed",
    "seed_label",
    "split",
    "terms",
    "thresholds",
    "through_seq",
];
/// Members that say what follows.
const VERDICTS: [&str; 10] = [
    "answers",
    "claim",
    "hypotheses",
    "outcome",
    "rank",
    "reason",
    "state",
    "verdict",
    "verdicts",
    "refuse_level",
];

/// Leaves of a value by their paths, such as `evidence.p8.bound`.
fn leaves(path: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                leaves(&format!("{path}.{name}"), value, found);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (at, item) in items.iter().enumerate() {
                leaves(&format!("{path}.{at}"), item, found);
            }
        }
        Value::String(text) => found.push((path.to_owned(), text.clone())),
        other => found.push((path.to_owned(), other.to_string())),
    }
}

fn section(title: &str, members: &[(&String, &Value)]) -> String {
    let mut found = Vec::new();
    for (name, value) in members {
        leaves(name, value, &mut found);
    }
    if found.is_empty() {
        return String::new();
    }
    let pairs: Vec<(&str, String)> = found
        .iter()
        .map(|(path, value)| (path.as_str(), value.clone()))
        .collect();
    format!("{title}\n{}", ui::pairs(&pairs))
}

/// The gates behind a decision: itself, if it is one, or those that it names.
fn gates(
    ledger: &Ledger,
    payload: &Payload,
) -> Result<Vec<(Option<u64>, GateEvaluated)>, CliError> {
    let named: &[EventId] = match payload {
        Payload::GateEvaluated(said) => return Ok(vec![(None, said.clone())]),
        Payload::PatchAccepted(said) => &said.gates,
        _ => &[],
    };
    let mut found = Vec::with_capacity(named.len());
    for id in named {
        let read = match ledger.find(*id)? {
            Some(seq) => ledger.entry(seq)?,
            None => None,
        };
        if let Some(read) = read
            && let Payload::GateEvaluated(said) = read.event.payload
        {
            found.push((Some(read.stored.seq), said));
        }
    }
    Ok(found)
}

/// Inputs, numbers, gates and verdict of a payload.
///
/// # Errors
/// When the ledger cannot be read.
pub(super) fn page(ledger: &Ledger, payload: &Payload) -> Result<String, CliError> {
    let value = serde_json::to_value(payload).unwrap_or_default();
    let members: Vec<(&String, &Value)> = value.as_object().into_iter().flatten().collect();
    let of = |part: fn(&str) -> bool| -> Vec<(&String, &Value)> {
        let mine = members.iter().filter(|(name, _)| part(name));
        mine.copied().collect()
    };
    let is_input = |name: &str| INPUTS.contains(&name);
    let is_verdict = |name: &str| VERDICTS.contains(&name);
    let is_number = |name: &str| {
        // Gates stand in their own table.
        !INPUTS.contains(&name) && !VERDICTS.contains(&name) && name != "gates"
    };
    let mut page = section("INPUTS", &of(is_input));
    page.push_str(&section("NUMBERS", &of(is_number)));
    let gates = gates(ledger, payload)?;
    if !gates.is_empty() {
        page.push_str(&format!("GATES\n{}", iterate::gate_table(&gates)));
    }
    page.push_str(&section("VERDICT", &of(is_verdict)));
    Ok(page)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn leaves_stand_by_their_paths() {
        let value = json!({"a": {"b": 0.5}, "c": [1, 2], "d": [{"e": "f"}], "g": []});
        let mut found = Vec::new();
        leaves("x", &value, &mut found);
        let expected = [
            ("x.a.b", "0.5"),
            ("x.c", "[1,2]"),
            ("x.d.0.e", "f"),
            ("x.g", "[]"),
        ];
        let expected = expected.map(|(path, value)| (path.to_owned(), value.to_owned()));
        assert_eq!(found, expected);
    }
}
