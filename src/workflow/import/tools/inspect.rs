//! Logs of Inspect: `.eval` archives and what `inspect log dump` writes of them.
//!
//! An epoch of a sample is a draw. A score that people edited has the value that its scorer gave; the edits are remarks. A
//! NaN is how Inspect writes a sample without a score.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use super::RowEdit;
use super::ToolTerms;
use super::archive::Archive;
use super::archive::shown;
use super::chosen;
use super::gather::Beside;
use super::gather::Gatherer;
use super::gather::ToolRecord;
use super::json;
use super::json::Lines;
use super::json::Node;
use super::json::NodeFault;
use super::json::Object;
use crate::import::Brings;
use crate::import::How;
use crate::import::ImportError;
use crate::import::ImportRows;
use crate::import::row;

/// The version of a log that is read.
const VERSION: &str = "2";
/// The status of a run that ended well.
const SUCCESS: &str = "success";
/// What stands in place of a text that is kept once.
const ATTACHMENT: &str = "attachment://";
/// A value that an edit leaves as it was.
const UNCHANGED: &str = "UNCHANGED";

/// Whether a NaN here is no score, or a number that nobody reads.
fn may_be_none(path: &str) -> bool {
    let in_scores = path.contains("scores.") && path.contains(".value");
    in_scores || path.starts_with("results.") || path.starts_with("reductions[")
}

/// Reads one log.
pub(super) fn rows(
    (file, bytes): (&str, &[u8]),
    terms: ToolTerms<'_>,
    how: How<'_>,
) -> Result<ImportRows, ImportError> {
    let gather = Gatherer::new(file, how);
    if bytes.starts_with(b"PK\x03\x04") {
        of_archive(gather, bytes, terms)
    } else {
        of_json(gather, bytes, terms)
    }
}

/// A member of an archive as a fault of the whole file.
fn of_member(name: &str, what: String) -> NodeFault {
    (name.to_owned(), what)
}

/// The text of a member that has to be there, held against the bounds of JSON.
fn member(
    gather: &Gatherer<'_>,
    archive: &mut Archive<'_>,
    name: &str,
) -> Result<String, ImportError> {
    let text = archive
        .text(name)
        .map_err(|what| gather.whole(of_member(name, what)))?;
    let text = text.ok_or_else(|| {
        let what = if archive.has("_journal/start.json") {
            "expected this member, found none: the run did not end; inspect log dump writes what there is as JSON"
        } else {
            "expected this member of a log of Inspect, found none"
        };
        gather.whole(of_member(name, what.to_owned()))
    })?;
    // The line is one of the member: its name says which.
    let checked = json::checked(&text, may_be_none).map_err(|fault| {
        let path = format!("{name}: {}", fault.path);
        gather.whole((path, fault.what))
    })?;
    Ok(match checked {
        Cow::Borrowed(_) => text,
        Cow::Owned(changed) => changed,
    })
}

/// The one document of a text.
fn document<'t>(gather: &Gatherer<'_>, text: &'t str, path: &str) -> Result<Node<'t>, ImportError> {
    let all = json::documents(text).map_err(|fault| gather.json(fault))?;
    if let [one] = all.as_slice() {
        return Ok(Node::new(one, path));
    }
    let what = format!("expected one JSON document, found {}", all.len());
    Err(gather.whole((path.to_owned(), what)))
}

