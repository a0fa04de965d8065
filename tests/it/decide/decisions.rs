//! Gates, sealing and acceptance: one story for each way to break a rule.

use clover::event::Payload;
use clover::event::id::EventId;
use clover::ground::digest::Digest;
use clover::ground::sign::Signer;
use clover::projection::decisions::composite_of;
use serde_json::Value;
use serde_json::json;

use super::world::SOLO;
use super::world::World;
use super::world::tell;
use crate::support::decided;
use crate::support::decided::gate;
use crate::support::decided::passing;
use crate::support::iterated;
use crate::support::iterated::closed;
use crate::support::planned;
use crate::support::signer;

const EXP: Option<&str> = Some("exp-1");

fn owner() -> Signer {
    signer(1)
}

pub(super) fn refused(world: &mut dyn World, rule: &str, wording: &[&str], payload: Payload) {
    world.refuse_saying(rule, wording, &owner(), payload, EXP);
}

pub(super) fn said(world: &mut dyn World, payload: Payload) -> String {
    world.say(&owner(), payload, EXP).0.to_hex()
}

fn edited(payload: &Payload, edit: impl FnOnce(&mut Value)) -> Payload {
    let mut data = serde_json::to_value(payload).unwrap();
    edit(&mut data);
    planned::payload(payload.kind().as_str(), &data)
}

/// Given: an open iteration over a split.
pub(super) fn begun(world: &mut dyn World) -> Value {
    begun_over(world, decided::split_events())
}

/// Given: an open iteration over this split.
pub(super) fn begun_over(world: &mut dyn World, split: Vec<Payload>) -> Value {
    let plan = iterated::plan("exp-1", "m-it");
    said(world, planned::experiment_registered());
    world.say(&owner(), iterated::peek_account(), None);
    for payload in [
        iterated::rubric_registered(iterated::RUBRIC),
        iterated::anchors(200),
        planned::registered(&plan),
    ] {
        said(world, payload);
    }
    for payload in split {
        said(world, payload);
    }
    let quarter = world.now().quarter().to_string();
    said(world, iterated::opened(&plan, decided::IT, &quarter));
    plan
}

/// Given: its slices are classified and two patches are proposed.
pub(super) fn classified(world: &mut dyn World) -> (Value, [Payload; 2]) {
    let plan = begun(world);
    said(world, decided::audited());
    said(world, decided::classified());
    let patches = decided::patches();
    for patch in &patches {
        said(world, patch.clone());
    }
    (plan, patches)
}

/// A decided iteration in the making.
pub(super) struct Stage {
    pub plan: Value,
    pub patches: [Payload; 2],
    pub hashes: [Digest; 3],
    pub gates: [Vec<String>; 3],
}

/// Given: both patches and their composite passed on dev.
pub(super) fn passed_on_dev(world: &mut dyn World) -> Stage {
    let (plan, patches) = classified(world);
    let [a, b] = [0, 1].map(|at: usize| decided::patch_of(&patches[at]).0);
    let hashes = [a, b, composite_of(&[a, b])];
    attacked(world, &hashes, &patches);
    let gates = hashes.map(|hash| {
        let gates = decided::gates(&plan, hash, "dev").into_iter();
        gates.map(|gate| said(world, gate)).collect()
    });
    Stage {
        plan,
        patches,
        hashes,
        gates,
    }
}

/// Given: the battery was run against each candidate.
pub(super) fn attacked(world: &mut dyn World, hashes: &[Digest], patches: &[Payload]) {
    said(world, decided::judge());
    for (place, hash) in hashes.iter().enumerate() {
        let result = patches.get(place).map(|patch| decided::patch_of(patch).1);
        let result = result.unwrap_or(Digest([3; 32]));
        said(world, decided::battery(Some(*hash), result, &[]));
    }
}

pub(super) fn charged(world: &mut dyn World) -> EventId {
    world.say(&owner(), decided::charge(), None)
}

/// Given: they were sealed, and confirm was unsealed.
pub(super) fn unsealed(world: &mut dyn World) -> Stage {
    let stage = passed_on_dev(world);
    let sealing = said(world, decided::sealed(&stage.hashes[..2]));
    let charge = charged(world).0.to_hex();
    said(world, decided::unsealed(&charge, &sealing));
    stage
}

