//! A ledger with a pre-registered gate, from the opening of its family to its revealed plan, and what can be done
//! to it.

use clover::event::Payload;
use clover::event::payload::Role;
use clover::event::payload::manifest::Manifest;
use clover::event::payload::manifest::plan_commitment;
use clover::event::payload::prereg::ManifestAmended;
use clover::event::payload::prereg::ManifestRegistered;
use clover::ground::digest::Digest;
use clover::num::Count;
use serde_json::Value;
use serde_json::json;

use super::samples::*;
use super::signer;
use super::text;

/// Merkle root of the confirm units.
pub fn root() -> String {
    Digest::sha256(b"units").to_base64()
}

fn digest(text: &str) -> String {
    Digest::sha256(text.as_bytes()).to_hex()
}

/// A gate on 100 units with 2 exposures.
pub fn gate(experiment: &str, id: &str) -> Value {
    json!({
        "arms": [
            {"artifact_digest": digest("old"), "id": "baseline", "role": "baseline"},
            {"artifact_digest": digest("new"), "id": "candidate", "role": "candidate"},
        ],
        "data": {"confirm_root": root(), "exposure_cap": 2, "n_units": 100},
        "estimand": {
            "aggregation": "mean", "missing_rule": "conservative", "population": "finite",
            "rep_rule": "mean", "unit_key": "scenario",
        },
        "experiment": experiment,
        "hypothesis": {"claim": "the new policy answers better", "kind": "promote"},
        "manifest": id,
        "metric": {
            "direction": "increase", "judge_digest": digest("judge"), "metric": "quality", "repeats": 1,
            "scale_hi_micro": 1_000_000, "scale_lo_micro": 0,
        },
        "multiplicity": {"family": "primary", "family_alpha_micro": 50_000, "method": "spend"},
        "template": "gate",
        "test": {
            "alpha_micro": 25_000, "beacon": "first_checkpoint", "bettor": {"grid": 20, "name": "grid_kelly"},
            "n_max": 80, "n_min": 20, "null_margin_micro": 0, "side": "upper", "without_replacement": true,
        },
        "title": "Answers",
        "version": 1,
    })
}

/// Audits of two environments, without confirm data.
pub fn audits(experiment: &str, id: &str) -> Value {
    json!({
        "experiment": experiment,
        "hypothesis": {"claim": "the judge is unbiased elsewhere", "kind": "measure"},
        "manifest": id,
        "template": "transport",
        "title": "Audits",
        "transport": {
            "alpha_micro": 50_000, "bias_micro": 0, "clusters_min": 20,
            "environments": [
                {"clusters": 400, "environment": "clone", "required": true},
                {"clusters": 400, "environment": "premium", "required": true},
            ],
            "family_size": 2, "labels_per_cluster": 1, "margin_micro": 50_000, "power_micro": 800_000,
            "residual_sd_micro": 200_000,
        },
        "version": 1,
    })
}