/// Reads a log that is an archive: the header, the summaries, and for texts each sample.
fn of_archive(
    mut gather: Gatherer<'_>,
    bytes: &[u8],
    terms: ToolTerms<'_>,
) -> Result<ImportRows, ImportError> {
    let mut archive = Archive::open(bytes).map_err(|what| gather.whole((String::new(), what)))?;
    let header = member(&gather, &mut archive, "header.json")?;
    let header = document(&gather, &header, "header.json")?;
    let header = header.object().map_err(|fault| gather.whole(fault))?;
    let (model, status) = model(&mut gather, &header)?;
    let summaries = member(&gather, &mut archive, "summaries.json")?;
    let summaries = document(&gather, &summaries, "summaries.json")?;
    let summaries = summaries.list().map_err(|fault| gather.whole(fault))?;
    let taken = taken(&mut gather, (&summaries, &status), terms)?;
    if terms.scores_only {
        gather.warn("the summaries of an archive do not say which scores people edited: without --scores-only each is read as it was first given".to_owned());
    }
    let mut unnamed: BTreeSet<String> = archive.under("samples/").into_iter().collect();
    for summary in &summaries {
        if let Ok(name) = summary.object().and_then(|of| member_of(&of)) {
            unnamed.remove(&name);
        }
    }
    if let Some(first) = unnamed.first() {
        let count = unnamed.len();
        gather.warn(format!(
            "{count} samples of the archive are not in its summaries.json and are not read; the first is {}",
            shown(first)
        ));
    }
    for (number, summary) in (1..).zip(&summaries) {
        let object = match summary.object() {
            Ok(object) => object,
            Err(fault) => {
                gather.refuse(number, fault)?;
                continue;
            }
        };
        if terms.scores_only {
            sample(&mut gather, number, &object, (&model, &taken, terms))?;
            continue;
        }
        let name = match member_of(&object) {
            Ok(name) => name,
            Err(fault) => {
                gather.refuse(number, fault)?;
                continue;
            }
        };
        let text = member(&gather, &mut archive, &name)?;
        let whole = document(&gather, &text, &name)?;
        let whole = whole.object().map_err(|fault| gather.whole(fault))?;
        sample(&mut gather, number, &whole, (&model, &taken, terms))?;
    }
    finish(gather, &taken, terms)
}

/// The member that has the whole of a sample.
fn member_of(summary: &Object<'_>) -> Result<String, NodeFault> {
    let id = summary.needs("id", "the name of a sample")?.name()?;
    let epoch = summary.needs("epoch", "a count from 1")?.name()?;
    Ok(format!("samples/{id}_epoch_{epoch}.json"))
}

/// Reads a log that was dumped as JSON.
fn of_json(
    mut gather: Gatherer<'_>,
    bytes: &[u8],
    terms: ToolTerms<'_>,
) -> Result<ImportRows, ImportError> {
    let text = gather.text(bytes)?;
    let text = gather.checked(text, may_be_none)?;
    let log = document(&gather, &text, "")?;
    let log = log.object().map_err(|fault| gather.whole(fault))?;
    let (model, status) = model(&mut gather, &log)?;
    let samples = log
        .needs("samples", "a list")
        .and_then(|samples| samples.list())
        .map_err(|fault| gather.whole(fault))?;
    let taken = taken(&mut gather, (&samples, &status), terms)?;
    let mut lines = Lines::of(&text);
    for node in &samples {
        let line = lines.line(node.raw);
        match node.object() {
            Ok(object) => sample(&mut gather, line, &object, (&model, &taken, terms))?,
            Err(fault) => gather.refuse(line, fault)?,
        }
    }
    finish(gather, &taken, terms)
}

/// The model of a log, whose version is one that is read, and its status.
fn model(gather: &mut Gatherer<'_>, header: &Object<'_>) -> Result<(String, String), ImportError> {
    let read = || -> Result<(String, String, Option<String>), NodeFault> {
        let version = header.needs("version", "of the log")?.name()?;
        let eval = header.needs("eval", "an object")?.object()?;
        let model = eval.needs("model", "the name of a model")?.text()?;
        Ok((version, model, header.text("status")?))
    };
    let (version, model, status) = read().map_err(|fault| gather.whole(fault))?;
    if version != VERSION {
        let what = format!(
            "expected {VERSION}, found {version}: another version of Inspect can write it as {VERSION}, by inspect log dump"
        );
        return Err(gather.whole(("version".to_owned(), what)));
    }
    let status = status.unwrap_or_else(|| SUCCESS.to_owned());
    if status != SUCCESS {
        gather.warn(format!(
            "the status of this log is {status}: it may lack samples"
        ));
    }
    if header
        .get("invalidated")
        .is_some_and(|of| of.as_written() == "true")
    {
        gather.warn(
            "people marked samples of this log as invalid: their scores are taken in all the same"
                .to_owned(),
        );
    }
    Ok((model, status))
}

