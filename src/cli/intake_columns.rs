//! Columns that may be meant, where a file of comma-separated values lacks those that are read.

use std::path::Path;

use crate::cli::intake_found::names;
use crate::ground::shell;
use crate::workflow::import::csv;
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

/// The beginning of a program of Python: the rows of a file, the header first, and the place of the column that is named. A blank
/// line is left out: it has no cell, and nothing reads a file with one.
const ROWS: &str = "import csv, sys; rows = [r for r in csv.reader(open(sys.argv[1], encoding=\"utf-8-sig\")) if r]; \
                    k = rows[0].index(sys.argv[2]);";

/// The command that writes a column of comma-separated values as it is read, and leaves every other cell as it is.
pub(super) fn rewritten(path: &Path, (column, cell): (&str, &str)) -> String {
    let program = format!(
        "{ROWS} w = csv.writer(sys.stdout); w.writerow(rows[0]); w.writerows([*r[:k], {cell}, *r[k + 1:]] for r in rows[1:])"
    );
    format!(
        "python3 -c '{program}' {} {} > mended.csv; then the same command with mended.csv",
        shell::word(&path.display()),
        shell::word(column)
    )
}

/// The command that leaves out lines whose cell in a column is empty: what has no score is missing, and no zero.
pub(super) fn without_empty(path: &Path, column: &str) -> String {
    format!(
        "python3 -c '{ROWS} csv.writer(sys.stdout).writerows(r for r in rows if r[k].strip())' {} {} > filled.csv; then the same \
         command with filled.csv: lines without a value are missing, and not zero",
        shell::word(&path.display()),
        shell::word(column)
    )
}

/// A cell with a point for its comma, and one with its day in the order in which days are written; of Python.
pub(super) const POINT: &str = "r[k].replace(\",\", \".\")";
pub(super) const DAY: &str = "\"-\".join(p.zfill(2) for p in reversed(r[k].split(\".\")))";

/// The value of `--map` for fields that a file of comma-separated values lacks: `NAME` where no column suggests itself. A
/// column is suggested once, for the first field with a part of its name, or by its numbers.
pub(super) fn suggested(bytes: &[u8], missing: &[&str]) -> String {
    let pairs = suggestions(bytes, missing, |_| false);
    let pairs = pairs
        .into_iter()
        .map(|(field, column)| format!("{field}={}", column.as_deref().unwrap_or("NAME")));
    let pairs: Vec<_> = pairs.collect();
    shell::word(&pairs.join(","))
}

/// For each field a column that suggests itself, of those that are not taken.
pub(super) fn suggestions<'f>(
    bytes: &[u8],
    missing: &[&'f str],
    is_taken: impl Fn(&str) -> bool,
) -> Vec<(&'f str, Option<String>)> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut columns = names(FileForm::Csv, text.trim_end_matches('\r'));
    columns.retain(|column| !is_taken(column));
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
        (*field, at.map(|at| columns.remove(at)))
    });
    let pairs: Vec<_> = pairs.collect();
    // What no name suggests is the one column of numbers that is left, where numbers are wanted.
    let numbers = csv::numbers(bytes);
    let mut numbers = columns.into_iter().filter(|name| numbers.contains(name));
    let number = numbers.next().filter(|_| numbers.next().is_none());
    let pairs = pairs.into_iter().map(|(field, column)| {
        let is_number = matches!(field, row::JUDGE_SCORE | row::ORACLE_LABEL);
        (
            field,
            column.or_else(|| number.clone().filter(|_| is_number)),
        )
    });
    pairs.collect()
}
