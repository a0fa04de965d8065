//! A ledger with an iteration that was decided, step by step; and what can be done to it.

use clover::event::Payload;
use clover::event::payload::Role;
use clover::event::payload::manifest::IterationPlan;
use clover::event::payload::predicate::Evidence;
use clover::event::payload::predicate::Thresholds;
use clover::event::payload::report::ReportPart;
use clover::ground::canon;
use clover::ground::digest::Digest;
use clover::ground::sign::KeyId;
use clover::ground::time::Timestamp;
use clover::projection::bundle::BUNDLE_LABEL;
use clover::projection::decisions::CARD_LABEL;
use clover::projection::decisions::CLASSIFICATION_LABEL;
use clover::projection::decisions::CONFIRM_CRITERIA;
use clover::projection::decisions::DEV_CRITERIA;
use clover::projection::decisions::composite_of;
use clover::projection::decisions::thresholds_of;
use clover::workflow::predicate;
use clover::workflow::split;
use clover::workflow::split::Apart;
use serde_json::Value;
use serde_json::json;

use super::iterated;
use super::iterated::PATCH;
use super::planned;
use super::planned::payload;
use super::samples::*;
use super::signer;

/// The iteration.
pub const IT: &str = "it-3";

fn hex(text: &str) -> String {
    Digest::sha256(text.as_bytes()).to_hex()
}

pub fn rows() -> Value {
    json!({"digest": hex("rows"), "rows": 2500, "through_seq": 9})
}

/// Plan and thresholds of an iteration.
pub fn terms(plan: &Value) -> (IterationPlan, Thresholds) {
    let plan = planned::manifest(plan).iteration.unwrap();
    let thresholds = thresholds_of(&plan);
    (plan, thresholds)
}

pub fn label_process() -> Payload {
    let data = json!({
        "balance": [{"column": "score", "smd": 0.04}], "build": "clover 0.1.0", "inputs": rows(),
        "iteration": IT, "labelled": 2500, "orphans": 0, "verdict": "pass",
    });
    payload("label_process.audited", &data)
}

pub fn prentice() -> Payload {
    let data = json!({
        "build": "clover 0.1.0", "df_rows": 2490, "df_terms": 5, "f": 1.5, "inputs": rows(), "iteration": IT,
        "p": 0.25, "top_term": "domain-length long", "verdict": "pass",
    });
    payload("prentice.checked", &data)
}

pub fn audited() -> Payload {
    let slice = |slice: &str, mean: f64| {
        json!({
            "clusters": 120, "exposure": 0.5, "mse": 0.0625, "rows": 120, "slice": slice, "stakes": 0.25,
            "pooled": {"high": mean + 0.02, "low": mean - 0.02, "mean": mean, "standard_error": 0.01,
                       "weight": 0.125},
            "raw": {"mean": mean, "p": 0.001, "p_adjusted": 0.002, "rejected": true, "standard_error": 0.015},
        })
    };
    let data = json!({
        "algorithm": "residuals/1", "build": "clover 0.1.0", "calibrator": hex("calibrator"), "inputs": rows(),
        "families": [{"between": 0.001, "family": "domain-length", "mu": -0.01,
                      "slices": [slice("short", 0.0), slice("long", -0.1)]}],
        "iteration": IT,
    });
    payload("residuals.audited", &data)
}

fn slices() -> Value {
    let slice = |slice: &str, class: &str, stakes: f64| {
        json!({
            "class": class, "exposure": 0.5, "family": "domain-length", "must_not_regress": stakes > 0.7,
            "slice": slice, "stakes": stakes,
        })
    };
    json!([slice("short", "green", 0.25), slice("long", "risk", 0.75)])
}

fn classification() -> String {
    let bytes = canon::to_bytes(&slices()).unwrap();
    Digest::labelled(CLASSIFICATION_LABEL, &bytes).to_hex()
}

pub fn classified() -> Payload {
    let data = json!({
        "classification_hash": classification(), "iteration": IT, "slices": slices(),
    });
    payload("slices.classified", &data)
}

/// The digest of an optimizer's projection.
pub fn public_digest(card: &Value) -> Digest {
    Digest::labelled(CARD_LABEL, &canon::to_bytes(card).unwrap())
}

