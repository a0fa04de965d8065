//! The signed log as an RO-Crate 1.1: `ledger.jsonl`, its checkpoints, and `ro-crate-metadata.json`, which says what they are,
//! which judges made scores, and who signed. `clover verify` reads the folder as any export.

use std::collections::BTreeSet;
use std::path::Path;

use clover_event::payload::experiment::ExperimentRegistered;
use serde_json::Value;
use serde_json::json;

use super::Extract;
use super::create;
use super::cyclonedx::JudgeValues;
use super::write_json;
use crate::ExportError;
use crate::Exporter;
use crate::Progress;
use crate::Request;
use crate::Target;
use crate::jsonl::Jsonl;

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
    let head = extract.checkpoint.checkpoint();
    let last = events.last().map(|said| said.recorded_at.to_string());
    let files = [
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
    let keys: BTreeSet<String> = events
        .iter()
        .map(|said| said.event.header.author.to_string())
        .collect();
    let judges = JudgeValues::all(&events);
    let experiments = events.iter().filter_map(|said| {
        Some((
            said.event.experiment()?,
            said.event.said::<ExperimentRegistered>()?,
        ))
    });
    let names: Vec<String> = experiments.map(|(id, _)| id.to_string()).collect();
    let mut parts: Vec<Value> = files
        .iter()
        .map(|(name, ..)| json!({ "@id": name }))
        .collect();
    let mut graph = vec![json!({
        "@id": "ro-crate-metadata.json",
        "@type": "CreativeWork",
        "conformsTo": { "@id": "https://w3id.org/ro/crate/1.1" },
        "about": { "@id": "./" },
    })];
    let mut actions = Vec::new();
    for judge in &judges {
        let instrument = format!("#{}", judge.reference());
        actions.push(json!({ "@id": format!("#action/{}", judge.reference()) }));
        graph.push(json!({
            "@id": instrument,
            "@type": "SoftwareApplication",
            "name": judge.judge.as_str(),
            "version": judge.version(),
        }));
        graph.push(json!({
            "@id": format!("#action/{}", judge.reference()),
            "@type": "CreateAction",
            "name": format!("Scores by judge {} in experiment {}", judge.judge, judge.experiment),
            "instrument": { "@id": instrument },
            "result": { "@id": "ledger.jsonl" },
            "endTime": judge.values.values().map(|(said, _)| said.recorded_at.to_string()).max().or_else(|| last.clone()),
        }));
    }
    for (name, media, about) in files {
        graph.push(json!({ "@id": name, "@type": "File", "name": about, "encodingFormat": media }));
    }
    for key in &keys {
        graph.push(json!({ "@id": format!("#key/{key}"), "@type": "Person", "name": format!("Holder of key {key}"), "identifier": key }));
    }
    parts.sort_by_key(ToString::to_string);
    graph.push(json!({
        "@id": "./",
        "@type": "Dataset",
        "name": format!("Log {} at {} entries", head.origin, head.size),
        "description": format!(
            "An event-sourced ledger of judged evaluations: experiments {}. Root {}. A signature proves who signed and that \
             bytes did not change since, not that what they say is true.",
            names.join(", "),
            head.root
        ),
        "datePublished": last,
        "license": "Not stated: ask the owner of the ledger",
        "identifier": head.root.to_string(),
        "author": keys.iter().map(|key| json!({ "@id": format!("#key/{key}") })).collect::<Vec<_>>(),
        "hasPart": parts,
        "mentions": actions,
    }));
    let document = json!({ "@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph });
    write_json(
        create(folder, "ro-crate-metadata.json")?.as_mut(),
        &document,
    )?;
    Ok(counts.entries)
}
