//! What a plan leaves to be filled: every field at once, each with its line and what it means.

use serde_json::Value;
use serde_json::json;

use crate::cli::error::CliError;
use crate::cli::prereg::plan;
use crate::ground::shell;
use crate::ground::yaml::Document;
use crate::ground::yaml::YamlError;
use crate::view::prereg::file;

/// A field without a value.
#[derive(Debug)]
pub(super) struct Gap {
    /// The field, as a path.
    path: String,
    /// Its line, from 1.
    line: usize,
    /// Its column, from 1.
    column: usize,
    /// What stands beside it, or beside it in the template; empty where nothing does.
    meaning: String,
    /// Whether it is marked to be filled.
    pub is_marked: bool,
}

/// Every field of a document that has no value.
pub(super) fn gaps(bytes: &[u8], document: &Document) -> Vec<Gap> {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().collect();
    let gap = |place: &crate::ground::yaml::NodePosition| {
        let line = lines.get(place.line - 1).copied().unwrap_or_default();
        let comment = line.split_once(" #").map(|(_, comment)| comment.trim());
        let comment = match comment {
            Some(comment) if !comment.is_empty() => comment.to_owned(),
            _ => file::meaning(text.as_ref(), &place.path).unwrap_or_default(),
        };
        let marked = comment.strip_prefix("FILL");
        Gap {
            path: place.path.clone(),
            line: place.line,
            column: place.column,
            meaning: marked
                .map_or(comment.as_str(), |rest| rest.trim_start_matches(':'))
                .trim()
                .to_owned(),
            is_marked: marked.is_some(),
        }
    };
    document.blanks().map(gap).collect()
}

/// Refuses a document with everything that is to be filled, or with what else keeps it from being read.
pub(super) fn refuse(source: &str, gaps: &[Gap], error: Option<YamlError>) -> CliError {
    let stops = |error: &YamlError| gaps.iter().any(|gap| gap.path == error.place.path);
    let is_of_gaps = error.as_ref().is_none_or(stops);
    let listed: Vec<&Gap> = gaps
        .iter()
        .filter(|gap| gap.is_marked || is_of_gaps)
        .collect();
    let other = error.filter(|_| !is_of_gaps || listed.is_empty());
    let other = other.map(|error| plan::at(source, error.place, error.message));
    if listed.is_empty() {
        return other.expect("BUG: a gap, or an error");
    }
    let count = match listed.len() {
        1 => "1 field is".to_owned(),
        count => format!("{count} fields are"),
    };
    let mut message = format!("{source}: {count} to be filled");
    let mut faults = Vec::new();
    for gap in listed {
        let meaning = match gap.meaning.as_str() {
            "" => "a value".to_owned(),
            meaning => meaning.to_owned(),
        };
        message.push_str(&format!("\n{source}:{}: {}: {meaning}", gap.line, gap.path));
        faults.push(json!({
            "file": source, "line": gap.line, "column": gap.column, "field": gap.path, "meaning": meaning,
        }));
    }
    if let Some(other) = other {
        message.push('\n');
        message.push_str(&other.message);
        faults.push(other.data);
    }
    let mut data = faults[0].clone();
    data["faults"] = Value::Array(faults);
    let file = shell::word(&source);
    let next = format!("fill them in {file}, then clover prereg check {file}");
    let mut error = CliError::input(message, next);
    error.data = data;
    error
}
