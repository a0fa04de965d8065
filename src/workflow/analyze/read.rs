//! Reading responses: JSON Lines with `prompt_id`, `judge_score` and, where known, `oracle_label`.
//!
//! A line that is not such a record is refused with file, line and field; fields that are not asked for are
//! skipped. Source of the shape: `cje-eval`'s `POLICY_responses.jsonl`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt;

use clover_ground::digest::Digest;
use clover_ground::once::Once;
use serde::Deserialize;
use serde::Deserializer;
use serde::de::Error as _;
use serde::de::MapAccess;
use serde::de::Visitor;
use serde_json::value::RawValue;

use crate::analyze::dataset::Dataset;
use crate::analyze::dataset::Policy;
use crate::analyze::dataset::Prompts;

/// The covariate that is computed from the text: whitespace-separated words of `response`.
pub use clover_projection::said::RESPONSE_LENGTH;
/// Hexadecimal digits of the digest that names a prompt without an id.
const PROMPT_DIGITS: usize = 12;
/// Longest line of records. A record is one answer with its scores; what is longer is another file.
const LINE_LEN_MAX: usize = 16 << 20;

/// A line that is not a response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{source_name} line {line}{}: {what}", field.as_ref().map_or(String::new(), |f| format!(", {f}")))]
pub struct ReadError {
    /// The file.
    pub source_name: String,
    /// Its line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// The field, where one is to blame.
    pub field: Option<String>,
    /// What was expected, and what was found.
    pub what: String,
}

/// Which fields hold what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldNames {
    /// The judge score.
    pub judge: String,
    /// The label.
    pub label: String,
    /// Covariates: [`RESPONSE_LENGTH`], or the name of a number in the record or its `metadata`.
    pub covariates: Vec<String>,
}

impl Default for FieldNames {
    fn default() -> Self {
        Self {
            judge: "judge_score".to_owned(),
            label: "oracle_label".to_owned(),
            covariates: Vec::new(),
        }
    }
}

/// Responses of one file, prompts still by id.
#[derive(Clone, Debug, Default)]
pub struct Responses {
    /// The file.
    pub source_name: String,
    /// Policy of each response, where records name one.
    pub policies: Vec<Option<String>>,
    /// Prompt ids.
    pub prompts: Vec<String>,
    /// Draw indices, where records have one.
    pub draws: Vec<Option<u64>>,
    /// Judge scores.
    pub scores: Vec<f64>,
    /// Labels.
    pub labels: Vec<Option<f64>>,
    /// Covariates, one column each.
    pub covariates: Vec<Vec<f64>>,
    /// Line of each response.
    pub lines: Vec<usize>,
}

/// One record's members, in order, with their text.
pub(crate) struct Record<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Record<'a> {
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().find(|(key, _)| key == name)?;
        (found.1.get() != "null").then_some(found.1)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Record<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RecordVisitor;

        impl<'de> Visitor<'de> for RecordVisitor {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with judge_score and prompt_id")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                #[derive(Deserialize)]
                struct MemberName<'a>(#[serde(borrow)] Cow<'a, str>);

                let mut members: Self::Value = Vec::with_capacity(8);
                let mut once = Once::default();
                while let Some(MemberName(key)) = map.next_key()? {
                    if !once.insert(key.clone()) {
                        return Err(A::Error::custom(format_args!(
                            "member {key} is there twice"
                        )));
                    }
                    members.push((key, map.next_value()?));
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(RecordVisitor).map(Record)
    }
}

/// Reads the responses of one file.
///
/// # Errors
/// [`ReadError`] at the first line that is not a response.
pub fn responses(
    source_name: &str,
    text: &str,
    fields: &FieldNames,
) -> Result<Responses, ReadError> {
    let mut found = Responses {
        source_name: source_name.to_owned(),
        covariates: vec![Vec::new(); fields.covariates.len()],
        ..Responses::default()
    };
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let fail = |field: Option<&str>, what: String| ReadError {
            source_name: source_name.to_owned(),
            line: at + 1,
            field: field.map(str::to_owned),
            what,
        };
        let record = record(line).map_err(|what| fail(None, what))?;
        response(&record, fields, &mut found).map_err(|(field, what)| fail(Some(&field), what))?;
        found.lines.push(at + 1);
    }
    if found.lines.is_empty() {
        return Err(ReadError {
            source_name: source_name.to_owned(),
            line: 0,
            field: None,
            what: "expected at least one response, found none".to_owned(),
        });
    }
    Ok(found)
}

/// The record on a line.
///
/// # Errors
/// What was expected and found.
pub(crate) fn record(line: &str) -> Result<Record<'_>, String> {
    if line.len() > LINE_LEN_MAX {
        let found = line.len();
        return Err(format!(
            "expected a line of at most {LINE_LEN_MAX} bytes, found {found}"
        ));
    }
    serde_json::from_str(line).map_err(|error| not_json(line, &error))
}

