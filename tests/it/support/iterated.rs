//! A ledger with two iterations of a rubric: one that ended without a candidate, one whose confirm labels were
//! seen; and what can be done to it.

use clover::event::Payload;
use clover::event::id::Base64Bytes;
use clover::event::id::Base64Text;
use clover::event::id::SealRecipient;
use clover::event::payload::Role;
use clover::event::payload::label::LabelRevealed;
use clover::event::payload::label::LabelSealed;
use clover::event::payload::label::SealAccepted;
use clover::event::payload::rubric::AuthorKind;
use clover::ground::digest::Digest;
use clover::ground::seal;
use clover::ground::seal::Identity;
use clover::ground::time::Timestamp;
use clover::ledger::Command;
use clover::num::Micro;
use clover::rubric::Rubric;
use clover::workflow::patches;
use clover::workflow::patches::Authorship;
use clover::workflow::patches::Bench;
use serde_json::Value;
use serde_json::json;

use super::planned::manifest;
use super::planned::payload;
use super::samples::*;
use super::signer;

/// CLOVER v1.1, appendix B, with its version between quotes.
pub const RUBRIC: &str = r#"rubric:
  version: "1.0"
  target: "Y"
  sdp_version: "v1.0_2025-11-11"
  obligations:
    factual_adequacy:
      required: true
      verification:
        allowed_domains: ["nih.gov","who.int","cochrane.org","nejm.org","thelancet.com","nature.com"]
        mismatch_penalty: 0.35
    reasoning_quality:
      requires_counter_position: true
    risk_accounting:
      requires_stakeholders: true
    usefulness:
      be_concise_by_default: true
  guards:
    length_bias_cap:
      if_tokens_gt: 500
      max_raw_score: 0.5
    tool_trace_consistency: true
    confident_but_wrong_max: 0.4
  abstention:
    triggers: ["medical dosing","legal advice"]
    rule: "if critical info missing -> abstain or escalate"
"#;

/// The patch of the same appendix.
pub const PATCH: &str = r#"patch:
  family: "evidence_verification"
  id: "len-cite-guard-001"
  rationale: "Long medical answers with unverifiable cites are over-scored."
  changes:
    guards.length_bias_cap:
      if_tokens_gt: 500
      max_raw_score: 0.5
    obligations.factual_adequacy.verification:
      allowed_domains+: ["bmj.com"]
      mismatch_penalty: 0.35
  constraints:
    max_tokens_added: 150
    affects_rescore: true
  expected_effects:
    slices:
      - domain: "medical"
        length_bin: "600-900"
        residual_mean_delta: -0.06
    anti_gaming:
      length_padding_uplift: "<=0.02"
"#;

/// A patch with one change.
pub fn patch(id: &str, family: &str, changes: &str) -> String {
    format!(
        "patch:\n  family: {family}\n  id: {id}\n  rationale: answers of this kind are over-scored\n  \
         changes: {changes}\n  constraints: {{max_tokens_added: 60, affects_rescore: true}}\n"
    )
}

pub fn rubric() -> Rubric {
    Rubric::parse(RUBRIC.as_bytes()).unwrap()
}

fn hex(text: &str) -> String {
    Digest::sha256(text.as_bytes()).to_hex()
}

