//! From the fields of one record to a row: exact numbers, checked names, and what is wrong by field.

use std::collections::BTreeMap;

use clover_event::id::FieldId;
use clover_event::id::IdError;
use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::payload::judge::TargetLogprob;
use clover_ground::time::Timestamp;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;

use crate::analyze::read::Record;
use crate::import::Brings;
use crate::import::How;
use crate::import::ImportError;
use crate::import::ImportRow;
use crate::import::ImportRows;
use crate::import::Logprobs;
use crate::import::WRONG_MAX;
use crate::import::labels;

/// The judge's score.
pub const JUDGE_SCORE: &str = "judge_score";
/// The label.
pub const ORACLE_LABEL: &str = "oracle_label";
/// The prompt's id.
pub const PROMPT_ID: &str = "prompt_id";
/// The prompt's text.
pub const PROMPT: &str = "prompt";
/// The response's text.
pub const RESPONSE: &str = "response";
/// The draw.
pub const DRAW_IDX: &str = "draw_idx";
/// The policy.
pub const TARGET_POLICY: &str = "target_policy";
/// When the prompt was sampled.
pub const SAMPLED_AT: &str = "sampled_at";
/// Log-probability under the logged policy.
pub const BASE_LOGPROB: &str = "base_policy_logprob";
/// Log-probabilities under other policies, by their names.
pub const TARGET_LOGPROBS: &str = "target_policy_logprobs";
/// Every field with a place of its own.
pub const FIELDS: [&str; 9] = [
    BASE_LOGPROB,
    DRAW_IDX,
    JUDGE_SCORE,
    ORACLE_LABEL,
    PROMPT,
    PROMPT_ID,
    RESPONSE,
    SAMPLED_AT,
    TARGET_POLICY,
];

/// Other names of a field, in files of labels and of rows without scores.
pub fn also(field: &str) -> &'static [&'static str] {
    match field {
        DRAW_IDX => &["draw"],
        ORACLE_LABEL => &["label"],
        PROMPT_ID => &["item", "item_id", "id"],
        TARGET_POLICY => &["policy"],
        _ => &[],
    }
}

/// What is said of a byte order mark.
pub(super) const BYTE_ORDER_MARK: &str = "a byte order mark at the start was skipped";

/// Most bytes of a field that is kept beside a row: it is public, and no place for texts.
const WORD_MAX: usize = 200;

/// A field and what is wrong with it.
pub type FieldError = (String, String);

/// A draw: whose, of what, and which.
pub(super) type DrawName = (PolicyId, ItemId, Count);

/// The fields of one record, whatever form they came in.
pub trait Fields {
    /// Text of a number, as it stands.
    ///
    /// # Errors
    /// [`FieldError`] when something else is there.
    fn number(&self, name: &str) -> Result<Option<String>, FieldError>;
    /// A text.
    ///
    /// # Errors
    /// [`FieldError`] when something else is there.
    fn text(&self, name: &str) -> Result<Option<String>, FieldError>;
    /// A value as text, whatever stands there.
    ///
    /// # Errors
    /// [`FieldError`] for what is neither text, number nor flag.
    fn word(&self, name: &str) -> Result<Option<String>, FieldError>;
    /// Numbers of [`TARGET_LOGPROBS`] by policy.
    ///
    /// # Errors
    /// [`FieldError`] when something else is there.
    fn targets(&self) -> Result<Option<Vec<(String, String)>>, FieldError>;
    /// The path to the record, where its line does not say all.
    fn place(&self) -> Option<&str> {
        None
    }
}

/// What is wrong with a field, and in which record where its line does not say all.
fn placed(what: String, fields: &dyn Fields) -> String {
    match fields.place() {
        None => what,
        Some(place) => format!("{what}, in {place}"),
    }
}