/// Words for a line that is no JSON object.
fn not_json(line: &str, error: &serde_json::Error) -> String {
    let bare = ["NaN", "Infinity"]
        .into_iter()
        .find(|word| line.contains(&format!(": {word}")) || line.contains(&format!(":{word}")));
    match bare {
        Some(word) => format!("{word} is not JSON: a missing label is null, a score is a number"),
        None => format!("expected one JSON object: {error}"),
    }
}

type MemberError = (String, String);

fn response(
    record: &Record<'_>,
    fields: &FieldNames,
    found: &mut Responses,
) -> Result<(), MemberError> {
    let metadata: Option<Record<'_>> = match record.get("metadata") {
        Some(raw) if raw.get().starts_with('{') => Some(
            serde_json::from_str(raw.get())
                .map_err(|error| ("metadata".to_owned(), error.to_string()))?,
        ),
        _ => None,
    };
    let member = |name: &str| {
        record
            .get(name)
            .or_else(|| metadata.as_ref().and_then(|metadata| metadata.get(name)))
    };
    let judge = member(&fields.judge).ok_or_else(|| {
        (
            fields.judge.clone(),
            "expected a number, found none".to_owned(),
        )
    })?;
    let score = number(&fields.judge, judge)?;
    let label = member(&fields.label)
        .map(|raw| number(&fields.label, raw))
        .transpose()?;
    let prompt = prompt_id(member("prompt_id"), record.get("prompt"))?;
    let draw = record
        .get("draw_idx")
        .map(|raw| {
            raw.get().parse::<u64>().map_err(|_| {
                let what = format!("expected a count from 0, found {}", short(raw));
                ("draw_idx".to_owned(), what)
            })
        })
        .transpose()?;
    let policy = record
        .get("target_policy")
        .map(|raw| text("target_policy", raw))
        .transpose()?;
    for (column, name) in found.covariates.iter_mut().zip(&fields.covariates) {
        column.push(covariate(name, member(name), record.get("response"))?);
    }
    found.policies.push(policy);
    found.prompts.push(prompt);
    found.draws.push(draw);
    found.scores.push(score);
    found.labels.push(label);
    Ok(())
}

fn prompt_id(id: Option<&RawValue>, prompt: Option<&RawValue>) -> Result<String, MemberError> {
    if let Some(raw) = id {
        let integer = raw.get().bytes().all(|byte| byte.is_ascii_digit());
        return if integer {
            Ok(raw.get().to_owned())
        } else {
            text("prompt_id", raw)
        };
    }
    let Some(raw) = prompt else {
        let what = "expected a text, found neither prompt_id nor prompt";
        return Err(("prompt_id".to_owned(), what.to_owned()));
    };
    let prompt = text("prompt", raw)?;
    let hex = Digest::sha256(prompt.as_bytes()).to_hex();
    Ok(format!("prompt_{}", &hex[..PROMPT_DIGITS]))
}

fn covariate(
    name: &str,
    recorded: Option<&RawValue>,
    response: Option<&RawValue>,
) -> Result<f64, MemberError> {
    match (recorded, response) {
        (Some(raw), _) => number(name, raw),
        (None, Some(raw)) if name == RESPONSE_LENGTH => {
            let response = text("response", raw)?;
            Ok(words(&response) as f64)
        }
        _ => {
            let what = "expected a number in the record or its metadata, found none";
            Err((name.to_owned(), what.to_owned()))
        }
    }
}

/// Whitespace-separated words, by Python's notion of whitespace: Unicode's and the four separators 0x1c to 0x1f.
pub fn words(text: &str) -> usize {
    let space = |c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c);
    text.split(space).filter(|word| !word.is_empty()).count()
}

fn number(name: &str, raw: &RawValue) -> Result<f64, MemberError> {
    let wrong = || {
        let what = format!("expected a finite number, found {}", short(raw));
        (name.to_owned(), what)
    };
    let starts = raw
        .get()
        .starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let value: f64 = raw.get().parse().map_err(|_| wrong())?;
    (starts && value.is_finite())
        .then_some(value)
        .ok_or_else(wrong)
}

fn text(name: &str, raw: &RawValue) -> Result<String, MemberError> {
    serde_json::from_str(raw.get()).map_err(|_| {
        (
            name.to_owned(),
            format!("expected a text, found {}", short(raw)),
        )
    })
}

/// The start of a value, for a message.
fn short(raw: &RawValue) -> String {
    let text: String = raw.get().chars().take(40).collect();
    if text.len() < raw.get().len() {
        format!("{text}…")
    } else {
        text
    }
}

