//! Files by their form: which reader takes one, and for a file that was given to the wrong verb the command that takes it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cli::error::CliError;
use crate::cli::intake::ImportArgs;
use crate::cli::intake_files;
use crate::ground::shell;
use crate::num::Micro;
use crate::workflow::import;
use crate::workflow::import::Brings;
use crate::workflow::import::How;
use crate::workflow::import::ImportError;
use crate::workflow::import::ImportRows;
use crate::workflow::import::form::FileForm;
use crate::workflow::import::row;

/// From a log of Inspect to rows with scores.
const INSPECT: &str = r#".eval.model as $m | .samples[] | {target_policy: $m, prompt_id: (.id | tostring), draw_idx: (.epoch - 1), prompt: (.input | if type == "string" then . else tojson end), response: .output.completion, judge_score: (.scores | to_entries[0].value.value | if . == "C" then 1 elif . == "I" then 0 else . end)}"#;
/// From results of promptfoo to rows with scores.
const PROMPTFOO: &str = r#".results.results[] | {target_policy: .provider.id, prompt_id: "\(.testIdx)-\(.promptIdx)", prompt: .prompt.raw, response: (.response.output | tostring), judge_score: .score}"#;

/// Other names of columns, for a command that maps them.
const COLUMNS: [(&str, &[&str]); 6] = [
    (row::JUDGE_SCORE, &["score", "judge", "rating"]),
    (
        row::PROMPT_ID,
        &["id", "item", "item_id", "example_id", "question_id"],
    ),
    (
        row::ORACLE_LABEL,
        &["label", "gold", "human", "human_label", "human_score"],
    ),
    (row::TARGET_POLICY, &["policy", "model", "system"]),
    (row::PROMPT, &["input", "question"]),
    (row::RESPONSE, &["output", "answer", "completion"]),
];

/// Columns of fields, as `--map` names them.
pub(super) fn map(pairs: &[String], help: &str) -> Result<BTreeMap<String, String>, CliError> {
    let mut map = BTreeMap::new();
    for pair in pairs {
        let split = pair.split_once('=').filter(|(field, column)| {
            let known = row::FIELDS.contains(field) || field.starts_with("target_policy_logprobs.");
            known && !column.is_empty()
        });
        let Some((field, column)) = split else {
            let known = row::FIELDS.join(", ");
            let message = format!(
                "--map {pair:?}: expected FIELD=COLUMN, FIELD one of {known}, target_policy_logprobs.POLICY; the policy is target_policy, the label oracle_label"
            );
            return Err(CliError::usage(message, help));
        };
        if map.insert(field.to_owned(), column.to_owned()).is_some() {
            return Err(CliError::usage(format!("--map names {field} twice"), help));
        }
    }
    Ok(map)
}

/// Rows of a file in either form.
pub(super) fn rows(
    path: &Path,
    bytes: &[u8],
    map: &BTreeMap<String, String>,
    how: How<'_>,
) -> Result<ImportRows, ImportError> {
    let file = path.display().to_string();
    if FileForm::of(bytes) == FileForm::Csv {
        return import::csv::rows(&file, bytes, map, how);
    }
    let named = how.policy.cloned().or_else(|| intake_files::of_name(path));
    let how = How {
        policy: named.as_ref(),
        ..how
    };
    import::cje::mapped(&file, bytes, map, how)
}

/// The verb that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Cje,
    Csv,
    Labels,
    Logged,
    Rows,
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Self::Cje => "cje",
            Self::Csv => "csv",
            Self::Labels => "labels",
            Self::Logged => "logged",
            Self::Rows => "rows",
        }
    }

    fn reads(self, form: FileForm) -> bool {
        match self {
            Self::Cje | Self::Logged => form == FileForm::JsonLines,
            Self::Csv => form == FileForm::Csv,
            Self::Labels | Self::Rows => matches!(form, FileForm::Csv | FileForm::JsonLines),
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Cje | Self::Logged => "JSON Lines",
            Self::Csv => "comma-separated values",
            Self::Labels | Self::Rows => "comma-separated values or JSON Lines",
        }
    }
}

