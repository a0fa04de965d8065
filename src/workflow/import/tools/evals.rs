//! Records of OpenAI evals: a line for what was run, a line an event, and a line for the report.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::ToolTerms;
use super::chosen;
use super::gather::Beside;
use super::gather::Gatherer;
use super::gather::ToolRecord;
use super::json::Lines;
use super::json::Node;
use super::json::NodeFault;
use super::json::Object;
use crate::import::How;
use crate::import::ImportError;
use crate::import::ImportRows;
use crate::import::row;

/// The score of an event `match`: whether it is correct.
const CORRECT: &str = "correct";
/// Events that hold scores.
const SCORED: [&str; 2] = ["match", "metrics"];
/// Events that hold texts.
const SAMPLED: [&str; 2] = ["sampling", "raw_sample"];
/// Members of an event that are read.
const EVENT: [&str; 5] = ["data", "event_id", "run_id", "sample_id", "type"];
/// An event that says why a sample failed.
const ERROR: &str = "error";

/// An event of a file.
struct EvalsEvent<'a> {
    line: u64,
    sample: String,
    kind: String,
    data: Object<'a>,
    /// Its members, where it is scored: others stand where they came from.
    whole: Object<'a>,
}

/// What was run.
#[derive(Default)]
struct EvalsRun {
    id: Option<String>,
    model: Option<String>,
}

impl EvalsRun {
    /// Refuses what is of another run than what stands before it.
    fn is_one(&mut self, id: Option<String>) -> Result<(), NodeFault> {
        let Some(id) = id else {
            return Ok(());
        };
        let known = self.id.get_or_insert_with(|| id.clone());
        if *known == id {
            return Ok(());
        }
        let what =
            format!("expected {known:?}, the run of this file, found {id:?}; each run is a file");
        Err(("run_id".to_owned(), what))
    }
}

/// Prompt and response of a sample.
type EvalsTexts = BTreeMap<String, (Option<String>, Option<String>)>;

/// Reads one file of records.
pub(super) fn rows(
    (file, bytes): (&str, &[u8]),
    terms: ToolTerms<'_>,
    how: How<'_>,
) -> Result<ImportRows, ImportError> {
    let mut gather = Gatherer::new(file, how);
    let (text, documents) = gather.documents(bytes)?;
    let (mut lines, mut events, mut run) = (Lines::of(text), Vec::new(), EvalsRun::default());
    let mut others: BTreeMap<String, u64> = BTreeMap::new();
    let mut errors: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for raw in documents {
        let line = lines.line(raw);
        match line_of(&Node::new(raw, ""), line, &mut run) {
            Ok(Some(event)) if is_read(&event) => events.push(event),
            Ok(Some(event)) if event.kind == ERROR && !event.sample.is_empty() => {
                let why = event.data.text("message").ok().flatten();
                let why = why.unwrap_or_else(|| "an error without a message".to_owned());
                errors.entry(event.sample).or_insert((line, why));
            }
            Ok(Some(event)) => *others.entry(event.kind).or_default() += 1,
            Ok(None) => {}
            Err(fault) => gather.refuse(line, fault)?,
        }
    }
    for (kind, count) in others {
        gather.warn(format!(
            "{count} events of type {kind} hold no score and no text, and are not read"
        ));
    }
    let texts = texts(&mut gather, &events)?;
    let taken = taken(&events, terms).map_err(|fault| gather.whole(fault))?;
    let mut failed = BTreeSet::new();
    for event in &events {
        match record(&mut gather, event, &taken, (run.model.as_ref(), &texts)) {
            Ok(Some(record)) => match errors.get(&event.sample) {
                Some((_, why)) => {
                    failed.insert(event.sample.clone());
                    gather.failed(&record, why.clone())?;
                }
                None => gather.take(&record, Beside::default())?,
            },
            Ok(None) => {}
            Err(fault) => gather.refuse(event.line, fault)?,
        }
    }
    errors.retain(|sample, _| !failed.contains(sample));
    for (sample, (line, why)) in errors {
        let mut record = ToolRecord::new(line, "");
        record.put(row::PROMPT_ID, sample);
        if gather.how.policy.is_none() {
            record.put(row::TARGET_POLICY, run.model.clone());
        }
        gather.decline(&record, Some(why))?;
    }
    let score = format!("data.{taken}");
    let mut mapping = vec![
        (row::JUDGE_SCORE, score.as_str()),
        (row::PROMPT, "data.prompt"),
        (row::PROMPT_ID, "sample_id"),
        (row::RESPONSE, "data.sampled"),
    ];
    if gather.how.policy.is_none() {
        mapping.push((row::TARGET_POLICY, "spec.completion_fns[0]"));
    }
    gather.finish(&mapping)
}

