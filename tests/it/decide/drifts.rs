//! Drift of judges: one story for each way to break the rules `drift` and `thresholds`, and a gate that is stale until a
//! deviation says how that is handled.

use clover::event::Payload;
use clover::event::payload::Role;
use clover::ground::sign::Signer;
use clover::num::Micro;
use serde_json::Value;
use serde_json::json;

use super::world::SOLO;
use super::world::World;
use super::world::tell;
use super::world::tell_forged;
use crate::support::drifted;
use crate::support::gated;
use crate::support::gated::Life;
use crate::support::gated::values;
use crate::support::iterated;
use crate::support::key_added;
use crate::support::planned;
use crate::support::planned::payload;
use crate::support::signer;

const EXP: Option<&str> = Some("exp-1");
const PATH: &str = "metric.judge_digest";

fn owner() -> Signer {
    signer(1)
}

fn say(world: &mut dyn World, said: impl Into<Payload>) {
    world.say(&owner(), said.into(), EXP);
}

fn refused(world: &mut dyn World, rule: &str, wording: &[&str], said: Payload) {
    world.refuse_saying(rule, wording, &owner(), said, EXP);
}

fn judge(life: &Life) -> String {
    life.opened().sources[0].judge.as_ref().unwrap().to_string()
}

/// A gate on twelve units, whose order is drawn.
fn drawn(world: &mut dyn World) -> Life {
    let custodian = signer(5);
    let key = key_added(&custodian, "Cem", &[Role::Custodian]);
    world.say(&owner(), key.into(), None);
    say(world, planned::experiment_registered());
    world.say(&owner(), planned::family(), None);
    let units = gated::units("unit", 12);
    let value = gated::gate("exp-1", "m-1", &units);
    say(world, planned::registered(&value));
    world.say(&custodian, planned::countersigned(&value), EXP);
    let mut life = Life::new(&value, &units);
    let (size, root) = (world.size(), world.root_at(world.size()));
    for said in life.listed() {
        world.say(&custodian, said, EXP);
    }
    let (listed, drawn) = life.drawn(root, size);
    say(world, listed);
    say(world, drawn);
    life
}

/// The same, opened, and ten units exposed.
fn exposed(world: &mut dyn World) -> Life {
    let life = drawn(world);
    say(world, life.opened());
    world.say(&signer(5), life.exposed_named(1, 0, 9), EXP);
    life
}

/// One unit of the gate, scored; its observation is handed back.
fn unit(world: &mut dyn World, life: &mut Life, t: usize) -> Payload {
    let pair: [&[Option<i64>]; 2] = [&values(0), &values(1_000_000)];
    for score in life.scores(t, &[pair]) {
        say(world, score);
    }
    life.observed(t, &[pair]).into()
}

fn deviated(life: &Life, path: &str, known: u64) -> Payload {
    let data = json!({
        "digest": life.manifest.digest().to_hex(), "impact": "later units are about the new model",
        "known_at_seq": known, "outcome_seen": false, "rule_path": path, "what": "the snapshot was pinned",
        "why": "the alias moved",
    });
    payload("manifest.deviated", &data)
}

/// A check that nobody computes again.
fn written(life: &Life, fails: bool) -> Payload {
    let data = drifted::written(&judge(life), "anchors-1", fails);
    payload("judge.drift_checked", &data)
}

/// A check that both computes, from the scores that the anchors have; it becomes the last of the earlier ones.
fn check(world: &mut dyn World, life: &Life, earlier: &mut Vec<Vec<Micro>>, change: i64) {
    let through = world.size() - 1;
    let (said, scores) = drifted::again(&judge(life), earlier, through, change);
    earlier.push(scores);
    say(world, said);
}

const STALE: &[&str] = &[
    "manifest.deviated of m-1 on metric.judge_digest",
    "the gate is stale",
];

#[test]
fn a_gate_goes_on_once_a_deviation_says_how_drift_is_handled_and_is_stale_again_after_the_next() {
    tell(SOLO, |world| {
        let mut life = exposed(world);
        for said in drifted::anchored(&judge(&life)) {
            say(world, said);
        }
        let mut earlier = Vec::new();
        check(world, &life, &mut earlier, 0);
        let first = unit(world, &mut life, 1);
        say(world, first);
        check(world, &life, &mut earlier, 60_000);
        let known = world.size();
        say(world, deviated(&life, PATH, known));
        for t in 2..=5 {
            let observed = unit(world, &mut life, t);
            say(world, observed);
        }
        check(world, &life, &mut earlier, -90_000);
        let look = life.looked();
        refused(world, "drift", STALE, look.into());
    });
}

