//! in-toto statements (v1, predicate test-result v0.1), one a line: for each candidate of an iteration and each decided gate
//! what was tested, under which plan, and what passed.
//!
//! A statement is unsigned; the event behind each claim is named, and that is signed (format `dsse`).

use std::collections::BTreeMap;
use std::io::Write;

use clover_event::id::PatchId;
use clover_event::payload::Verdict;
use clover_event::payload::decision::GateDecided;
use clover_event::payload::decision::Outcome;
use clover_event::payload::iteration::IterationOpened;
use clover_event::payload::predicate::GateEvaluated;
use clover_event::payload::predicate::PatchAccepted;
use clover_event::payload::rubric::PatchProposed;
use clover_ground::digest::Digest;
use serde_json::Value;
use serde_json::json;

use super::Extract;
use super::RecordedEvent;
use super::word;
use crate::ExportError;
use crate::Progress;

/// Type of a statement.
const STATEMENT: &str = "https://in-toto.io/Statement/v1";
/// Type of its predicate.
const TEST_RESULT: &str = "https://in-toto.io/attestation/test-result/v0.1";

/// A candidate of an iteration with what its criteria say.
pub(super) struct DecidedCandidate<'e> {
    /// The iteration.
    pub iteration: String,
    /// Id of its patch; of a composite its hash.
    pub name: String,
    /// Hash of its patch, or of the composite.
    pub candidate: Digest,
    /// Hash of the rubric that results, where a patch says it.
    pub result: Option<Digest>,
    /// The plan in force when the iteration opened.
    pub plan: Option<Digest>,
    /// Its criteria, in order.
    pub criteria: Vec<(&'e RecordedEvent, &'e GateEvaluated)>,
    /// The entry that accepts it.
    pub accepted: Option<&'e RecordedEvent>,
}

impl<'e> DecidedCandidate<'e> {
    /// Every candidate that a criterion was evaluated for, in the order of the first.
    pub(super) fn all(events: &'e [RecordedEvent]) -> Vec<Self> {
        let mut patches: BTreeMap<Digest, (&PatchId, Digest)> = BTreeMap::new();
        let mut plans = BTreeMap::new();
        let mut all: Vec<Self> = Vec::new();
        for said in events {
            if let Some(proposed) = said.event.said::<PatchProposed>() {
                patches.insert(proposed.patch_hash, (&proposed.patch, proposed.result_hash));
            } else if let Some(opened) = said.event.said::<IterationOpened>() {
                plans.insert(opened.iteration.to_string(), opened.digest);
            } else if let Some(found) = said.event.said::<GateEvaluated>() {
                let iteration = found.iteration.to_string();
                let same =
                    |of: &&mut Self| of.candidate == found.candidate && of.iteration == iteration;
                if let Some(known) = all.iter_mut().find(same) {
                    known.criteria.push((said, found));
                    continue;
                }
                let patch = patches.get(&found.candidate);
                all.push(Self {
                    name: patch
                        .map_or_else(|| found.candidate.to_string(), |(id, _)| id.to_string()),
                    candidate: found.candidate,
                    result: patch.map(|(_, result)| *result),
                    plan: plans.get(&iteration).copied(),
                    criteria: vec![(said, found)],
                    accepted: None,
                    iteration,
                });
            } else if let Some(accepted) = said.event.said::<PatchAccepted>() {
                let iteration = accepted.iteration.to_string();
                let same = |of: &&mut Self| {
                    of.candidate == accepted.candidate && of.iteration == iteration
                };
                if let Some(known) = all.iter_mut().find(same) {
                    known.accepted = Some(said);
                }
            }
        }
        all
    }

    /// Names of the criteria that end so.
    fn ended(&self, verdict: Verdict) -> Vec<String> {
        let criteria = self.criteria.iter().map(|(_, found)| *found);
        let ended =
            criteria.filter(|found| found.verdicts.under(found.thresholds.profile) == verdict);
        ended
            .map(|found| format!("{} {}", found.gate, found.split.as_str()))
            .collect()
    }