/// A card with what was measured of attacks in its slice.
pub fn card_under(stress: &Value) -> Payload {
    let fired = ["guards.length_bias_cap.max_raw_score"];
    let row = json!({"features": [{"bin": 3, "feature": "tokens"}], "fired": fired});
    let card = json!({
            "basis": {
                "calibrator": hex("calibrator"), "iteration": IT, "rubric_hash": iterated::rubric().hash(),
                "selector": [{"field": "length", "any_of": ["long"]}], "split": "dev",
            },
            "candidate_paths": ["guards.length_bias_cap.if_tokens_gt"], "card": "domain-length/long",
            "class": "risk", "clusters": 120, "counterexamples": [row], "direction": "over_scored",
            "exemplars": [row],
            "explanations": [{"explanation": "length_bias", "score_micro": -300_000, "verdict": "pass"}],
            "exposure_micro": 500_000, "family": "domain-length",
            "hints": [{"feature": "tokens", "reference_micro": 90_000_000, "rows": 30, "smd_micro": 400_000,
                       "worst_micro": 310_000_000}],
            "interval_raw": {"high_micro": -70_400, "low_micro": -129_600}, "p_raw_micro": 1_000,
            "mean_raw_micro": -100_000, "mean_shrunk": {"high_micro": -80_000, "low_micro": -120_000, "mean_micro": -100_000},
            "mse_micro": 62_500, "p_adjusted_micro": 2_000, "rows": 120, "shrink_micro": 125_000, "slice": "long",
            "stakes_micro": 750_000, "stress": stress,
    });
    let data = json!({
        "build": "clover 0.1.0", "card": card, "full_digest": hex("full"), "iteration": IT,
        "public_digest": public_digest(&card),
    });
    payload("card.published", &data)
}

pub fn card() -> Payload {
    card_under(&json!([{"attack": "padding", "mean_micro": 20_000, "seeds": 50}]))
}

pub fn paused(share: f64) -> Payload {
    let data = json!({
        "build": "clover 0.1.0", "gain": 0.0005, "inputs": rows(), "iteration": IT,
        "labels_requested": 400, "share": share,
    });
    payload("iteration.paused_for_labels", &data)
}

fn loss(mean: f64) -> Value {
    json!({"clusters": 750, "mean": mean, "rows": 750, "standard_error": 0.0008})
}

fn greens() -> Value {
    json!({
        "slices": [{
            "abstention_rise": 0.0, "family": "domain-length", "loss": loss(-0.0001), "must_not_regress": false,
            "p": 0.02, "p_zero": 0.4, "slice": "short", "untouched": false, "upper": 0.0004,
            "worst": [0.125, 0.0625],
        }],
        "tau_micro": 1_500,
    })
}

/// Statistics that pass a gate.
pub fn passing(gate: &str) -> Value {
    let attack =
        |name: &str| json!({"attack": name, "mean": 0.01, "mean_absolute": 0.015, "seeds": 50});
    let found = match gate {
        "p0" => json!({
            "inputs_declared": true, "kappa": 3, "kappa_max": 150, "open": true, "replay": "pass", "valid": true,
        }),
        "p1" => loss(-0.003),
        "p2" => json!({"baseline": 0.02, "bins": 10, "patched": 0.021}),
        "p3" | "p9" => greens(),
        "p4" => json!({"ks_count": 90, "rows": 2500, "w1": 0.0125}),
        "p5" => json!({"anchors": [{"drift": 0.002, "policy": "bad", "rows": 200},
                                   {"drift": 0.003, "policy": "good", "rows": 250}]}),
        "p6" => json!({"environments": [{
            "baseline_fails": false, "detectable_bias": 0.03, "environment": "base", "family": "policy",
            "mean": 0.001, "p": 0.5, "required": true, "rows": 750, "standard_error": 0.0107,
        }]}),
        "p7" => {
            json!({"attacks": predicate::ATTACKS.map(attack), "regressions": 0, "searched": 0.04})
        }
        "p8" => json!({
            "bound": 0.25, "ln_wealth": 7.5, "loss": loss(-0.0031), "moved_clusters": 60, "p_bootstrap": 0.001,
            "p_exact": 0.0006, "p_t": 0.0001, "risk_improve": -0.00125,
        }),
        "p10" => json!({"confirm_change": -0.0031, "share": 0.125}),
        other => unreachable!("{other}"),
    };
    json!({ gate: found })
}

