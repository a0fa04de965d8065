//! Who made what from what, as PROV-JSON: every event of a decision is an entity, every key an agent, every computation an
//! activity. What an event names as its ground it was derived from.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::Extract;
use super::write_json;
use crate::ExportError;
use crate::Progress;

/// Writes the document; answers with the number of entities.
pub(super) fn write(
    extract: &Extract<'_>,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<u64, ExportError> {
    let events = extract.decisions(progress)?;
    let head = extract.checkpoint.checkpoint();
    let seqs: BTreeMap<_, u64> = events
        .iter()
        .map(|said| (said.event.id, said.seq))
        .collect();
    let [mut entities, mut agents, mut activities] = [Map::new(), Map::new(), Map::new()];
    let [mut generated, mut attributed, mut derived, mut associated] =
        [Map::new(), Map::new(), Map::new(), Map::new()];
    for said in &events {
        let (event, at) = (&said.event, said.recorded_at.to_string());
        let (entity, agent) = (
            format!("ev:{}", said.seq),
            format!("key:{}", event.header.author),
        );
        let mut about = json!({
            "prov:type": event.kind().as_str(),
            "clover:event": event.id.to_string(),
            "clover:signedAt": event.header.at.to_string(),
        });
        if let Some(experiment) = event.experiment() {
            about["clover:experiment"] = json!(experiment.as_str());
        }
        entities.insert(entity.clone(), about);
        agents.insert(agent.clone(), json!({ "prov:type": "clover:key" }));
        attributed.insert(
            format!("_:a{}", said.seq),
            json!({ "prov:entity": entity, "prov:agent": agent }),
        );
        let activity = format!("act:{}", said.seq);
        activities.insert(
            activity.clone(),
            json!({ "prov:endTime": at, "prov:type": event.kind().as_str() }),
        );
        generated.insert(
            format!("_:g{}", said.seq),
            json!({ "prov:entity": entity, "prov:activity": activity, "prov:time": at }),
        );
        associated.insert(
            format!("_:w{}", said.seq),
            json!({ "prov:activity": activity, "prov:agent": agent }),
        );
        for (nth, ground) in event.header.refs.iter().enumerate() {
            // An event of a row is no entity here.
            if let Some(from) = seqs.get(ground) {
                let link = json!({ "prov:generatedEntity": entity, "prov:usedEntity": format!("ev:{from}") });
                derived.insert(format!("_:d{}.{nth}", said.seq), link);
            }
        }
    }
    let document = json!({
        "prefix": {
            "ev": format!("urn:clover:{}:event:", head.root.to_hex()),
            "act": format!("urn:clover:{}:activity:", head.root.to_hex()),
            "key": "urn:clover:key:",
            "clover": "urn:clover:terms:",
        },
        "entity": entities,
        "agent": agents,
        "activity": activities,
        "wasGeneratedBy": generated,
        "wasAttributedTo": attributed,
        "wasAssociatedWith": associated,
        "wasDerivedFrom": derived,
    });
    let count = document["entity"]
        .as_object()
        .map_or(0, |entities| entities.len() as u64);
    write_json(out, &without_empty(document))?;
    Ok(count)
}

/// Without relations of which there is none.
fn without_empty(mut document: Value) -> Value {
    if let Some(parts) = document.as_object_mut() {
        parts.retain(|_, part| part.as_object().is_none_or(|part| !part.is_empty()));
    }
    document
}