fn is_read(event: &EvalsEvent<'_>) -> bool {
    let kind = event.kind.as_str();
    SCORED.contains(&kind) || SAMPLED.contains(&kind)
}

/// A line: an event, or what was run, whose model is then known; nothing of the report is read.
fn line_of<'a>(
    node: &Node<'a>,
    line: u64,
    run: &mut EvalsRun,
) -> Result<Option<EvalsEvent<'a>>, NodeFault> {
    let whole = node.object()?;
    if let Some(spec) = whole.get("spec") {
        let spec = spec.object()?;
        let asked = spec.needs("completion_fns", "a list of names")?.list()?;
        let first = asked.first().map(Node::text).transpose()?;
        if run.model.is_some() && run.model != first {
            let what =
                "expected records of one run, found another model; each run is a file".to_owned();
            return Err(("spec.completion_fns".to_owned(), what));
        }
        run.is_one(spec.text("run_id")?)?;
        run.model = first;
        return Ok(None);
    }
    if whole.get("final_report").is_some() {
        return Ok(None);
    }
    run.is_one(whole.text("run_id")?)?;
    let kind = whole.needs("type", "of an event")?.text()?;
    Ok(Some(EvalsEvent {
        line,
        sample: match whole.get("sample_id") {
            Some(sample) => sample.name()?,
            None if !SCORED.contains(&kind.as_str()) => String::new(),
            None => whole.needs("sample_id", "the name of a sample")?.name()?,
        },
        kind,
        data: whole.needs("data", "an object")?.object()?,
        whole,
    }))
}

/// Texts of samples: what was sampled first, since a judge that is a model is sampled after it.
fn texts(gather: &mut Gatherer<'_>, events: &[EvalsEvent<'_>]) -> Result<EvalsTexts, ImportError> {
    let (mut texts, mut later) = (EvalsTexts::new(), 0_u64);
    for event in events {
        if !SAMPLED.contains(&event.kind.as_str()) {
            continue;
        }
        if texts.contains_key(&event.sample) {
            later += 1;
            continue;
        }
        let prompt = event.data.get("prompt").map(|of| of.as_written());
        match sampled(&event.data) {
            Ok(response) => {
                texts.insert(event.sample.clone(), (prompt, response));
            }
            Err(fault) => gather.refuse(event.line, fault)?,
        }
    }
    if later > 0 {
        gather.warn(format!(
            "{later} events hold what was sampled later for the same sample, as judges that are models are asked: the first is its text"
        ));
    }
    Ok(texts)
}

/// What was sampled: a text, or a list of one.
fn sampled(data: &Object<'_>) -> Result<Option<String>, NodeFault> {
    let Some(sampled) = data.get("sampled") else {
        return Ok(None);
    };
    if !sampled.is_list() {
        return Ok(Some(sampled.as_written()));
    }
    let all = sampled.list()?;
    Ok(match all.as_slice() {
        [one] => Some(one.as_written()),
        _ => Some(sampled.as_written()),
    })
}

/// The score that is taken. Numbers and flags of `metrics` are scores; of `match` it is whether it is correct.
fn taken(events: &[EvalsEvent<'_>], terms: ToolTerms<'_>) -> Result<String, NodeFault> {
    let mut names = BTreeSet::new();
    for event in events {
        match event.kind.as_str() {
            "match" => {
                names.insert(CORRECT.to_owned());
            }
            "metrics" => {
                let numbers = event.data.members();
                let numbers = numbers.filter(|(_, node)| node.number().is_ok());
                names.extend(numbers.map(|(name, _)| name.to_owned()));
            }
            _ => {}
        }
    }
    chosen::score(&names, terms.score)
}

/// The record of an event, where it has the score that is taken.
fn record(
    gather: &mut Gatherer<'_>,
    event: &EvalsEvent<'_>,
    taken: &str,
    (model, texts): (Option<&String>, &EvalsTexts),
) -> Result<Option<ToolRecord>, NodeFault> {
    if !SCORED.contains(&event.kind.as_str()) {
        return Ok(None);
    }
    let Some(score) = event.data.get(taken) else {
        gather.leave(&event.data, "data.", &[]);
        return Ok(None);
    };
    gather.leave(&event.whole, "", &EVENT);
    let mut record = ToolRecord::new(event.line, "");
    record.put(row::PROMPT_ID, event.sample.clone());
    record.put(row::JUDGE_SCORE, score.number()?);
    if gather.how.policy.is_none() {
        record.put(row::TARGET_POLICY, model.cloned());
    }
    if let Some((prompt, response)) = texts.get(&event.sample) {
        record.put(row::PROMPT, prompt.clone());
        record.put(row::RESPONSE, response.clone());
    }
    record.all_beside(&event.data);
    Ok(Some(record))
}