/// A gate event with the verdicts that its statistics give.
pub fn gate(plan: &Value, candidate: Digest, split: &str, evidence: &Value) -> Payload {
    let (plan, thresholds) = terms(plan);
    let found: Evidence = serde_json::from_value(evidence.clone()).unwrap();
    let verdicts = predicate::verdicts(&found, &thresholds);
    let data = json!({
        "build": "clover 0.1.0", "candidate": candidate.to_hex(), "classification_hash": classification(),
        "evidence": evidence, "gate": found.gate(), "inputs": rows(), "iteration": IT,
        "params_hash": plan.params_hash().to_hex(), "seed_label": format!("{IT}/{split}"), "split": split,
        "thresholds": thresholds, "verdicts": verdicts,
    });
    payload("gate.evaluated", &data)
}

/// All gates of a candidate on a split, passed.
pub fn gates(plan: &Value, candidate: Digest, split: &str) -> Vec<Payload> {
    let all: &[_] = if split == "dev" {
        &DEV_CRITERIA
    } else {
        &CONFIRM_CRITERIA
    };
    all.iter()
        .map(|id| gate(plan, candidate, split, &passing(id.as_str())))
        .collect()
}

/// The judge that is attacked.
pub fn judge() -> Payload {
    let data = json!({
        "decoding": {"temperature_micro": 0}, "evidence_schema": "evidence/1", "extractor": "clover-text/1",
        "judge": "builtin", "model": "builtin-text/1", "port": "builtin", "prompt_hash": hex("prompt"),
        "tool_snapshot": hex("tools"),
    });
    payload("judge.registered", &data)
}

/// The battery of a candidate, or of the rubric in force, with what [`passing`] says of P7; each exploit that is known
/// earned .08 under the rubric in force, and earns this much now.
pub fn battery(candidate: Option<Digest>, rubric: Digest, exploits: &[i64]) -> Payload {
    let found = passing("p7")["p7"].clone();
    let mut attacks = found["attacks"].as_array().unwrap().clone();
    for attack in &mut attacks {
        attack["max"] = 0.0625.into();
    }
    let exploits = exploits.iter().enumerate().map(|(number, uplift)| {
        let mut measured = json!({"exploit": number, "uplift_micro": uplift});
        if candidate.is_some() {
            measured["before_micro"] = 80_000.into();
        }
        measured
    });
    let of = |slice: &str, seeds: u64| {
        let padding = |value: u64| {
            let all = attacks
                .iter()
                .map(|attack| u64::from(attack["attack"] == "padding") * value);
            all.collect::<Vec<u64>>()
        };
        json!({
            "family": "domain-length", "means_micro": padding(20_000), "seeds": padding(seeds), "slice": slice,
        })
    };
    let root = Digest::sha256(b"seeds").to_base64();
    let mut data = json!({
        "attacks": attacks, "build": "clover 0.1.0", "calibrator": hex("calibrator"),
        "chains": [{"chain": "padding:50@3", "mean": found["searched"], "seeds": 50},
                   {"chain": "fake_citation:1:unlisted@3+padding:50@9", "mean": 0.02, "seeds": 48}],
        "chains_root": root, "exploits": exploits.collect::<Vec<_>>(), "iteration": IT, "judge": "builtin",
        "regressions": 0, "rubric_hash": rubric, "seeds": 60, "seeds_root": root,
        "slices": [of("short", 10), of("long", 50)], "tries": 150, "u_adv": found["searched"], "unscored": 0,
    });
    if let Some(candidate) = candidate {
        data["candidate"] = json!(candidate);
        data["slices"] = json!([]);
    }
    payload("battery.evaluated", &data)
}

/// The battery of the rubric in force.
pub fn battery_in_force() -> Payload {
    battery(None, iterated::rubric().hash(), &[])
}

/// An exploit that the battery of the rubric in force found.
pub fn exploit(battery: &str) -> Payload {
    let data = json!({
        "battery": battery, "chain": "fake_citation:1:unlisted@3+padding:50@9", "draw": 0, "item": "item-1",
        "iteration": IT, "policy": "base", "rubric_hash": iterated::rubric().hash(), "uplift_micro": 80_000,
        "violation": "construction",
    });
    payload("exploit.discovered", &data)
}