/// Given: every gate on confirm was evaluated, with these statistics of p8 for the first patch.
pub(super) fn judged(world: &mut dyn World, p8: impl FnOnce(&mut Value)) -> Stage {
    let mut stage = unsealed(world);
    let mut first = passing("p8");
    p8(&mut first["p8"]);
    for (place, hash) in stage.hashes.into_iter().enumerate() {
        for id in ["p4", "p6", "p8", "p9", "p10"] {
            let evidence = if place == 0 && id == "p8" {
                first.clone()
            } else {
                passing(id)
            };
            let id = said(world, gate(&stage.plan, hash, "confirm", &evidence));
            stage.gates[place].push(id);
        }
    }
    stage
}

/// A change to the data of an event.
type Edit = fn(&mut Value);

#[test]
pub(super) fn a_gate_stands_on_what_is_frozen_and_registered() {
    let cases: &[(Edit, &[&str])] = &[
        (
            |data| data["gate"] = "p2".into(),
            &["evidence of gate p2", "of p1"],
        ),
        (
            |data| data["split"] = "confirm".into(),
            &["one of p4 p6 p8 p9 p10 on confirm", "p1"],
        ),
        (
            |data| data["classification_hash"] = "0".repeat(64).into(),
            &["the frozen classification"],
        ),
        (
            |data| data["params_hash"] = "0".repeat(64).into(),
            &["params_hash ", "as opened"],
        ),
        (
            |data| data["thresholds"]["eta_micro"] = 500.into(),
            &["the registered thresholds", "E_UNREGISTERED_RULE"],
        ),
        (
            |data| data["candidate"] = "0".repeat(64).into(),
            &["a patch that stands, or a composite of two"],
        ),
    ];
    for (edit, wording) in cases {
        tell(SOLO, |world| {
            let (plan, patches) = classified(world);
            let candidate = decided::patch_of(&patches[0]).0;
            let good = gate(&plan, candidate, "dev", &passing("p1"));
            refused(world, "predicate", wording, edited(&good, edit));
        });
    }
}

#[test]
fn scores_under_a_candidate_are_of_every_row_once_and_before_confirm() {
    let scores = |candidate| decided::recomputed(candidate, Digest([3; 32]));
    tell(SOLO, |world| {
        begun(world);
        let wording = ["slices.classified first", "none"];
        refused(world, "predicate", &wording, scores(Digest([7; 32])));
    });
    let cases: &[(Edit, &[&str])] = &[
        (
            |data| data["recomputed"] = 2499.into(),
            &["a score of each of 2500 rows at least", "2499"],
        ),
        (
            |data| data["candidate"] = "7".repeat(64).into(),
            &["a patch that stands, or a composite of two", "7777"],
        ),
        (
            |data| data["iteration"] = "it-9".into(),
            &["an open iteration of exp-1", "it-9, never opened"],
        ),
    ];
    for (edit, wording) in cases {
        tell(SOLO, |world| {
            let (_, patches) = classified(world);
            let candidate = decided::patch_of(&patches[0]).0;
            refused(
                world,
                "predicate",
                wording,
                edited(&scores(candidate), edit),
            );
        });
    }
    tell(SOLO, |world| {
        let stage = unsealed(world);
        let wording = ["scores before confirm was unsealed", "unsealed at seq "];
        refused(world, "predicate", &wording, scores(stage.hashes[0]));
    });
    tell(SOLO, |world| {
        let (_, patches) = classified(world);
        let [a, b] = [0, 1].map(|at: usize| decided::patch_of(&patches[at]).0);
        // Judged anew in part, and as a composite: both may be.
        let both = composite_of(&[a, b]);
        said(
            world,
            edited(&scores(both), |data| {
                data["recomputed"] = 2000.into();
                data["rescored"] = 950.into();
            }),
        );
        said(world, scores(a));
        let again = edited(&scores(a), |data| data["build"] = "clover 0.2.0".into());
        let line = world.line(&owner(), again, EXP);
        let wording = ["scores under a candidate once"];
        world.refuse_as("predicate", "natural_key", &wording, &owner(), line);
    });
}

