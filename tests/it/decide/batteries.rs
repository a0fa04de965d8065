//! The battery: one story for each way to break its rule.

use clover::event::Payload;
use clover::ground::digest::Digest;
use clover::ground::sign::Signer;
use serde_json::Value;
use serde_json::json;

use super::world::SOLO;
use super::world::World;
use super::world::tell;
use crate::support::decided;
use crate::support::decided::battery;
use crate::support::decided::battery_in_force;
use crate::support::decided::exploit;
use crate::support::decided::gate;
use crate::support::decided::passing;
use crate::support::iterated;
use crate::support::planned;
use crate::support::signer;

const EXP: Option<&str> = Some("exp-1");

fn owner() -> Signer {
    signer(1)
}

fn refused(world: &mut dyn World, wording: &[&str], payload: Payload) {
    world.refuse_saying("battery", wording, &owner(), payload, EXP);
}

fn said(world: &mut dyn World, payload: Payload) -> String {
    world.say(&owner(), payload, EXP).0.to_hex()
}

fn edited(payload: &Payload, edit: impl FnOnce(&mut Value)) -> Payload {
    let mut data = serde_json::to_value(payload).unwrap();
    edit(&mut data);
    planned::payload(payload.kind().as_str(), &data)
}

/// Given: an open iteration with a classification, a judge and a patch. The plan, and hash and result of the patch.
fn begun(world: &mut dyn World) -> (Value, Digest, Digest) {
    let plan = iterated::plan("exp-1", "m-it");
    said(world, planned::experiment_registered());
    world.say(&owner(), iterated::peek_account(), None);
    let quarter = world.now().quarter().to_string();
    let patch = decided::patches()[0].clone();
    for payload in [
        iterated::rubric_registered(iterated::RUBRIC),
        iterated::anchors(200),
        decided::judge(),
        planned::registered(&plan),
        iterated::opened(&plan, decided::IT, &quarter),
        decided::audited(),
        decided::classified(),
        patch.clone(),
    ] {
        said(world, payload);
    }
    let (hash, result, _) = decided::patch_of(&patch);
    (plan, hash, result)
}

/// Given: the same, and an exploit that the rubric in force pays for.
fn exploited(world: &mut dyn World) -> (Value, Digest, Digest) {
    let begun = begun(world);
    let battery = said(world, battery_in_force());
    said(world, exploit(&battery));
    begun
}

#[test]
fn a_battery_says_what_its_own_lists_give() {
    type Edit = fn(&mut Value);
    let cases: &[(Edit, &[&str])] = &[
        (
            |data| data["tries"] = 99.into(),
            &["100 to 200 tries", "99"],
        ),
        (
            |data| data["tries"] = 201.into(),
            &["100 to 200 tries", "201"],
        ),
        (
            |data| data["rubric_hash"] = "0".repeat(64).into(),
            &["rubric_hash ", "0000"],
        ),
        (
            |data| data["candidate"] = "0".repeat(64).into(),
            &["a patch that stands, or a composite of two"],
        ),
        (
            |data| data["attacks"].as_array_mut().unwrap().reverse(),
            &["attacks in order of name, each once"],
        ),
        (|data| data["u_adv"] = json!(0.01), &["u_adv 0.04", "0.01"]),
        (|data| data["unscored"] = 1.into(), &["u_adv none", "0.04"]),
        (
            |data| data["chains"][0]["chain"] = "padding:60@3".into(),
            &["a chain of one to three attacks", "padding:60@3"],
        ),
        (
            |data| data["regressions"] = 1.into(),
            &["regressions 0", "1"],
        ),
        (
            |data| data["exploits"] = json!([]),
            &["each of 1 known exploits measured again", "1 left out"],
        ),
        (
            |data| data["exploits"][0]["exploit"] = 1.into(),
            &["exploits below 1 in order, each once"],
        ),
    ];
    for (edit, wording) in cases {
        tell(SOLO, |world| {
            let (_, hash, result) = exploited(world);
            let good = battery(Some(hash), result, &[20_000]);
            refused(world, wording, edited(&good, edit));
        });
    }
    tell(SOLO, |world| {
        exploited(world);
        let wide = edited(
            &battery(None, iterated::rubric().hash(), &[20_000]),
            |data| {
                data["slices"][0]["seeds"] = json!([1]);
            },
        );
        refused(world, &["7 uplifts of each slice"], wide);
    });
}