pub fn manifest(value: &Value) -> Manifest {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

/// Gives the data of an event that holds a manifest the digests of that manifest.
pub fn redigest(data: &mut Value) {
    if let Some(value) = data.get("manifest")
        && let Ok(manifest) = serde_json::from_value::<Manifest>(value.clone())
    {
        data["digest"] = manifest.digest().to_hex().into();
        data["h0_digest"] = manifest.h0_digest().to_hex().into();
    }
}

pub fn registered(value: &Value) -> Payload {
    let manifest = manifest(value);
    ManifestRegistered {
        digest: manifest.digest(),
        h0_digest: manifest.h0_digest(),
        manifest: Box::new(manifest),
    }
    .into()
}

/// The next version: `value` with its number and parent.
pub fn next(value: &Value, parent: &Value) -> Value {
    let mut next = value.clone();
    next["version"] = (parent["version"].as_u64().unwrap() + 1).into();
    next["parent_digest"] = manifest(parent).digest().to_hex().into();
    next
}

pub fn amended(new: &Value, parent: &Value, class: u64) -> Payload {
    let new = manifest(new);
    ManifestAmended {
        class: Count::new(class).unwrap(),
        digest: new.digest(),
        h0_digest: new.h0_digest(),
        manifest: Box::new(new),
        parent_digest: manifest(parent).digest(),
        reason: text("it was found out"),
    }
    .into()
}

pub fn payload(kind: &str, data: &Value) -> Payload {
    let (payload, _) = clover::event::registry::decode(kind, 1, &data.to_string())
        .unwrap_or_else(|error| panic!("{error}: {data}"));
    payload
}

pub fn family() -> Payload {
    payload(
        "family.opened",
        &json!({
            "alpha_micro": 50_000, "family": "primary", "members_max": 3, "membership": "gates of this quarter",
            "method": "spend",
        }),
    )
}

pub fn countersigned(value: &Value) -> Payload {
    let digest = manifest(value).digest().to_hex();
    payload("manifest.countersigned", &json!({"digest": digest}))
}

pub fn deviated(value: &Value) -> Payload {
    payload(
        "manifest.deviated",
        &json!({
            "digest": manifest(value).digest().to_hex(), "impact": "none expected", "known_at_seq": 1,
            "outcome_seen": true, "rule_path": "metric.repeats", "what": "one unit was scored twice",
            "why": "a retry",
        }),
    )
}

pub fn exposed(value: &Value, exposure: u64, first: u64, last: u64) -> Payload {
    payload(
        "exposure.opened",
        &json!({
            "confirm_root": value["data"]["confirm_root"], "digest": manifest(value).digest().to_hex(),
            "exposure": exposure, "first_unit": first, "last_unit": last,
        }),
    )
}

pub fn plan_sealed(origin: &str, id: &str, salt: [u8; 32], plan: &[u8]) -> Payload {
    let commitment = plan_commitment(origin, id, &salt, &Digest::blake3(plan));
    payload(
        "plan.sealed",
        &json!({
            "commitment": commitment.to_hex(), "manifest": id, "reveal_by": "2026-12-31T00:00:00.000000Z",
        }),
    )
}

pub fn plan_revealed(id: &str, salt: [u8; 32], plan: &[u8]) -> Payload {
    let salt = clover::event::id::Base64Bytes(salt);
    payload(
        "plan.revealed",
        &json!({
            "manifest": id,
            "plan": {"blake3": Digest::blake3(plan).to_hex(), "bytes": plan.len(), "media": "text/plain"},
            "salt": salt,
        }),
    )
}

pub fn experiment_registered() -> Payload {
    payload(
        "experiment.registered",
        &json!({"purpose": "is it better?", "title": "Gate"}),
    )
}

/// The plan that the story seals.
pub const PLAN: &[u8] = b"First by domain, then by length.\n";

/// The four versions that the story registers.
pub fn versions() -> [Value; 4] {
    let first = gate(EXPERIMENT, "m-1");
    let mut second = next(&first, &first);
    second["title"] = "Answers, autumn".into();
    let mut third = next(&second, &second);
    third["test"]["n_min"] = 25.into();
    let mut fourth = next(&third, &third);
    fourth["test"]["n_max"] = 100.into();
    [first, second, third, fourth]
}

/// The story, told through the real ledger.
pub fn story() -> Story {
    let mut teller = Teller::begin();
    for (name, who, holder, role) in [
        ("key-cleo", CLEO, "Cleo", Role::Custodian),
        ("key-ben", BEN, "Ben", Role::Arbiter),
        ("key-runner", RUNNER, "runner", Role::Scorer),
    ] {
        teller.say(ADA, name, key_added(&signer(who), holder, true, &[role]));
    }
    let adopted = json!({"reason": "two people work here", "separation": "strict"});
    teller.say(ADA, "policy", payload("policy.adopted", &adopted));
    let [first, second, third, fourth] = versions();
    teller.say_in(ADA, "registered", experiment_registered());
    teller.say(ADA, "family", family());
    teller.say_in(ADA, "m-1", registered(&first));
    teller.say_in(CLEO, "countersigned-1", countersigned(&first));
    teller.say_in(
        BEN,
        "plan-sealed",
        plan_sealed(ORIGIN, "m-1", [9; 32], PLAN),
    );
    teller.say_in(ADA, "amended-2", amended(&second, &first, 0));
    teller.say_in(ADA, "amended-3", amended(&third, &second, 1));
    teller.say_in(CLEO, "countersigned-3", countersigned(&third));
    teller.say_in(CLEO, "exposed-1", exposed(&third, 1, 0, 49));
    let score = |item: &str| {
        let data = json!({"draw": 0, "item": item, "judge": "judge-1", "policy": "base", "score_micro": 500_000});
        payload("score.recorded", &data)
    };
    teller.say_in(RUNNER, "score-1", score("item-1"));
    teller.say_in(ADA, "amended-4", amended(&fourth, &third, 2));
    teller.say_in(RUNNER, "deviated", deviated(&fourth));
    teller.say_in(CLEO, "exposed-2", exposed(&fourth, 2, 50, 99));
    teller.say_in(RUNNER, "score-2", score("item-2"));
    teller.blob(PLAN.to_vec(), "text/plain");
    teller.say_in(BEN, "plan-revealed", plan_revealed("m-1", [9; 32], PLAN));
    let other = audits(EXPERIMENT, "m-audits");
    teller.say_in(ADA, "m-audits", registered(&other));
    teller.finish()
}