#[test]
pub(super) fn a_verdict_follows_from_its_statistics() {
    tell(SOLO, |world| {
        let (plan, patches) = classified(world);
        let candidate = decided::patch_of(&patches[0]).0;
        let mut weak = passing("p1");
        weak["p1"]["mean"] = json!(-0.0005);
        let honest = gate(&plan, candidate, "dev", &weak);
        let claimed = edited(&honest, |data| {
            data["verdicts"]["recommended"] = "pass".into();
        });
        let wording = [
            "p1 fail (recommended) and fail (literal), from its statistics",
            "pass (recommended) and fail (literal)",
        ];
        refused(world, "verdict", &wording, claimed);
        said(world, honest);
    });
}

#[test]
fn a_gate_is_evaluated_once() {
    tell(SOLO, |world| {
        let (plan, patches) = classified(world);
        let candidate = decided::patch_of(&patches[0]).0;
        said(world, gate(&plan, candidate, "dev", &passing("p1")));
        let mut better = passing("p1");
        better["p1"]["mean"] = json!(-0.004);
        let again = gate(&plan, candidate, "dev", &better);
        refused(world, "natural_key", &[], again);
    });
}

#[test]
fn only_what_passed_on_dev_is_sealed() {
    tell(SOLO, |world| {
        let (_, patches) = classified(world);
        let candidate = decided::patch_of(&patches[0]).0;
        let wording = ["p0 to p7 passed on dev by", "p0 not evaluated on dev"];
        refused(world, "sealing", &wording, decided::sealed(&[candidate]));
    });
    tell(SOLO, |world| {
        let (plan, patches) = classified(world);
        let candidate = decided::patch_of(&patches[0]).0;
        for id in ["p0", "p1", "p2", "p3", "p4", "p5", "p6"] {
            said(world, gate(&plan, candidate, "dev", &passing(id)));
        }
        // Nobody attacked it, and nobody answered for that.
        let none = json!({"p7": {"attacks": [], "regressions": 0}});
        said(world, gate(&plan, candidate, "dev", &none));
        let wording = ["p0 to p7 passed on dev by", "p7 not_checked at seq"];
        refused(world, "sealing", &wording, decided::sealed(&[candidate]));
    });
}

#[test]
fn an_iteration_pauses_before_it_is_closed_as_paused() {
    tell(SOLO, |world| {
        begun(world);
        let wording = ["iteration.paused_for_labels first", "none"];
        let early = closed(decided::IT, "paused_for_labels");
        refused(world, "acceptance", &wording, early);
    });
}

#[test]
fn steps_come_in_order() {
    for (payload, first) in [
        (decided::classified(), "residuals.audited first"),
        (decided::card(), "slices.classified first"),
        (decided::paused(0.5), "slices.classified first"),
    ] {
        tell(SOLO, |world| {
            begun(world);
            refused(world, "predicate", &[first, "none"], payload.clone());
        });
    }
    tell(SOLO, |world| {
        begun(world);
        said(world, decided::audited());
        let other = edited(&decided::classified(), |data| {
            data["slices"][1]["class"] = "green".into();
        });
        refused(world, "predicate", &["classification_hash "], other);
    });
    tell(SOLO, |world| {
        classified(world);
        let wording = ["an audit before slices were classified", "frozen at seq"];
        refused(world, "predicate", &wording, decided::prentice());
    });
    tell(SOLO, |world| {
        classified(world);
        let wording = ["a share of at least 0.3", "0.25"];
        refused(world, "predicate", &wording, decided::paused(0.25));
    });
    tell(SOLO, |world| {
        classified(world);
        said(world, decided::paused(0.5));
        let wording = [
            "a card in an iteration that goes on",
            "paused for labels at seq",
        ];
        refused(world, "predicate", &wording, decided::card());
    });
    tell(SOLO, |world| {
        classified(world);
        said(world, decided::paused(0.5));
        said(world, closed(decided::IT, "paused_for_labels"));
        let wording = ["an open iteration of exp-1", "it-3, closed at seq"];
        refused(world, "predicate", &wording, decided::card());
    });
}

