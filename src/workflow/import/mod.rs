//! Importing files of judge-scored responses: pure functions from bytes to rows plus warnings.
//!
//! [`cje`] reads JSON Lines, [`csv`] comma-separated values, [`tools`] files of other tools; all go through [`row`], so one
//! grammar of numbers and names holds for all. [`ImportRows::root`] is what `data.ingested` commits to, and [`plan`] says what of the
//! rows a ledger already holds. Nothing here reads a file or appends an event.

pub mod cje;
pub mod csv;
pub mod form;
pub mod kept;
pub mod labels;
pub mod logged;
pub mod plan;
pub mod row;
pub mod tools;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt;

use clover_event::id::FieldId;
use clover_event::id::ItemId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::payload::judge::TargetLogprob;
use clover_event::payload::label::row_of_draw;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::merkle;
use clover_ground::merkle::Frontier;
use clover_ground::time::Timestamp;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use serde::Serialize;

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// The file.
    pub file: String,
    /// Its line, from 1; 0 for the file as a whole.
    pub line: u64,
    /// The field, where one is to blame.
    pub field: Option<String>,
    /// What was expected, and what was found.
    pub what: String,
    /// Other lines of the file that are wrong, in order: each has none of its own.
    pub more: Vec<Self>,
}

/// Most wrong lines that are listed.
const LISTED_MAX: usize = 20;
/// Other lines that are wrong in the same way, from which on one is named for all.
const ALIKE_MIN: usize = 3;
/// Most wrong lines that are looked for: behind them a file is not read on.
pub(crate) const WRONG_MAX: usize = 1000;

impl ImportError {
    /// A wrong line.
    pub(crate) fn new(file: &str, line: u64, field: Option<&str>, what: String) -> Self {
        Self {
            file: file.to_owned(),
            line,
            field: field.map(str::to_owned),
            what,
            more: Vec::new(),
        }
    }

    /// Several wrong lines as one error; `None` where there is none.
    pub(crate) fn of(mut all: Vec<Self>) -> Option<Self> {
        let more = all.split_off(all.len().min(1));
        let first = all.pop()?;
        Some(Self { more, ..first })
    }

    /// The first wrong line alone.
    pub fn first(&self) -> String {
        let mut text = self.file.clone();
        if self.line > 0 {
            text.push_str(&format!(":{}", self.line));
        }
        if let Some(field) = &self.field {
            text.push_str(&format!(": {field}"));
        }
        format!("{text}: {}", self.what)
    }
}

/// Wrong lines one below the other, and how many more there are than are listed.
pub fn listed(lines: &[String]) -> String {
    let shown = &lines[..lines.len().min(LISTED_MAX)];
    let mut text = shown.join("\n");
    let beyond = lines.len() - shown.len();
    if beyond > 0 {
        let least = if lines.len() >= WRONG_MAX {
            "at least "
        } else {
            ""
        };
        text.push_str(&format!("\nand {least}{beyond} more"));
    }
    text
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_alike = |of: &Self| of.field == self.field && of.what == self.what;
        let others = self.more.len();
        // Lines that lack the same are one defect: the file's, not theirs.
        if others >= ALIKE_MIN && self.more.iter().all(is_alike) {
            let least = if others + 1 >= WRONG_MAX {
                "at least "
            } else {
                ""
            };
            return write!(f, "{}\nand {least}{others} more lines alike", self.first());
        }
        let rest = self.more.iter().map(Self::first);
        let lines: Vec<_> = std::iter::once(self.first()).chain(rest).collect();
        f.write_str(&listed(&lines))
    }
}

impl std::error::Error for ImportError {}

/// What records of a file bring along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brings {
    /// Scores: every record has one.
    Scores,
    /// Texts: a score is not asked for, and reads as the least of the scale.
    Texts,
    /// Labels, without scores: several raters may label one draw, which is draw 0 where a record does not say.
    Labels,
}

/// How a file is to be read.
#[derive(Clone, Copy)]
pub struct How<'a> {
    /// The policy of every record; else each names its own.
    pub policy: Option<&'a PolicyId>,
    /// Whether log-probabilities are read; then every record must have them.
    pub logprobs: bool,
    /// What records bring along.
    pub brings: Brings,
    /// Least and greatest score.
    pub scale: (Micro, Micro),
    /// Least and greatest label; default those of scores.
    pub label_scale: Option<(Micro, Micro)>,
    /// Fields of a row that are kept beside it, such as its domain: they are public.
    pub fields: &'a [FieldId],
    /// Names a prompt that has no id; keyed, so that the name tells nothing of the text.
    pub name_prompt: &'a dyn Fn(&str) -> String,
}

impl fmt::Debug for How<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "How({:?}, {:?})", self.policy, self.scale)
    }
}

