//! Log files of OpenTelemetry as OTLP/JSON: one event `gen_ai.evaluation.result` is one score.
//!
//! The conventions are still in development, so their names stand in one table.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::ToolTerms;
use super::chosen;
use super::gather::Beside;
use super::gather::Gatherer;
use super::gather::ToolOutcome;
use super::gather::ToolRecord;
use super::json::Lines;
use super::json::Node;
use super::json::NodeFault;
use super::json::Object;
use crate::import::How;
use crate::import::ImportError;
use crate::import::ImportRows;
use crate::import::row;

/// Names of the semantic conventions for generative AI, as they stood in May 2026, and what each is read as.
pub const NAMES: [(&str, &str); 9] = [
    (EVENT, "the event"),
    (NAME, "which score it is"),
    (VALUE, "judge_score"),
    (LABEL, "a word for the score, which is not read"),
    (EXPLANATION, "why, kept as a private note"),
    (RESPONSE_ID, "prompt_id"),
    (RESPONSE_MODEL, "target_policy"),
    (
        REQUEST_MODEL,
        "target_policy, where there is no model of a response",
    ),
    (
        ERROR,
        "why there is no score, whatever value stands beside it",
    ),
];
const EVENT: &str = "gen_ai.evaluation.result";
const NAME: &str = "gen_ai.evaluation.name";
const VALUE: &str = "gen_ai.evaluation.score.value";
const LABEL: &str = "gen_ai.evaluation.score.label";
const EXPLANATION: &str = "gen_ai.evaluation.explanation";
const RESPONSE_ID: &str = "gen_ai.response.id";
const RESPONSE_MODEL: &str = "gen_ai.response.model";
const REQUEST_MODEL: &str = "gen_ai.request.model";
const ERROR: &str = "error.type";
/// Where older exporters put the name of an event.
const EVENT_NAME: &str = "event.name";

/// Attributes that are read.
const READ: [&str; 9] = [
    NAME,
    VALUE,
    LABEL,
    EXPLANATION,
    RESPONSE_ID,
    RESPONSE_MODEL,
    REQUEST_MODEL,
    ERROR,
    EVENT_NAME,
];
/// Members of a log record that are read.
const RECORD: [&str; 4] = ["attributes", "eventName", "spanId", "traceId"];

/// Attributes by name: the kind of each value, and the value.
type Attributes<'a> = BTreeMap<String, (String, Node<'a>)>;

/// An event of a file.
struct OtelEvent<'a> {
    line: u64,
    record: Object<'a>,
    attributes: Attributes<'a>,
}

/// Reads one log file.
pub(super) fn rows(
    (file, bytes): (&str, &[u8]),
    terms: ToolTerms<'_>,
    how: How<'_>,
) -> Result<ImportRows, ImportError> {
    let mut gather = Gatherer::new(file, how);
    let (text, documents) = gather.documents(bytes)?;
    let (mut lines, mut events, mut others) = (Lines::of(text), Vec::new(), 0_u64);
    for raw in documents {
        let line = lines.line(raw);
        let found = records(&Node::new(raw, "")).map_err(|fault| gather.whole(fault))?;
        for (node, around) in found {
            let at = lines.line(node.raw).max(line);
            match event(&node, at, around) {
                Ok(Some(event)) => events.push(event),
                Ok(None) => others += 1,
                Err(fault) => gather.refuse(at, fault)?,
            }
        }
    }
    if others > 0 {
        gather.warn(format!(
            "{others} records are no event {EVENT} and are not read"
        ));
    }
    let taken = taken(&mut gather, &events, terms)?;
    for event in &events {
        match score(&mut gather, event, &taken) {
            Ok(Some((record, Ok(beside)))) => gather.take(&record, beside)?,
            Ok(Some((record, Err(reason)))) if event.attributes.contains_key(VALUE) => {
                gather.failed(&record, reason.unwrap_or_default())?;
            }
            Ok(Some((record, Err(reason)))) => gather.decline(&record, reason)?,
            Ok(None) => {}
            Err(fault) => gather.refuse(event.line, fault)?,
        }
    }
    let mut mapping = vec![
        (row::JUDGE_SCORE, VALUE),
        (row::PROMPT_ID, "gen_ai.response.id, or traceId-spanId"),
    ];
    if gather.how.policy.is_none() {
        mapping.push((
            row::TARGET_POLICY,
            "gen_ai.response.model, or gen_ai.request.model",
        ));
    }
    gather.finish(&mapping)
}

/// The log records of a document, each with the attributes of what emitted it.
fn records<'a>(document: &Node<'a>) -> Result<Vec<(Node<'a>, Option<Node<'a>>)>, NodeFault> {
    let mut all = Vec::new();
    let logs = document.object()?.needs("resourceLogs", "of OTLP/JSON")?;
    for logs in logs.list()? {
        let logs = logs.object()?;
        let resource = logs.get("resource").map(|of| of.object()).transpose()?;
        let around = resource.and_then(|of| of.get("attributes"));
        let scopes = logs.get("scopeLogs").map(|of| of.list()).transpose()?;
        for scope in scopes.unwrap_or_default() {
            let scope = scope.object()?;
            let records = scope.get("logRecords").map(|of| of.list()).transpose()?;
            let records = records.unwrap_or_default().into_iter();
            all.extend(records.map(|record| (record, around.clone())));
        }
    }
    Ok(all)
}

