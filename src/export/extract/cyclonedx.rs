//! Judges as machine-learning components of a `CycloneDX` 1.6 bill of materials: their newest values with intervals in the model
//! card, and what may not be claimed among its limitations.

use std::collections::BTreeMap;
use std::io::Write;

use clover_event::id::JudgeId;
use clover_event::payload::estimate::EstimateRecorded;
use clover_event::payload::estimated::Claim;
use clover_event::payload::scoring::JudgeRegistered;
use serde_json::Value;
use serde_json::json;

use super::Extract;
use super::RecordedEvent;
use super::word;
use super::write_json;
use crate::ExportError;
use crate::Progress;

/// A judge with the newest estimate of each policy that it scored.
pub(super) struct JudgeValues<'e> {
    /// Its experiment.
    pub experiment: String,
    /// Its name.
    pub judge: JudgeId,
    /// Its registration; absent for scores that were imported.
    pub registered: Option<(&'e RecordedEvent, &'e JudgeRegistered)>,
    /// The newest estimate of each policy, by its name.
    pub values: BTreeMap<String, (&'e RecordedEvent, &'e EstimateRecorded)>,
}

impl<'e> JudgeValues<'e> {
    /// Every judge that is registered or whose scores were calibrated, in order of experiment and name.
    pub(super) fn all(events: &'e [RecordedEvent]) -> Vec<Self> {
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
                    experiment,
                    judge,
                    registered: None,
                    values: BTreeMap::new(),
                });
            if let Some(registered) = registered {
                found.registered = Some((said, registered));
            }
            if let Some(estimated) = estimated {
                found
                    .values
                    .insert(estimated.policy.to_string(), (said, estimated));
            }
        }
        all.into_values().collect()
    }

    /// A name that no other judge of the log has.
    pub(super) fn reference(&self) -> String {
        format!("judge/{}/{}", self.experiment, self.judge)
    }

    /// The model and prompt behind it; the word of an import otherwise.
    pub(super) fn version(&self) -> String {
        self.registered.map_or_else(
            || "recorded elsewhere".to_owned(),
            |(_, of)| of.prompt_hash.to_hex(),
        )
    }

    /// What may not be claimed of its values.
    pub(super) fn limitations(&self) -> Vec<String> {
        let values = self.values.iter();
        let weak = values.filter_map(|(policy, (said, found))| {
            let what = match found.claim {
                Claim::OwnLabels | Claim::BorrowedChecked => return None,
                Claim::BorrowedUnchecked => "its value rests on the calibration of other policies, which no passed audit supports",
                Claim::Refused => "no level may be claimed",
                Claim::Uncalibrated => "its value is a mean of raw scores",
            };
            Some(format!("Policy {policy}: {what} (seq {}).", said.seq))
        });
        weak.collect()
    }
}

/// Whether a value may be shown at all.
pub(super) fn is_shown(found: &EstimateRecorded) -> bool {
    found.claim != Claim::Refused
}

/// Writes the bill of materials; answers with the number of values.
pub(super) fn write(
    extract: &Extract<'_>,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<u64, ExportError> {
    let events = extract.decisions(progress)?;
    let judges = JudgeValues::all(&events);
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
    Ok(judges.iter().map(|judge| judge.values.len() as u64).sum())
}

fn component(judge: &JudgeValues<'_>) -> Value {
    let shown = judge
        .values
        .iter()
        .filter(|(_, (_, found))| is_shown(found));
    let metrics = shown.map(|(policy, (_, found))| {
        let mut metric = json!({
            "type": format!("calibrated mean of labels ({})", word(&found.claim)),
            "value": found.estimate.to_string(),
            "slice": format!("policy {policy}"),
        });
        if let Some(ends) = found.interval_clipped.or(found.interval) {
            metric["confidenceInterval"] = json!({
                "lowerBound": ends.low.to_string(),
                "upperBound": ends.high.to_string(),
            });
        }
        metric
    });
    let mut card =
        json!({ "quantitativeAnalysis": { "performanceMetrics": metrics.collect::<Vec<_>>() } });
    let limitations = judge.limitations();
    if !limitations.is_empty() {
        card["considerations"] = json!({ "technicalLimitations": limitations });
    }
    let mut properties: Vec<Value> = judge.values.values().map(|(said, found)| {
        json!({ "name": format!("clover:event:value of {}", found.policy), "value": format!("seq {} {}", said.seq, said.event.id) })
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