/// A file that cannot be read, with the command that would take it.
pub(super) fn wrong(
    error: &ImportError,
    (path, bytes): (&Path, &[u8]),
    (verb, common): (Verb, &ImportArgs),
    again: &dyn Fn(How<'_>) -> Result<ImportRows, ImportError>,
    how: How<'_>,
) -> CliError {
    let form = FileForm::of(bytes);
    // One column has no comma: that is a header all the same.
    let is_column = verb == Verb::Csv && form == FileForm::Other;
    if !verb.reads(form) && !is_column {
        let message = format!(
            "{}: expected {}, as `import {}` reads, found {}",
            error.file,
            verb.expected(),
            verb.name(),
            form.name()
        );
        let failed = CliError::input(message, elsewhere(form, path, bytes, (verb, common)));
        return with_place(failed, error);
    }
    let failed = CliError::input(error.to_string(), help(verb));
    let failed = match scales(error, (path, verb, common), again, how) {
        Some((found, next)) => {
            let mut failed = failed.with_next(next);
            failed.message = format!("{}; {found}", failed.message);
            failed
        }
        None if error.what.ends_with("found an empty line") => {
            let file = shell::word(&path.display());
            failed.with_next(format!(r"sed '/^\r*$/d' {file} > clean.csv"))
        }
        None => failed,
    };
    with_place(failed, error)
}

fn help(verb: Verb) -> String {
    format!("clover import {} --help", verb.name())
}

fn with_place(mut failed: CliError, error: &ImportError) -> CliError {
    failed.data = serde_json::json!({"file": error.file, "line": error.line, "field": error.field});
    failed
}

/// Options of a command that were given, as they can be typed again for `import VERB`.
fn options(common: &ImportArgs, verb: &str) -> String {
    let mut words = String::new();
    let mut add = |option: &str, value: Option<&str>| {
        if let Some(value) = value {
            words.push_str(&format!(" --{option} {}", shell::word(&value)));
        }
    };
    let other = |value: &'_ str, default: &str| (value != default).then(|| value.to_owned());
    add("experiment", common.experiment.as_deref());
    add("policy", common.policy.as_deref());
    for field in common.field.iter().filter(|_| verb != "labels") {
        add("field", Some(field));
    }
    if verb == "rows" {
        return words;
    }
    add("purpose", other(&common.purpose, "calibrate").as_deref());
    add("rater", other(&common.rater, "oracle").as_deref());
    add("seal", common.sealing.seal.as_deref());
    add("reveal-by", common.sealing.reveal_by.as_deref());
    add("to", common.sealing.to.as_deref());
    let design = common.labels.as_deref();
    if verb == "labels" {
        add("design", design.filter(|design| !design.is_empty()));
        return words;
    }
    add("judge", other(&common.judge, "judge").as_deref());
    match design {
        Some("") => words.push_str(" --labels"),
        Some(design) => words.push_str(&format!(" --labels={}", shell::word(&design))),
        None => {}
    }
    words
}

/// The command that takes a file of another form.
fn elsewhere(
    form: FileForm,
    path: &Path,
    bytes: &[u8],
    (verb, common): (Verb, &ImportArgs),
) -> String {
    let file = shell::word(&path.display());
    let own = match verb {
        Verb::Labels | Verb::Rows => verb.name(),
        Verb::Cje | Verb::Csv | Verb::Logged => "cje",
    };
    let options = options(common, own);
    let jq = |filter: &str, more: &str| {
        format!(
            "jq -c '{filter}' {file} > rows.jsonl && clover import {own} rows.jsonl{options}{more}"
        )
    };
    match form {
        FileForm::JsonLines => format!("clover import cje {file}{options}"),
        FileForm::JsonList => jq(".[]", ""),
        FileForm::Json => jq(".[] | arrays | .[]", ""),
        FileForm::Inspect => jq(INSPECT, " --judge inspect"),
        FileForm::InspectArchive => format!("inspect log dump {file} > log.json"),
        FileForm::Promptfoo => jq(PROMPTFOO, " --judge promptfoo"),
        FileForm::Csv => of_columns(&file, bytes, common),
        FileForm::Separated(by) => {
            let by = if by == '\t' { r"\t" } else { ";" };
            format!(
                "python3 -c 'import csv, sys; csv.writer(sys.stdout).writerows(csv.reader(open(sys.argv[1]), delimiter=\"{by}\"))' {file} > comma.csv"
            )
        }
        FileForm::Utf16 => format!("iconv -f UTF-16 -t UTF-8 {file} > utf8.csv"),
        FileForm::Empty | FileForm::Other => help(verb),
    }
}

/// The command that takes comma-separated values with these columns.
fn of_columns(file: &str, bytes: &[u8], common: &ImportArgs) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let header = text.lines().next().unwrap_or_default();
    let columns: Vec<_> = header
        .split(',')
        .map(|name| name.trim_matches('"'))
        .collect();
    let mut map = Vec::new();
    let mut has = Vec::new();
    for (field, others) in COLUMNS {
        if columns.contains(&field) {
            has.push(field);
        } else if let Some(column) = others.iter().find(|name| columns.contains(name)) {
            has.push(field);
            map.push(format!("{field}={column}"));
        }
    }
    let verb = if has.contains(&row::JUDGE_SCORE) {
        "csv"
    } else if has.contains(&row::RESPONSE) {
        "rows"
    } else {
        "labels"
    };
    let map = if map.is_empty() {
        String::new()
    } else {
        format!(" --map {}", map.join(","))
    };
    let options = options(common, verb);
    format!("clover import {verb} {file}{map}{options}")
}