/// Takes records in turn.
pub(super) struct Reader<'a> {
    how: How<'a>,
    out: ImportRows,
    /// Lines that are wrong, in order.
    wrong: Vec<ImportError>,
    /// Draws taken, by policy and item, each with its line.
    taken: BTreeMap<(PolicyId, ItemId), Vec<(u64, u64)>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(file: &str, how: How<'a>) -> Self {
        let out = ImportRows {
            file: file.to_owned(),
            ..ImportRows::default()
        };
        Self {
            how,
            out,
            wrong: Vec::new(),
            taken: BTreeMap::new(),
        }
    }

    /// An error at a line.
    pub(super) fn error(&self, line: u64, field: Option<&str>, what: String) -> ImportError {
        ImportError::new(&self.out.file, line, field, what)
    }

    /// The members of a record's `metadata`, where it has some.
    pub(super) fn metadata<'r>(
        &self,
        line: u64,
        record: &Record<'r>,
    ) -> Result<Option<Record<'r>>, ImportError> {
        let Some(raw) = record
            .get("metadata")
            .filter(|raw| raw.get().starts_with('{'))
        else {
            return Ok(None);
        };
        let inner = serde_json::from_str(raw.get());
        inner.map(Some).map_err(|error| {
            let what = format!("expected members, each once: {error}");
            self.error(line, Some("metadata"), what)
        })
    }

    /// Fields without which no record is read, and which a file lacks.
    pub(super) fn missing(&self, has: &dyn Fn(&str) -> bool) -> Vec<&'static str> {
        let value = match self.how.brings {
            Brings::Labels => Some(ORACLE_LABEL),
            Brings::Scores => Some(JUDGE_SCORE),
            Brings::Texts => None,
        };
        let item = (!has(PROMPT)).then_some(PROMPT_ID);
        let policy = self.how.policy.is_none().then_some(TARGET_POLICY);
        let needed = [value, item, policy].into_iter().flatten();
        needed.filter(|field| !has(field)).collect()
    }

    /// Notes a wrong line, so that others are named beside it.
    ///
    /// # Errors
    /// Every wrong line, where there are too many to read on.
    pub(super) fn refuse(&mut self, error: ImportError) -> Result<(), ImportError> {
        self.wrong.push(error);
        if self.wrong.len() < WRONG_MAX {
            return Ok(());
        }
        ImportError::of(std::mem::take(&mut self.wrong)).map_or(Ok(()), Err)
    }

    pub(super) fn mapping(&mut self, mapping: BTreeMap<String, String>) {
        self.out.mapping = mapping;
    }

    /// Notes the name of a member or column.
    pub(super) fn name(&mut self, name: &str) {
        if !self.out.names.contains(name) {
            self.out.names.insert(name.to_owned());
        }
    }

    /// Warns of columns that no field takes: they are left out of what is recorded.
    pub(super) fn not_kept<'n>(&mut self, columns: impl Iterator<Item = &'n str>) {
        let is_kept = |name: &&str| {
            let mut fields = self.how.fields.iter();
            fields.any(|field| field.as_str() == *name) || *name == labels::SCALE
        };
        let left: Vec<&str> = columns.filter(|name| !is_kept(name)).collect();
        let Some(first) = left.first() else {
            return;
        };
        let (columns, are) = match left.len() {
            1 => ("column", "is"),
            _ => ("columns", "are"),
        };
        let names = left.join(", ");
        let how = match self.how.brings {
            Brings::Labels => String::new(),
            _ => format!(": --map FIELD={first} or --field {first} takes one"),
        };
        self.warn(format!("{columns} {names} {are} not recorded{how}"));
    }

    /// An error that ends the reading, behind the wrong lines before it.
    pub(super) fn ended(&mut self, error: ImportError) -> ImportError {
        let mut all = std::mem::take(&mut self.wrong);
        all.push(error.clone());
        ImportError::of(all).unwrap_or(error)
    }

    /// Whether other names of fields count.
    pub(super) fn has_other_names(&self) -> bool {
        self.how.brings != Brings::Scores
    }

    pub(super) fn warn(&mut self, text: String) {
        self.out.warnings.push(text);
    }

    pub(super) fn take(&mut self, line: u64, fields: &dyn Fields) -> Result<(), ImportError> {
        self.take_row(line, fields).map(|_| ())
    }

    /// Takes a record, and answers with its draw where it is one.
    pub(super) fn take_row(
        &mut self,
        line: u64,
        fields: &dyn Fields,
    ) -> Result<Option<DrawName>, ImportError> {
        self.out.read += 1;
        match self.row(line, fields) {
            Ok(row) => {
                let name = (row.policy.clone(), row.item.clone(), row.draw);
                self.out.rows.push(row);
                Ok(Some(name))
            }
            Err((field, what)) => {
                let what = placed(what, fields);
                self.refuse(self.error(line, Some(&field), what))?;
                Ok(None)
            }
        }
    }

    /// Takes the draw of a record that has no score.
    pub(super) fn take_name(
        &mut self,
        line: u64,
        fields: &dyn Fields,
    ) -> Result<Option<DrawName>, ImportError> {
        self.out.read += 1;
        let prompt = fields.text(PROMPT);
        match prompt.and_then(|prompt| self.row_name(line, fields, prompt.as_deref())) {
            Ok(name) => Ok(Some(name)),
            Err((field, what)) => {
                let what = placed(what, fields);
                self.refuse(self.error(line, Some(&field), what))?;
                Ok(None)
            }
        }
    }

    /// Whether no row was taken and nothing is wrong.
    pub(super) fn is_empty(&self) -> bool {
        self.out.rows.is_empty() && self.wrong.is_empty()
    }

    /// What is missing of a record, with the names that it has instead.
    fn none(&self, name: &str, what: &str) -> FieldError {
        const SHOWN: usize = 20;
        let there = self.out.names.iter().take(SHOWN).map(String::as_str);
        let there: Vec<_> = there.collect();
        let what = format!("expected {what}, found none");
        if there.is_empty() {
            return (name.to_owned(), what);
        }
        (
            name.to_owned(),
            format!("{what}; there are {}", there.join(", ")),
        )
    }

    fn row(&mut self, line: u64, fields: &dyn Fields) -> Result<ImportRow, FieldError> {
        let (brings, scale) = (self.how.brings, self.how.scale);
        let score = match brings {
            Brings::Labels => None,
            Brings::Scores | Brings::Texts => self.value(fields, JUDGE_SCORE, Some(scale))?,
        };
        let score = match score {
            Some(score) => score,
            None if brings == Brings::Scores => return Err(self.none(JUDGE_SCORE, "a number")),
            None => scale.0,
        };
        let has_own = brings == Brings::Labels && fields.word(labels::SCALE)?.is_some();
        let ends = (!has_own).then(|| self.how.label_scale.unwrap_or(scale));
        let label = self.value(fields, ORACLE_LABEL, ends)?;
        let prompt = fields.text(PROMPT)?;
        let (policy, item, draw) = self.row_name(line, fields, prompt.as_deref())?;
        let sampled_at = fields.text(SAMPLED_AT)?.map(|text| sampled_at(&text));
        let logprobs = self.how.logprobs.then(|| logprobs(fields)).transpose()?;
        Ok(ImportRow {
            line,
            item,
            policy,
            draw,
            score,
            label,
            prompt,
            response: fields.text(RESPONSE)?,
            sampled_at: sampled_at.transpose()?,
            logprobs,
            fields: self.fields(fields)?,
        })
    }

    /// The draw of a record.
    fn row_name(
        &mut self,
        line: u64,
        fields: &dyn Fields,
        prompt: Option<&str>,
    ) -> Result<DrawName, FieldError> {
        let item = match (fields.text(PROMPT_ID)?, prompt) {
            (Some(id), _) => id,
            (None, Some(prompt)) => (self.how.name_prompt)(prompt),
            (None, None) => return Err(self.none(PROMPT_ID, "an id, or a prompt")),
        };
        let item = id(PROMPT_ID, &item, ItemId::new)?;
        let named = fields.text(TARGET_POLICY)?;
        let policy = match (self.how.policy, named) {
            (Some(policy), Some(named)) if policy.as_str() != named => {
                let what = format!("expected {policy}, the policy of the file, found {named}");
                return Err((TARGET_POLICY.to_owned(), what));
            }
            (Some(policy), _) => policy.clone(),
            (None, Some(named)) => id(TARGET_POLICY, &named, PolicyId::new)?,
            (None, None) => return Err(self.none(TARGET_POLICY, "the name of a policy")),
        };
        let draw = self.draw((line, fields), &policy, &item)?;
        Ok((policy, item, draw))
    }

    /// Fields that are kept beside the row.
    fn fields(&self, fields: &dyn Fields) -> Result<BTreeMap<FieldId, String>, FieldError> {
        let mut kept = BTreeMap::new();
        for field in self.how.fields {
            let Some(word) = fields.word(field.as_str())? else {
                continue;
            };
            if word.len() > WORD_MAX {
                let what = format!("expected at most {WORD_MAX} bytes, found {}", short(&word));
                return Err((field.to_string(), what));
            }
            kept.insert(field.clone(), word);
        }
        Ok(kept)
    }

    /// A score or label: exact millionths on its scale, counted where digits were lost.
    fn value(
        &mut self,
        fields: &dyn Fields,
        name: &str,
        ends: Option<(Micro, Micro)>,
    ) -> Result<Option<Micro>, FieldError> {
        let Some(text) = fields.number(name)? else {
            return Ok(None);
        };
        let wrong = |what: String| (name.to_owned(), what);
        let (value, rounded) = Micro::parse(&text)
            .map_err(|error| wrong(format!("{error}{}, found {}", bare(&text), short(&text))))?;
        if let Some((low, high)) = ends.filter(|(low, high)| value < *low || value > *high) {
            let found = short(&text);
            return Err(wrong(format!("expected {low} to {high}, found {found}")));
        }
        self.out.rounded += u64::from(rounded);
        Ok(Some(value))
    }

    fn draw(
        &mut self,
        (line, fields): (u64, &dyn Fields),
        policy: &PolicyId,
        item: &ItemId,
    ) -> Result<Count, FieldError> {
        let key = (policy.clone(), item.clone());
        let taken = self.taken.entry(key).or_default();
        let wrong = |what: String| (DRAW_IDX.to_owned(), what);
        let draw = match fields.number(DRAW_IDX)? {
            Some(text) => text
                .parse::<u64>()
                .ok()
                .filter(|_| text == "0" || !text.starts_with(['0', '+']))
                .ok_or_else(|| wrong(format!("expected a count from 0, found {}", short(&text))))?,
            None => match taken.first().filter(|_| self.how.brings != Brings::Labels) {
                None => 0,
                Some((_, first)) => {
                    let what = format!(
                        "expected one row of {item} by {policy}, found another on line {first}; several draws of one prompt need a draw_idx each"
                    );
                    return Err(wrong(what));
                }
            },
        };
        let there = taken.iter().find(|(of, _)| *of == draw);
        if let Some((_, first)) = there.filter(|_| self.how.brings != Brings::Labels) {
            let what =
                format!("draw {draw} of {item} by {policy} is there already, on line {first}");
            return Err(wrong(what));
        }
        taken.push((draw, line));
        Count::new(draw).ok_or_else(|| wrong(format!("expected at most 2^53 - 1, found {draw}")))
    }

    /// Ends the file.
    pub(super) fn finish(mut self) -> Result<ImportRows, ImportError> {
        if let Some(error) = ImportError::of(std::mem::take(&mut self.wrong)) {
            return Err(error);
        }
        if self.out.rows.is_empty() {
            return Err(self.error(
                0,
                None,
                "expected at least one record, found none".to_owned(),
            ));
        }
        let out = &mut self.out;
        if out.rounded > 0 {
            out.warnings.push(format!(
                "{} values have more than six decimals and were rounded half to even",
                out.rounded
            ));
        }
        let sampled = out
            .rows
            .iter()
            .filter(|row| row.sampled_at.is_some())
            .count();
        out.warnings.extend(two_scales(&out.rows, self.how));
        if sampled < out.rows.len() && self.how.brings != Brings::Labels {
            out.warnings.push(format!(
                "{} of {} records have no sampled_at: values do not need it; a confirm block of these rows would not be separated in time, and what follows from it EXPLORATORY",
                out.rows.len() - sampled,
                out.rows.len()
            ));
        }
        Ok(self.out)
    }
}

