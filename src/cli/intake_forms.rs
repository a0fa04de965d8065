//! Files by their form: which reader takes one, and for a file that was given to the wrong verb the command that takes it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cli::error::CliError;
use crate::cli::intake::ImportArgs;
use crate::cli::intake::ImportRequest;
use crate::cli::intake_columns;
use crate::cli::intake_files;
use crate::cli::intake_found::FileColumns;
use crate::cli::intake_verbs;
use crate::ground::shell;
use crate::num::Micro;
use crate::workflow::import;
use crate::workflow::import::Brings;
use crate::workflow::import::How;
use crate::workflow::import::ImportError;
use crate::workflow::import::ImportRow;
use crate::workflow::import::ImportRows;
use crate::workflow::import::csv;
use crate::workflow::import::form::FileForm;
use crate::workflow::import::labels;
use crate::workflow::import::row;
use crate::workflow::import::tools::Tool;

/// Columns of fields, as `--map` names them: a field has its own name, and those that help calls it.
pub(super) fn map(pairs: &[String], verb: Verb) -> Result<BTreeMap<String, String>, CliError> {
    let beside: &[&str] = match verb {
        Verb::Labels => &labels::BESIDE,
        Verb::Cje | Verb::Csv | Verb::Logged | Verb::Rows | Verb::Tool(_) => &[],
    };
    let field_of = |name: &str| {
        let is_own = row::FIELDS.contains(&name)
            || beside.contains(&name)
            || name.starts_with("target_policy_logprobs.");
        let other = || {
            row::FIELDS
                .iter()
                .find(|field| row::also(field).contains(&name))
        };
        is_own
            .then_some(name)
            .or_else(|| other().copied())
            .map(str::to_owned)
    };
    let mut map = BTreeMap::new();
    for pair in pairs {
        let split = pair
            .split_once('=')
            .filter(|(_, column)| !column.is_empty());
        let Some((field, column)) =
            split.and_then(|(field, column)| Some((field_of(field)?, column)))
        else {
            let known = [row::FIELDS.as_slice(), beside].concat().join(", ");
            let message = format!(
                "--map {pair:?}: expected FIELD=COLUMN, FIELD one of {known}, target_policy_logprobs.POLICY; the policy is target_policy, the label oracle_label"
            );
            return Err(CliError::usage(message, help(verb)));
        };
        if map.insert(field.clone(), column.to_owned()).is_some() {
            return Err(CliError::usage(
                format!("--map names {field} twice"),
                help(verb),
            ));
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
    if matches!(FileForm::of(bytes), FileForm::Csv | FileForm::LangfuseTable) {
        return csv::rows(&file, bytes, map, how);
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
    Tool(Tool),
}

impl Verb {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cje => "cje",
            Self::Csv => "csv",
            Self::Labels => "labels",
            Self::Logged => "logged",
            Self::Rows => "rows",
            Self::Tool(tool) => tool.verb(),
        }
    }

    /// What is wanted of its files.
    pub(super) fn brings(self) -> Brings {
        match self {
            Self::Labels => Brings::Labels,
            Self::Rows => Brings::Texts,
            Self::Cje | Self::Csv | Self::Logged | Self::Tool(_) => Brings::Scores,
        }
    }

    fn reads(self, form: FileForm) -> bool {
        match self {
            Self::Cje | Self::Logged => form == FileForm::JsonLines,
            Self::Csv => form == FileForm::Csv,
            Self::Labels | Self::Rows => matches!(form, FileForm::Csv | FileForm::JsonLines),
            Self::Tool(tool) => Self::may_be(tool, form),
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Cje | Self::Logged => "JSON Lines",
            Self::Csv => "comma-separated values",
            Self::Labels | Self::Rows => "comma-separated values or JSON Lines",
            Self::Tool(Tool::Inspect) => "a log of Inspect",
            Self::Tool(Tool::Promptfoo) => "results of promptfoo",
            Self::Tool(Tool::Langfuse) => "scores of Langfuse",
            Self::Tool(Tool::OpenaiEvals) => "records of OpenAI evals",
            Self::Tool(Tool::Otel) => "log records of OpenTelemetry",
        }
    }

    /// Whether a file of this form may be one of the tool: JSON that no tool is known by is read, so that what it lacks is
    /// named.
    fn may_be(tool: Tool, form: FileForm) -> bool {
        match Tool::of(form) {
            Some(of) => of == tool,
            None => match form {
                FileForm::Csv | FileForm::JsonList => tool == Tool::Langfuse,
                FileForm::JsonLines => {
                    matches!(tool, Tool::Langfuse | Tool::OpenaiEvals | Tool::Otel)
                }
                FileForm::Json => true,
                _ => false,
            },
        }
    }
}

/// A file that another verb reads, with the command that takes it.
pub(super) fn of_another_verb(
    (path, bytes): (&Path, &[u8]),
    (verb, common): (Verb, &ImportArgs),
) -> Option<CliError> {
    let form = FileForm::of(bytes);
    // One column has no comma: that is a header all the same.
    let is_column = verb == Verb::Csv && form == FileForm::Other;
    if verb.reads(form) || is_column {
        return None;
    }
    let message = format!(
        "{}: expected {}, as `import {}` reads, found {}",
        path.display(),
        verb.expected(),
        verb.name(),
        form.name()
    );
    let message = if verb == Verb::Labels && intake_verbs::has_scores_alone(form) {
        format!("{message}: these are scores of a judge, and labels come from people")
    } else {
        message
    };
    let next = intake_verbs::elsewhere(form, (path, bytes), (verb, common));
    Some(CliError::input(message, next))
}

/// A file whose columns are those of another verb, with the command that takes it.
fn of_another_kind(
    (path, bytes): (&Path, &[u8]),
    (verb, common): (Verb, &ImportArgs),
) -> Option<CliError> {
    let other = FileColumns::of(bytes)?.brings_other(verb.brings())?;
    let named = |brings: Brings| match brings {
        Brings::Scores => "scores of a judge",
        Brings::Texts => "prompts and responses",
        Brings::Labels => "labels",
    };
    let message = format!(
        "{}: expected {}, as `import {}` reads, found columns of {}",
        path.display(),
        named(verb.brings()),
        verb.name(),
        named(other)
    );
    let next = intake_verbs::taking((path, bytes), (other, common));
    Some(CliError::input(message, next))
}

/// A file that cannot be read, with the command that would take what was given; `again` reads it all in another way.
pub(super) fn wrong(
    error: &ImportError,
    (path, bytes): (&Path, &[u8]),
    (wanted, common): (ImportRequest<'_>, &ImportArgs),
    again: &dyn Fn(How<'_>) -> Vec<ImportRows>,
    how: How<'_>,
) -> CliError {
    let verb = wanted.verb;
    if let Some(failed) = of_another_verb((path, bytes), (verb, common)) {
        return with_place(failed, error);
    }
    let is_missing = error.what.contains("found none; there are ");
    let lacking = error.what.strip_prefix(csv::NO_COLUMN);
    let lacking = lacking.and_then(|rest| rest.split(':').next());
    let failed = CliError::input(error.to_string(), help(verb));
    let option = error.field.as_deref().filter(|of| of.starts_with("--"));
    let has_no_policy = error.field.as_deref() == Some(row::TARGET_POLICY)
        && error
            .what
            .contains("expected the name of a policy, found none");
    let is_wanted = |fields: &str| match verb.brings() {
        Brings::Scores => fields.contains(row::JUDGE_SCORE),
        Brings::Labels => fields.contains(row::ORACLE_LABEL),
        Brings::Texts => true,
    };
    if lacking.is_some_and(is_wanted)
        && let Some(failed) = of_another_kind((path, bytes), (verb, common))
    {
        return with_place(failed, error);
    }
    let failed = match scales(error, (wanted, common), again, how) {
        Some(scale) => CliError::input(scale.said, scale.next),
        None if is_off_scale(error, how) => {
            let mut failed = failed;
            failed.message = format!(
                "numbers that are not typing errors may be on another scale: --scale LOW:HIGH says which\n{}",
                failed.message
            );
            failed
        }
        None if error.what.ends_with("found an empty line") => {
            let file = shell::word(&path.display());
            failed.with_next(format!(r"sed '/^\r*$/d' {file} > clean.csv"))
        }
        None if let Some(next) = mended(error, (path, bytes), (verb, common)) => {
            failed.with_next(next)
        }
        None if option == Some("--as") => failed.with_next("the same command with --as label"),
        None if let Some(option) = option => {
            failed.with_next(format!("the same command with {option} NAME"))
        }
        None if has_no_policy && matches!(verb, Verb::Tool(_)) => {
            failed.with_next("the same command with --policy ID")
        }
        None if let Some(fields) = lacking => {
            let fields: Vec<&str> = fields.split(", ").collect();
            let map = intake_columns::suggested(bytes, &fields);
            let one = if map.contains(&format!("{}=NAME", row::TARGET_POLICY)) {
                ", or --policy ID for a file of one policy"
            } else {
                ""
            };
            failed.with_next(format!(
                "the same command with --map {map}, where these are the columns{one}"
            ))
        }
        None if is_missing && !matches!(verb, Verb::Cje | Verb::Logged | Verb::Tool(_)) => {
            let field = error.field.as_deref().unwrap_or_default();
            failed.with_next(format!("the same command with --map {field}=NAME"))
        }
        None => failed,
    };
    with_place(failed, error)
}

/// The command that mends what single cells lack, or that gives members their names.
fn mended(
    error: &ImportError,
    (path, bytes): (&Path, &[u8]),
    (verb, common): (Verb, &ImportArgs),
) -> Option<String> {
    let is_missing = error.what.contains("found none; there are ");
    if FileForm::of(bytes) != FileForm::Csv {
        let columns = FileColumns::of(bytes)?.meant(Brings::Scores);
        let is_renamed = is_missing && verb == Verb::Cje && !columns.map.is_empty();
        return is_renamed.then(|| intake_verbs::taking((path, bytes), (Brings::Scores, common)));
    }
    let lines = bytes.split(|byte| *byte == b'\n').count();
    if is_missing && 2 * (1 + error.more.len()) < lines {
        let column = csv::column_with(bytes, (error.line, ""))?;
        return Some(intake_columns::without_empty(path, &column));
    }
    in_writing(error, (path, bytes))
}

/// The command that writes numbers and days as they are read, where that is all that lacks.
fn in_writing(error: &ImportError, (path, bytes): (&Path, &[u8])) -> Option<String> {
    let cell = if error.what.contains(row::COMMA) {
        intake_columns::POINT
    } else if error.what.contains(row::DOTTED) {
        intake_columns::DAY
    } else {
        return None;
    };
    let (_, found) = error.what.split_once("found \"")?;
    let (found, _) = found.split_once('"')?;
    let column = csv::column_with(bytes, (error.line, found))?;
    Some(intake_columns::rewritten(path, (&column, cell)))
}

/// Whether a line has a number beyond the scale.
fn is_off_scale(error: &ImportError, how: How<'_>) -> bool {
    let ends = match error.field.as_deref() {
        Some(row::JUDGE_SCORE) => how.scale,
        Some(row::ORACLE_LABEL) => how.label_scale.unwrap_or(how.scale),
        _ => return false,
    };
    let (low, high) = ends;
    error
        .what
        .starts_with(&format!("expected {low} to {high}, found "))
}

pub(super) fn help(verb: Verb) -> String {
    format!("clover import {} --help", verb.name())
}

fn with_place(mut failed: CliError, error: &ImportError) -> CliError {
    failed.data = serde_json::json!({"file": error.file, "line": error.line, "field": error.field});
    failed
}

/// What a file says of its scale, and the command that says it.
struct ScaleHint {
    said: String,
    next: String,
}

/// Where a value is off its scale: what the scores and labels of the files go from and to, and the command that says so.
fn scales(
    error: &ImportError,
    (wanted, common): (ImportRequest<'_>, &ImportArgs),
    again: &dyn Fn(How<'_>) -> Vec<ImportRows>,
    how: How<'_>,
) -> Option<ScaleHint> {
    if !is_off_scale(error, how) {
        return None;
    }
    let wide = (Micro::new(-Micro::MAX)?, Micro::new(Micro::MAX)?);
    let files = again(How {
        scale: wide,
        label_scale: Some(wide),
        ..how
    });
    let mapping = &files.iter().find(|rows| rows.file == error.file)?.mapping;
    let rows: Vec<_> = files.iter().flat_map(|rows| &rows.rows).collect();
    let ends = |all: &[Micro]| Some((*all.iter().min()?, *all.iter().max()?));
    let scores: Vec<_> = match how.brings {
        Brings::Scores => rows.iter().map(|row| row.score).collect(),
        Brings::Labels | Brings::Texts => Vec::new(),
    };
    let labels: Vec<_> = rows.iter().filter_map(|row| row.label).collect();
    let found = [("scores", ends(&scores)), ("labels", ends(&labels))];
    let found: Vec<_> = found
        .iter()
        .filter_map(|(what, ends)| {
            ends.map(|(low, high)| format!("{what} go from {low} to {high}"))
        })
        .collect();
    let (one, other) = (scale_meant(&scores), scale_meant(&labels));
    let scale = match (one, other) {
        (Some(one), Some(other)) if one != other => format!("{one} --label-scale {other}"),
        (Some(one), _) => one,
        (None, other) => other?,
    };
    let map = mapped(mapping, (wanted.verb, how));
    let given = wanted.given.iter().map(|path| shell::word(&path.display()));
    let given: Vec<_> = given.collect();
    let next = format!(
        "clover import {} {}{map}{}{} --scale {scale}",
        wanted.verb.name(),
        given.join(" "),
        intake_verbs::options(common, wanted.verb.name()),
        wanted.own,
    );
    let found = format!("in this file {}", found.join(", "));
    let found = if files.len() > 1 {
        found.replacen("in this file", "in these files", 1)
    } else {
        found
    };
    // A few values beyond the scale are typing errors; another scale would move all the others.
    let (off, all) = off_scale(&rows, how, error.field.as_deref()?);
    if off * FEW_OF < all {
        let file = shell::word(&error.file);
        return Some(ScaleHint {
            said: format!("{found}; {off} of {all} values are off the scale\n{error}"),
            next: format!(
                "mend line {} of {file}, or where the scale is wrong: {next}",
                error.line
            ),
        });
    }
    let said = format!("{}; {found}", error.first());
    Some(ScaleHint { said, next })
}

/// The option that maps columns once more. What the verb finds by itself need not be mapped.
fn mapped(mapping: &BTreeMap<String, String>, (verb, how): (Verb, How<'_>)) -> String {
    if matches!(verb, Verb::Tool(_)) {
        return String::new();
    }
    let is_known = |field: &str, column: &str| {
        how.brings != Brings::Scores && row::also(field).contains(&column)
    };
    let pairs = mapping
        .iter()
        .filter(|(field, column)| field != column && !is_known(field, column));
    let pairs: Vec<_> = pairs
        .map(|(field, column)| format!("{field}={column}"))
        .collect();
    if pairs.is_empty() {
        return String::new();
    }
    format!(" --map {}", shell::word(&pairs.join(",")))
}

/// One in so many values off its scale, or more, speaks of another scale.
const FEW_OF: usize = 20;

/// How many values of a field are off the scale that was given, of how many.
fn off_scale(rows: &[&ImportRow], how: How<'_>, field: &str) -> (usize, usize) {
    let (scale, values): (_, Vec<Micro>) = if field == row::ORACLE_LABEL {
        let labels = rows.iter().filter_map(|row| row.label);
        (how.label_scale.unwrap_or(how.scale), labels.collect())
    } else {
        (how.scale, rows.iter().map(|row| row.score).collect())
    };
    let (low, high) = scale;
    let off = values.iter().filter(|of| **of < low || **of > high).count();
    (off, values.len())
}

/// Scales that people use.
const SCALES: [(i64, i64); 7] = [(0, 1), (1, 5), (0, 5), (1, 7), (1, 10), (0, 10), (0, 100)];

/// The scale that people mean by values, where a few of them are typing errors: as 44 is on a scale from 1 to 5.
pub(super) fn scale_meant(values: &[Micro]) -> Option<String> {
    let ends = (*values.iter().min()?, *values.iter().max()?);
    let micro = |whole: i64| whole * 1_000_000;
    let holds = |(low, high): &&(i64, i64)| {
        let (low, high) = (micro(*low), micro(*high));
        let width = high - low;
        let off = values.iter().map(|value| value.value());
        let off: Vec<i64> = off.filter(|of| *of < low || *of > high).collect();
        // Values right beside a scale speak of a wider one.
        off.len() * FEW_OF < values.len()
            && off.iter().all(|of| *of < low - width || *of > high + width)
    };
    let typed = SCALES.iter().find(holds);
    Some(typed.map_or_else(|| scale_of(ends), |(low, high)| format!("{low}:{high}")))
}

/// The scale that people mean by values from and to.
pub(super) fn scale_of((low, high): (Micro, Micro)) -> String {
    let micro = |whole: i64| whole * 1_000_000;
    let fits = |(from, to): &&(i64, i64)| low.value() >= micro(*from) && high.value() <= micro(*to);
    match SCALES.iter().find(fits) {
        Some((from, to)) => format!("{from}:{to}"),
        None => format!("{low}:{high}"),
    }
}