#[test]
pub(super) fn what_is_sealed_is_what_alpha_is_divided_by() {
    let cases: &[(Edit, &[&str])] = &[
        (|data| data["divisor"] = 3.into(), &["divisor 4", "3"]),
        (
            |data| data["hypotheses"] = json!([]),
            &["1 to 4 hypotheses", "0"],
        ),
        (
            |data| data["hypotheses"].as_array_mut().unwrap().reverse(),
            &["hypotheses in order of hash"],
        ),
        (
            |data| {
                let all = data["hypotheses"].as_array_mut().unwrap();
                all.retain(|one| one["patches"].as_array().unwrap().len() == 2);
            },
            &["one composite, of two patches that are sealed by themselves"],
        ),
    ];
    for (edit, wording) in cases {
        tell(SOLO, |world| {
            let stage = passed_on_dev(world);
            let good = decided::sealed(&stage.hashes[..2]);
            refused(world, "sealing", wording, edited(&good, edit));
        });
    }
    tell(SOLO, |world| {
        let stage = passed_on_dev(world);
        said(world, decided::sealed(&stage.hashes[..2]));
        let wording = ["no sealed candidate"];
        let early = closed(decided::IT, "no_candidate");
        refused(world, "acceptance", &wording, early);
    });
}

#[test]
pub(super) fn two_of_a_family_are_never_sealed() {
    tell(SOLO, |world| {
        let (plan, _) = classified(world);
        let changes = "{guards.length_bias_cap.if_tokens_gt: 400}";
        let third = iterated::proposed(
            decided::IT,
            &iterated::patch("cap-3", "length_bias_cap", changes),
        );
        said(world, third.clone());
        let concise = decided::patches()
            .into_iter()
            .find(|patch| serde_json::to_value(patch).unwrap()["family"] == "length_bias_cap");
        let both = [third, concise.unwrap()];
        let hashes = [0, 1].map(|at: usize| decided::patch_of(&both[at]).0);
        attacked(world, &hashes, &both);
        let both = hashes;
        for hash in both {
            for payload in decided::gates(&plan, hash, "dev") {
                said(world, payload);
            }
        }
        let sealed = edited(&decided::sealed(&both), |data| {
            let all = data["hypotheses"].as_array_mut().unwrap();
            all.retain(|one| one["patches"].as_array().unwrap().len() == 1);
        });
        let wording = ["one candidate of each family", "two of length_bias_cap"];
        refused(world, "sealing", &wording, sealed);
    });
}

#[test]
pub(super) fn confirm_is_unsealed_once_for_a_charge() {
    tell(SOLO, |world| {
        passed_on_dev(world);
        let charge = charged(world).0.to_hex();
        let early = decided::unsealed(&charge, &"0".repeat(64));
        refused(
            world,
            "sealing",
            &["candidates.sealed first", "none"],
            early,
        );
    });
    for (edit, wording) in [
        (
            (|data: &mut Value| data["sealed"] = "0".repeat(64).into()) as fn(&mut Value),
            "the sealing at seq",
        ),
        (
            |data| data["charge"] = data["sealed"].clone(),
            "a charge to an account whose unit is peek",
        ),
    ] {
        tell(SOLO, |world| {
            let stage = passed_on_dev(world);
            let sealing = said(world, decided::sealed(&stage.hashes[..2]));
            let charge = charged(world).0.to_hex();
            let good = decided::unsealed(&charge, &sealing);
            refused(world, "sealing", &[wording], edited(&good, edit));
        });
    }
    tell(SOLO, |world| {
        let stage = unsealed(world);
        let late = gate(&stage.plan, Digest([9; 32]), "dev", &passing("p1"));
        let wording = ["a gate on dev before confirm was unsealed"];
        refused(world, "predicate", &wording, late);
    });
    tell(SOLO, |world| {
        let stage = unsealed(world);
        let strange = gate(&stage.plan, Digest([9; 32]), "confirm", &passing("p8"));
        refused(world, "predicate", &["a sealed candidate"], strange);
    });
    tell(SOLO, |world| {
        let stage = passed_on_dev(world);
        said(world, decided::sealed(&stage.hashes[..2]));
        let early = gate(&stage.plan, stage.hashes[0], "confirm", &passing("p8"));
        let wording = ["confirm.unsealed before a gate on confirm", "none"];
        refused(world, "predicate", &wording, early);
    });
}