/// Labels that lie in a tenth of the scale that scores fill are on a scale of their own.
fn two_scales(rows: &[ImportRow], how: How<'_>) -> Option<String> {
    let (low, high) = how.scale;
    if how.brings != Brings::Scores || how.label_scale.is_some() {
        return None;
    }
    let ends = |values: &mut dyn Iterator<Item = Micro>| {
        let all: Vec<_> = values.collect();
        Some((*all.iter().min()?, *all.iter().max()?))
    };
    let scores = ends(&mut rows.iter().map(|row| row.score))?;
    let labels = ends(&mut rows.iter().filter_map(|row| row.label))?;
    let above = |value: Micro| value.value() - low.value();
    let span = above(high);
    let is_told = span >= 10_000_000
        && above(labels.1) > 0
        && above(labels.1) <= span / 10
        && above(scores.1) > span / 2;
    is_told.then(|| {
        format!(
            "scores go from {} to {} and labels from {} to {}, on one scale from {low} to {high}: --label-scale LOW:HIGH names that of labels",
            scores.0, scores.1, labels.0, labels.1
        )
    })
}

fn id<T>(
    name: &str,
    text: &str,
    new: impl FnOnce(String) -> Result<T, IdError>,
) -> Result<T, FieldError> {
    new(text.to_owned())
        .map_err(|error| (name.to_owned(), format!("{error}, found {}", short(text))))
}