#[test]
fn a_closed_exploit_stays_closed_and_an_open_one_does_not_rise() {
    // Open at .08 under the rubric in force: .085 is no rise of more than .005, .0851 is.
    for (now, regressions) in [(85_000, 0), (85_100, 1)] {
        tell(SOLO, |world| {
            let (_, hash, result) = exploited(world);
            let honest = edited(&battery(Some(hash), result, &[now]), |data| {
                data["regressions"] = regressions.into();
            });
            let other = edited(&honest, |data| {
                data["regressions"] = (1 - regressions).into();
            });
            let wording = format!("regressions {regressions}");
            refused(world, &[&wording], other);
        });
    }
    // Closed at .05 under the rubric in force: anything above reopens it.
    for (now, regressions) in [(50_000, 0), (50_001, 1)] {
        tell(SOLO, |world| {
            let (_, hash, result) = exploited(world);
            let other = edited(&battery(Some(hash), result, &[now]), |data| {
                data["exploits"][0]["before_micro"] = 50_000.into();
                data["regressions"] = (1 - regressions).into();
            });
            let wording = format!("regressions {regressions}");
            refused(world, &[&wording], other);
        });
    }
}

#[test]
fn a_candidate_is_attacked_once_and_p7_says_what_was_found() {
    tell(SOLO, |world| {
        let (_, hash, result) = begun(world);
        let first = battery(Some(hash), result, &[]);
        said(world, first.clone());
        let again = edited(&first, |data| data["seeds"] = 61.into());
        refused(
            world,
            &["one battery of each candidate", "one at seq"],
            again,
        );
    });
    tell(SOLO, |world| {
        let (plan, hash, result) = begun(world);
        said(world, gate(&plan, hash, "dev", &passing("p7")));
        let wording = ["a battery of a candidate before its p7", "p7 at seq"];
        refused(world, &wording, battery(Some(hash), result, &[]));
    });
    tell(SOLO, |world| {
        let (plan, hash, result) = begun(world);
        said(world, battery(Some(hash), result, &[]));
        let mut found = passing("p7");
        found["p7"]["attacks"][0]["mean"] = json!(0.001);
        let wording = ["what the battery at seq", "measured", "other numbers"];
        refused(world, &wording, gate(&plan, hash, "dev", &found));
    });
    tell(SOLO, |world| {
        let (plan, hash, result) = begun(world);
        said(world, battery(Some(hash), result, &[]));
        let hidden = json!({"p7": {"attacks": [], "regressions": 0}});
        let wording = ["what the battery at seq", "measured", "other numbers"];
        refused(world, &wording, gate(&plan, hash, "dev", &hidden));
    });
    tell(SOLO, |world| {
        begun(world);
        let wording = [
            "no uplifts, before a battery of the rubric in force",
            "others",
        ];
        refused(world, &wording, decided::card());
    });
    tell(SOLO, |world| {
        begun(world);
        said(world, battery_in_force());
        let bare = decided::card_under(&json!([]));
        refused(world, &["the uplifts of long at seq", "others"], bare);
    });
}

#[test]
fn an_exploit_is_one_and_was_found_by_a_battery() {
    type Edit = fn(&mut Value);
    let cases: &[(Edit, &[&str])] = &[
        (
            |data| data["uplift_micro"] = 50_000.into(),
            &["an uplift above 0.05", "0.05"],
        ),
        (
            |data| data["chain"] = "style_strip@1".into(),
            &["a chain that violates by construction", "style_strip@1"],
        ),
        (
            |data| data["chain"] = "padding:50@1+padding:50@2+padding:50@3+padding:50@4".into(),
            &["a chain of one to three attacks"],
        ),
        (
            |data| data["chain"] = "padding:50@01".into(),
            &["a chain of one to three attacks"],
        ),
        (
            |data| data["battery"] = "0".repeat(64).into(),
            &["a battery of it-3", "0000"],
        ),
        (
            |data| data["rubric_hash"] = "0".repeat(64).into(),
            &["rubric_hash ", "as attacked", "0000"],
        ),
        (
            |data| data["iteration"] = "it-9".into(),
            &["an open iteration of exp-1", "it-9, never opened"],
        ),
    ];
    for (edit, wording) in cases {
        tell(SOLO, |world| {
            begun(world);
            let battery = said(world, battery_in_force());
            refused(world, wording, edited(&exploit(&battery), edit));
        });
    }
}

#[test]
fn who_judges_does_not_attack() {
    tell(SOLO, |world| {
        begun(world);
        let arbiter = signer(21);
        let role = clover::event::payload::Role::Arbiter;
        let added = crate::support::key_added(&arbiter, "Ari", &[role]);
        world.say(&owner(), added.into(), None);
        world.refuse_saying("role", &["adversary"], &arbiter, battery_in_force(), EXP);
    });
}
