//! Scores of Langfuse: pages of its API, and exports as JSON, JSON Lines and CSV.
//!
//! Who gave a score stands in its source: a judge (`EVAL`), a person (`ANNOTATION`), or whoever asked the API, of which only
//! the person who imports knows what it was.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde_json::Map;
use serde_json::Value;

use super::TakenAs;
use super::ToolTerms;
use super::chosen;
use super::gather::Beside;
use super::gather::Gatherer;
use super::gather::ToolOutcome;
use super::gather::ToolRecord;
use super::json;
use super::json::Lines;
use super::json::Node;
use super::json::NodeFault;
use super::json::Object;
use crate::import::How;
use crate::import::ImportError;
use crate::import::ImportRows;
use crate::import::csv;
use crate::import::form::FileForm;
use crate::import::labels;
use crate::import::row;

/// Members of a score that are read.
const SCORE: [&str; 13] = [
    "authorUserId",
    "dataType",
    "datasetRunId",
    "metadata",
    "name",
    "observationId",
    "sessionId",
    "source",
    "stringValue",
    "subject",
    "timestamp",
    "traceId",
    "value",
];
/// What is read of a score of a judge alone.
const COMMENT: &str = "comment";
/// Members that may be kept beside a row, with those of its metadata.
const BESIDE: [&str; 4] = ["environment", "traceName", "configId", "queueId"];
/// Types of data that are no scores.
const TEXTS: [&str; 2] = ["TEXT", "CORRECTION"];
/// The option that says what scores are.
const AS: &str = "--as";

/// Who gave a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ScoreSource {
    Annotation,
    Api,
    Eval,
}

impl ScoreSource {
    fn of(node: &Node<'_>) -> Result<Self, NodeFault> {
        match node.text()?.as_str() {
            "ANNOTATION" => Ok(Self::Annotation),
            "API" => Ok(Self::Api),
            "EVAL" => Ok(Self::Eval),
            _ => Err(node.fault("ANNOTATION, API or EVAL")),
        }
    }
}

/// A score of a file.
struct LangfuseScore<'a> {
    line: u64,
    name: String,
    source: ScoreSource,
    object: Object<'a>,
}

/// What a file holds.
#[derive(Default)]
struct LangfuseFile<'a> {
    scores: Vec<LangfuseScore<'a>>,
    /// Scores that are texts, and scores of whole experiments.
    left: BTreeMap<&'static str, u64>,
    /// Whether a page names one that follows.
    goes_on: bool,
    /// How many scores of how many pages there are, where pages say so, and which pages were read.
    all: Option<u64>,
    pages: Option<u64>,
    read: BTreeSet<u64>,
    held: u64,
}

impl LangfuseFile<'_> {
    /// What is missing of what its pages say that there is.
    fn missing(&self) -> Option<String> {
        let (held, read) = (self.held, self.read.len() as u64);
        match (self.all, self.pages) {
            (Some(all), _) if all > held => Some(format!("{held} of {all} scores")),
            (_, Some(pages)) if pages > read => Some(format!("{read} of {pages} pages")),
            _ => None,
        }
    }
}

/// Reads one file of scores.
pub(super) fn rows(
    (file, bytes): (&str, &[u8]),
    terms: ToolTerms<'_>,
    how: How<'_>,
) -> Result<ImportRows, ImportError> {
    let mut gather = Gatherer::new(file, how);
    let text = gather.text(bytes)?;
    let is_table = matches!(FileForm::of(bytes), FileForm::Csv | FileForm::LangfuseTable);
    let (joined, table) = if is_table {
        let found = of_table(text);
        found.map_err(|(line, what)| ImportError::new(file, line, None, what))?
    } else {
        (String::new(), Vec::new())
    };
    let text = if is_table { joined.as_str() } else { text };
    gather.checked(text, |_| false)?;
    let found = read(&mut gather, text, &table)?;
    if found.goes_on {
        gather.warn(
            "a page of this file names a page that follows it: every page is to be taken in"
                .to_owned(),
        );
    }
    if let Some(missing) = found.missing() {
        gather.warn(format!(
            "this file has {missing}, as its pages say: every page is to be taken in"
        ));
    }
    for (what, count) in &found.left {
        gather.warn(format!("{count} scores are left out: {what}"));
    }
    let taken_as = terms.taken_as.unwrap_or(TakenAs::Judge);
    told(&found.scores, terms.taken_as).map_err(|fault| gather.whole(fault))?;
    let is_taken = |of: &&LangfuseScore<'_>| match taken_as {
        TakenAs::Judge => of.source != ScoreSource::Annotation,
        TakenAs::Label => of.source != ScoreSource::Eval,
    };
    let taken: Vec<_> = found.scores.iter().filter(is_taken).collect();
    left_out(&mut gather, found.scores.len() - taken.len(), taken_as);
    let names: BTreeSet<_> = taken.iter().map(|of| of.name.clone()).collect();
    let name = chosen::score(&names, terms.score).map_err(|fault| gather.whole(fault))?;
    let mut others: Vec<_> = names.iter().map(String::as_str).collect();
    others.retain(|other| *other != name);
    if !others.is_empty() {
        gather.warn(format!("other scores are left out: {}", others.join(", ")));
    }
    for of in taken.into_iter().filter(|of| of.name == name) {
        match score(&mut gather, of, taken_as) {
            Ok((record, Ok(beside))) => gather.take(&record, beside)?,
            Ok((record, Err(reason))) => gather.decline(&record, reason)?,
            Err(fault) => gather.refuse(of.line, fault)?,
        }
    }
    finish(gather, taken_as)
}

