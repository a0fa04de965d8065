//! A decision in the order of its making: what it read, its numbers, the gates behind it, and what follows.

use serde_json::Value;

use crate::event::Payload;
use crate::view::View;
use crate::view::text::COLUMNS;
use crate::view::text::escape;

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
    format!("{title}\n{}", aligned(&found))
}

/// Columns that are left to values beside the longest path.
const ROOM_MIN: usize = 24;

/// Paths and values with the values aligned; a value that does not fit into the line goes on in the next.
fn aligned(found: &[(String, String)]) -> String {
    let columns = usize::from(COLUMNS);
    let longest = found.iter().map(|(path, _)| path.chars().count()).max();
    let width = (longest.unwrap_or(0) + 2).min(columns - ROOM_MIN);
    let mut out = String::new();
    for (path, value) in found {
        let mut label = path.as_str();
        if path.chars().count() + 2 > width {
            // A path that leaves no room stands by itself.
            out.push_str(&broken(path, columns).join("\n"));
            out.push('\n');
            label = "";
        }
        for line in broken(&escape(value), columns - width) {
            out.push_str(format!("{label:width$}{line}").trim_end());
            out.push('\n');
            label = "";
        }
    }
    out
}

/// A text in lines of at most `room` characters: broken after spaces and commas, and anywhere in what has neither.
fn broken(text: &str, room: usize) -> Vec<String> {
    let (mut lines, mut line, mut held) = (Vec::new(), String::new(), 0);
    for word in text.split_inclusive([' ', ',']) {
        if held > 0 && held + word.trim_end().chars().count() > room {
            lines.push(std::mem::take(&mut line));
            held = 0;
        }
        for letter in word.chars() {
            if held >= room && letter == ' ' {
                continue;
            }
            if held >= room {
                lines.push(std::mem::take(&mut line));
                held = 0;
            }
            line.push(letter);
            held += 1;
        }
    }
    lines.push(line);
    lines
}

/// A decision as it was computed again.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// What it says.
    pub payload: Payload,
    /// The table of the gates behind it; empty where there are none.
    pub gates: String,
}

/// Adds inputs, numbers, gates and verdict of a decision.
pub(super) fn put(view: &mut View, of: &Explanation) {
    let value = View::of(&of.payload).facts().clone();
    let members: Vec<(&String, &Value)> = value.as_object().into_iter().flatten().collect();
    let part = |is_part: fn(&str) -> bool| -> Vec<(&String, &Value)> {
        let mine = members.iter().filter(|(name, _)| is_part(name));
        mine.copied().collect()
    };
    let is_input = |name: &str| INPUTS.contains(&name);
    let is_verdict = |name: &str| VERDICTS.contains(&name);
    let is_number = |name: &str| {
        // Gates stand in their own table.
        !INPUTS.contains(&name) && !VERDICTS.contains(&name) && name != "gates"
    };
    let mut lines = |text: &str| {
        for line in text.lines() {
            view.line(line);
        }
    };
    lines(&section("INPUTS", &part(is_input)));
    lines(&section("NUMBERS", &part(is_number)));
    if !of.gates.is_empty() {
        lines(&format!("CRITERIA\n{}", of.gates));
    }
    lines(&section("VERDICT", &part(is_verdict)));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_line_of_a_page_is_wider_than_the_screen() {
        let numbers: Vec<String> = (0..300).map(|at| format!("{}", 100_000 + at)).collect();
        let value = json!({
            "short": 1, "scores": [0.125, 0.0625], "text": "word ".repeat(60), "unbroken": "x".repeat(250),
            "numbers": numbers.iter().map(|of| of.parse().unwrap()).collect::<Vec<u64>>(),
            "a_path": {"that_is_so_long_that_nothing": {"is_left_of_a_hundred_columns": {"for_its_value": 0.5}}},
        });
        let members = value.as_object().unwrap().iter().collect::<Vec<_>>();
        let page = section("NUMBERS", &members);
        let widest = page.lines().map(|line| line.chars().count()).max();
        assert_eq!(widest, Some(usize::from(COLUMNS)), "{page}");
        // Nothing is lost, and what is short stands beside its path.
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
        let mut found = Vec::new();
        for (name, value) in &members {
            leaves(name, value, &mut found);
        }
        let whole: usize = found
            .iter()
            .map(|(path, value)| letters(path) + letters(value))
            .sum();
        assert_eq!(letters(&page), whole + "NUMBERS".len(), "{page}");
        assert!(page.contains(&format!("[{},", numbers[0])), "{page}");
        let short = page
            .lines()
            .find(|line| line.starts_with("short "))
            .unwrap();
        assert!(short.ends_with(" 1"), "{short}");
    }

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