/// Where a value is off its scale: what the scores and labels of the file go from and to, and the command that says so.
fn scales(
    error: &ImportError,
    (path, verb, common): (&Path, Verb, &ImportArgs),
    again: &dyn Fn(How<'_>) -> Result<ImportRows, ImportError>,
    how: How<'_>,
) -> Option<(String, String)> {
    let is_value = [row::JUDGE_SCORE, row::ORACLE_LABEL].contains(&error.field.as_deref()?);
    if !is_value {
        return None;
    }
    let wide = (Micro::new(-Micro::MAX)?, Micro::new(Micro::MAX)?);
    let rows = again(How {
        scale: wide,
        label_scale: Some(wide),
        ..how
    })
    .ok()?;
    let ends = |values: &mut dyn Iterator<Item = Micro>| {
        let all: Vec<_> = values.collect();
        Some((*all.iter().min()?, *all.iter().max()?))
    };
    let scores = match how.brings {
        Brings::Scores => ends(&mut rows.rows.iter().map(|row| row.score)),
        Brings::Labels | Brings::Texts => None,
    };
    let labels = ends(&mut rows.rows.iter().filter_map(|row| row.label));
    let found = [("scores", scores), ("labels", labels)];
    let found: Vec<_> = found
        .iter()
        .filter_map(|(what, ends)| {
            ends.map(|(low, high)| format!("{what} go from {low} to {high}"))
        })
        .collect();
    let file = shell::word(&path.display());
    let (one, other) = (scores.map(scale_of), labels.map(scale_of));
    let scale = match (one, other) {
        (Some(one), Some(other)) if one != other => format!("{one} --label-scale {other}"),
        (Some(one), _) => one,
        (None, other) => other?,
    };
    // What the verb finds by itself need not be mapped.
    let is_known = |field: &str, column: &str| {
        how.brings != Brings::Scores && row::also(field).contains(&column)
    };
    let pairs = rows
        .mapping
        .iter()
        .filter(|(field, column)| field != column && !is_known(field, column));
    let pairs: Vec<_> = pairs
        .map(|(field, column)| format!("{field}={column}"))
        .collect();
    let map = if pairs.is_empty() {
        String::new()
    } else {
        format!(" --map {}", shell::word(&pairs.join(",")))
    };
    let next = format!(
        "clover import {} {file}{map}{} --scale {scale}",
        verb.name(),
        options(common, verb.name())
    );
    let found = format!("in this file {}", found.join(", "));
    // A few values beyond the scale are typing errors; another scale would move all the others.
    let (off, all) = off_scale(&rows, how, error.field.as_deref()?);
    if off * FEW_OF < all {
        let next = format!(
            "mend line {} of {file}, or where the scale is wrong: {next}",
            error.line
        );
        return Some((
            format!("{found}; {off} of {all} values are off the scale"),
            next,
        ));
    }
    Some((found, next))
}

/// One in so many values off its scale, or more, speaks of another scale.
const FEW_OF: usize = 20;

/// How many values of a field are off the scale that was given, of how many.
fn off_scale(rows: &ImportRows, how: How<'_>, field: &str) -> (usize, usize) {
    let (scale, values): (_, Vec<Micro>) = if field == row::ORACLE_LABEL {
        let labels = rows.rows.iter().filter_map(|row| row.label);
        (how.label_scale.unwrap_or(how.scale), labels.collect())
    } else {
        (how.scale, rows.rows.iter().map(|row| row.score).collect())
    };
    let (low, high) = scale;
    let off = values.iter().filter(|of| **of < low || **of > high).count();
    (off, values.len())
}

/// The scale that people mean by values from and to.
fn scale_of((low, high): (Micro, Micro)) -> String {
    const SCALES: [(i64, i64); 7] = [(0, 1), (1, 5), (0, 5), (1, 7), (1, 10), (0, 10), (0, 100)];
    let micro = |whole: i64| whole * 1_000_000;
    let fits = |(from, to): &&(i64, i64)| low.value() >= micro(*from) && high.value() <= micro(*to);
    match SCALES.iter().find(fits) {
        Some((from, to)) => format!("{from}:{to}"),
        None => format!("{low}:{high}"),
    }
}
