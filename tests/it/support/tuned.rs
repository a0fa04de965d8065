//! A ledger in which a policy was tuned under the judge that runs: one run without a gain that was rolled back, and one
//! with a gain.

use clover::event::Payload;
use clover::event::payload::Role;
use clover::event::payload::generator::GeneratorValidated;
use clover::ground::digest::Digest;
use clover::ledger::Command;
use clover::workflow::generator;
use clover::workflow::guardrails;
use serde_json::Value;
use serde_json::json;

use super::decided;
use super::deployed;
use super::planned;
use super::planned::payload;
use super::released;
use super::samples::*;
use super::signer;

/// Labels of each policy.
pub const LABELS: usize = 40;

/// Digest of f.
fn frozen() -> String {
    deployed::calibrator()
}

/// An opening of a run on a deployment.
pub fn opened(run: &str, deployment: &str, rubric_hash: &str) -> Payload {
    let data = json!({
        "build": "clover 0.1.0", "calibrator": deployed::calibrator(), "deployment": deployment, "frozen": frozen(),
        "new": "tuned", "old": "base", "rubric_hash": rubric_hash, "run": run, "stakes_micro": 500_000, "steps": 1,
    });
    payload("generator.run_opened", &data)
}

/// A step of a run.
pub fn asked(run: &str, step: u64) -> Payload {
    let data = json!({
        "answer_root": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "build": "clover 0.1.0", "frozen": frozen(),
        "inputs": {"digest": Digest::sha256(b"rows").to_hex(), "rows": 40, "through_seq": 9}, "lower_mean": 0.41,
        "policy": "tuned", "run": run, "step": step,
    });
    payload("generator.objective_queried", &data)
}

/// A design for labels of both policies.
pub fn design(name: &str) -> Payload {
    let data = json!({
        "design": name, "inclusion_micro": 100_000, "protocol": "v1.0_2025-11-11", "purpose": "audit",
    });
    payload("label.design_registered", &data)
}

/// One of its labels.
pub fn label(design: &str, policy: &str, number: usize) -> Payload {
    let data = json!({
        "design": design, "draw": 0, "item": format!("{design}-{number:03}"), "policy": policy, "purpose": "audit",
        "rater": "lena", "value_micro": 500_000,
    });
    payload("label.recorded", &data)
}

/// Labels of both policies under a design.
pub fn labels(design: &str) -> Vec<Payload> {
    let of = |policy: &'static str| (0..LABELS).map(move |at| label(design, policy, at));
    of("base").chain(of("tuned")).collect()
}

fn environment(policy: &str, required: bool) -> Value {
    json!({
        "baseline_fails": false, "detectable_bias": 0.04, "environment": policy, "family": "policy", "mean": 0.002,
        "p": 0.6, "required": required, "rows": LABELS, "standard_error": 0.0143,
    })
}

/// A validation of a run on a design; `lower` is the bound of the gain.
pub fn validated(plan: &Value, (run, design): (&str, &str), steps: u64, lower: f64) -> Payload {
    let plan = planned::manifest(plan).iteration.unwrap();
    let held = guardrails::thresholds(&plan);
    let battery = match decided::passing("p7") {
        Value::Object(mut of) => of.remove("p7").unwrap(),
        other => other,
    };
    let mut data = json!({
        "battery": battery, "build": "clover 0.1.0",
        "compared": {
            "difference": lower + 0.02, "lower": lower, "new": {"clusters": LABELS, "rows": LABELS},
            "old": {"clusters": LABELS, "rows": LABELS}, "shared": LABELS, "standard_error": 0.0119,
        },
        "design": design, "frozen": frozen(),
        "inputs": {"digest": Digest::sha256(b"labelled").to_hex(), "rows": 80, "through_seq": 9}, "lcb_gain": 0.03,
        "run": run, "steps": steps, "thresholds": held,
        "transport": {"environments": [environment("tuned", true), environment("base", false)]},
        "verdict": "inconclusive",
        "verdicts": {"battery": "inconclusive", "gain": "inconclusive", "transport": "inconclusive"},
    });
    let said: GeneratorValidated = serde_json::from_value(data.clone()).unwrap();
    let battery = said.battery.as_ref();
    let verdicts = generator::verdicts(&said.compared, &said.transport, battery, &held);
    data["verdicts"] = serde_json::to_value(verdicts).unwrap();
    data["verdict"] = if lower > 0.0 {
        "pass".into()
    } else {
        "fail".into()
    };
    payload("generator.validated", &data)
}

/// A rollback of a run.
pub fn back(run: &str, validation: Option<&str>) -> Payload {
    let mut data = json!({"reason": "no gain on fresh labels", "restored": "base", "run": run});
    if let Some(validation) = validation {
        data["validation"] = validation.into();
    }
    payload("generator.rolled_back", &data)
}

/// The story, told through the real ledger.
pub fn story() -> Story {
    let mut teller = Teller::begin();
    let hex = |teller: &Teller, name: &str| teller.id(name).0.to_hex();
    released::accepted(&mut teller);
    let lena = key_added(&signer(LENA), "Lena", true, &[Role::Labeler]);
    teller.say(ADA, "key-lena", lena);
    let [model, rows] = deployed::blobs();
    teller.blob(model.to_vec(), "application/json");
    teller.blob(rows.to_vec(), "application/x-ndjson");
    teller.say_in(BEN, "fitted", deployed::fitted());
    let (base, hash) = (hex(&teller, "rubric"), deployed::base_hash());
    let run = deployed::activated((&base, "1.0"), &hash, None);
    teller.say_in(RUNNER_2, "runs", run);
    let runs = hex(&teller, "runs");
    let in_design = |teller: &mut Teller, name: &'static str| {
        teller.say_in(LENA, name, design(name));
        let experiment = || Some(EXPERIMENT.parse().unwrap());
        let all = labels(name).into_iter();
        let all = all.map(|label| (name, Command::new(label, experiment())));
        teller.say_all(LENA, all.collect());
    };
    in_design(&mut teller, "early");
    teller.say_in(BEN, "tune-1", opened("tune-1", &runs, &hash));
    teller.say_in(BEN, "asked", asked("tune-1", 1));
    in_design(&mut teller, "ab-1");
    let plan = released::plan();
    let none = validated(&plan, ("tune-1", "ab-1"), 1, -0.01);
    teller.say_in(BEN, "no-gain", none);
    let validation = hex(&teller, "no-gain");
    teller.say_in(RUNNER_2, "back", back("tune-1", Some(&validation)));
    teller.say_in(BEN, "tune-2", opened("tune-2", &runs, &hash));
    in_design(&mut teller, "ab-2");
    let better = validated(&plan, ("tune-2", "ab-2"), 0, 0.01);
    teller.say_in(BEN, "better", better);
    teller.finish()
}
