//! The signed log as an RO-Crate 1.1: `ledger.jsonl`, its checkpoints, and `ro-crate-metadata.json`, which says what they are,
//! which judges made scores, and who signed. `clover verify` reads the folder as any export.

use std::collections::BTreeSet;
use std::path::Path;

use clover_event::payload::estimate::EstimateRecorded;
use clover_event::payload::experiment::ExperimentRegistered;
use serde_json::Value;
use serde_json::json;

use super::Extract;
use super::RecordedAnswers;
use super::RecordedEvent;
use super::cje;
use super::create;
use super::cyclonedx::JudgeValues;
use super::write_json;
use crate::ExportError;
use crate::Exporter;
use crate::Progress;
use crate::Request;
use crate::Target;
use crate::jsonl::Jsonl;

/// Files of the crate: name, media type, what each is.
const FILES: [(&str, &str, &str); 3] = [
    (
        "ledger.jsonl",
        "application/jsonl",
        "Entry lines of the log: signed events in their order",
    ),
    (
        "checkpoints.jsonl",
        "application/jsonl",
        "Checkpoints that were kept",
    ),
    (
        "checkpoint",
        "text/plain",
        "Signed checkpoint over exactly these entries (C2SP tlog-checkpoint)",
    ),
];

/// Writes the folder; answers with the number of entries.
pub(super) fn write(
    extract: &Extract<'_>,
    folder: &Path,
    progress: Progress<'_>,
) -> Result<u64, ExportError> {
    let request = Request {
        checkpoint: extract.checkpoint.clone(),
        target: Target::Folder(folder),
        blobs: false,
    };
    let counts = Jsonl.write(extract.ledger, request, progress)?;
    let events = extract.decisions(&mut |_, _| {})?;
    let keys: BTreeSet<String> = events
        .iter()
        .map(|said| said.event.header.author.to_string())
        .collect();
    let mut graph = vec![json!({
        "@id": "ro-crate-metadata.json",
        "@type": "CreativeWork",
        "conformsTo": { "@id": "https://w3id.org/ro/crate/1.1" },
        "about": { "@id": "./" },
    })];
    let actions = judged(&events, extract.answers, &mut graph);
    for (name, media, about) in FILES {
        graph.push(json!({ "@id": name, "@type": "File", "name": about, "encodingFormat": media }));
    }
    for key in &keys {
        graph.push(json!({ "@id": format!("#key/{key}"), "@type": "Person", "name": format!("Holder of key {key}"), "identifier": key }));
    }
    graph.push(dataset(extract, &events, &keys, &actions));
    let document = json!({ "@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph });
    write_json(
        create(folder, "ro-crate-metadata.json")?.as_mut(),
        &document,
    )?;
    Ok(counts.entries)
}

/// Adds judges and what each did; answers with references to what they did.
fn judged(
    events: &[RecordedEvent],
    answers: &RecordedAnswers,
    graph: &mut Vec<Value>,
) -> Vec<Value> {
    let last = events.last().map(|said| said.recorded_at.to_string());
    let mut actions = Vec::new();
    for judge in &JudgeValues::all(events, answers) {
        let (instrument, action) = (
            format!("#{}", judge.reference()),
            format!("#action/{}", judge.reference()),
        );
        let estimated = events.iter().filter(|said| {
            said.event.said::<EstimateRecorded>().is_some_and(|of| {
                of.terms.judge == judge.judge && cje::experiment(said) == judge.experiment
            })
        });
        let estimated = estimated.map(|said| said.recorded_at.to_string());
        actions.push(json!({ "@id": action }));
        graph.push(json!({
            "@id": instrument,
            "@type": "SoftwareApplication",
            "name": judge.judge.as_str(),
            "version": judge.version(),
        }));
        graph.push(json!({
            "@id": action,
            "@type": "CreateAction",
            "name": format!("Scores by judge {} in experiment {}", judge.judge, judge.experiment),
            "instrument": { "@id": instrument },
            "result": { "@id": "ledger.jsonl" },
            "endTime": estimated.max().or_else(|| last.clone()),
        }));
    }
    actions
}

/// The folder as a whole.
fn dataset(
    extract: &Extract<'_>,
    events: &[RecordedEvent],
    keys: &BTreeSet<String>,
    actions: &[Value],
) -> Value {
    let head = extract.checkpoint.checkpoint();
    let experiments = events
        .iter()
        .filter(|said| said.event.said::<ExperimentRegistered>().is_some());
    let names: Vec<String> = experiments
        .filter_map(|said| Some(said.event.experiment()?.to_string()))
        .collect();
    let mut parts = FILES.map(|(name, ..)| name);
    parts.sort_unstable();
    json!({
        "@id": "./",
        "@type": "Dataset",
        "name": format!("Log {} at {} entries", head.origin, head.size),
        "description": format!(
            "An event-sourced ledger of judged evaluations: experiments {}. Root {}. A signature proves who signed and that \
             bytes did not change since, not that what they say is true.",
            names.join(", "),
            head.root
        ),
        "datePublished": events.last().map(|said| said.recorded_at.to_string()),
        "license": "Not stated: ask the owner of the ledger",
        "identifier": head.root.to_string(),
        "author": keys.iter().map(|key| json!({ "@id": format!("#key/{key}") })).collect::<Vec<_>>(),
        "hasPart": parts.map(|name| json!({ "@id": name })),
        "mentions": actions,
    })
}
