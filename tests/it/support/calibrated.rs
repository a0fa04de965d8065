//! A ledger with an iteration whose calibrators are on record: one of the rubric in force, one of each candidate, and every
//! gate names both; and what can be done to it.

use clover::event::Kind;
use clover::event::Payload;
use clover::event::payload::Role;
use clover::ground::digest::Digest;
use clover::projection::decisions::CONFIRM_CRITERIA;
use clover::projection::decisions::DEV_CRITERIA;
use serde_json::Value;
use serde_json::json;

use super::decided;
use super::decided::IT;
use super::forger::World;
use super::iterated;
use super::planned;
use super::samples::*;
use super::signer;
use super::tampered::Sample;
use super::valued;

/// A fit of the iteration: of a candidate, or of the rubric that it starts from.
pub fn fitted(calibrator: u8, candidate: Option<Digest>, rubric: Digest) -> Payload {
    let hex = |text: &str| Digest::sha256(text.as_bytes()).to_hex();
    let mut data = valued::fitted(calibrator, 9);
    data["labels_by_policy"] = json!([]);
    data["iteration"] = json!({
        "atom_rows": 0, "fit_root": Digest::sha256(b"fit").to_base64(), "folds_hash": hex("folds"),
        "inputs": decided::rows(), "knots_hash": hex("knots"),
    });
    data["terms"]["iteration"] = json!({"iteration": IT, "rubric_hash": rubric});
    if let Some(candidate) = candidate {
        data["terms"]["iteration"]["candidate"] = json!(candidate);
    }
    valued::payload(Kind::CalibratorFitted, &data)
}

/// A gate of a candidate that passes, with the calibrators of these bytes; P7 with its battery.
pub fn gate(
    plan: &Value,
    (candidate, split, id): (Digest, &str, &str),
    battery: Option<&str>,
) -> Payload {
    let gate = decided::gate(plan, candidate, split, &decided::passing(id));
    let mut data = serde_json::to_value(&gate).unwrap();
    data["calibrators"] = json!({"baseline": valued::digest(7), "candidate": valued::digest(8)});
    if let Some(battery) = battery.filter(|_| id == "p7") {
        data["battery"] = battery.into();
    }
    planned::payload("gate.evaluated", &data)
}

/// The one patch of the story.
pub fn patch() -> Payload {
    let yaml = iterated::patch("concise-3", "length_bias_cap", iterated::CONCISE);
    iterated::proposed(IT, &yaml)
}

/// The story, told through the real ledger.
pub fn story() -> Story {
    let mut teller = Teller::begin();
    for (name, who, holder, role) in [
        ("key-ben", BEN, "Ben", Role::Arbiter),
        ("key-opal", RUNNER, "Opal", Role::Optimizer),
        ("key-cleo", CLEO, "Cleo", Role::Custodian),
        ("key-runa", RUNNER_2, "Runa", Role::Scorer),
        ("key-mal", RUNNER_3, "Mal", Role::Adversary),
    ] {
        teller.say(ADA, name, key_added(&signer(who), holder, true, &[role]));
    }
    teller.say_in(ADA, "registered", planned::experiment_registered());
    teller.say(ADA, "peeks", iterated::peek_account());
    teller.say_in(ADA, "rubric", iterated::rubric_registered(iterated::RUBRIC));
    teller.say_in(RUNNER_2, "judge", decided::judge());
    teller.say_in(ADA, "anchors", iterated::anchors(200));
    let plan = iterated::plan(EXPERIMENT, "m-it");
    teller.say_in(ADA, "m-it", planned::registered(&plan));
    let names = ["split-1", "split-2", "split-3", "split-4"];
    for (name, event) in names.into_iter().zip(decided::split_events()) {
        teller.say_in(BEN, name, event);
    }
    teller.say_in(BEN, "opened", iterated::opened(&plan, IT, "2026Q3"));
    for blob in [
        (valued::MODEL, "application/json"),
        (valued::ROWS, "application/x-ndjson"),
    ] {
        teller.blob(blob.0.to_vec(), blob.1);
    }
    let base = iterated::rubric().hash();
    teller.say_in(BEN, "fitted", fitted(7, None, base));
    teller.say_in(BEN, "audited", decided::audited());
    teller.say_in(BEN, "classified", decided::classified());
    teller.say_in(RUNNER, "patch", patch());
    let (hash, result, _) = decided::patch_of(&patch());
    teller.say_in(RUNNER_2, "scores", decided::recomputed(hash, result));
    teller.say_in(BEN, "fitted-a", fitted(8, Some(hash), result));
    let battery = decided::battery(Some(hash), result, &[]);
    teller.say_in(RUNNER_3, "battery", battery);
    let battery = teller.id("battery").0.to_hex();
    let gates = decided::GATES[0];
    for (name, id) in gates.into_iter().zip(DEV_CRITERIA) {
        let of = (hash, "dev", id.as_str());
        teller.say_in(BEN, name, gate(&plan, of, Some(&battery)));
    }
    teller.say_in(BEN, "sealed", decided::sealed(&[hash]));
    teller.say(CLEO, "charge", decided::charge());
    let (charge, sealing) = (teller.id("charge"), teller.id("sealed"));
    let unsealing = decided::unsealed(&charge.0.to_hex(), &sealing.0.to_hex());
    teller.say_in(CLEO, "unsealed", unsealing);
    for (name, id) in gates[8..].iter().zip(CONFIRM_CRITERIA) {
        let of = (hash, "confirm", id.as_str());
        teller.say_in(BEN, name, gate(&plan, of, None));
    }
    let ids = gates.map(|gate| teller.id(gate).0.to_hex());
    teller.say_in(BEN, "accepted", decided::accepted(&patch(), 1, &ids));
    teller.say_in(BEN, "closed", iterated::closed(IT, "accepted"));
    teller.finish()
}

/// What can be done to it.
pub fn samples() -> Vec<Sample> {
    let story = story();
    let good = Sample::forged(
        "good-calibrated",
        "Nothing. Calibrators of an iteration are on record, and each gate names those that it compares.",
        &World::of(&story.lines),
        None,
    );
    let edited = |name, done, at: &str, edit: &dyn Fn(&mut Value), rule| {
        let mut world = World::of(&story.lines);
        let at = story.at(at);
        edit(&mut world.items[at].body["data"]);
        Sample::forged(name, done, &world, Some((at, rule)))
    };
    vec![
        good,
        edited(
            "calibrator-fitted-twice",
            "A second calibrator of the rubric in force was fitted, on later entries.",
            "fitted-a",
            &|data| {
                let terms = data["terms"]["iteration"].as_object_mut().unwrap();
                terms.remove("candidate");
                data["through_seq"] = 10.into();
            },
            "predicate",
        ),
        edited(
            "gate-on-other-calibrators",
            "A gate compares with a calibrator that was not fitted for its candidate.",
            "a-p1",
            &|data| data["calibrators"]["candidate"] = valued::digest(7),
            "predicate",
        ),
        edited(
            "gate-on-no-calibrators",
            "A gate does not say which calibrators it compares.",
            "a-p2",
            &|data| drop(data.as_object_mut().unwrap().remove("calibrators")),
            "predicate",
        ),
        edited(
            "gaming-without-its-battery",
            "P7 does not name the battery that it says.",
            "a-p7",
            &|data| drop(data.as_object_mut().unwrap().remove("battery")),
            "battery",
        ),
    ]
}
