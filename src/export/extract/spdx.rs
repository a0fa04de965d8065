//! Judges and what was decided with them in the AI profile of SPDX 3.0.1 (JSON-LD): values as metrics, bounds that criteria were
//! held to as decision thresholds, open assumptions as limitations.

use std::io::Write;

use clover_event::payload::predicate::GateEvaluated;
use serde_json::Value;
use serde_json::json;

use super::Extract;
use super::RecordedEvent;
use super::cyclonedx::JudgeValues;
use super::write_json;
use crate::ExportError;
use crate::Progress;

/// Writes the document; answers with the number of judges.
pub(super) fn write(
    extract: &Extract<'_>,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<u64, ExportError> {
    let events = extract.decisions(progress)?;
    let judges = JudgeValues::all(&events, extract.answers);
    let head = extract.checkpoint.checkpoint();
    let base = format!("urn:clover:{}", head.root.to_hex());
    let time = events
        .last()
        .map(|said| seconds(&said.recorded_at.to_string()));
    let (info, agent) = ("_:creation", format!("{base}/agent"));
    let mut graph = vec![
        json!({
            "type": "CreationInfo",
            "@id": info,
            "specVersion": "3.0.1",
            "created": time,
            "createdBy": [agent],
        }),
        json!({
            "type": "SoftwareAgent",
            "spdxId": agent,
            "creationInfo": info,
            "name": format!("clover {}", env!("CARGO_PKG_VERSION")),
        }),
    ];
    let mut packages = Vec::new();
    for judge in &judges {
        let id = format!("{base}/{}", judge.reference());
        packages.push(id.clone());
        graph.push(package(judge, &events, [&id, info, &agent]));
    }
    graph.push(json!({
        "type": "SpdxDocument",
        "spdxId": format!("{base}/document"),
        "creationInfo": info,
        "name": format!("{} at {} entries", head.origin, head.size),
        "profileConformance": ["core", "software", "ai"],
        "rootElement": packages,
        "element": packages,
    }));
    let context = "https://spdx.org/rdf/3.0.1/spdx-context.jsonld";
    write_json(out, &json!({ "@context": context, "@graph": graph }))?;
    Ok(judges.len() as u64)
}

fn package(
    judge: &JudgeValues<'_>,
    events: &[RecordedEvent],
    [id, info, agent]: [&str; 3],
) -> Value {
    let metrics = judge.values().iter().flat_map(|value| {
        let [low, high] = &value.scale;
        let name = format!("value of {} on {low} to {high}", value.policy);
        let mut entries = vec![entry(&name, &value.estimate.to_string())];
        if let Some([low, high]) = value.interval {
            let name = format!("{} % interval of {}", value.percent, value.policy);
            entries.push(entry(&name, &format!("[{low}, {high}]")));
        }
        let name = format!("event of the value of {}", value.policy);
        entries.push(entry(&name, &format!("seq {} {}", value.seq, value.event)));
        entries
    });
    let thresholds = events
        .iter()
        .filter_map(|said| said.event.said::<GateEvaluated>());
    let mut bars: Vec<Value> = Vec::new();
    for found in thresholds {
        let held = &found.thresholds;
        for (name, value) in [
            ("alpha", held.alpha_micro),
            ("drift_max", held.drift_max_micro),
            ("ece_slack", held.ece_slack_micro),
            ("eta", held.eta_micro),
            ("ks_max", held.ks_max_micro),
            ("q", held.q_micro),
            ("tau", held.tau_micro),
            ("uplift_max", held.uplift_max_micro),
        ] {
            let bar = entry(&format!("{}: {name}", found.iteration), &value.to_string());
            if !bars.contains(&bar) {
                bars.push(bar);
            }
        }
    }
    let mut package = json!({
        "type": "ai_AIPackage",
        "spdxId": id,
        "creationInfo": info,
        "name": judge.judge.as_str(),
        "software_packageVersion": judge.version(),
        "software_primaryPurpose": "model",
        "software_downloadLocation": "https://spdx.org/rdf/3.0.1/terms/Core/NoAssertionElement",
        "suppliedBy": agent,
        "ai_metric": metrics.collect::<Vec<_>>(),
        "ai_metricDecisionThreshold": bars,
    });
    if let Some(limitation) = judge.limitation() {
        package["ai_limitation"] = json!(limitation);
    }
    package
}

fn entry(key: &str, value: &str) -> Value {
    json!({ "type": "DictionaryEntry", "key": key, "value": value })
}

/// A time without its fraction, as SPDX writes times.
fn seconds(time: &str) -> String {
    let whole = time
        .split_once('.')
        .map_or(time.trim_end_matches('Z'), |(whole, _)| whole);
    format!("{whole}Z")
}