/// Puts the responses of files together: each file is the policy it is given with, or, without one, its records name
/// theirs. Policies come out in order of their names.
///
/// # Errors
/// [`ReadError`] for a record that names no policy where the file does not, another policy than the file's, or a
/// draw of a prompt that a policy already has.
pub fn dataset(
    files: &[(Option<String>, Responses)],
    covariates: &[String],
) -> Result<(Dataset, Prompts), ReadError> {
    let mut by_policy: BTreeMap<&str, Vec<(&Responses, usize)>> = BTreeMap::new();
    for (policy, responses) in files {
        for (row, named) in responses.policies.iter().enumerate() {
            let name = match (policy, named) {
                (Some(policy), Some(named)) if policy != named => {
                    let what = format!("expected {policy}, as the file is named, found {named}");
                    return Err(at(responses, row, "target_policy", what));
                }
                (Some(policy), _) | (None, Some(policy)) => policy,
                (None, None) => {
                    let what = "expected the name of a policy, found none".to_owned();
                    return Err(at(responses, row, "target_policy", what));
                }
            };
            by_policy.entry(name).or_default().push((responses, row));
        }
    }
    let mut prompts = Prompts::default();
    let mut policies = Vec::with_capacity(by_policy.len());
    for (name, rows) in by_policy {
        policies.push(policy(name, &rows, covariates.len(), &mut prompts)?);
    }
    let dataset = Dataset {
        policies,
        covariates: covariates.to_vec(),
    };
    Ok((dataset, prompts))
}

/// The labelled records of a calibration file, whatever policy they name; prompts that no policy has are numbered in
/// order of their ids.
pub fn calibration(file: &Responses, prompts: &mut Prompts) -> Policy {
    let labelled: Vec<usize> = (0..file.scores.len())
        .filter(|&row| file.labels[row].is_some())
        .collect();
    let ids: BTreeSet<&str> = labelled
        .iter()
        .map(|&row| file.prompts[row].as_str())
        .collect();
    for id in ids {
        prompts.number(id);
    }
    probe(&file.source_name, file, &labelled, prompts)
}

/// Some records of a file as the responses of one policy.
pub fn probe(name: &str, file: &Responses, rows: &[usize], prompts: &mut Prompts) -> Policy {
    let mut policy = Policy {
        name: name.to_owned(),
        covariates: vec![Vec::new(); file.covariates.len()],
        files: vec![file.source_name.clone()],
        ..Policy::default()
    };
    for &row in rows {
        policy.lines.push((0, small(file.lines[row])));
        policy.prompts.push(prompts.number(&file.prompts[row]));
        policy.scores.push(file.scores[row]);
        policy.labels.push(file.labels[row]);
        for (column, values) in policy.covariates.iter_mut().zip(&file.covariates) {
            column.push(values[row]);
        }
    }
    policy
}

fn at(responses: &Responses, row: usize, field: &str, what: String) -> ReadError {
    ReadError {
        source_name: responses.source_name.clone(),
        line: responses.lines[row],
        field: Some(field.to_owned()),
        what,
    }
}

/// A line or an index; beyond 2^32 messages stay at the last.
fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// One policy's columns; a record without a draw index takes the least one its prompt has free.
fn policy(
    name: &str,
    rows: &[(&Responses, usize)],
    covariates: usize,
    prompts: &mut Prompts,
) -> Result<Policy, ReadError> {
    let mut policy = Policy {
        name: name.to_owned(),
        covariates: vec![Vec::with_capacity(rows.len()); covariates],
        ..Policy::default()
    };
    let mut taken: BTreeMap<(u32, u64), (&Responses, usize)> = BTreeMap::new();
    let mut free: BTreeMap<u32, u64> = BTreeMap::new();
    for &(responses, row) in rows {
        if policy.files.last() != Some(&responses.source_name) {
            policy.files.push(responses.source_name.clone());
        }
        let file = small(policy.files.len() - 1);
        policy.lines.push((file, small(responses.lines[row])));
        let prompt = prompts.number(&responses.prompts[row]);
        let draw = responses.draws[row].unwrap_or_else(|| {
            let next = free.entry(prompt).or_insert(0);
            while taken.contains_key(&(prompt, *next)) {
                *next += 1;
            }
            *next
        });
        if let Some((other, line)) = taken.insert((prompt, draw), (responses, row)) {
            let what = format!(
                "draw {draw} of prompt {} is already there, {} line {}",
                responses.prompts[row], other.source_name, other.lines[line]
            );
            return Err(at(responses, row, "draw_idx", what));
        }
        policy.prompts.push(prompt);
        policy.scores.push(responses.scores[row]);
        policy.labels.push(responses.labels[row]);
        for (column, values) in policy.covariates.iter_mut().zip(&responses.covariates) {
            column.push(values[row]);
        }
    }
    Ok(policy)
}
