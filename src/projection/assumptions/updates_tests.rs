//! Each part of the catalogue with a payload that moves it.

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::payload::Role;
use clover_event::payload::assumption::Assumption;
use clover_event::registry;
use clover_ground::ambient;
use clover_ground::sign::Signer;
use clover_ground::time::Timestamp;
use serde_json::Value;
use serde_json::json;

use crate::access::Access;
use crate::access::Taint;
use crate::assumptions::ExperimentAssumptions;
use crate::assumptions::Status;
use crate::assumptions::catalogue::CATALOGUE;
use crate::assumptions::standing;
use crate::assumptions::updates;
use crate::assumptions::updates::FindingSubject;
use crate::assumptions::updates::Update;

/// The payload of a kind as the golden files have it, with these fields.
macro_rules! said {
    ($kind:ident $(, $pointer:literal: $value:expr)*) => {
        golden(Kind::$kind, vec![$(($pointer, Value::from($value))),*])
    };
}

/// The golden payload of a kind, with some fields set.
fn golden(kind: Kind, fields: Vec<(&str, Value)>) -> Payload {
    let file = format!("../../fixtures/golden/{}.v1.json", kind.as_str());
    let text = ambient::read(std::path::Path::new(&file)).unwrap();
    let text = String::from_utf8(text).unwrap();
    decoded(kind.as_str(), &text, fields)
}

fn decoded(kind: &str, text: &str, fields: Vec<(&str, Value)>) -> Payload {
    let mut body: Value = serde_json::from_str(text).unwrap();
    for (pointer, value) in fields {
        put(&mut body["data"], pointer, value);
    }
    let (payload, _) = registry::decode(kind, 1, &body["data"].to_string()).unwrap();
    payload
}

/// Sets a field; `null` takes it away.
fn put(data: &mut Value, pointer: &str, value: Value) {
    let (of, name) = pointer.rsplit_once('/').unwrap();
    let of = data.pointer_mut(of).unwrap().as_object_mut().unwrap();
    if value.is_null() {
        of.remove(name).unwrap();
    } else {
        of.insert(name.to_owned(), value);
    }
}

fn environment(baseline_fails: bool) -> Value {
    json!({"baseline_fails": baseline_fails, "environment": "e", "family": "f", "required": true, "rows": 1})
}

/// One gate with its evidence, and the verdict of both profiles.
fn gate(id: &str, evidence: &Value, verdict: &str) -> Payload {
    said!(GateEvaluated,
        "/gate": id,
        "/evidence": json!({ id: evidence }),
        "/verdicts": json!({"literal": verdict, "recommended": verdict})
    )
}

fn transported(environments: &[Value], verdict: &str) -> Payload {
    gate("p6", &json!({"environments": environments}), verdict)
}

/// A payload that moves a part; `None` for a part that nothing moves.
fn mover(code: Assumption, part: &str) -> Option<Payload> {
    let blast = json!({"ks_count": 1, "rows": 1, "w1": 0.5});
    let share = json!({"confirm_change": 0.5, "share": 0.5});
    let loss = json!({"clusters": 1, "mean": 0.5, "rows": 1});
    Some(match (code.as_str(), part) {
        ("A0", "construct" | "pte" | "stability") | ("A1-A3", "attestation") => {
            said!(BridgeAssessed, "/kind": part)
        }
        ("ADV", "battery") => said!(BatteryEvaluated, "/candidate": Value::Null),
        ("BLAST", "anchors") => gate("p5", &json!({"anchors": []}), "fail"),
        ("BLAST", "shift") => gate("p4", &blast, "fail"),
        ("CJE.D1-R3", "drift") => said!(JudgeDriftChecked),
        ("CJE.D1-R3", "tails") | ("OPE", "overlap") => said!(OpeDiagnosed),
        ("CJE.J1" | "L1", "balance") => said!(LabelProcessAudited),
        ("CJE.J1" | "L1", "design") => said!(LabelDesignRegistered),
        ("CJE.J2-M", "calibrator") => said!(CalibratorFitted),
        ("CJE.T1", "residuals") => said!(TransportTested),
        ("CLOVER.J1", "obligations") => gate("p1", &loss, "fail"),
        ("CLOVER.J2", "conflict") => said!(ScoreConflict),
        ("CLOVER.J2", "replay") => said!(ScoreReplayed),
        ("H1", "replication") => gate("p8", &confirm(), "fail"),
        ("H1", "separation") => said!(SplitsFormed),
        ("L2" | "SUP", "coverage") => said!(CoverageChecked),
        ("OUA", "share") => gate("p10", &share, "fail"),
        ("S1", "prentice") => said!(PrenticeChecked),
        ("S2", "transport") => transported(&[environment(true)], "fail"),
        // The next part of the catalogue goes here.
        _ => return None,
    })
}

fn confirm() -> Value {
    let loss = json!({"clusters": 1, "mean": 0.5, "rows": 1});
    json!({"bound": 1.0, "ln_wealth": 0.0, "loss": loss, "moved_clusters": 1, "p_exact": 0.5, "risk_improve": 0.0})
}