fn finish(gather: Gatherer<'_>, taken_as: TakenAs) -> Result<ImportRows, ImportError> {
    let id = "subject.id, or observationId, traceId, sessionId";
    match taken_as {
        TakenAs::Judge => gather.finish(&[(row::JUDGE_SCORE, "value"), (row::PROMPT_ID, id)]),
        TakenAs::Label => gather.finish(&[
            (row::ORACLE_LABEL, "value"),
            (row::PROMPT_ID, id),
            (labels::RATER, "authorUserId"),
            (labels::TIME, "timestamp"),
        ]),
    }
}

/// Says what other sources gave.
fn left_out(gather: &mut Gatherer<'_>, left: usize, taken_as: TakenAs) {
    gather.holds_labels = left > 0 && taken_as == TakenAs::Judge;
    if left > 0 {
        gather.warn(match taken_as {
            TakenAs::Judge => format!(
                "{left} annotations by people are left out: --as label takes them as labels"
            ),
            TakenAs::Label => {
                format!("{left} scores of judges are left out: --as judge takes them as scores")
            }
        });
    }
}

/// Refuses scores of which nobody says what they are.
fn told(scores: &[LangfuseScore<'_>], taken_as: Option<TakenAs>) -> Result<(), NodeFault> {
    if taken_as.is_some() {
        return Ok(());
    }
    let of = |source| scores.iter().filter(|of| of.source == source).count();
    let (api, eval) = (of(ScoreSource::Api), of(ScoreSource::Eval));
    if api > 0 {
        let what = format!(
            "expected judge or label, as {api} scores came by the API: a judge or a person may have sent them"
        );
        return Err((AS.to_owned(), what));
    }
    if eval == 0 && !scores.is_empty() {
        let what = format!(
            "expected scores of a judge, found {} annotations by people: --as label takes them as labels",
            scores.len()
        );
        return Err((AS.to_owned(), what));
    }
    Ok(())
}

/// The records of a table as JSON, one a line, with the line of each in the table.
fn of_table(text: &str) -> Result<(String, Vec<u64>), csv::LineFault> {
    let mut records = csv::records(text)?.into_iter();
    let (_, header) = records.next().unwrap_or_default();
    let (mut joined, mut lines) = (String::new(), Vec::new());
    for (line, cells) in records {
        if cells.len() != header.len() {
            let (wanted, found) = (header.len(), cells.len());
            let what = format!("expected {wanted} fields as in the header, found {found}");
            return Err((line, what));
        }
        let mut object = Map::new();
        for (name, cell) in header
            .iter()
            .zip(cells)
            .filter(|(_, cell)| !cell.is_empty())
        {
            let is_written = ["metadata", "subject", "value"].contains(&name.as_str());
            let written = || serde_json::from_str(&cell).ok();
            let value: Option<Value> = is_written.then(written).flatten();
            let value = value.unwrap_or(Value::String(cell));
            if object.insert(name.clone(), value).is_some() {
                let what = format!("expected each column once, found {name:?} twice");
                return Err((1, what));
            }
        }
        joined.push_str(&Value::Object(object).to_string());
        joined.push('\n');
        lines.push(line);
    }
    Ok((joined, lines))
}

/// Reads the scores of a text; `table` has the line of each where they came from a table.
fn read<'t>(
    gather: &mut Gatherer<'_>,
    text: &'t str,
    table: &[u64],
) -> Result<LangfuseFile<'t>, ImportError> {
    let documents = json::documents(text).map_err(|fault| gather.json(fault))?;
    let (mut lines, mut found) = (Lines::of(text), LangfuseFile::default());
    for (at, raw) in documents.into_iter().enumerate() {
        let line = match table.get(at) {
            Some(line) => *line,
            None => lines.line(raw),
        };
        let nodes = match page(&Node::new(raw, ""), &mut found) {
            Ok(nodes) => nodes,
            Err(fault) => {
                gather.refuse(line, fault)?;
                continue;
            }
        };
        for node in nodes {
            let line = if table.is_empty() {
                lines.line(node.raw)
            } else {
                line
            };
            if let Err(fault) = one(&node, line, &mut found) {
                gather.refuse(line, fault)?;
            }
        }
    }
    Ok(found)
}