/// Scores under a candidate: of the rows, and of 450 anchors.
pub fn recomputed(candidate: Digest, rubric: Digest) -> Payload {
    let data = json!({
        "build": "clover 0.1.0", "candidate": candidate, "inputs": rows(), "iteration": IT, "recomputed": 2950,
        "rescored": 0, "rubric_hash": rubric, "scores_root": Digest::sha256(b"scores").to_base64(),
    });
    payload("scores.recomputed", &data)
}

/// The dev objective answers a key about a candidate.
pub fn asked(candidate: Digest, requester: KeyId) -> Payload {
    let answers = DEV_CRITERIA.map(|gate| json!({"gate": gate, "verdict": "pass"}));
    let data = json!({
        "answers": answers, "build": "clover 0.1.0", "candidate": candidate, "inputs": rows(), "iteration": IT,
        "requester": requester, "risk_improve": -0.00125,
    });
    payload("dev.objective_queried", &data)
}

/// Hash of a proposed patch, with the one of its result and its code length.
pub fn patch_of(proposed: &Payload) -> (Digest, Digest, u64) {
    let Payload::PatchProposed(said) = proposed else {
        unreachable!("a proposal");
    };
    (said.patch_hash, said.result_hash, said.length.kappa.value())
}

/// Seals patches, and the composite of all if there are two.
pub fn sealed(patches: &[Digest]) -> Payload {
    let mut hypotheses: Vec<(Digest, Vec<Digest>)> =
        patches.iter().map(|patch| (*patch, vec![*patch])).collect();
    if let [a, b] = patches {
        let both = [*a.min(b), *a.max(b)];
        hypotheses.push((composite_of(&both), both.to_vec()));
    }
    hypotheses.sort();
    let one = |(candidate, patches): &(Digest, Vec<Digest>)| json!({"candidate": candidate, "patches": patches});
    let data = json!({
        "divisor": 4, "hypotheses": hypotheses.iter().map(one).collect::<Vec<_>>(), "iteration": IT,
    });
    payload("candidates.sealed", &data)
}

pub fn charge() -> Payload {
    payload(
        "budget.charged",
        &json!({"account": "confirm-peeks", "amount": 1, "for": IT}),
    )
}

/// The events of a split of 24 clusters, half of which were sampled in the confirm window.
fn split_apart(apart: Apart) -> Vec<Payload> {
    let sampled = |i: i64| match apart {
        Apart::Hashed => None,
        Apart::Time { t1, t2, .. } => Some(if i % 2 == 0 { t1 } else { t2 }.plus_seconds(-1 - i)),
    };
    let clusters = (0..24).map(|i| (format!("p{i:02}").parse().unwrap(), sampled(i)));
    let parts = split::parts(&clusters.collect(), 7, apart).unwrap();
    let seed = clover::num::Count::new(7).unwrap();
    split::events(&"split-1".parse().unwrap(), seed, apart, &parts)
}

/// Clusters of a split, and its events.
pub fn split_events() -> Vec<Payload> {
    split_apart(Apart::Hashed)
}

/// The same, where confirm is a later window that ends in 2027.
pub fn split_in_time() -> Vec<Payload> {
    let time = |text: &str| Timestamp::parse(text).unwrap();
    split_apart(Apart::Time {
        t1: time("2026-09-01T00:00:00.000000Z"),
        t2: time("2027-01-01T00:00:00.000000Z"),
        gap_seconds: split::GAP_SECONDS_DEFAULT,
    })
}

/// The root under which the confirm clusters of a split stand.
pub fn confirm_root_of(split: &[Payload]) -> String {
    let Some(Payload::SplitsFormed(formed)) = split.last() else {
        unreachable!("a split is closed");
    };
    formed.confirm.root.0.to_base64()
}

/// The root under which the confirm clusters stand.
pub fn confirm_root() -> String {
    confirm_root_of(&split_events())
}

/// One hypothesis at a look.
pub fn looked() -> Payload {
    let look = json!({"bound": 0.25, "ln_peak": 2.5, "ln_wealth": 2.25, "p": 0.08, "stop": "continue", "units": 2});
    let data = json!({
        "beacon": {"root": Digest([5; 32]).to_base64(), "size": 7}, "build": "clover 0.1.0",
        "hypotheses": [{"candidate": hex("patch"), "test": look}], "inputs": rows(), "iteration": IT,
        "of_units": 6, "params_hash": hex("params"), "seed": hex("seed"), "units": 2,
    });
    payload("confirm.looked", &data)
}