/// The plan of an iteration, without slices of high stakes.
pub fn plan(experiment: &str, id: &str) -> Value {
    let cell = |slice: &str, stakes: u64, below: u64| {
        json!({
            "conditions": [
                {"any_of": ["medical"], "field": "domain"},
                {"at_least_micro": 0, "below_micro": below, "field": "tokens"},
            ],
            "must_not_regress": stakes > 500_000, "slice": slice, "stakes_micro": stakes,
        })
    };
    json!({
        "experiment": experiment,
        "hypothesis": {"claim": "fewer unverifiable citations are over-scored", "kind": "promote"},
        "iteration": {
            "alpha_micro": 50_000, "confirm_rows": 3000, "confirm_separation": "hashed",
            "confirm_test": "betting",
            "design": {
                "anchors": "anchors-1", "calibrator": "monotone", "covariates": ["log_tokens"],
                "dev_calls_max": 100,
                "environments": [
                    {"environment": "base", "family": "policy", "required": true},
                    {"environment": "autumn", "family": "window", "required": false},
                ],
                "frozen_paths": ["guards.confident_but_wrong_max"],
                "must_not_regress": "guard", "peek_account": "confirm-peeks",
                "rubric_hash": rubric().hash().to_hex(), "seed": hex("seed"),
                "slices": [{"cells": [cell("short", 300_000, 300_000_000), cell("long", 600_000, 900_000_000)],
                            "family": "domain-length"}],
                "topics": ["legal advice", "medical dosing", "tax"],
            },
            "dev_rows": 3000, "difference_sd_micro": 20_000, "drift_max_micro": 10_000,
            "ece_slack_micro": 5_000, "effect_micro": 2_500, "eta_micro": 1_000, "fit_rows": 4000,
            "gap_seconds": 259_200, "green_sd_micro": 4_000, "green_slices": 2, "hypotheses_max": 4,
            "ks_max_micro": 50_000,
            "patch_families": ["abstention", "contradiction_check", "evidence_verification", "length_bias_cap"],
            "power_micro": 800_000, "profile": "recommended", "q_micro": 100_000, "shift_metric": "either",
            "slice_rows_min": 200, "tau_micro": 1_500, "uplift_max_micro": 50_000, "w1_max_micro": 20_000,
        },
        "manifest": id,
        "template": "iteration",
        "title": "Citations",
        "version": 1,
    })
}

pub fn rubric_registered(yaml: &str) -> Payload {
    patches::register(yaml).unwrap().into()
}

pub fn anchors(rows: u64) -> Payload {
    let of = |policy: &str, count: u64| {
        let root = Digest::sha256(policy.as_bytes()).to_base64();
        json!({"count": count, "policy": policy, "rows_root": root})
    };
    let data = json!({"anchors": "anchors-1", "high": of("good", 250), "low": of("bad", rows)});
    payload("anchor_set.registered", &data)
}

pub fn peek_account() -> Payload {
    let data = json!({
        "account": "confirm-peeks", "amount": 3, "period": "quarter", "purpose": "confirm peeks",
        "spenders": ["custodian"], "unit": "peek",
    });
    payload("budget.opened", &data)
}

pub fn opened(plan: &Value, iteration: &str, quarter: &str) -> Payload {
    let manifest = manifest(plan);
    let params = manifest.iteration.as_ref().unwrap();
    let design = params.design.as_ref().unwrap();
    let data = json!({
        "digest": manifest.digest().to_hex(), "iteration": iteration, "params": params,
        "params_hash": params.params_hash().to_hex(), "quarter": quarter,
        "rubric_hash": design.rubric_hash.to_hex(),
    });
    payload("iteration.opened", &data)
}

pub fn closed(iteration: &str, outcome: &str) -> Payload {
    let data = json!({"iteration": iteration, "outcome": outcome, "reason": "as it came"});
    payload("iteration.closed", &data)
}

/// What a person proposes with a document that is a patch of [`RUBRIC`].
pub fn proposed(iteration: &str, yaml: &str) -> Payload {
    let mut bench = Bench::loose(rubric());
    bench.vocabulary = ["legal advice", "medical dosing", "tax"]
        .map(str::to_owned)
        .into();
    let (patch, checked) = bench.check(yaml.as_bytes(), None).unwrap();
    let by = Authorship {
        kind: AuthorKind::Human,
        inputs: vec![rubric().hash()],
        model: None,
        prompt_digest: None,
        run: None,
    };
    patches::propose(yaml, &iteration.parse().unwrap(), (&patch, &checked), by).into()
}

pub fn rejected(
    iteration: &str,
    stage: &str,
    code: &str,
    patch: Option<&str>,
    yaml: &str,
) -> Payload {
    let mut data = json!({
        "code": code, "gate_refs": [], "iteration": iteration, "stage": stage, "yaml_sha256": hex(yaml),
    });
    if let Some(patch) = patch {
        data["patch"] = patch.into();
    }
    payload("patch.rejected", &data)
}

pub fn withdrawn(iteration: &str, patch: &str) -> Payload {
    let data = json!({"iteration": iteration, "patch": patch, "reason": "a better one is at hand"});
    payload("patch.withdrawn", &data)
}