/// Log-probabilities of a response.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Logprobs {
    /// Under the logged policy.
    pub base: Finite,
    /// Under others, by name.
    pub targets: Vec<TargetLogprob>,
}

/// One judge-scored response.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportRow {
    /// Line of the file, from 1.
    pub line: u64,
    /// What was answered.
    pub item: ItemId,
    /// Who answered.
    pub policy: PolicyId,
    /// Which draw, from 0.
    pub draw: Count,
    /// The judge's score.
    pub score: Micro,
    /// The label, where there is one.
    pub label: Option<Micro>,
    /// The prompt's text.
    pub prompt: Option<String>,
    /// The response's text.
    pub response: Option<String>,
    /// When the prompt was sampled.
    pub sampled_at: Option<Timestamp>,
    /// Log-probabilities, where they are read.
    pub logprobs: Option<Logprobs>,
    /// Fields that were asked for, where the record has them.
    pub fields: BTreeMap<FieldId, String>,
}

impl ImportRow {
    /// A draw with its texts and nothing else, as a judge reads it; it has no line and no score.
    pub fn of_texts(
        (policy, item, draw): (PolicyId, ItemId, Count),
        (prompt, response): (String, String),
    ) -> Self {
        Self {
            line: 0,
            item,
            policy,
            draw,
            score: Micro::default(),
            label: None,
            prompt: Some(prompt),
            response: Some(response),
            sampled_at: None,
            logprobs: None,
            fields: BTreeMap::new(),
        }
    }
}

/// What stands in place of the response of a draw whose texts are kept elsewhere: its name, as sealed rows have it.
fn name_of((policy, item, draw): (&PolicyId, &ItemId, Count)) -> String {
    row_of_draw(policy, item, draw)
}

/// Whether a response is no text of anybody's, but the name of its draw.
pub fn is_named((policy, item, draw): (&PolicyId, &ItemId, Count), response: &str) -> bool {
    name_of((policy, item, draw)) == response
}

impl ImportRow {
    /// The row with its names in place of the texts that it lacks: who is asked about it has to know its texts by them.
    #[must_use]
    pub fn named(mut self) -> Self {
        let response = name_of((&self.policy, &self.item, self.draw));
        self.prompt = Some(self.item.to_string());
        self.response = Some(response);
        self
    }

    /// Whether its names stand in place of its texts.
    pub fn is_named(&self) -> bool {
        let response = self.response.as_deref();
        response.is_some_and(|text| is_named((&self.policy, &self.item, self.draw), text))
    }
}

/// The rows of one file.
#[derive(Clone, Debug, Default)]
pub struct ImportRows {
    /// The file.
    pub file: String,
    /// In order of the file.
    pub rows: Vec<ImportRow>,
    /// Records read.
    pub read: u64,
    /// Values that lost digits beyond the sixth decimal.
    pub rounded: u64,
    /// Which column or member each field came from, where it was there.
    pub mapping: BTreeMap<String, String>,
    /// What a person should know.
    pub warnings: Vec<String>,
    /// How log-probabilities kept their contract, where they were held against it.
    pub checked: Option<logged::LogprobsAnswer>,
    /// Names of the members or columns that a record has, where fields were asked for.
    pub names: BTreeSet<String>,
    /// What the file says of rows beside their scores, or instead of them.
    pub remarks: Vec<tools::RowRemark>,
    /// Whether the file holds labels that no row has: then its original is for the custodian alone.
    pub holds_labels: bool,
}

/// A row as others may see it: without texts and without its label.
#[derive(Serialize)]
struct RowLeaf<'a> {
    draw: Count,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<&'a BTreeMap<FieldId, String>>,
    item: &'a ItemId,
    #[serde(skip_serializing_if = "Option::is_none")]
    judge: Option<&'a JudgeId>,
    labelled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<&'a Logprobs>,
    policy: &'a PolicyId,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score_micro: Option<Micro>,
}

/// The texts of a row, as its file is kept where rows came without scores.
#[derive(Serialize)]
struct TextLine<'a> {
    draw_idx: Count,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'a str>,
    prompt_id: &'a ItemId,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<&'a str>,
    target_policy: &'a PolicyId,
}

/// A row with its score, as `cje-eval` reads it.
#[derive(Serialize)]
struct ResponseLine<'a> {
    draw_idx: Count,
    judge_score: f64,
    prompt_id: &'a ItemId,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<&'a str>,
    target_policy: &'a PolicyId,
}

impl ImportRows {
    /// The canonical lines of the rows, each with its newline, and the RFC 6962 root over them without.
    pub fn root(&self, judge: &JudgeId) -> (Vec<u8>, Digest) {
        self.lines(Some(judge))
    }