/// Puts attributes by their names; what is there already stands.
fn put<'a>(attributes: &mut Attributes<'a>, list: &Node<'a>) -> Result<(), NodeFault> {
    let mut own = BTreeSet::new();
    for node in list.list()? {
        let pair = node.object()?;
        let name = pair.needs("key", "the name of an attribute")?.text()?;
        let Some(value) = pair.get("value") else {
            continue;
        };
        let value = value.object()?;
        let Some((kind, node)) = value.members().next() else {
            continue;
        };
        if !own.insert(name.clone()) {
            let what = format!("expected each attribute once, found {name} twice");
            return Err((list.path.clone(), what));
        }
        let found = (kind.to_owned(), node);
        attributes.entry(name).or_insert(found);
    }
    Ok(())
}

/// The event of a log record; `None` where it is another.
fn event<'a>(
    node: &Node<'a>,
    line: u64,
    around: Option<Node<'a>>,
) -> Result<Option<OtelEvent<'a>>, NodeFault> {
    let record = node.object()?;
    let mut attributes = Attributes::new();
    if let Some(own) = record.get("attributes") {
        put(&mut attributes, &own)?;
    }
    let name = match record.text("eventName")? {
        Some(name) => Some(name),
        None => attributes
            .get(EVENT_NAME)
            .map(|(_, node)| node.as_written()),
    };
    if name.as_deref() != Some(EVENT) {
        return Ok(None);
    }
    if let Some(around) = around {
        put(&mut attributes, &around)?;
    }
    Ok(Some(OtelEvent {
        line,
        record,
        attributes,
    }))
}

impl OtelEvent<'_> {
    fn text(&self, name: &str) -> Option<String> {
        let (_, node) = self.attributes.get(name)?;
        Some(node.as_written()).filter(|text| !text.is_empty())
    }
}

/// The evaluation that is taken.
fn taken(
    gather: &mut Gatherer<'_>,
    events: &[OtelEvent<'_>],
    terms: ToolTerms<'_>,
) -> Result<String, ImportError> {
    let names: BTreeSet<_> = events.iter().filter_map(|event| event.text(NAME)).collect();
    let taken = chosen::score(&names, terms.score).map_err(|fault| gather.whole(fault))?;
    let left: Vec<_> = names.iter().filter(|name| **name != taken).collect();
    if !left.is_empty() {
        let left: Vec<_> = left.into_iter().map(String::as_str).collect();
        gather.warn(format!("other scores are left out: {}", left.join(", ")));
    }
    Ok(taken)
}

/// The record of an event of the evaluation that is taken, with its score or why it has none.
fn score(
    gather: &mut Gatherer<'_>,
    event: &OtelEvent<'_>,
    taken: &str,
) -> Result<Option<(ToolRecord, ToolOutcome)>, NodeFault> {
    let Some(name) = event.text(NAME) else {
        let what = format!("expected {NAME}, found none");
        return Err((event.record.path.clone(), what));
    };
    if name != taken {
        return Ok(None);
    }
    gather.leave(&event.record, "", &RECORD);
    let mut record = ToolRecord::new(event.line, &event.record.path);
    record.put(row::PROMPT_ID, item(event)?);
    if gather.how.policy.is_none() {
        let model = event.text(RESPONSE_MODEL);
        record.put(
            row::TARGET_POLICY,
            model.or_else(|| event.text(REQUEST_MODEL)),
        );
    }
    for (name, (_, node)) in &event.attributes {
        if !READ.contains(&name.as_str()) {
            record.beside(name, node);
        }
    }
    let reason = event.text(EXPLANATION);
    let Some((kind, value)) = event.attributes.get(VALUE) else {
        let Some(error) = event.text(ERROR) else {
            let what = format!("expected {VALUE}, a number, found none; a label is no score");
            return Err((event.record.path.clone(), what));
        };
        return Ok(Some((record, Err(reason.or(Some(error))))));
    };
    if let Some(error) = event.text(ERROR) {
        return Ok(Some((record, Err(Some(error)))));
    }
    // A whole number is a text in this form of JSON.
    let number = match kind.as_str() {
        "intValue" => value.name()?,
        "doubleValue" => value.number()?,
        _ => return Err(value.fault("doubleValue or intValue")),
    };
    record.put(row::JUDGE_SCORE, number);
    let edits = Vec::new();
    Ok(Some((record, Ok(Beside { reason, edits }))))
}

/// What was evaluated: the response where it is named, else the span.
fn item(event: &OtelEvent<'_>) -> Result<String, NodeFault> {
    if let Some(response) = event.text(RESPONSE_ID) {
        return Ok(response);
    }
    let (trace, span) = (event.record.text("traceId")?, event.record.text("spanId")?);
    if let (Some(trace), Some(span)) = (trace, span) {
        return Ok(format!("{trace}-{span}"));
    }
    let what = format!("expected {RESPONSE_ID}, or traceId and spanId, found neither");
    Err((event.record.path.clone(), what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_the_names() {
        let page = include_str!("../../../../schema/IMPORTS.md");
        for (name, meaning) in NAMES {
            let line = format!("| `{name}` | {meaning} |");
            assert!(page.contains(&line), "{line}");
        }
    }
}