#[test]
pub(super) fn a_patch_is_accepted_by_all_its_gates() {
    tell(SOLO, |world| {
        let stage = unsealed(world);
        let wording = ["every gate of every sealed candidate", "not evaluated"];
        let early = decided::accepted(&stage.patches[0], 1, &stage.gates[0]);
        refused(world, "acceptance", &wording, early);
    });
    tell(SOLO, |world| {
        unsealed(world);
        let wording = ["every gate of every sealed candidate", "some missing"];
        let early = closed(decided::IT, "stopped");
        refused(world, "acceptance", &wording, early);
    });
    tell(SOLO, |world| {
        let stage = judged(world, |p8| p8["p_exact"] = json!(0.02));
        let failed = decided::accepted(&stage.patches[0], 1, &stage.gates[0]);
        let wording = ["a candidate that passed every gate", "p8 fail at seq"];
        refused(world, "acceptance", &wording, failed);
    });
    tell(SOLO, |world| {
        let stage = judged(world, |p8| p8["p_exact"] = json!(0.02));
        let other = decided::accepted(&stage.patches[1], 1, &stage.gates[1]);
        said(world, other);
        said(world, closed(decided::IT, "accepted"));
        let wording = ["an open iteration of exp-1", "it-3, closed at seq"];
        refused(world, "predicate", &wording, decided::card());
    });
}

#[test]
pub(super) fn patches_are_accepted_in_order_and_none_is_left_out() {
    let cases: &[(Edit, &[&str])] = &[
        (
            |data| {
                data["gates"].as_array_mut().unwrap().pop();
            },
            &["its thirteen gate events", "12 others"],
        ),
        (|data| data["kappa"] = 0.into(), &["kappa ", "kappa 0"]),
        (
            |data| data["risk_improve"] = json!(-0.5),
            &["risk_improve -0.00125, as p8 has it", "-0.5"],
        ),
        (|data| data["rank"] = 2.into(), &["rank 1", "2"]),
    ];
    for (edit, wording) in cases {
        tell(SOLO, |world| {
            let stage = judged(world, |_| {});
            let first = decided::accepted(&stage.patches[0], 1, &stage.gates[0]);
            refused(world, "acceptance", wording, edited(&first, edit));
        });
    }
    tell(SOLO, |world| {
        let stage = judged(world, |_| {});
        let second = decided::accepted(&stage.patches[1], 1, &stage.gates[1]);
        refused(world, "acceptance", &["at rank 1"], second);
    });
    tell(SOLO, |world| {
        let stage = judged(world, |_| {});
        let first = decided::accepted(&stage.patches[0], 1, &stage.gates[0]);
        said(world, first);
        let wording = ["2 accepted patches, which passed every gate", "1"];
        let early = closed(decided::IT, "accepted");
        refused(world, "acceptance", &wording, early);
    });
    tell(SOLO, |world| {
        let stage = judged(world, |_| {});
        for place in [0, 1] {
            let rank = place as u64 + 1;
            let taken = decided::accepted(&stage.patches[place], rank, &stage.gates[place]);
            said(world, taken);
        }
        said(world, closed(decided::IT, "accepted"));
        let wording = ["an open iteration of exp-1", "it-3, closed at seq"];
        refused(world, "predicate", &wording, decided::card());
    });
}

#[test]
pub(super) fn a_patch_is_written_from_what_was_published() {
    let strange = |patch: &Payload| edited(patch, |data| data["inputs"] = json!(["0".repeat(64)]));
    tell(SOLO, |world| {
        let (plan, patches) = {
            let plan = begun(world);
            said(world, decided::audited());
            said(world, decided::classified());
            (plan, decided::patches().map(|patch| strange(&patch)))
        };
        said(world, patches[0].clone());
        let hash = decided::patch_of(&patches[0]).0;
        attacked(world, &[hash], &patches);
        for payload in decided::gates(&plan, hash, "dev") {
            said(world, payload);
        }
        let wording = [
            "an iteration that is not tainted; close it as tainted",
            "was written from 00000000",
        ];
        refused(world, "sealing", &wording, decided::sealed(&[hash]));
    });
    tell(SOLO, |world| {
        classified(world);
        let wording = ["a tainted iteration", "one that is not"];
        refused(
            world,
            "acceptance",
            &wording,
            closed(decided::IT, "tainted"),
        );
    });
    // Cards, receipts, the rubric and the grammars are published.
    tell(SOLO, |world| {
        let stage = classified(world).1;
        let bare = decided::card_under(&json!([]));
        let card = serde_json::to_value(&bare).unwrap()["public_digest"].clone();
        said(world, bare);
        let asked = decided::asked(Digest([5; 32]), owner().id());
        let receipt = said(world, asked);
        let grammar = Digest::sha256(b"clover-patch/1").to_hex();
        let rubric = iterated::rubric().hash().to_hex();
        let changes = "{guards.length_bias_cap.if_tokens_gt: 400}";
        let third = iterated::patch("cap-4", "length_bias_cap", changes);
        let third = edited(&iterated::proposed(decided::IT, &third), |data| {
            data["inputs"] = json!([receipt, card, grammar, rubric]);
        });
        said(world, third);
        assert_eq!(stage.len(), 2);
        let wording = ["a tainted iteration", "one that is not"];
        refused(
            world,
            "acceptance",
            &wording,
            closed(decided::IT, "tainted"),
        );
    });
}