pub fn unsealed(charge: &str, sealed: &str) -> Payload {
    let data = json!({
        "charge": charge, "confirm_root": confirm_root(), "iteration": IT, "sealed": sealed,
    });
    payload("confirm.unsealed", &data)
}

pub fn accepted(proposed: &Payload, rank: u64, gates: &[String]) -> Payload {
    let Payload::PatchProposed(said) = proposed else {
        unreachable!("a proposal");
    };
    let (candidate, result, kappa) = patch_of(proposed);
    let data = json!({
        "candidate": candidate, "gates": gates, "iteration": IT, "kappa": kappa, "patch": said.patch,
        "rank": rank, "result_hash": result, "risk_improve": -0.00125,
    });
    payload("patch.accepted", &data)
}

/// The bytes of a report.
pub const BUNDLE: &[u8] = b"{\"report\":\"clover/iteration-report/v1\"}";

/// Gives out a report that lacks one part and says so.
pub fn reported(bundle: &[u8], through: u64) -> Payload {
    let parts = ReportPart::ALL.iter();
    let present = parts.filter(|part| **part != ReportPart::Values);
    let data = json!({
        "assumptions_digest": hex("assumptions"), "build": "clover 0.1.0",
        "bundle": {"blake3": Digest::blake3(bundle), "bytes": bundle.len(), "media": "application/json"},
        "bundle_hash": Digest::labelled(BUNDLE_LABEL, bundle),
        "gaps": [{"part": "values", "what": "policy values", "why": "no estimate is on record"}],
        "iteration": IT, "present": present.collect::<Vec<_>>(), "through_seq": through,
    });
    payload("report.published", &data)
}

/// The same of another iteration.
pub fn of(payload: &Payload, iteration: &str) -> Payload {
    let mut data = serde_json::to_value(payload).unwrap();
    data["iteration"] = iteration.into();
    planned::payload(payload.kind().as_str(), &data)
}

/// Names of the thirteen gates of a candidate in the story.
pub const GATES: [[&str; 13]; 3] = [
    [
        "a-p0", "a-p1", "a-p2", "a-p3", "a-p4", "a-p5", "a-p6", "a-p7", "a-c4", "a-c6", "a-c8",
        "a-c9", "a-c10",
    ],
    [
        "b-p0", "b-p1", "b-p2", "b-p3", "b-p4", "b-p5", "b-p6", "b-p7", "b-c4", "b-c6", "b-c8",
        "b-c9", "b-c10",
    ],
    [
        "c-p0", "c-p1", "c-p2", "c-p3", "c-p4", "c-p5", "c-p6", "c-p7", "c-c4", "c-c6", "c-c8",
        "c-c9", "c-c10",
    ],
];

/// The two patches of the story in the order of acceptance: the shorter one first.
pub fn patches() -> [Payload; 2] {
    let concise = iterated::patch("concise-3", "length_bias_cap", iterated::CONCISE);
    let cite = PATCH.replace("len-cite-guard-001", "len-cite-guard-003");
    let mut both = [
        iterated::proposed(IT, &cite),
        iterated::proposed(IT, &concise),
    ];
    both.sort_by_key(|patch| patch_of(patch).2);
    both
}

/// Three patches of three families in the order of acceptance, and what is judged of them: each, and the composite of the
/// first two.
pub fn three() -> ([Payload; 3], [Digest; 4]) {
    let third = iterated::patch("risks-3", "contradiction_check", iterated::STAKEHOLDERS);
    let [a, b] = patches();
    let mut all = [a, b, iterated::proposed(IT, &third)];
    all.sort_by_key(|patch| {
        let (hash, _, kappa) = patch_of(patch);
        (kappa, hash)
    });
    let [a, b, c] = [0, 1, 2].map(|at: usize| patch_of(&all[at]).0);
    (all, [a, b, c, composite_of(&[a, b])])
}