/// Gives the data of an event that holds the parameters of an iteration their digest.
pub fn rehash(data: &mut Value) {
    let params = serde_json::from_value::<clover::event::payload::manifest::IterationPlan>(
        data["params"].clone(),
    );
    data["params_hash"] = params.unwrap().params_hash().to_hex().into();
}

pub const CONCISE: &str = "{obligations.usefulness.penalty: 0.1}";
pub const STAKEHOLDERS: &str = "{obligations.risk_accounting: {penalty: 0.2}}";

/// The story, told through the real ledger. The second iteration stays open.
pub fn story() -> Story {
    let mut teller = Teller::begin();
    let identity = Identity::from_bytes(&[0xa0; 32]);
    for (name, who, holder, role) in [
        ("key-ben", BEN, "Ben", Role::Arbiter),
        ("key-opal", RUNNER, "Opal", Role::Optimizer),
    ] {
        teller.say(ADA, name, key_added(&signer(who), holder, true, &[role]));
    }
    let cleo = clover::event::payload::custody::KeyAdded {
        seal_recipient: Some(SealRecipient(identity.recipient())),
        ..key_added(&signer(CLEO), "Cleo", true, &[Role::Custodian])
    };
    teller.say(ADA, "key-cleo", cleo);
    teller.say_in(ADA, "registered", super::planned::experiment_registered());
    teller.say(ADA, "peeks", peek_account());
    teller.say_in(ADA, "rubric", rubric_registered(RUBRIC));
    teller.say_in(ADA, "anchors", anchors(200));
    let first = plan(EXPERIMENT, "m-it");
    teller.say_in(ADA, "m-it", super::planned::registered(&first));
    teller.say_in(BEN, "opened-1", opened(&first, "it-1", "2026Q3"));
    let bad = PATCH
        .replace("abstention", "guards")
        .replace("bmj.com", "BMJ");
    teller.say_in(
        BEN,
        "rejected",
        rejected("it-1", "schema", "range", None, &bad),
    );
    teller.say_in(RUNNER, "patch-1", proposed("it-1", PATCH));
    teller.say_in(RUNNER, "withdrawn", withdrawn("it-1", "len-cite-guard-001"));
    teller.say_in(BEN, "closed-1", closed("it-1", "no_candidate"));
    teller.say_in(BEN, "opened-2", opened(&first, "it-2", "2026Q3"));
    let again = PATCH.replace("len-cite-guard-001", "len-cite-guard-002");
    teller.say_in(RUNNER, "patch-2", proposed("it-2", &again));
    let concise = patch("concise-1", "length_bias_cap", CONCISE);
    teller.say_in(RUNNER, "patch-3", proposed("it-2", &concise));
    teller.say_in(
        BEN,
        "dev",
        rejected("it-2", "dev", "P1", Some("concise-1"), &concise),
    );
    let (design, row) = ("hold", "base/item-1/0");
    let envelope = b"age-encryption.org/v1\nan envelope".to_vec();
    let label = LabelSealed {
        commitment: seal::commitment(ORIGIN, design, row, &[9; 32], 250_000),
        design: design.parse().unwrap(),
        envelope: Base64Text(envelope.clone()),
        recipient: SealRecipient(identity.recipient()),
        reveal_by: Timestamp::parse("2027-01-01T00:00:00.000000Z").unwrap(),
        row: row.parse().unwrap(),
    };
    teller.say_in(CLEO, "sealed", label);
    let accepted = SealAccepted {
        design: design.parse().unwrap(),
        envelope_sha256: Digest::sha256(&envelope),
        row: row.parse().unwrap(),
    };
    teller.say_in(CLEO, "accepted", accepted);
    let charge = json!({"account": "confirm-peeks", "amount": 1, "for": "it-2"});
    teller.say(CLEO, "charge", payload("budget.charged", &charge));
    let revealed = LabelRevealed {
        charge: teller.id("charge"),
        design: design.parse().unwrap(),
        row: row.parse().unwrap(),
        salt: Base64Bytes([9; 32]),
        value_micro: Micro::new(250_000).unwrap(),
    };
    let revealed = Command::new(revealed, Some(EXPERIMENT.parse().unwrap()));
    teller.say_all(CLEO, vec![("revealed", revealed)]);
    teller.finish()
}