/// The score that is taken, by the names of the scores of all samples.
fn taken(
    gather: &mut Gatherer<'_>,
    (samples, status): (&[Node<'_>], &str),
    terms: ToolTerms<'_>,
) -> Result<String, ImportError> {
    let mut names = BTreeSet::new();
    if gather.how.brings == Brings::Texts {
        return Ok(String::new());
    }
    for node in samples {
        let scores = node.object().ok().and_then(|object| object.get("scores"));
        if let Some(scores) = scores.and_then(|scores| scores.object().ok()) {
            names.extend(scores.names().map(str::to_owned));
        }
    }
    if names.is_empty() && status != SUCCESS {
        let what = format!(
            "expected scores, found none: the status of this run is {status}, it ended before it was scored"
        );
        return Err(gather.whole(("status".to_owned(), what)));
    }
    let taken = chosen::score(&names, terms.score).map_err(|fault| gather.whole(fault))?;
    let left: Vec<_> = names.iter().filter(|name| **name != taken).collect();
    if !left.is_empty() {
        let left: Vec<_> = left.into_iter().map(String::as_str).collect();
        gather.warn(format!("other scores are left out: {}", left.join(", ")));
    }
    Ok(taken)
}

/// Members of a sample that are read.
const SAMPLE: [&str; 8] = [
    "attachments",
    "epoch",
    "error",
    "id",
    "input",
    "metadata",
    "output",
    "scores",
];
/// Members of a score that are read.
const SCORE: [&str; 3] = ["explanation", "history", "value"];

/// Takes a sample.
fn sample(
    gather: &mut Gatherer<'_>,
    line: u64,
    object: &Object<'_>,
    (model, taken, terms): (&str, &str, ToolTerms<'_>),
) -> Result<(), ImportError> {
    gather.leave(object, "", &SAMPLE);
    let (record, score) = match read(gather, line, object, (model, taken, terms)) {
        Ok(found) => found,
        Err(fault) => return gather.refuse(line, fault),
    };
    match score {
        SampleScore::Given(beside) => gather.take(&record, beside),
        SampleScore::None(reason) => gather.decline(&record, reason),
        SampleScore::Failed(error) => gather.failed(&record, error),
    }
}

/// Whether a sample has the score that is taken.
enum SampleScore {
    Given(Beside),
    None(Option<String>),
    /// It has one beside an error.
    Failed(String),
}

/// Reads a sample.
fn read(
    gather: &mut Gatherer<'_>,
    line: u64,
    object: &Object<'_>,
    (model, taken, terms): (&str, &str, ToolTerms<'_>),
) -> Result<(ToolRecord, SampleScore), NodeFault> {
    let mut record = ToolRecord::new(line, &object.path);
    let id = object.needs("id", "the name of a sample")?;
    record.put(row::PROMPT_ID, id.name()?);
    record.put(row::DRAW_IDX, draw(object)?);
    if gather.how.policy.is_none() {
        record.put(row::TARGET_POLICY, model.to_owned());
    }
    if let Some(metadata) = object.get("metadata") {
        record.all_beside(&metadata.object()?);
    }
    if !terms.scores_only {
        texts(&mut record, object)?;
    }
    let error = error(object)?;
    let scores = object.get("scores").map(|scores| scores.object());
    let score = scores.transpose()?.and_then(|scores| scores.get(taken));
    let Some(score) = score else {
        return Ok((record, SampleScore::None(error)));
    };
    let score = score.object()?;
    gather.leave(&score, "score ", &SCORE);
    let (given, edits) = as_given(score)?;
    let value = given.get("value");
    let value = value.map(|value| chosen::value(&value, terms.member));
    let reason = given.text("explanation")?;
    let Some(value) = value.transpose()?.flatten() else {
        return Ok((record, SampleScore::None(reason.or(error))));
    };
    if let Some(error) = error {
        return Ok((record, SampleScore::Failed(error)));
    }
    record.put(row::JUDGE_SCORE, value);
    Ok((record, SampleScore::Given(Beside { reason, edits })))
}

/// The draw of an epoch, which counts from 1.
fn draw(object: &Object<'_>) -> Result<String, NodeFault> {
    let epoch = object.needs("epoch", "a count from 1")?;
    let count: Option<u64> = epoch.raw.get().parse().ok().filter(|epoch| *epoch > 0);
    count
        .map(|epoch| (epoch - 1).to_string())
        .ok_or_else(|| epoch.fault("a count from 1"))
}

/// Why a sample failed: a text in a summary, an object in a sample.
fn error(object: &Object<'_>) -> Result<Option<String>, NodeFault> {
    let Some(error) = object.get("error") else {
        return Ok(None);
    };
    if error.is_text() {
        return error.text().map(Some);
    }
    error.object()?.text("message")
}

/// The score as the scorer gave it, and the edits that people made of it.
fn as_given(score: Object<'_>) -> Result<(Object<'_>, Vec<RowEdit>), NodeFault> {
    let history = score.get("history").map(|history| history.list());
    let history = history.transpose()?.unwrap_or_default();
    let Some((first, later)) = history.split_first() else {
        return Ok((score, Vec::new()));
    };
    let original = first.object()?;
    if let Some(provenance) = original.get("provenance") {
        let what = "expected the score as it was first given, found an edit of it".to_owned();
        return Err((provenance.path, what));
    }
    let mut edits = Vec::with_capacity(later.len());
    for node in later {
        let edit = node.object()?;
        let value = edit.get("value").map(|value| value.as_written());
        let Some(value) = value.filter(|value| value != UNCHANGED) else {
            continue;
        };
        let provenance = edit.get("provenance").map(|of| of.object()).transpose()?;
        let said = |name: &str| match &provenance {
            Some(of) => of.text(name),
            None => Ok(None),
        };
        edits.push(RowEdit {
            author: said("author")?.unwrap_or_else(|| "nobody named".to_owned()),
            reason: said("reason")?,
            at: said("timestamp")?,
            value,
        });
    }
    Ok((original, edits))
}

/// The texts of a sample.
fn texts(record: &mut ToolRecord, object: &Object<'_>) -> Result<(), NodeFault> {
    let attachments = object
        .get("attachments")
        .map(|of| of.object())
        .transpose()?;
    let attached = |text: String| -> String {
        let found = text.strip_prefix(ATTACHMENT).and_then(|name| {
            let kept = attachments.as_ref()?.get(name)?;
            kept.text().ok()
        });
        found.unwrap_or(text)
    };
    if let Some(input) = object.get("input") {
        let prompt = if input.is_text() {
            attached(input.text()?)
        } else {
            messages(&input, &attached)?
        };
        record.put(row::PROMPT, prompt);
    }
    let output = object.get("output").map(|of| of.object()).transpose()?;
    let completion = output.and_then(|output| output.get("completion"));
    if let Some(completion) = completion {
        let completion = attached(completion.text()?);
        // A sample that failed before an answer has none.
        if !completion.is_empty() || object.get("error").is_none() {
            record.put(row::RESPONSE, completion);
        }
    }
    Ok(())
}

/// Messages of a chat: the text of a single one, else all of them as JSON.
fn messages(input: &Node<'_>, attached: &dyn Fn(String) -> String) -> Result<String, NodeFault> {
    let all = input.list()?;
    if let [one] = all.as_slice()
        && let Some(content) = one.object()?.get("content").filter(Node::is_text)
    {
        return Ok(attached(content.text()?));
    }
    let mut value: Value =
        serde_json::from_str(input.raw.get()).map_err(|_| input.fault("messages"))?;
    unfold(&mut value, attached);
    Ok(value.to_string())
}

/// Puts texts that are kept once where they stand; the depth of the value is bounded.
fn unfold(value: &mut Value, attached: &dyn Fn(String) -> String) {
    match value {
        Value::String(text) => *text = attached(std::mem::take(text)),
        Value::Array(all) => all.iter_mut().for_each(|value| unfold(value, attached)),
        Value::Object(all) => all.values_mut().for_each(|value| unfold(value, attached)),
        _ => {}
    }
}

fn finish(
    gather: Gatherer<'_>,
    taken: &str,
    terms: ToolTerms<'_>,
) -> Result<ImportRows, ImportError> {
    let score = match terms.member {
        Some(member) => format!("scores.{taken}.value.{member}"),
        None => format!("scores.{taken}.value"),
    };
    let mut mapping = vec![(row::DRAW_IDX, "epoch - 1"), (row::PROMPT_ID, "id")];
    if gather.how.brings == Brings::Scores {
        mapping.push((row::JUDGE_SCORE, score.as_str()));
    }
    if gather.how.policy.is_none() {
        mapping.push((row::TARGET_POLICY, "eval.model"));
    }
    if !terms.scores_only {
        mapping.extend([(row::PROMPT, "input"), (row::RESPONSE, "output.completion")]);
    }
    gather.finish(&mapping)
}