/// What is said of a number with a comma where its point has to be.
pub const COMMA: &str = ", with a point where it has a comma";

/// What is said of a day that is written with points, before it is written as it has to be.
pub const DOTTED: &str = ", which is written ";

/// What a number lacks that begins with its point, or has a comma for it.
fn bare(text: &str) -> &'static str {
    let is_whole = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let with_comma = text.trim_start_matches('-').split_once(',');
    if with_comma.is_some_and(|(whole, rest)| is_whole(whole) && is_whole(rest)) {
        COMMA
    } else if text.trim_start_matches('-').starts_with('.') {
        ", with a digit before the point"
    } else {
        ""
    }
}

/// How a day with points between is written.
pub(super) fn dotted(text: &str) -> String {
    let day = Timestamp::dotted_day(text);
    day.map_or_else(String::new, |day| format!("{DOTTED}{day}"))
}

fn sampled_at(text: &str) -> Result<Timestamp, FieldError> {
    Timestamp::parse_written(text).ok_or_else(|| {
        let what = format!(
            "expected a day such as 2027-01-31 or an RFC 3339 time with at most six decimals, found {}{}",
            short(text),
            dotted(text)
        );
        (SAMPLED_AT.to_owned(), what)
    })
}

fn logprobs(fields: &dyn Fields) -> Result<Logprobs, FieldError> {
    let none = |name: &str| {
        let what = "expected log-probabilities, found none".to_owned();
        (name.to_owned(), what)
    };
    let base = fields.number(BASE_LOGPROB)?;
    let base = logprob(BASE_LOGPROB, &base.ok_or_else(|| none(BASE_LOGPROB))?)?;
    let named = fields.targets()?.ok_or_else(|| none(TARGET_LOGPROBS))?;
    let mut targets = Vec::with_capacity(named.len());
    for (policy, text) in named {
        let field = format!("{TARGET_LOGPROBS}.{policy}");
        targets.push(TargetLogprob {
            logprob: logprob(&field, &text)?,
            policy: id(&field, &policy, PolicyId::new)?,
        });
    }
    targets.sort_by(|a, b| a.policy.cmp(&b.policy));
    Ok(Logprobs { base, targets })
}

/// A log-probability: a finite double, not above 0.
fn logprob(field: &str, text: &str) -> Result<Finite, FieldError> {
    let number = Micro::parse(text).is_ok() || text.starts_with(['-', '0']);
    let value = text.parse().ok().and_then(Finite::new);
    value
        .filter(|value| number && value.value() <= 0.0)
        .ok_or_else(|| {
            let what = format!(
                "expected a finite number of at most 0, found {}",
                short(text)
            );
            (field.to_owned(), what)
        })
}

/// The start of a value, for a message.
pub(super) fn short(text: &str) -> String {
    let start: String = text.chars().take(40).collect();
    if start.len() < text.len() {
        format!("{start:?}…")
    } else {
        format!("{start:?}")
    }
}
