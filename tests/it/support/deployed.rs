//! A ledger in which a committed prompt ran, broke a guardrail, and was rolled back; and what can be done to it.

use clover::event::Kind;
use clover::event::Payload;
use clover::event::payload::Role;
use clover::event::payload::deployment::LiveEvidence;
use clover::ground::digest::Digest;
use clover::ledger::Command;
use clover::workflow::guardrails;
use serde_json::Value;
use serde_json::json;

use super::iterated;
use super::planned;
use super::planned::payload;
use super::released;
use super::samples::*;
use super::signer;
use super::valued;

/// A judge with which no gate was evaluated.
pub const OTHER_JUDGE: &str = "judge-2";

/// Digest of the calibrator.
pub fn calibrator() -> String {
    Digest([7; 32]).to_hex()
}

/// A fit of it.
pub fn fitted() -> Payload {
    valued::payload(Kind::CalibratorFitted, &valued::fitted(7, 2))
}

/// What its fit names.
pub fn blobs() -> [&'static [u8]; 2] {
    [valued::MODEL, valued::ROWS]
}

/// An activation of a rubric at a version.
pub fn activated(
    (commit, version): (&str, &str),
    rubric_hash: &str,
    previous: Option<&str>,
) -> Payload {
    let told = released::told();
    let text = String::from_utf8(told).unwrap();
    let prompt_hash = Digest::labelled(
        clover::rubric::prompt::PROMPT_LABEL,
        format!("{}\n{text}", clover::rubric::prompt::TEMPLATE).as_bytes(),
    );
    let mut data = json!({
        "commit": commit, "rubric_hash": rubric_hash,
        "versions": {
            "anchors": "anchors-1", "calibrator": calibrator(), "judge": "judge-1", "model": "m-1",
            "prompt_hash": prompt_hash.to_hex(), "rubric_version": version, "sdp_version": "v1.0_2025-11-11",
        },
    });
    if let Some(previous) = previous {
        data["previous"] = previous.into();
    }
    payload("deployment.activated", &data)
}

/// Live rows under which every guardrail holds.
pub fn good() -> Value {
    json!({
        "abstention": {"accepted": 0.02, "live": 0.03},
        "anchors": {"anchors": [{"drift": 0.002, "policy": "bad", "rows": 200},
                                {"drift": 0.003, "policy": "good", "rows": 250}]},
        "environments": {"environments": [{
            "baseline_fails": false, "detectable_bias": 0.03, "environment": "base", "family": "policy",
            "mean": 0.001, "p": 0.5, "required": true, "rows": 750, "standard_error": 0.0107,
        }]},
        "greens": [{"family": "domain-length", "lower": -0.001, "must_not_regress": false, "slice": "short"}],
        "labels": 60, "out_of_range": {"outside": 3, "rows": 400}, "reopened": 0,
        "shift": {"ks_count": 9, "rows": 400, "w1": 0.01},
    })
}

/// A check over the entries from one position to another.
pub fn checked(plan: &Value, deployment: &str, found: &Value, window: (u64, u64)) -> Payload {
    let plan = planned::manifest(plan).iteration.unwrap();
    let held = guardrails::thresholds(&plan);
    let evidence: LiveEvidence = serde_json::from_value(found.clone()).unwrap();
    let data = json!({
        "deployment": deployment, "evidence": found, "thresholds": held,
        "verdicts": guardrails::verdicts(&evidence, &held),
        "window": {"from_seq": window.0, "through_seq": window.1},
    });
    payload("guardrail.checked", &data)
}

/// A rollback to what ran before.
pub fn back(deployment: &str, breach: Option<&str>, restored: Option<(&str, &str)>) -> Payload {
    let mut data = json!({"deployment": deployment, "reason": "breach of anchors"});
    if let Some(breach) = breach {
        data["breach"] = breach.into();
    }
    if let Some((restored, hash)) = restored {
        data["restored"] = restored.into();
        data["rubric_hash"] = hash.into();
    }
    payload("deployment.rolled_back", &data)
}

/// Live rows in which an anchor moved.
pub fn moved() -> Value {
    let mut found = good();
    found["anchors"]["anchors"][0]["drift"] = json!(0.02);
    found
}