/// What a payload says, where every candidate adds obligations.
fn found(payload: &Payload) -> Vec<Update> {
    let mut of = ExperimentAssumptions::default();
    if let Payload::GateEvaluated(said) = payload {
        of.obliging.insert(said.candidate.to_hex());
    }
    let mut found = Vec::new();
    updates::found(payload, Some(&of), &mut |update| found.push(update));
    found
}

/// What a payload says of one part, about each thing that it is about.
fn says(payload: &Payload, code: Assumption, part: &str) -> Vec<(Option<FindingSubject>, Status)> {
    let all = found(payload).into_iter();
    let own = all.filter(|update| update.code == code && update.part == part);
    own.map(|update| (update.of, update.status)).collect()
}

/// A read that taints an experiment.
fn tainted() -> Access {
    let taint = Taint {
        at: Timestamp::EPOCH,
        class: "labels.confirm".parse().unwrap(),
        reader: Signer::from_seed(&[7; 32]).id(),
        role: Role::Optimizer,
        seq: 9,
    };
    Access {
        taints: BTreeMap::from([("exp-1".parse().unwrap(), taint)]),
        ..Access::default()
    }
}

#[test]
fn something_moves_every_part_of_the_catalogue() {
    for entry in CATALOGUE {
        for part in entry.parts {
            let name = format!("{} {}", entry.code, part.name);
            if part.name == "access" {
                // A read moves it, which the fold of reads holds.
                let experiment = "exp-1".parse().unwrap();
                let found = standing::taint(&tainted(), entry.code, Some(&experiment));
                assert_eq!(
                    found.map(|found| found.status),
                    Some(Status::Fail),
                    "{name}"
                );
                continue;
            }
            let payload = mover(entry.code, part.name);
            let payload = payload.unwrap_or_else(|| panic!("nothing moves {name}"));
            assert!(updates::READS.contains(&payload.kind()), "{name}");
            let said = says(&payload, entry.code, part.name);
            assert!(!said.is_empty(), "nothing moves {name}");
            let untested = said.iter().any(|(_, status)| *status == Status::Untested);
            assert!(!untested, "{name}");
        }
    }
}

#[test]
fn estimates_and_audits_say_it_of_each_policy_apart_from_iterations() {
    use Assumption::CjeJ2M;
    use Assumption::CjeT1;
    use Assumption::L2;
    use Assumption::Oua;
    use Assumption::Sup;
    let base = || Some(FindingSubject::Named("base".to_owned()));
    let covered = said!(CoverageChecked, "/policy": "base", "/refuse_level": false);
    assert_eq!(says(&covered, Sup, "coverage"), [(base(), Status::Pass)]);
    // One label in the only tenth is too few.
    assert_eq!(says(&covered, L2, "coverage"), [(base(), Status::Fail)]);
    let iteration = said!(CoverageChecked, "/policy": Value::Null);
    let of_iteration = [
        (None, Status::Fail),
        (Some(FindingSubject::Iteration), Status::Fail),
    ];
    assert_eq!(says(&iteration, Sup, "coverage"), of_iteration);
    let shared = said!(OuaEstimated, "/policy": "base", "/share": 0.3);
    assert_eq!(says(&shared, Oua, "share"), [(base(), Status::Warn)]);
    let fitted = said!(CalibratorFitted, "/iteration": Value::Null, "/terms/covariates": json!([]));
    let judge = Some(FindingSubject::Named("text-1".to_owned()));
    let chosen = [(judge.clone(), Status::Pass)];
    assert_eq!(says(&fitted, CjeJ2M, "calibrator"), chosen);
    let asked = said!(CalibratorFitted, "/iteration": Value::Null, "/terms/mode": "monotone");
    let undecided = [(judge, Status::Inconclusive)];
    assert_eq!(says(&asked, CjeJ2M, "calibrator"), undecided);
    for (state, status) in [
        ("fail", Status::Fail),
        ("inconclusive", Status::Inconclusive),
        ("not_graded", Status::Inconclusive),
        ("pass", Status::Pass),
    ] {
        let tested = said!(TransportTested, "/policy": "base", "/state": state);
        assert_eq!(says(&tested, CjeT1, "residuals"), [(base(), status)]);
    }
}

#[test]
fn residuals_by_environment_say_it_where_there_is_an_environment() {
    use Assumption::S2;
    let of = |said: &Payload| says(said, S2, "transport");
    let one = [environment(false)];
    let iteration = Some(FindingSubject::Iteration);
    let passed = [(iteration.clone(), Status::Pass)];
    assert_eq!(of(&transported(&one, "pass")), passed);
    let unsure = [(iteration, Status::Inconclusive)];
    assert_eq!(of(&transported(&one, "inconclusive")), unsure);
    assert_eq!(of(&transported(&[], "pass")), []);
    let live = said!(GuardrailChecked);
    assert_eq!(of(&live), [(Some(FindingSubject::Live), Status::Fail)]);
    let none = said!(GuardrailChecked, "/evidence/environments": json!({"environments": []}));
    assert_eq!(of(&none), []);
}