/// The scores of a document: of a page, of a list, or itself.
fn page<'t>(document: &Node<'t>, found: &mut LangfuseFile<'t>) -> Result<Vec<Node<'t>>, NodeFault> {
    if document.is_list() {
        return document.list();
    }
    let object = document.object()?;
    let Some(data) = object.get("data").filter(Node::is_list) else {
        return Ok(vec![document.clone()]);
    };
    let data = data.list()?;
    found.held += data.len() as u64;
    if let Some(meta) = object.get("meta").map(|of| of.object()).transpose()? {
        let number = |name: &str| meta.get(name)?.raw.get().parse::<u64>().ok();
        found.goes_on = meta.get("cursor").is_some();
        found.all = found.all.max(number("totalItems"));
        found.pages = found.pages.max(number("totalPages"));
        found.read.extend(number("page"));
    }
    Ok(data)
}

/// Reads one score.
fn one<'t>(node: &Node<'t>, line: u64, found: &mut LangfuseFile<'t>) -> Result<(), NodeFault> {
    let object = node.object()?;
    if let Some(kind) = object.text("dataType")?
        && TEXTS.contains(&kind.as_str())
    {
        *found
            .left
            .entry("they are texts, and no scores")
            .or_default() += 1;
        return Ok(());
    }
    if subject(&object)?.is_none() {
        *found
            .left
            .entry("they are of whole experiments")
            .or_default() += 1;
        return Ok(());
    }
    let source = ScoreSource::of(&object.needs("source", "who gave the score")?)?;
    found.scores.push(LangfuseScore {
        line,
        name: object.needs("name", "of the score")?.text()?,
        source,
        object,
    });
    Ok(())
}

/// The id of what was scored; `None` of a whole experiment.
fn subject(object: &Object<'_>) -> Result<Option<String>, NodeFault> {
    if let Some(subject) = object.get("subject") {
        let subject = subject.object()?;
        let kind = subject.needs("kind", "of what was scored")?.text()?;
        let id = subject.needs("id", "of what was scored")?.text()?;
        return Ok((kind != "experiment").then_some(id));
    }
    for name in ["observationId", "traceId", "sessionId"] {
        if let Some(id) = object.text(name)? {
            return Ok(Some(id));
        }
    }
    if object.text("datasetRunId")?.is_some() {
        return Ok(None);
    }
    let what = "expected subject, traceId or observationId, found none; fields=subject asks the API for it";
    Err((object.path.clone(), what.to_owned()))
}

/// The record of a score, with its value or why it has none.
fn score(
    gather: &mut Gatherer<'_>,
    of: &LangfuseScore<'_>,
    taken_as: TakenAs,
) -> Result<(ToolRecord, ToolOutcome), NodeFault> {
    let object = &of.object;
    let mut read = [SCORE.as_slice(), &BESIDE].concat();
    if taken_as == TakenAs::Judge {
        read.push(COMMENT);
    }
    gather.leave(object, "", &read);
    let mut record = ToolRecord::new(of.line, &object.path);
    record.put(row::PROMPT_ID, subject(object)?);
    for name in BESIDE {
        if let Some(node) = object.get(name) {
            record.beside(name, &node);
        }
    }
    if let Some(metadata) = object.get("metadata").filter(Node::is_object) {
        let metadata = metadata.object()?;
        if gather.how.policy.is_none() {
            record.put(row::TARGET_POLICY, metadata.text(row::TARGET_POLICY)?);
        }
        record.all_beside(&metadata);
    }
    let value = object.get("value").or_else(|| object.get("stringValue"));
    let value = value.map(|value| number(&value)).transpose()?;
    if taken_as == TakenAs::Label {
        let author = object.text("authorUserId")?;
        if author.is_none() && of.source == ScoreSource::Annotation {
            let what = "expected authorUserId, found none; fields=annotation asks the API for it"
                .to_owned();
            return Err((object.path.clone(), what));
        }
        record.word_beside(labels::RATER, author);
        record.word_beside(labels::TIME, object.text("timestamp")?);
        record.put(row::ORACLE_LABEL, value);
        return Ok((record, Ok(Beside::default())));
    }
    let reason = object.text(COMMENT)?;
    let Some(value) = value else {
        return Ok((record, Err(reason)));
    };
    record.put(row::JUDGE_SCORE, value);
    let edits = Vec::new();
    Ok((record, Ok(Beside { reason, edits })))
}

/// A number or a flag; a category is no number that anybody said.
fn number(value: &Node<'_>) -> Result<String, NodeFault> {
    value.number().map_err(|_| {
        value.fault("a number or a flag, as a category has no order that the file says")
    })
}