    fn statement(&self, extract: &Extract<'_>) -> Value {
        let (failed, open) = (self.ended(Verdict::Fail), self.ended(Verdict::Inconclusive));
        let unseen = self.ended(Verdict::NotChecked);
        let warned: Vec<String> = open.into_iter().chain(unseen).collect();
        // Only an acceptance says that a candidate passed as a whole.
        let result = match (self.accepted, failed.is_empty()) {
            (Some(_), _) => "PASSED",
            (None, true) => "WARNED",
            (None, false) => "FAILED",
        };
        let mut subject = vec![resource(
            &format!("patch {}", self.name),
            "cloverPatchV1",
            self.candidate,
            None,
        )];
        subject.extend(self.result.map(|hash| {
            resource(
                &format!("rubric under patch {}", self.name),
                "cloverRubricV1",
                hash,
                None,
            )
        }));
        let mut configuration: Vec<Value> = self
            .plan
            .map(|digest| resource("manifest", "cloverManifestV1", digest, None))
            .into_iter()
            .collect();
        let accepted = self.accepted.into_iter();
        configuration.extend(
            self.criteria
                .iter()
                .map(|(said, _)| *said)
                .chain(accepted)
                .map(event),
        );
        configuration.push(checkpoint(extract));
        json!({
            "_type": STATEMENT,
            "subject": subject,
            "predicateType": TEST_RESULT,
            "predicate": {
                "result": result,
                "configuration": configuration,
                "passedTests": self.ended(Verdict::Pass),
                "warnedTests": warned,
                "failedTests": failed,
            },
        })
    }
}

/// Writes one statement a line; answers with their number.
pub(super) fn write(
    extract: &Extract<'_>,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<u64, ExportError> {
    let events = extract.decisions(progress)?;
    let candidates = DecidedCandidate::all(&events);
    let gates = events
        .iter()
        .filter_map(|said| Some((said, said.event.said::<GateDecided>()?)));
    let gates = gates.map(|(said, decided)| gate(extract, said, decided));
    let mut count = 0;
    for statement in candidates
        .iter()
        .map(|of| of.statement(extract))
        .chain(gates)
    {
        out.write_all(format!("{statement}\n").as_bytes())?;
        count += 1;
    }
    Ok(count)
}

fn gate(extract: &Extract<'_>, said: &RecordedEvent, decided: &GateDecided) -> Value {
    let answer = extract.answers.gates.get(&decided.gate);
    let may_be_claimed = answer.is_some_and(|answer| answer.may_be_claimed);
    let (result, kind) = match decided.outcome {
        Outcome::Promote | Outcome::Noninferior | Outcome::Equivalent if !may_be_claimed => {
            ("WARNED", "warnedTests")
        }
        Outcome::Promote | Outcome::Noninferior | Outcome::Equivalent => ("PASSED", "passedTests"),
        Outcome::Kill | Outcome::Different | Outcome::Futile => ("FAILED", "failedTests"),
        _ => ("WARNED", "warnedTests"),
    };
    let grade = answer.map_or("no grade", |answer| &answer.grade);
    let name = format!(
        "gate {} ({}, {grade})",
        decided.gate,
        word(&decided.outcome)
    );
    json!({
        "_type": STATEMENT,
        "subject": [resource(&format!("gate {}", decided.gate), "sha256", said.event.id.0, Some(said))],
        "predicateType": TEST_RESULT,
        "predicate": {
            "result": result,
            "configuration": [resource("manifest", "cloverManifestV1", decided.digest, None), event(said), checkpoint(extract)],
            kind: [name],
        },
    })
}

/// A resource descriptor: what it is, and its digest by the name of its algorithm.
fn resource(name: &str, algorithm: &str, digest: Digest, said: Option<&RecordedEvent>) -> Value {
    let mut found = json!({ "name": name, "digest": { algorithm: digest.to_hex() } });
    if let Some(said) = said {
        found["annotations"] = json!({ "seq": said.seq, "kind": said.event.kind().as_str() });
    }
    found
}

/// The event behind a claim: SHA-256 of what was signed.
fn event(said: &RecordedEvent) -> Value {
    resource(
        said.event.kind().as_str(),
        "sha256",
        said.event.id.0,
        Some(said),
    )
}

fn checkpoint(extract: &Extract<'_>) -> Value {
    let head = extract.checkpoint.checkpoint();
    let mut found = resource("checkpoint of the log", "sha256", head.root, None);
    found["annotations"] = extract.origin();
    found
}