/// A gate with one observation, a failed check, and what is said then.
fn after_a_failure(then: impl Fn(&mut dyn World, &Life, u64)) {
    tell_forged(SOLO, |world| {
        let mut life = exposed(world);
        let first = unit(world, &mut life, 1);
        say(world, first);
        say(world, iterated::anchors(200));
        let known = world.size();
        say(world, written(&life, true));
        then(world, &life, known);
        let second = unit(world, &mut life, 2);
        refused(world, "drift", STALE, second);
    });
}

#[test]
fn a_stale_gate_observes_nothing() {
    after_a_failure(|_, _, _| {});
}

#[test]
fn a_deviation_that_knew_of_nothing_does_not_help() {
    after_a_failure(|world, life, known| say(world, deviated(life, PATH, known)));
}

#[test]
fn a_deviation_about_something_else_does_not_help() {
    after_a_failure(|world, life, _| {
        let now = world.size();
        say(world, deviated(life, "test.n_max", now));
    });
}

#[test]
fn a_deviation_is_for_an_owner_or_a_registrar() {
    tell(SOLO, |world| {
        let version = clover::num::Count::new(18).unwrap();
        let adopted = clover::event::payload::custody::RulebookAdopted { version };
        world.say(&owner(), adopted.into(), None);
        let life = exposed(world);
        let (bea, rob) = (signer(61), signer(62));
        let others = [(&bea, "Bea", Role::Arbiter), (&rob, "Rob", Role::Registrar)];
        for (key, holder, role) in others {
            world.say(&owner(), key_added(key, holder, &[role]).into(), None);
        }
        let known = world.size();
        let words = ["a key with role owner or registrar", "roles arbiter"];
        world.refuse_saying("role", &words, &bea, deviated(&life, PATH, known), EXP);
        world.say(&rob, deviated(&life, PATH, known), EXP);
    });
}

#[test]
fn a_later_check_that_passes_does_not_help() {
    after_a_failure(|world, life, _| say(world, written(life, false)));
}

#[test]
fn no_gate_is_opened_while_the_newest_check_of_its_judge_failed() {
    for reopened in [false, true] {
        tell_forged(SOLO, |world| {
            let mut life = drawn(world);
            say(world, iterated::anchors(200));
            say(world, written(&life, true));
            if reopened {
                // A pass after it lets the gate be opened; the next failure makes it stale.
                say(world, written(&life, false));
                say(world, life.opened());
                world.say(&signer(5), life.exposed(1, 0, 9), EXP);
                say(world, written(&life, true));
                let first = unit(world, &mut life, 1);
                refused(world, "drift", STALE, first);
            } else {
                refused(world, "drift", STALE, life.opened().into());
            }
        });
    }
}

/// A check that is edited, of anchors that are registered, is refused.
fn edited(rule: &str, wording: &[&str], edit: impl Fn(&mut Value)) {
    tell(SOLO, |world| {
        say(world, planned::experiment_registered());
        say(world, iterated::anchors(200));
        let mut data = drifted::written("judge-1", "anchors-1", true);
        edit(&mut data);
        refused(world, rule, wording, payload("judge.drift_checked", &data));
    });
}

#[test]
fn verdicts_follow_from_the_figures() {
    edited("drift", &["residuals fail", "pass"], |said| {
        said["verdicts"]["residuals"] = "pass".into();
    });
    edited("drift", &["ranks fail", "pass"], |said| {
        said["kendall_tau"] = 0.79.into();
    });
    edited("drift", &["version fail", "pass"], |said| {
        said["unversioned"] = 3.into();
    });
    edited("drift", &["version not_checked", "pass"], |said| {
        said.as_object_mut().unwrap().remove("asked");
    });
    edited("drift", &["ranks inconclusive", "pass"], |said| {
        said.as_object_mut().unwrap().remove("kendall_tau");
    });
    edited("drift", &["figures of all 2 scores", "3 rows"], |said| {
        said["rows"]["rows"] = 3.into();
    });
    edited("thresholds", &["the usual thresholds", "others"], |said| {
        said["terms"]["plan"]["sd_micro"] = 900_000.into();
    });
    edited("thresholds", &["a manifest version in force"], |said| {
        said["terms"]["manifest"] = "0".repeat(64).into();
    });
}