#[test]
fn the_dev_objective_answers_an_optimizer_within_its_budget() {
    let cases: &[(Edit, &[&str])] = &[
        (
            |data| data["requester"] = "0".repeat(64).into(),
            &["a requester with a live key in role optimizer", "0000"],
        ),
        (
            |data| data["answers"].as_array_mut().unwrap().reverse(),
            &["answers of p0 to p7 in order"],
        ),
    ];
    for (edit, wording) in cases {
        tell(SOLO, |world| {
            classified(world);
            let good = decided::asked(Digest([5; 32]), owner().id());
            refused(world, "predicate", wording, edited(&good, edit));
        });
    }
    tell(SOLO, |world| {
        begun(world);
        let early = decided::asked(Digest([5; 32]), owner().id());
        refused(
            world,
            "predicate",
            &["slices.classified first", "none"],
            early,
        );
    });
    tell(SOLO, |world| {
        let stage = passed_on_dev(world);
        said(world, decided::sealed(&stage.hashes[..2]));
        let late = decided::asked(Digest([5; 32]), owner().id());
        let wording = ["a dev call before sealing", "sealed at seq"];
        refused(world, "predicate", &wording, late);
    });
    tell(SOLO, |world| {
        classified(world);
        for number in 0..100 {
            said(world, decided::asked(Digest([number; 32]), owner().id()));
        }
        let beyond = decided::asked(Digest([200; 32]), owner().id());
        let wording = ["at most 100 dev calls, as registered", "100 made before"];
        refused(world, "predicate", &wording, beyond);
    });
}

#[test]
fn a_report_is_of_a_decided_iteration_and_names_what_it_lacks() {
    use decided::BUNDLE;
    use decided::reported;
    tell(SOLO, |world| {
        world.put_blobs(&[BUNDLE]);
        begun(world);
        let wording = [
            "an iteration that is closed or decided",
            "it-3, opened at seq",
        ];
        refused(world, "report", &wording, reported(BUNDLE, 3));
    });
    tell(SOLO, |world| {
        world.put_blobs(&[BUNDLE]);
        classified(world);
        said(world, decided::paused(0.5));
        let through = world.size() - 1;
        let wording = ["through_seq from", "where it-3 was decided"];
        refused(world, "report", &wording, reported(BUNDLE, through - 1));
    });
    let cases: &[(Edit, &[&str])] = &[
        (
            |data| data["gaps"] = json!([]),
            &["part values, or why it is missing", "neither"],
        ),
        (
            |data| data["gaps"][0]["why"] = "".into(),
            &["what values lacks, and why", "an empty word"],
        ),
        (
            |data| data["present"].as_array_mut().unwrap().reverse(),
            &["parts in the order of their words", "another order"],
        ),
        (
            |data| data["iteration"] = "it-9".into(),
            &["an iteration of exp-1", "it-9, never opened"],
        ),
        (
            |data| data["through_seq"] = 9_000.into(),
            &["through_seq from", "9000"],
        ),
    ];
    for (edit, wording) in cases {
        tell(SOLO, |world| {
            world.put_blobs(&[BUNDLE]);
            classified(world);
            said(world, decided::paused(0.5));
            let through = world.size() - 1;
            let report = edited(&reported(BUNDLE, through), edit);
            refused(world, "report", wording, report);
        });
    }
}
