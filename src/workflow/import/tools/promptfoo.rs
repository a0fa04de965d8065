//! Results of promptfoo: the summary as it is, in the wrapper of an export, and the older one with `outputs`.
//!
//! A result that failed by an error has no score. The item of a result is named after its prompt's label and its variables,
//! so that every provider answers the same items; a result that repeats both is the next draw.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_ground::canon;
use clover_ground::digest::Digest;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;

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
use crate::import::Brings;
use crate::import::How;
use crate::import::ImportError;
use crate::import::ImportRows;
use crate::import::row;

/// Hexadecimal digits of the hash that names an item.
const NAME_DIGITS: usize = 16;
/// `failureReason` of a result that is an error.
const ERROR: &str = "2";
/// Variables and metadata that promptfoo itself puts there.
const OWN: &str = "_promptfoo";
/// Members of a result that are read.
const RESULT: [&str; 17] = [
    "error",
    "failureReason",
    "gradingResult",
    "metadata",
    "namedScores",
    "output",
    "prompt",
    "promptId",
    "promptIdx",
    "provider",
    "providerId",
    "response",
    "score",
    "testCase",
    "testIdx",
    "text",
    "vars",
];

/// How many draws there are so far, by policy and item.
type DrawCounts = BTreeMap<(String, String), u64>;

/// Reads one file of results.
pub(super) fn rows(
    (file, bytes): (&str, &[u8]),
    terms: ToolTerms<'_>,
    how: How<'_>,
) -> Result<ImportRows, ImportError> {
    let mut gather = Gatherer::new(file, how);
    let (text, documents) = gather.documents(bytes)?;
    let [document] = documents.as_slice() else {
        let what = format!("expected one JSON document, found {}", documents.len());
        return Err(gather.whole((String::new(), what)));
    };
    let results = results(&Node::new(document, "")).map_err(|fault| gather.whole(fault))?;
    if let Some(score) = terms.score {
        named_is_there(&results, score).map_err(|fault| gather.whole(fault))?;
    }
    let (mut lines, mut draws) = (Lines::of(text), DrawCounts::new());
    for node in &results {
        let line = lines.line(node.raw);
        match result(&mut gather, line, node, terms, &mut draws) {
            Ok((record, Ok(beside))) => gather.take(&record, beside)?,
            Ok((record, Err(reason))) => gather.decline(&record, reason)?,
            Err(fault) => gather.refuse(line, fault)?,
        }
    }
    repeated(&mut gather, &draws);
    let score = terms.score.map(|name| format!("namedScores.{name}"));
    let mut mapping = vec![
        (row::PROMPT, "prompt.raw"),
        (row::PROMPT_ID, "prompt.label and vars"),
        (row::RESPONSE, "response.output"),
    ];
    if gather.how.brings == Brings::Scores {
        mapping.push((row::JUDGE_SCORE, score.as_deref().unwrap_or("score")));
    }
    if gather.how.policy.is_none() {
        mapping.push((row::TARGET_POLICY, "provider.label or provider.id"));
    }
    gather.finish(&mapping)
}

/// The results of a document, in whichever shape.
fn results<'a>(document: &Node<'a>) -> Result<Vec<Node<'a>>, NodeFault> {
    let results = document.object()?.needs("results", "of promptfoo")?;
    if results.is_list() {
        return results.list();
    }
    let inner = results.object()?;
    let found = inner.get("results").or_else(|| inner.get("outputs"));
    let found = found.ok_or_else(|| results.fault("results or outputs"))?;
    found.list()
}