#[test]
fn a_check_of_anchors_that_nobody_registered_is_found() {
    tell_forged(SOLO, |world| {
        say(world, planned::experiment_registered());
        let data = drifted::written("judge-1", "anchors-of-nobody", true);
        let said = payload("judge.drift_checked", &data);
        refused(world, "drift", &["anchor_set.registered"], said);
    });
}

/// Under a manifest that registers a deviation in control of 0.02.
fn under_a_plan(wording: &[&str], edit: impl Fn(&mut Value, &str)) {
    tell(SOLO, |world| {
        say(world, planned::experiment_registered());
        let mut audits = planned::audits("exp-1", "m-audits");
        let mut plan = drifted::plan();
        plan["sd_micro"] = 20_000.into();
        audits["diagnostics"] = json!({"drift": plan});
        world.say(&owner(), planned::family(), None);
        say(world, planned::registered(&audits));
        say(world, iterated::anchors(200));
        let mut data = drifted::written("judge-1", "anchors-1", true);
        edit(&mut data, &planned::manifest(&audits).digest().to_hex());
        let said = payload("judge.drift_checked", &data);
        refused(world, "thresholds", wording, said);
    });
}

#[test]
fn what_a_manifest_registers_is_what_holds() {
    under_a_plan(
        &["that m-audits registers", "those of no manifest"],
        |_, _| {},
    );
    under_a_plan(&["that m-audits registers", "others"], |said, digest| {
        said["terms"]["manifest"] = digest.into();
    });
    under_a_plan(&["a manifest version in force"], |said, _| {
        said["terms"]["plan"]["sd_micro"] = 20_000.into();
        said["terms"]["manifest"] = "0".repeat(64).into();
    });
}

#[test]
fn a_check_whose_numbers_its_scores_do_not_give_is_refused() {
    let mut world = crate::support::TestLedger::new();
    world.register("exp-d");
    drifted::anchor(&mut world, "exp-d");
    let Payload::JudgeDriftChecked(mut said) = drifted::checked(&world, "exp-d", |_| 0) else {
        panic!("another kind");
    };
    said.policies[0].mean_change = clover::num::Finite::new(0.001).unwrap();
    let command = clover::ledger::Command::new(*said, Some("exp-d".parse().unwrap()));
    let refused = world.append(&[command]).unwrap_err().to_string();
    assert!(refused.contains("recompute"), "{refused}");
    assert!(refused.contains("mean_change"), "{refused}");
}

/// A plan of diagnostics that is out of range is refused.
fn out_of_range(wording: &str, diagnostics: &Value) {
    tell(SOLO, |world| {
        say(world, planned::experiment_registered());
        world.say(&owner(), planned::family(), None);
        let mut audits = planned::audits("exp-1", "m-audits");
        audits["diagnostics"] = diagnostics.clone();
        refused(world, "manifest", &[wording], planned::registered(&audits));
    });
}

#[test]
fn plans_of_diagnostics_have_ranges() {
    for (field, value) in [
        ("q_micro", 0),
        ("replicates", 98),
        ("sd_micro", 0),
        ("tau_min_micro", 1_000_001),
        ("chart_micro", -1),
    ] {
        let mut plan = drifted::plan();
        plan[field] = value.into();
        out_of_range(
            &format!("diagnostics.drift.{field}"),
            &json!({"drift": plan}),
        );
    }
    let mut plan = drifted::table_9();
    plan["ess_good_micro"] = 50_000.into();
    out_of_range(
        "diagnostics.overlap.ess_good_micro",
        &json!({"overlap": plan}),
    );
    let mut plan = drifted::table_9();
    plan["near_zero_max_micro"] = (-1).into();
    out_of_range(
        "diagnostics.overlap.near_zero_max_micro",
        &json!({"overlap": plan}),
    );
}