/// Seals them.
pub fn sealed_three(hashes: &[Digest; 4]) -> Payload {
    let mut data = serde_json::to_value(sealed(&hashes[..2])).unwrap();
    let all = data["hypotheses"].as_array_mut().unwrap();
    all.push(json!({"candidate": hashes[2], "patches": [hashes[2]]}));
    all.sort_by_key(|one| one["candidate"].as_str().unwrap().to_owned());
    payload("candidates.sealed", &data)
}

/// The story, told through the real ledger: two patches and their composite pass everything, and both are accepted.
/// Then another iteration pauses for labels.
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
    teller.say_in(RUNNER_2, "judge", judge());
    teller.say_in(ADA, "anchors", iterated::anchors(200));
    let plan = iterated::plan(EXPERIMENT, "m-it");
    teller.say_in(ADA, "m-it", planned::registered(&plan));
    let names = ["split-1", "split-2", "split-3", "split-4"];
    for (name, event) in names.into_iter().zip(split_events()) {
        teller.say_in(BEN, name, event);
    }
    teller.say_in(BEN, "opened", iterated::opened(&plan, IT, "2026Q3"));
    teller.say_in(BEN, "labels", label_process());
    teller.say_in(BEN, "prentice", prentice());
    teller.say_in(BEN, "audited", audited());
    teller.say_in(BEN, "classified", classified());
    teller.say_in(RUNNER_3, "battery", battery_in_force());
    let found = exploit(&teller.id("battery").0.to_hex());
    teller.say_in(RUNNER_3, "exploit", found);
    teller.say_in(BEN, "card", card());
    let both = patches();
    let asking = asked(patch_of(&both[0]).0, signer(RUNNER).id());
    teller.say_in(BEN, "asked", asking);
    teller.say_in(RUNNER, "patch-a", both[0].clone());
    teller.say_in(RUNNER, "patch-b", both[1].clone());
    let (a, b) = (patch_of(&both[0]).0, patch_of(&both[1]).0);
    let candidates = [a, b, composite_of(&[a, b])];
    let results = [patch_of(&both[0]).1, patch_of(&both[1]).1, Digest([3; 32])];
    let names = ["scores-a", "scores-b", "scores-c"];
    for ((name, candidate), result) in names.into_iter().zip(candidates).zip(results) {
        teller.say_in(RUNNER_2, name, recomputed(candidate, result));
    }
    let names = ["battery-a", "battery-b", "battery-c"];
    for ((name, candidate), result) in names.into_iter().zip(candidates).zip(results) {
        teller.say_in(RUNNER_3, name, battery(Some(candidate), result, &[20_000]));
    }
    for (names, candidate) in GATES.iter().zip(candidates) {
        for (name, gate) in names.iter().zip(gates(&plan, candidate, "dev")) {
            teller.say_in(BEN, name, gate);
        }
    }
    teller.say_in(BEN, "sealed", sealed(&[a, b]));
    teller.say(CLEO, "charge", charge());
    let (charge, sealing) = (teller.id("charge"), teller.id("sealed"));
    let unsealing = unsealed(&charge.0.to_hex(), &sealing.0.to_hex());
    teller.say_in(CLEO, "unsealed", unsealing);
    for (names, candidate) in GATES.iter().zip(candidates) {
        for (name, gate) in names[8..].iter().zip(gates(&plan, candidate, "confirm")) {
            teller.say_in(BEN, name, gate);
        }
    }
    for (place, (name, patch)) in ["accepted-a", "accepted-b"]
        .into_iter()
        .zip(&both)
        .enumerate()
    {
        let ids = GATES[place].map(|gate| teller.id(gate).0.to_hex());
        teller.say_in(BEN, name, accepted(patch, place as u64 + 1, &ids));
    }
    teller.say_in(BEN, "closed", iterated::closed(IT, "accepted"));
    teller.blob(BUNDLE.to_vec(), "application/json");
    let through = teller.ledger().size() - 1;
    teller.say_in(BEN, "reported", reported(BUNDLE, through));
    teller.say_in(BEN, "opened-4", iterated::opened(&plan, "it-4", "2026Q4"));
    let names = ["audited-4", "classified-4", "paused-4"];
    for (name, payload) in names
        .into_iter()
        .zip([audited(), classified(), paused(0.5)])
    {
        teller.say_in(BEN, name, of(&payload, "it-4"));
    }
    teller.say_in(
        BEN,
        "closed-4",
        iterated::closed("it-4", "paused_for_labels"),
    );
    teller.finish()
}