/// A recalibration on fresh labels of a design.
pub fn recalibrated(commit: &str, transport: &str) -> Payload {
    let data = json!({
        "anchors": {"anchors": [{"drift": 0.002, "policy": "bad", "rows": 200},
                                {"drift": 0.003, "policy": "good", "rows": 250}]},
        "calibrator": calibrator(), "commit": commit, "design": "probes", "judge": "judge-1", "labels": 100,
        "transport": transport, "trigger": "hard_rule",
    });
    payload("recalibration.completed", &data)
}

/// A design for fresh labels.
pub fn probes() -> Payload {
    let data = json!({
        "design": "probes", "inclusion_micro": 100_000, "protocol": "v1.0_2025-11-11", "purpose": "audit",
    });
    payload("label.design_registered", &data)
}

/// One of its labels.
pub fn label(number: usize) -> Payload {
    let data = json!({
        "design": "probes", "draw": 0, "item": format!("fresh-{number:03}"), "policy": "base", "purpose": "audit",
        "rater": "lena", "value_micro": 500_000,
    });
    payload("label.recorded", &data)
}

/// The audit on them.
pub fn tested() -> Payload {
    valued::payload(Kind::TransportTested, &valued::tested(7, "probes", "pass"))
}

/// Hash of the first rubric.
pub fn base_hash() -> String {
    iterated::rubric().hash().to_hex()
}

/// The story, told through the real ledger.
pub fn story() -> Story {
    let mut teller = Teller::begin();
    let hex = |teller: &Teller, name: &str| teller.id(name).0.to_hex();
    let gates = released::accepted(&mut teller);
    teller.blob(valued::MODEL.to_vec(), "application/json");
    teller.blob(valued::ROWS.to_vec(), "application/x-ndjson");
    teller.say_in(BEN, "fitted", fitted());
    let base = hex(&teller, "rubric");
    let run = activated((&base, "1.0"), &base_hash(), None);
    teller.say_in(RUNNER_2, "base-runs", run);
    let commit = released::told_commit(&mut teller, &gates);
    let base_runs = hex(&teller, "base-runs");
    let run = activated(
        (&hex(&teller, "committed"), "1.1"),
        &commit,
        Some(&base_runs),
    );
    teller.say_in(RUNNER_2, "runs", run);
    teller.say(ADA, "noted", note());
    let runs = hex(&teller, "runs");
    let window = (teller.at("runs") + 1, teller.at("noted"));
    let held = checked(&released::plan(), &runs, &good(), window);
    teller.say_in(RUNNER_2, "held", held);
    let window = (teller.at("runs") + 1, teller.at("held"));
    let breach = checked(&released::plan(), &runs, &moved(), window);
    teller.say_in(RUNNER_2, "breach", breach);
    let breach = hex(&teller, "breach");
    let undone = back(&runs, Some(&breach), Some((&base_runs, &base_hash())));
    teller.say_in(RUNNER_2, "back", undone);
    teller.finish()
}

/// Another story: a prompt runs on the calibrator that its gates were evaluated with, and rulebook 18 judges that. Somebody
/// fitted one for another judge too.
pub fn evaluated() -> Story {
    let mut teller = Teller::begin();
    teller.blob(valued::MODEL.to_vec(), "application/json");
    teller.blob(valued::ROWS.to_vec(), "application/x-ndjson");
    let gates = released::accepted_on(&mut teller, true);
    let mut other = valued::fitted(9, 2);
    other["terms"]["judge"] = OTHER_JUDGE.into();
    let other = valued::payload(Kind::CalibratorFitted, &other);
    teller.say_in(BEN, "fitted-other", other);
    let hash = released::told_commit(&mut teller, &gates);
    teller.say(
        ADA,
        "adopted",
        payload("rulebook.adopted", &json!({"version": 18})),
    );
    let commit = teller.id("committed").0.to_hex();
    let run = activated((&commit, "1.1"), &hash, None);
    let mut run = serde_json::to_value(&run).unwrap();
    run["versions"]["calibrator"] = "08".repeat(32).into();
    teller.say_in(RUNNER_2, "runs", payload("deployment.activated", &run));
    teller.finish()
}