/// Refuses the name of a score that no result has.
fn named_is_there(results: &[Node<'_>], score: &str) -> Result<(), NodeFault> {
    let mut names = BTreeSet::new();
    for node in results {
        if let Some(named) = node.object().ok().and_then(|of| of.get("namedScores"))
            && let Ok(named) = named.object()
        {
            names.extend(named.names().map(str::to_owned));
        }
    }
    chosen::score(&names, Some(score)).map(|_| ())
}

/// Says which results share prompt and variables.
fn repeated(gather: &mut Gatherer<'_>, draws: &DrawCounts) {
    let again: u64 = draws.values().map(|count| count - 1).sum();
    if again > 0 {
        gather.warn(format!(
            "{again} results repeat the prompt and the variables of another by the same provider: each is a draw of its own, in order of the file"
        ));
    }
}

/// Reads one result; one without a score says why.
fn result(
    gather: &mut Gatherer<'_>,
    line: u64,
    node: &Node<'_>,
    terms: ToolTerms<'_>,
    draws: &mut DrawCounts,
) -> Result<(ToolRecord, ToolOutcome), NodeFault> {
    let object = node.object()?;
    gather.leave(&object, "", &RESULT);
    let mut record = ToolRecord::new(line, &node.path);
    let policy = provider(&object)?;
    let vars = vars(&object)?;
    let item = item(&object, vars.as_ref())?;
    let drawn = draws.entry((policy.clone(), item.clone())).or_default();
    record.put(row::DRAW_IDX, drawn.to_string());
    *drawn += 1;
    record.put(row::PROMPT_ID, item);
    if gather.how.policy.is_none() {
        record.put(row::TARGET_POLICY, policy);
    }
    texts(&mut record, &object)?;
    for of in [vars, object.get("metadata")].into_iter().flatten() {
        for (name, node) in of.object()?.members() {
            if !name.starts_with(OWN) {
                record.beside(name, &node);
            }
        }
    }
    let outcome = match gather.how.brings {
        Brings::Texts => Err(None),
        Brings::Scores | Brings::Labels => outcome(&mut record, &object, terms)?,
    };
    Ok((record, outcome))
}

/// The score of a result, or why it has none.
fn outcome(
    record: &mut ToolRecord,
    object: &Object<'_>,
    terms: ToolTerms<'_>,
) -> Result<ToolOutcome, NodeFault> {
    let grading = object
        .get("gradingResult")
        .map(|of| of.object())
        .transpose()?;
    let failure = object
        .get("failureReason")
        .map(|of| of.name())
        .transpose()?;
    let error = object.get("error").map(|of| of.as_written());
    let is_error = match &failure {
        Some(failure) => failure == ERROR,
        // Older results do not say: an error that nobody graded is one.
        None => error.is_some() && grading.is_none(),
    };
    if is_error {
        return Ok(Err(error));
    }
    let score = match terms.score {
        Some(name) => {
            let named = object.needs("namedScores", "an object")?.object()?;
            named.needs(name, "the score that was asked for")?
        }
        None => match (object.get("score"), &grading) {
            (Some(score), _) => score,
            (None, Some(grading)) => grading.needs("score", "a number")?,
            (None, None) => object.needs("score", "a number")?,
        },
    };
    record.put(row::JUDGE_SCORE, score.number()?);
    let reason = match (terms.score, &grading) {
        // What is said of the whole is not said of a part.
        (None, Some(grading)) => grading.text("reason")?,
        _ => None,
    };
    let edits = Vec::new();
    Ok(Ok(Beside { reason, edits }))
}

/// Who answered: the label of the provider where it has one, else its id.
fn provider(object: &Object<'_>) -> Result<String, NodeFault> {
    let Some(provider) = object.get("provider") else {
        return object.needs("providerId", "the name of a provider")?.text();
    };
    if provider.is_text() {
        return provider.text();
    }
    let provider = provider.object()?;
    match provider.text("label")? {
        Some(label) => Ok(label),
        None => provider.needs("id", "the name of a provider")?.text(),
    }
}

/// The variables of a test: of its case where it has one, as CJE's bridge reads them.
fn vars<'a>(object: &Object<'a>) -> Result<Option<Node<'a>>, NodeFault> {
    let case = object.get("testCase").filter(Node::is_object);
    let case = case.map(|case| case.object()).transpose()?;
    let of_case = case.and_then(|case| case.get("vars"));
    let found = of_case.or_else(|| object.get("vars"));
    Ok(found.filter(Node::is_object))
}

/// What the name of an item is a hash of.
#[derive(Serialize)]
struct ItemBasis {
    prompt: String,
    vars: Map<String, Value>,
}

/// The name of the item of a result: the hash that CJE's bridge puts behind the label, so that labels by those names can be
/// joined, and no text of a prompt is public.
fn item(object: &Object<'_>, vars: Option<&Node<'_>>) -> Result<String, NodeFault> {
    let vars = match vars {
        None => Map::new(),
        Some(vars) => {
            serde_json::from_str(vars.raw.get()).map_err(|_| vars.fault("an object of values"))?
        }
    };
    let prompt = label(object)?;
    let basis = canon::to_bytes(&ItemBasis { prompt, vars }).map_err(|error| {
        let what = format!("expected variables with a canonical form: {error}");
        (format!("{}.vars", object.path), what)
    })?;
    let hex = Digest::sha256(&basis).to_hex();
    Ok(hex.chars().take(NAME_DIGITS).collect())
}

/// The label of the prompt.
fn label(object: &Object<'_>) -> Result<String, NodeFault> {
    let Some(prompt) = object.get("prompt") else {
        return object.needs("promptId", "the name of a prompt")?.text();
    };
    if prompt.is_text() {
        return prompt.text();
    }
    let prompt = prompt.object()?;
    match prompt.text("label")? {
        Some(label) => Ok(label),
        None => prompt.needs("id", "the name of a prompt")?.text(),
    }
}

/// The texts of a result.
fn texts(record: &mut ToolRecord, object: &Object<'_>) -> Result<(), NodeFault> {
    let prompt = object.get("prompt");
    let raw = match &prompt {
        Some(prompt) if prompt.is_object() => prompt.object()?.get("raw"),
        _ => prompt,
    };
    record.put(row::PROMPT, raw.map(|raw| raw.as_written()));
    let response = object.get("response").filter(Node::is_object);
    let response = response.map(|of| of.object()).transpose()?;
    let output = response.and_then(|of| of.get("output"));
    let output = output.or_else(|| object.get("output"));
    let output = output.or_else(|| object.get("text"));
    record.put(row::RESPONSE, output.map(|output| output.as_written()));
    Ok(())
}
