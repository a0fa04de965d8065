//! Judges as machine-learning components of a `CycloneDX` 1.6 bill of materials: values that may be claimed with their intervals
//! in the model card, and the sentence of `clover estimate` among its limitations.

use std::collections::BTreeMap;
use std::io::Write;

use clover_event::id::JudgeId;
use clover_event::payload::estimate::EstimateRecorded;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ground::digest::Digest;
use serde_json::Value;
use serde_json::json;

use super::ClaimedValue;
use super::Extract;
use super::RecordedAnswers;
use super::RecordedEvent;
use super::ValuesAnswer;
use super::write_json;
use crate::ExportError;
use crate::Progress;
use crate::file_name;

/// A judge with what may be claimed of its values.
pub(super) struct JudgeValues<'e> {
    /// Its experiment.
    pub experiment: String,
    /// Its name.
    pub judge: JudgeId,
    /// Its registration; absent for scores that were imported.
    pub registered: Option<(&'e RecordedEvent, &'e JudgeRegistered)>,
    /// What may be claimed of its values; absent where it has none.
    pub answer: Option<&'e ValuesAnswer>,
}

impl<'e> JudgeValues<'e> {
    /// Every judge that is registered or whose scores were calibrated, in order of experiment and name.
    pub(super) fn all(events: &'e [RecordedEvent], answers: &'e RecordedAnswers) -> Vec<Self> {
        let mut all: BTreeMap<(String, JudgeId), Self> = BTreeMap::new();
        for said in events {
            let (registered, estimated) = (
                said.event.said::<JudgeRegistered>(),
                said.event.said::<EstimateRecorded>(),
            );
            let named = registered
                .map(|of| &of.judge)
                .or(estimated.map(|of| &of.terms.judge));
            let Some(judge) = named.cloned() else {
                continue;
            };
            let experiment = super::cje::experiment(said);
            let found = all
                .entry((experiment.clone(), judge.clone()))
                .or_insert_with(|| Self {
                    answer: answers
                        .values
                        .iter()
                        .find(|of| of.experiment.as_str() == experiment && of.judge == judge),
                    experiment,
                    judge,
                    registered: None,
                });
            if let Some(registered) = registered {
                found.registered = Some((said, registered));
            }
        }
        all.into_values().collect()
    }

    /// A name that no other judge of the log has, and that may stand in an IRI.
    pub(super) fn reference(&self) -> String {
        let part = |name: &str| file_name::encode(name).replace(' ', "%20");
        let (experiment, judge) = (part(&self.experiment), part(self.judge.as_str()));
        format!("judge/{experiment}/{judge}")
    }

    /// The plan by which it is asked, and what it is told; its model where it has neither. The word of an import otherwise.
    pub(super) fn version(&self) -> String {
        let Some((_, of)) = self.registered else {
            return "recorded elsewhere".to_owned();
        };
        let told = (of.prompt_hash != Digest::sha256(b"")).then_some(of.prompt_hash);
        let plan = of.asked.as_ref().map(|asked| asked.plan_digest);
        let parts: Vec<String> = plan.into_iter().chain(told).map(|of| of.to_hex()).collect();
        if parts.is_empty() {
            return of.model.as_str().to_owned();
        }
        parts.join("+")
    }

    /// Values that may be claimed.
    pub(super) fn values(&self) -> &[ClaimedValue] {
        self.answer.map_or(&[], |of| &of.values)
    }

    /// What `clover estimate` says of all its values, in its own words.
    pub(super) fn limitation(&self) -> Option<&str> {
        self.answer.map(|of| of.text.as_str())
    }
}

/// Writes the bill of materials; answers with the number of values.
pub(super) fn write(
    extract: &Extract<'_>,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<u64, ExportError> {
    let events = extract.decisions(progress)?;
    let judges = JudgeValues::all(&events, extract.answers);
    let head = extract.checkpoint.checkpoint();
    let time = events.last().map(|said| said.recorded_at.to_string());
    let root = head.root.to_hex();
    let document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        // A UUID of version 8 (RFC 9562) from the root: the same log gives the same number.
        "serialNumber": format!("urn:uuid:{}-{}-8{}-8{}-{}", &root[..8], &root[8..12], &root[13..16], &root[17..20], &root[20..32]),
        "version": 1,
        "metadata": {
            "timestamp": time,
            "tools": { "components": [{ "type": "application", "name": "clover", "version": env!("CARGO_PKG_VERSION") }] },
            "properties": [
                { "name": "clover:log:origin", "value": head.origin.to_string() },
                { "name": "clover:log:size", "value": head.size.to_string() },
                { "name": "clover:log:root", "value": head.root.to_string() },
            ],
        },
        "components": judges.iter().map(component).collect::<Vec<_>>(),
    });
    write_json(out, &document)?;
    Ok(judges.iter().map(|judge| judge.values().len() as u64).sum())
}

fn component(judge: &JudgeValues<'_>) -> Value {
    let metrics = judge.values().iter().map(|value| {
        let [low, high] = &value.scale;
        let mut metric = json!({
            "type": format!("calibrated mean of labels on {low} to {high}, {} % interval", value.percent),
            "value": value.estimate.to_string(),
            "slice": format!("policy {}", value.policy),
        });
        if let Some([low, high]) = value.interval {
            metric["confidenceInterval"] =
                json!({ "lowerBound": low.to_string(), "upperBound": high.to_string() });
        }
        metric
    });
    let mut card =
        json!({ "quantitativeAnalysis": { "performanceMetrics": metrics.collect::<Vec<_>>() } });
    if let Some(limitation) = judge.limitation() {
        card["considerations"] = json!({ "technicalLimitations": [limitation] });
    }
    let mut properties: Vec<Value> = judge.values().iter().map(|value| {
        json!({ "name": format!("clover:event:value of {}", value.policy), "value": format!("seq {} {}", value.seq, value.event) })
    }).collect();
    if let Some((said, registered)) = judge.registered {
        properties.push(json!({ "name": "clover:event:judge", "value": format!("seq {} {}", said.seq, said.event.id) }));
        properties.push(json!({ "name": "clover:model", "value": registered.model.as_str() }));
    }
    json!({
        "type": "machine-learning-model",
        "bom-ref": judge.reference(),
        "group": judge.experiment,
        "name": judge.judge.as_str(),
        "version": judge.version(),
        "modelCard": card,
        "properties": properties,
    })
}