    /// The lines and their root as in [`root`](Self::root), of rows that came without scores and labels.
    pub fn unscored_root(&self) -> (Vec<u8>, Digest) {
        self.lines(None)
    }

    /// The texts of the rows as JSON Lines that can be read again, whatever form they came in.
    #[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
    pub fn texts(&self) -> Vec<u8> {
        let mut lines = Vec::new();
        for row in &self.rows {
            let line = TextLine {
                draw_idx: row.draw,
                prompt: row.prompt.as_deref(),
                prompt_id: &row.item,
                response: row.response.as_deref(),
                target_policy: &row.policy,
            };
            serde_json::to_writer(&mut lines, &line).expect("BUG: texts and ids are JSON");
            lines.push(b'\n');
        }
        lines
    }

    /// The rows with their scores as JSON Lines that `cje-eval` reads.
    #[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
    pub fn responses(&self) -> String {
        let mut lines = String::new();
        for row in &self.rows {
            let line = ResponseLine {
                draw_idx: row.draw,
                judge_score: row.score.value() as f64 / 1e6,
                prompt_id: &row.item,
                response: row.response.as_deref(),
                target_policy: &row.policy,
            };
            lines.push_str(&serde_json::to_string(&line).expect("BUG: texts and ids are JSON"));
            lines.push('\n');
        }
        lines
    }

    fn lines(&self, judge: Option<&JudgeId>) -> (Vec<u8>, Digest) {
        let (mut lines, mut tree) = (Vec::new(), Frontier::new());
        for row in &self.rows {
            let leaf = RowLeaf {
                draw: row.draw,
                fields: (!row.fields.is_empty()).then_some(&row.fields),
                item: &row.item,
                judge,
                labelled: judge.is_some() && row.label.is_some(),
                logprobs: row.logprobs.as_ref(),
                policy: &row.policy,
                sampled_at: row.sampled_at,
                score_micro: judge.map(|_| row.score),
            };
            let line = canon::to_bytes(&leaf).expect("BUG: ids and numbers have a canonical form");
            tree.push(merkle::leaf_hash(&line));
            lines.extend_from_slice(&line);
            lines.push(b'\n');
        }
        (lines, tree.root())
    }

    /// Rows that carry a label.
    pub fn labelled(&self) -> u64 {
        self.rows.iter().filter(|row| row.label.is_some()).count() as u64
    }

    /// First and last `sampled_at`; `None` unless every row has one.
    pub fn sampled(&self) -> Option<(Timestamp, Timestamp)> {
        let times: Option<Vec<_>> = self.rows.iter().map(|row| row.sampled_at).collect();
        let times = times?;
        Some((*times.iter().min()?, *times.iter().max()?))
    }

    /// Policies in order of their names.
    pub fn policies(&self) -> BTreeSet<&PolicyId> {
        self.rows.iter().map(|row| &row.policy).collect()
    }
}

/// Refuses a field that was asked for and that no record of the files has.
///
/// # Errors
/// [`ImportError`] that names the fields there are.
pub fn fields_there(files: &[ImportRows], fields: &[FieldId]) -> Result<(), ImportError> {
    let has = |field: &FieldId| {
        let mut rows = files.iter().flat_map(|rows| &rows.rows);
        rows.any(|row| row.fields.contains_key(field))
    };
    let Some(missing) = fields.iter().find(|field| !has(field)) else {
        return Ok(());
    };
    let names: BTreeSet<_> = files.iter().flat_map(|rows| &rows.names).collect();
    let own = |name: &&&String| !row::FIELDS.contains(&name.as_str());
    let names: Vec<_> = names.iter().filter(own).map(|name| name.as_str()).collect();
    let there = if names.is_empty() {
        "there is none".to_owned()
    } else {
        format!("there are {}", names.join(", "))
    };
    let of = files.first();
    let file = of.map_or_else(String::new, |rows| rows.file.clone());
    let what = format!("expected a field that a row has, found it in none; {there}");
    Err(ImportError::new(&file, 0, Some(missing.as_str()), what))
}

/// Refuses a draw that is in the files twice.
///
/// # Errors
/// [`ImportError`] at the second.
pub fn distinct(files: &[ImportRows]) -> Result<(), ImportError> {
    let mut seen: BTreeMap<(&PolicyId, &ItemId, Count), (&str, u64)> = BTreeMap::new();
    for rows in files {
        for row in &rows.rows {
            let key = (&row.policy, &row.item, row.draw);
            if let Some((file, line)) = seen.insert(key, (&rows.file, row.line)) {
                let what = format!(
                    "draw {} of {} by {} is there already, {file}:{line}",
                    row.draw, row.item, row.policy
                );
                let field = Some(row::DRAW_IDX);
                return Err(ImportError::new(&rows.file, row.line, field, what));
            }
        }
    }
    Ok(())
}