/// The text that another judge is told: that of a patch that was refused.
const REFUSED: &[u8] = b"Sources are worth nothing.";

/// The judge that is told it.
pub fn told_otherwise() -> String {
    format!("{OTHER_JUDGE}+{}", &Digest::sha256(REFUSED).to_hex()[..12])
}

/// Another story: two judges answer alike, so that one calibrator was fitted for both; one of them is told another text than that
/// of the version that runs.
pub fn alike() -> Story {
    let mut teller = Teller::begin();
    teller.blob(valued::MODEL.to_vec(), "application/json");
    teller.blob(valued::ROWS.to_vec(), "application/x-ndjson");
    teller.blob(REFUSED.to_vec(), "text/plain");
    let gates = released::accepted_on(&mut teller, true);
    let judge = json!({
        "decoding": {"temperature_micro": 0}, "evidence_schema": "evidence/1", "extractor": "none",
        "judge": OTHER_JUDGE, "model": OTHER_JUDGE, "port": "command", "prompt_hash": Digest::sha256(b"").to_hex(),
        "tool_snapshot": Digest::sha256(b"").to_hex(),
    });
    let mut told = judge.clone();
    told["judge"] = told_otherwise().into();
    told["of"] = OTHER_JUDGE.into();
    told["prompt_hash"] = Digest::sha256(REFUSED).to_hex().into();
    told["prompt"] = json!({
        "blake3": Digest::blake3(REFUSED).to_hex(), "bytes": REFUSED.len(), "media": "text/plain",
    });
    let lena = key_added(&signer(LENA), "Lena", true, &[Role::Scorer]);
    teller.say(ADA, "key-lena", lena);
    teller.say_in(LENA, "judge", payload("judge.registered", &judge));
    teller.say_in(LENA, "told", payload("judge.registered", &told));
    let mut other = valued::fitted(8, 2);
    other["terms"]["judge"] = told_otherwise().into();
    let other = valued::payload(Kind::CalibratorFitted, &other);
    teller.say_in(BEN, "fitted-alike", other);
    let hash = released::told_commit(&mut teller, &gates);
    teller.say(
        ADA,
        "adopted",
        payload("rulebook.adopted", &json!({"version": 26})),
    );
    let commit = teller.id("committed").0.to_hex();
    let run = activated((&commit, "1.1"), &hash, None);
    let mut run = serde_json::to_value(&run).unwrap();
    run["versions"]["calibrator"] = "08".repeat(32).into();
    teller.say_in(RUNNER_2, "runs", payload("deployment.activated", &run));
    teller.finish()
}

fn note() -> Payload {
    payload("note.recorded", &json!({"text": "live since noon"}))
}

/// Another story: a calibrator was verified on a hundred fresh labels.
pub fn recalibration() -> Story {
    let mut teller = Teller::begin();
    let lena = key_added(&signer(LENA), "Lena", true, &[Role::Labeler]);
    teller.say(ADA, "key-lena", lena);
    let ben = key_added(&signer(BEN), "Ben", true, &[Role::Arbiter]);
    teller.say(ADA, "key-ben", ben);
    teller.say_in(ADA, "registered", planned::experiment_registered());
    teller.say_in(ADA, "rubric", iterated::rubric_registered(iterated::RUBRIC));
    teller.blob(valued::MODEL.to_vec(), "application/json");
    teller.blob(valued::ROWS.to_vec(), "application/x-ndjson");
    teller.say_in(BEN, "fitted", fitted());
    teller.say_in(LENA, "design", probes());
    let experiment = || Some(EXPERIMENT.parse().unwrap());
    let labels = (0..100).map(|at| ("label", Command::new(label(at), experiment())));
    teller.say_all(LENA, labels.collect());
    teller.say_in(BEN, "tested", tested());
    let (rubric, tested) = (
        teller.id("rubric").0.to_hex(),
        teller.id("tested").0.to_hex(),
    );
    teller.say_in(BEN, "recalibrated", recalibrated(&rubric, &tested));
    teller.finish()
}
