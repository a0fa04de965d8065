//! Columns that may be meant, where a file of comma-separated values lacks those that are read.

use crate::cli::intake_verbs::names;
use crate::ground::shell;
use crate::workflow::import::form::FileForm;
use crate::workflow::import::row;

/// Parts of names of columns that suggest a field: a person decides whether it is the one.
const PARTS: [(&str, &[&str]); 6] = [
    (row::JUDGE_SCORE, &["score", "judge", "auto"]),
    (
        row::PROMPT_ID,
        &["id", "ticket", "case", "item", "number", "no", "key"],
    ),
    (
        row::ORACLE_LABEL,
        &["label", "rating", "human", "gold", "grade"],
    ),
    (
        row::TARGET_POLICY,
        &["policy", "variant", "model", "system", "version", "bot"],
    ),
    (row::PROMPT, &["question", "prompt", "input"]),
    (row::RESPONSE, &["answer", "response", "output", "reply"]),
];

/// The value of `--map` for fields that a file of comma-separated values lacks: `NAME` where no column suggests itself. A
/// column is suggested once, for the first field with a part of its name.
pub(super) fn suggested(bytes: &[u8], missing: &[&str]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut columns = names(FileForm::Csv, text.trim_end_matches('\r'));
    let pairs = missing.iter().map(|field| {
        let parts = PARTS.iter().find(|(of, _)| of == field);
        let mut parts = parts.into_iter().flat_map(|(_, parts)| parts.iter());
        let at = parts.find_map(|part| {
            columns.iter().position(|column| {
                let column = column.to_lowercase();
                let mut words = column.split(|c: char| !c.is_alphanumeric());
                words.any(|word| word == *part || part.len() > 3 && word.contains(part))
            })
        });
        let column = at.map_or_else(|| "NAME".to_owned(), |at| columns.remove(at));
        format!("{field}={column}")
    });
    let pairs: Vec<_> = pairs.collect();
    shell::word(&pairs.join(","))
}
